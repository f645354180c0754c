// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab fit-device`, and the files that `--device` takes.

use crate::support::{Folder, root};
use serde_json::Value;

fn with_testdata() -> Folder {
    let folder = Folder::new();
    let from = root().join("testdata").canonicalize().expect("a folder");
    std::os::unix::fs::symlink(from, folder.path("testdata")).expect("a link");
    folder
}

/// Standard output of a command that writes a file, which it says.
fn wrote(f: &Folder, args: &[&str]) -> String {
    let done = f.run(args);
    assert_eq!(done.code, Some(0), "{args:?}: {}", done.stderr);
    assert!(done.stderr.starts_with("wrote "), "{}", done.stderr);
    done.stdout
}

#[test]
fn parameters_of_a_simulated_drive_are_found_again() {
    let f = with_testdata();
    let args = [
        "fit-device",
        "testdata/fit/reads.json",
        "--like",
        "nvme-datacenter",
    ];
    let output = ["-o", "drive.toml", "--format", "json"];
    let json = wrote(&f, &[&args[..], &output].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let params = &json["device"]["params"];
    let command: f64 = params["command_us"]
        .as_str()
        .expect("is set")
        .parse()
        .expect("a number");
    assert!((command / 2.6 - 1.0).abs() < 0.05, "{command}");
    let cells = json["cells"].as_array().expect("cells");
    let held_out: Vec<&Value> = cells.iter().filter(|c| c["held_out"] == true).collect();
    assert_eq!(held_out.len(), 1, "of four");
    for figure in held_out[0]["figures"].as_array().expect("figures") {
        let number = |key: &str| figure[key].as_f64().expect("a number");
        let ratio = number("ours") / number("measured");
        assert!((ratio - 1.0).abs() < 0.15, "{figure}");
    }

    // The file is a device, and what stands behind it goes before what it says.
    let shown = |device: &str| {
        let done = f.ok(&[
            "run",
            "job.fio",
            "--device",
            device,
            "--output-format",
            "json",
        ]);
        serde_json::from_str::<Value>(&done).expect("JSON")["blklab"]["device"].clone()
    };
    let device = shown("drive.toml,ways=2");
    assert_eq!(device["name"], "nvme-datacenter");
    assert_eq!(device["params"]["ways"], "2");
    let shown: f64 = device["params"]["command_us"]
        .as_str()
        .expect("is set")
        .parse()
        .expect("a number");
    assert_eq!(shown, command);
}

#[test]
fn six_numbers_and_traces_are_devices_too() {
    let f = with_testdata();
    let line = "8:16 ctrl=user model=linear rbps=488636629 rseqiops=8932 rrandiops=8518 \
                wbps=427891549 wseqiops=28755 wrandiops=21940\n";
    f.write("model.txt", line);
    wrote(&f, &["fit-device", "model.txt", "-o", "six.toml"]);
    f.ok(&["run", "job.fio", "--device", "six.toml"]);
    let text = f.read("six.toml");
    assert!(
        text.contains("rrandiops = 8518") && text.contains("read_us"),
        "{text}"
    );

    f.ok(&["run", "job.fio", "--trace", "run.blk"]);
    let said = wrote(&f, &["fit-device", "run.blk", "-o", "law.toml"]);
    assert!(said.contains("fitted to"), "{said}");
    f.ok(&["run", "job.fio", "--device", "law.toml"]);
}

#[test]
fn jobs_are_printed_or_written() {
    let f = Folder::new();
    let all = f.ok(&["fit-device", "--jobs", "--disk", "/dev/nvme7n1"]);
    assert!(
        all.contains("filename=/dev/nvme7n1") && all.contains("3-steady.fio"),
        "{all}"
    );
    f.ok(&["fit-device", "--jobs", "--out", "jobs", "--runtime", "0.03"]);
    assert_eq!(f.names("jobs").len(), 3);
    let listed = f.ok(&[
        "workload",
        "jobs/3-steady.fio",
        "--device",
        "nvme-consumer",
        "-n",
        "1",
    ]);
    assert!(listed.lines().count() > 20, "{listed}");
}

#[test]
fn what_cannot_be_read_is_said_in_a_line() {
    let f = with_testdata();
    f.write("no.json", "{\"jobs\": 3}\n");
    f.write("broken.json", "{\"jobs\": [\n");
    f.write("bad.csv", "cell,direction,iops\na,read,many\n");
    f.write(
        "bad.toml",
        "[device]\nname = \"nvme-consumer\"\nred_us = 1\n",
    );
    f.write("none.toml", "[device]\nread_us = 1\n");
    f.write(
        "other.toml",
        "kernel = \"6.12\"\n[device]\nname = \"nvme-consumer\"\n",
    );
    for (args, said) in [
        (
            &["fit-device", "no.json"][..],
            "no.json: no result of fio: it has no 'jobs'",
        ),
        (&["fit-device", "broken.json"], "broken.json:"),
        (
            &["fit-device", "bad.csv"],
            "bad.csv:2: iops=many: expected a number above 0",
        ),
        (&["fit-device", "away.json"], "cannot read away.json"),
        (
            &["fit-device", "testdata/fit/reads.json", "--like", "sas-15k"],
            "--like: sas-15k is no flash drive",
        ),
        (&["run", "job.fio", "--device", "bad.toml"], "red_us"),
        (
            &["run", "job.fio", "--device", "none.toml"],
            "none.toml:1: device: no 'name'",
        ),
        (
            &["run", "job.fio", "--device", "other.toml"],
            "other.toml:1: no key is called 'kernel'",
        ),
        (
            &["run", "job.fio", "--device", "away.toml"],
            "away.toml: cannot read",
        ),
    ] {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{args:?}: {}", done.stderr);
    }
}
