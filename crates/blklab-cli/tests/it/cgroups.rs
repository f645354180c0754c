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
    assert_eq!(groups["tenant/slow"]["read_ios"].as_f64(), Some(slow));
    assert_eq!(groups["tenant"]["read_ios"].as_f64(), Some(slow + fast));
    assert!(groups["tenant"]["pressure"]["full"]["total_us"].is_u64());
    assert!(run["blklab"]["pressure"]["some"]["avg10"].is_f64());
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
    let moved = "  a: 4.00MiB written in 64 I/Os, stalled for ";
    assert!(text.contains(moved), "{text}");
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

/// I/Os per second of a job's writes.
fn write_rate(v: &Value, job: &str) -> f64 {
    let jobs = v["jobs"].as_array().expect("jobs");
    let found = jobs.iter().find(|j| j["jobname"] == job);
    let rate = &found.expect("the job")["write"]["iops"];
    rate.as_f64().expect("a number")
}

/// Runs a job file in which group `a` may write 10 MiB/s, and b what it likes.
fn beside_a_held_group(f: &Folder, jobs: &str, more: &[&str]) -> Value {
    let global = "[global]\nrw=write\nbs=64k\ntime_based\nruntime=4\nfallocate=none\n";
    f.write("w.fio", format!("{global}{jobs}"));
    let mut args = vec!["run", "w.fio", "--kernel", "6.12", "--sched", "none"];
    args.extend(["--device", "null_blk,completion_nsec=1000000"]);
    for set in [
        "dirty_bytes=16777216",
        "dirty_background_bytes=4194304",
        "cgroup.a.io.max=wbps=10485760",
    ] {
        args.extend(["--set", set]);
    }
    json(f, &[&args, more].concat())
}

#[test]
fn write_back_of_a_disk_is_held_and_its_writer_with_it() {
    let f = Folder::new();
    let job = "filename=/dev/nullb0\nsize=256m\n[a]\ncgroup=a\n";
    // The limit, and what may be dirty: 16 MiB in 4 s.
    let rate = write_rate(&beside_a_held_group(&f, job, &[]), "a");
    assert!((200.0..=230.0).contains(&rate), "{rate}");
}

#[test]
fn a_group_is_not_held_by_the_dirty_pages_of_another() {
    let f = Folder::new();
    let b = "cgroup.b.io.max=wbps=max";
    let jobs = "size=64m\n[a]\ncgroup=a\n[b]\ncgroup=b\n";
    let two = beside_a_held_group(&f, jobs, &["--fs", "ext4", "--set", b]);
    let (held, free) = (write_rate(&two, "a"), write_rate(&two, "b"));
    assert!((150.0..=240.0).contains(&held), "{held}");
    assert!(free > 1.5 * held, "{free} {held}");
}

/// From 5.6 on: new blocks are unwritten, and a commit does not wait for their data.
#[test]
fn fsync_on_ext4_does_not_wait_for_what_another_group_may_not_write() {
    let f = Folder::new();
    let b = "cgroup.b.io.max=wbps=max";
    let jobs = "[a]\nsize=64m\ncgroup=a\n[b]\nrw=randwrite\nbs=4k\nsize=8m\nfsync=4\ncgroup=b\n";
    let rate = |fs| {
        let both = beside_a_held_group(&f, jobs, &["--fs", fs, "--set", b]);
        write_rate(&both, "b")
    };
    let [lock, nolock] = ["ext4,dioread_nolock=0", "ext4"].map(rate);
    assert!(nolock > 3.0 * lock, "{nolock} {lock}");
}

#[test]
fn what_is_wrong_is_one_line() {
    let f = Folder::new();
    f.write("j.fio", "[a]\nsize=1m\ncgroup=a\n");
    let cases: [(&[&str], &str); 4] = [
        (
            &["--kernel", "4.19", "--set", "cgroup.a.io.max=rbps=1"],
            "blklab: j.fio: cgroup a: io.max: kernel 4.19: it is modelled from 5.0 on; earlier kernels have limits in",
        ),
        (
            &["--kernel", "6.1", "--set", "cgroup.a.memory.high=1048576"],
            "blklab: j.fio: cgroup a: memory.high is not modelled; the target kernel has it, and modelled",
        ),
        (
            &["--kernel", "6.1", "--set", "cgroup.a.io.max=rps=1"],
            "blklab: --set: cgroup a: io.max: no limit is called 'rps'; did you mean 'rbps'?",
        ),
        (
            &["--kernel", "2.6.28"],
            "blklab: j.fio:3: cgroup a: kernel 2.6.28 has no control groups for I/O",
        ),
    ];
    for (args, expected) in cases {
        let done = f.run(&[&["run", "j.fio"], args].concat());
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.starts_with(expected), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}
