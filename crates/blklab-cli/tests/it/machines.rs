// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measured machine: the 2.6.28 whose figures are carried along, against the
//! ordinary path of a fio job.
//!
//! `BLKLAB_CASES=all` runs every case with five seeds and shows the table
//! (`--nocapture`); a name, or several with commas, runs those.

use crate::support::{Folder, root};
use serde_json::Value;

fn machine() -> String {
    let dir = root().join("testdata/machine-2628");
    dir.to_string_lossy().into_owned()
}

#[test]
fn a_case_takes_what_the_kernel_took() {
    let args = ["--case", "ls-sda-cfq-d31", "--seeds", "1"];
    let command = ["conform", &machine(), "--output-format", "json"];
    let done = Folder::new().run(&[&command[..], &args[..]].concat());
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    let case = &report["machines"][0];
    assert_eq!(case["within"], true, "{case:#}");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let judged = case["figures"].as_array().expect("figures");
    let judged = judged.iter().filter(|f| !f["allowed"].is_null());
    let names: Vec<&str> = judged.filter_map(|f| f["name"].as_str()).collect();
    assert_eq!(names, ["contended median", "longest reader", "writer"]);
}

#[test]
fn every_chosen_case_takes_what_the_kernel_took() {
    let Ok(chosen) = std::env::var("BLKLAB_CASES") else {
        blklab_testkit::skipped("BLKLAB_CASES=all runs every case");
        return;
    };
    let machine = machine();
    let mut args = vec!["conform", &machine];
    if chosen != "all" {
        args.extend(["--case", &chosen]);
    }
    let done = Folder::new().run(&args);
    println!("{}{}", done.stdout, done.stderr);
    assert_eq!(done.code, Some(0));
}

#[test]
fn what_is_wrong_with_a_folder_or_a_choice_is_one_line() {
    let f = Folder::new();
    let head = "case,scheduler,target,queue_depth,device_order,write_cache_sectors,\
                memory_mib,fs,mount,changed,writer_ms\n";
    let row = "a,cfq,one disk,31,fifo,0,512,ext3,defaults,,1000\n";
    f.write("short/results.csv", format!("{head}a,cfq\n"));
    f.write("other/results.csv", "name,value\n");
    f.write("alone/results.csv", format!("{head}{row}"));
    f.write("jobless/results.csv", format!("{head}{row}"));
    f.write("jobless/results/a.json", "{}");
    let machine = machine();
    for (args, what) in [
        (vec!["short"], "results.csv:2: 2 fields instead of 11"),
        (vec!["other"], "no column 'case'"),
        (vec!["alone"], "a.json: cannot read"),
        (vec!["jobless"], "neither job_file nor pwrite"),
        (vec![&machine, "--case", "ls-sda"], "ls-sda-cfq-d31"),
        (vec![&machine, "--seeds", "0"], "--seeds: at least 1"),
        (
            vec!["job.fio", "--case", "x"],
            "no measured machines or fio",
        ),
    ] {
        let done = f.run(&[vec!["conform"], args].concat());
        assert_eq!(done.code, Some(2), "{}{}", done.stdout, done.stderr);
        assert!(done.stderr.contains(what), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}

#[test]
fn a_case_that_is_off_is_exit_code_1_and_what_cannot_run_says_why() {
    let f = Folder::new();
    let head = "case,scheduler,target,queue_depth,device_order,write_cache_sectors,\
                memory_mib,fs,mount,changed,writer_ms\n";
    let on = "one disk,31,fifo,0,512,ext3,defaults";
    f.write(
        "m/results.csv",
        format!("{head}a,cfq,{on},,1000000\nb,bfq,{on},,1000\n"),
    );
    for id in ["a", "b"] {
        f.write(&format!("m/results/{id}.json"), "{\"job_file\": \"w.fio\"}");
    }
    f.write("m/jobs/w.fio", "[w]\nrw=write\nbs=1m\nsize=8m\n");
    let done = f.run(&["conform", "m", "--seeds", "2"]);
    assert_eq!(done.code, Some(1), "{}{}", done.stdout, done.stderr);
    for line in [
        "OFF",
        "b                        not run: ",
        "2 cases of measured machines: 1 ran, 0 within",
    ] {
        assert!(done.stdout.contains(line), "{}", done.stdout);
    }
    let text = f
        .run(&["conform", "m", "--output-format", "markdown"])
        .stdout;
    assert!(text.contains("| a | writer, s | 1000.0 |"), "{text}");
}
