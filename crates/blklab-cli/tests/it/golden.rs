// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output stored beside this file; `UPDATE_GOLDEN=1 cargo test -p blklab-cli`
//! writes it anew, for review as a text.

use crate::support::{Folder, root};
use std::path::Path;

fn check(name: &str, args: &[&str]) {
    check_in(&Folder::new(), name, args);
}

/// What is printed in a folder with files of its own.
fn check_in(f: &Folder, name: &str, args: &[&str]) {
    check_text(name, args, &f.ok(args));
}

fn check_text(name: &str, args: &[&str], text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == golden,
        "blklab {} differs from {}; if that is meant, run with UPDATE_GOLDEN=1\n{text}",
        args.join(" "),
        path.display()
    );
}

#[test]
fn lists() {
    for what in [
        "schedulers",
        "tunables",
        "devices",
        "kernels",
        "targets",
        "patches",
        "formats",
        "engines",
        "scenarios",
    ] {
        check(&format!("list-{what}.txt"), &["list", what]);
    }
    check(
        "list-schedulers-2.6.28.txt",
        &["list", "schedulers", "--kernel", "2.6.28"],
    );
    check("list-deadline.txt", &["list", "schedulers", "deadline"]);
    check(
        "list-patches.json",
        &["list", "patches", "--output-format", "json"],
    );
}

#[test]
fn conform() {
    let cases = root().join("testdata/legacy/cases");
    check("conform.txt", &["conform", &cases.to_string_lossy()]);
}

#[test]
fn tables_of_control_groups() {
    for name in ["cgroups", "cgroup-weights"] {
        let file = root().join(format!("examples/{name}.toml"));
        let file = file.to_string_lossy();
        check_tables(&Folder::new(), name, &[&file]);
    }
}

/// Jobs of several names, groups, directions and starts.
const JOBS: &str = "\
[global]
size=1m
ioengine=libaio
direct=1
[reader1]
rw=randread
iodepth=4
[reader2]
rw=randread
startdelay=1
[scan]
rw=read
bs=64k
numjobs=2
[log]
new_group
rw=write
startdelay=1
";

/// The tables of a run, without digests and notes below them.
fn check_tables(f: &Folder, name: &str, args: &[&str]) {
    let args = [&["run"], args].concat();
    let text = f.ok(&args);
    let ends = ["\ndigest of all events", " s of virtual time", "\nnote: "];
    let ends = ends.iter().filter_map(|end| text.find(end));
    let tables = &text[..ends.min().expect("something follows")];
    check_text(&format!("run-{name}.txt"), &args, tables);
}

#[test]
fn tables_of_jobs() {
    let f = Folder::new();
    f.write("jobs.fio", JOBS);
    check_tables(&f, "jobs", &["jobs.fio", "--kernel", "6.1"]);
    let matrix = ["jobs.fio", "--kernel", "6.1", "--sched", "mq-deadline,bfq"];
    check_tables(&f, "jobs-matrix", &matrix);
    let (before, after) = JOBS.split_once("[log]").expect("the last job");
    let more = (3..13).map(|i| format!("[reader{i}]\nrw=randread\nstartdelay=1\n"));
    let many = [before, &more.collect::<String>(), "[log]", after].concat();
    f.write("jobs.fio", many);
    check_tables(&f, "jobs-many", &["jobs.fio", "--repeat", "2"]);
}

/// What is said where the rates of a table are not fio's, and only there.
#[test]
fn rates_over_the_time_that_jobs_ran() {
    let f = Folder::new();
    let note = "note: bandwidth and IOPS of several jobs are over the time in which at least one";
    let run = |starts: &[u32]| {
        let jobs = starts.iter().enumerate().map(|(i, s)| {
            format!(
                "[j{i}]\nrw=read\nsize=64m\ndirect=1\nbs=1m\ncreate_serialize=0\nstartdelay={s}\n"
            )
        });
        f.write("starts.fio", jobs.collect::<String>());
        f.ok(&["run", "starts.fio", "--device", "serial,read_ns=1000000"])
    };
    // One after another, 64 reads of 1 ms each; then both at once.
    let apart = run(&[0, 5]);
    assert!(apart.contains(note), "{apart}");
    let iops = |text: &str| {
        let mut lines = text.lines();
        let row = lines.find(|l| l.starts_with("all 2 jobs")).expect("a row");
        let last = row.split_whitespace().last().expect("IOPS");
        last.parse::<f64>().expect("a number")
    };
    let together = run(&[0, 0]);
    assert!(!together.contains(note), "{together}");
    let ratio = iops(&apart) / iops(&together);
    assert!((0.98..=1.02).contains(&ratio), "{apart}{together}");
}
