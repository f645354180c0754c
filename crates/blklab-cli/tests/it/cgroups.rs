// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups on the command line, in experiment files and results.

use crate::support::{Folder, root};
use serde_json::Value;

fn example(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

fn json(f: &Folder, args: &[&str]) -> Value {
    let text = f.ok(&[args, &["--output-format", "json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// I/Os of a job.
fn ios(v: &Value, job: &str) -> f64 {
    let jobs = v["jobs"].as_array().expect("jobs");
    let found = jobs.iter().find(|j| j["jobname"] == job);
    found.expect("the job")["read"]["total_ios"]
        .as_f64()
        .expect("a number")
}

#[test]
fn limits_of_two_groups_below_one() {
    let f = Folder::new();
    let run = json(&f, &["run", &example("cgroups.toml")]);
    // 3 s, and 16 in flight at their end: 2000 of 5120 reads a second.
    let (slow, fast) = (ios(&run, "slow"), ios(&run, "fast"));
    assert!((5980.0..=6016.0).contains(&slow), "{slow}");
    assert!((15_300.0..=15_392.0).contains(&(slow + fast)), "{fast}");
    let groups = &run["blklab"]["cgroups"];
    assert!(groups["tenant/slow"]["held_bios"].as_u64() > Some(0));
    assert!(groups["tenant/slow"]["longest_hold_ns"].as_u64() <= Some(110_000_000));
    let again = json(&f, &["run", &example("cgroups.toml")]);
    assert_eq!(again["blklab"]["digest"], run["blklab"]["digest"]);
}

#[test]
fn weights_of_groups() {
    let f = Folder::new();
    let runs = json(&f, &["run", &example("cgroup-weights.toml")]);
    for run in runs.as_array().expect("two configurations") {
        let share = ios(run, "heavy") / ios(run, "light");
        let name = &run["blklab"]["label"];
        assert!((2.7..=3.3).contains(&share), "{name}: {share}");
    }
}

#[test]
fn a_job_file_is_limited_by_settings() {
    let f = Folder::new();
    f.write(
        "w.fio",
        "[w]\nioengine=sync\ndirect=1\nrw=write\nbs=64k\nsize=4m\ncgroup=a\n",
    );
    let kernel = ["--kernel", "6.1", "--sched", "mq-deadline"];
    let set = ["--set", "cgroup.a.io.max=wbps=1048576,wbps=2097152"];
    let text = f.ok(&[&["run", "w.fio"], &kernel[..], &set].concat());
    assert!(text.contains("cgroup.a.io.max=wbps=1048576"), "{text}");
    assert!(
        text.contains("bios throttled by io.max (cgroup.a.io.max=wbps=2097152):\n  a: "),
        "{text}"
    );
    // A run directory holds the groups.
    let one = ["--out", "dir", "--set", "cgroup.a.io.max=wbps=1048576"];
    f.ok(&[&["run", "w.fio"], &kernel[..], &one].concat());
    let written = std::fs::read_to_string(f.path("dir/experiment.toml")).expect("a file");
    assert!(
        written.contains("\"io.max\" = \"wbps=1048576\""),
        "{written}"
    );
    f.ok(&["run", "dir/experiment.toml"]);
}

#[test]
fn what_is_wrong_is_one_line() {
    let f = Folder::new();
    f.write("j.fio", "[a]\nsize=1m\ncgroup=a\n");
    let cases: [(&[&str], &str); 4] = [
        (
            &["--kernel", "4.19", "--set", "cgroup.a.io.max=rbps=1"],
            "blklab: j.fio: cgroup a: io.max: kernel 4.19: it is modelled from 5.0 on; the limits of",
        ),
        (
            &["--kernel", "6.1", "--set", "cgroup.a.io.latency=target=1"],
            "blklab: --set: cgroup a: io.latency is not modelled; modelled are io.max",
        ),
        (
            &["--kernel", "6.1", "--set", "cgroup.a.io.max=rps=1"],
            "blklab: --set: cgroup a: io.max: no limit is called 'rps'; did you mean 'rbps'?",
        ),
        (
            &["--kernel", "2.6.28"],
            "blklab: j.fio: cgroup a: kernel 2.6.28 has no control groups for I/O",
        ),
    ];
    for (args, expected) in cases {
        let done = f.run(&[&["run", "j.fio"], args].concat());
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.starts_with(expected), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}
