// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab kernel`, and runs on the kernels that it has built.

use crate::support::{Done, Folder};
use std::process::Command;

/// Runs blklab with a cache of its own, which is empty.
fn with_empty_cache(f: &Folder, args: &[&str]) -> Done {
    let mut command: Command = f.command(args);
    command.env("XDG_CACHE_HOME", f.path("cache"));
    let output = command.output().expect("blklab starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

#[test]
fn what_is_not_there_is_said_with_what_brings_it() {
    let f = Folder::new();
    let list = with_empty_cache(&f, &["kernel", "list"]);
    assert_eq!((list.code, list.stdout.as_str()), (Some(0), ""));
    let cases: &[(&[&str], &str)] = &[
        (&["kernel", "remove", "7.3"], "no kernel was built yet"),
        (&["kernel", "build", "6.1.2"], "write it like 7.3 or 6.12"),
        (
            &["run", "job.fio", "--target", "kernel", "--kernel", "2.6.28"],
            "'2.6.28' is no release that Debian has a source of",
        ),
        (
            &[
                "run",
                "job.fio",
                "--target",
                "kernel",
                "--kernel-source",
                "nowhere",
            ],
            "nowhere/Makefile cannot be read",
        ),
        (
            &["run", "job.fio", "--target", "kernel", "--fs", "ntfs-3g"],
            "the target kernel does not take the filesystem ntfs-3g",
        ),
        (
            &["run", "job.fio", "--fs", "f2fs"],
            "the filesystem f2fs is not modelled; the target kernel has it",
        ),
        (
            &["run", "job.fio", "--fs", "ext4,mount=nobarrier"],
            "mount of ext4 is not modelled; the target kernel has it",
        ),
        (
            &["run", "compilebench", "--target", "kernel"],
            "runs fio jobs, not compilebench: it makes and removes folders, which no fio job does",
        ),
        (
            &["run", "pvfs-bench", "--target", "kernel"],
            "mode=pwrite can be had",
        ),
        (
            &[
                "run", "job.fio", "--target", "kernel", "--kernel", "7.3", "--fs", "reiserfs",
            ],
            "kernel 7.3 has no reiserfs: it went with 6.13; 6.12 has it",
        ),
        (
            &[
                "run",
                "job.fio",
                "--target",
                "kernel",
                "--set",
                "reap_cost_ns=7",
            ],
            "the target kernel does not take reap_cost_ns yet",
        ),
    ];
    all_refused(&f, cases);
}

#[test]
fn a_tick_that_no_kernel_has_is_refused() {
    let f = Folder::new();
    let done = with_empty_cache(&f, &["kernel", "build", "7.3", "--hz", "200"]);
    assert_eq!(done.code, Some(2));
    let expected = "expected one of 100, 250, 300, 1000";
    assert!(done.stderr.contains(expected), "{}", done.stderr);
}

fn all_refused(f: &Folder, cases: &[(&[&str], &str)]) {
    for (args, expected) in cases {
        let done = with_empty_cache(f, args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
}

#[test]
fn what_qemu_cannot_run_is_said_by_name() {
    let f = Folder::new();
    f.write("text", "no image");
    let cases: &[(&[&str], &str)] = &[
        (
            &["kernel", "fetch", "6.12", "--flavour", "../x"],
            "write it like cloud-amd64",
        ),
        (&["kernel", "fetch", "6.12.1"], "write it like 7.3 or 6.12"),
        (&["kernel", "add", "text"], "no image of a kernel for x86"),
        (&["kernel", "add", "missing"], "cannot be read"),
        (
            &[
                "run",
                "job.fio",
                "--target",
                "qemu",
                "--device",
                "nvme-consumer",
            ],
            "not the model nvme-consumer, which the target kernel has",
        ),
        (
            &[
                "run",
                "job.fio",
                "--target",
                "kvm",
                "--set",
                "io_cost_ns=7",
                "--device",
                "null_blk",
            ],
            "the target kvm does not take io_cost_ns yet",
        ),
        (
            &[
                "run", "job.fio", "--target", "qemu", "--set", "cpus=300", "--device", "null_blk",
            ],
            "QEMU has 255 processors at most, not 300",
        ),
        (
            &[
                "run", "job.fio", "--target", "qemu", "--set", "hz=1000", "--device", "null_blk",
            ],
            "ticks other than 250 a second, with which its image was built",
        ),
        (
            &[
                "run",
                "job.fio",
                "--target",
                "qemu",
                "--device",
                "scsi_debug,ndelay=2s",
            ],
            "delays by less than a second",
        ),
    ];
    all_refused(&f, cases);
    if !blklab_testkit::has_program("qemu-system-x86_64") {
        blklab_testkit::skipped("qemu-system-x86_64 is missing");
        return;
    }
    let missing = "blklab kernel fetch RELEASE fetches one";
    let named: &[&str] = &[
        "run",
        "job.fio",
        "--target",
        "qemu",
        "--device",
        "null_blk",
        "--kernel",
        "6.12.1-mine",
    ];
    all_refused(&f, &[(named, missing)]);
}

/// The release of an image that is there on this machine.
fn image(f: &Folder) -> Option<String> {
    let list = f.ok(&["kernel", "list"]);
    let mut rows = list.lines().filter(|line| line.contains("  qemu  "));
    let name = rows
        .next_back()
        .and_then(|row| row.split_whitespace().next());
    let has_all = ["qemu-system-x86_64", "fio", "blktrace", "addpart"]
        .into_iter()
        .all(blklab_testkit::has_program);
    if name.is_none() || !has_all {
        blklab_testkit::skipped(
            "no image of a kernel is here, or QEMU, fio or blktrace is missing",
        );
        return None;
    }
    name.map(str::to_owned)
}

#[test]
fn an_image_gives_the_same_events_of_two_processors_twice() {
    let f = Folder::new();
    let Some(name) = image(&f) else { return };
    f.write(
        "two.fio",
        "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=2\nnumjobs=2\nsize=1m\n",
    );
    let args = ["run", "two.fio", "--target", "qemu", "--kernel", &name];
    let more = [
        "--device",
        "null_blk,completion_nsec=50us",
        "--sched",
        "none",
    ];
    let last = ["--set", "cpus=2", "--memory", "512m", "--verify-digest"];
    let text = f.ok(&[&args[..], &more, &last].concat());
    assert!(text.contains("512 I/Os"), "{text}");
    assert!(text.contains("verified: two runs gave digest"), "{text}");
    assert!(text.contains("on 2 processors"), "{text}");
}

/// The release of a kernel that was built on this machine.
fn release(f: &Folder) -> Option<String> {
    let list = f.ok(&["kernel", "list"]);
    let is_usual = |line: &&str| line.contains("  uml  ") && !line.ends_with(" Hz");
    let newest = list.lines().rfind(is_usual);
    let release = newest.and_then(|line| {
        let mut numbers = line.split(['.', '-']);
        Some(format!("{}.{}", numbers.next()?, numbers.next()?))
    });
    let has_all = ["fio", "blktrace", "addpart"]
        .into_iter()
        .all(blklab_testkit::has_program);
    if release.is_none() || !has_all {
        blklab_testkit::skipped(
            "no kernel was built on this machine, or fio or blktrace is missing",
        );
        return None;
    }
    release
}

/// Filesystems that programs of this machine make and a kernel has.
fn filesystems() -> impl Iterator<Item = &'static str> {
    let all = [
        ("ext4", "mke2fs"),
        ("xfs", "mkfs.xfs"),
        ("btrfs", "mkfs.btrfs"),
        ("f2fs", "mkfs.f2fs"),
    ];
    let there = all
        .into_iter()
        .filter(|(_, program)| blklab_testkit::has_program(program));
    there.map(|(name, _)| name)
}

#[test]
fn files_lie_on_filesystems_and_what_prepares_them_is_not_in_the_trace() {
    let f = Folder::new();
    let Some(release) = release(&f) else { return };
    f.write(
        "files.fio",
        "[global]\nbs=4k\n[reader]\nrw=randread\nsize=16m\nio_size=1m\ndirectory=/data/base\n\
         [writer]\nrw=write\nsize=1m\nfsync=32\nfilename=log/journal\n",
    );
    for name in filesystems() {
        let args = [
            "run",
            "files.fio",
            "--target",
            "kernel",
            "--kernel",
            &release,
            "--fs",
            name,
        ];
        let more = ["--device", "nvme-consumer", "--memory", "512m"];
        let run = |out: &str| f.run(&[&args[..], &more, &["--out", out]].concat());
        let first = run(&format!("{name}-1"));
        if first.stderr.contains("was built without") {
            continue;
        }
        assert_eq!(first.code, Some(0), "{name}: {}", first.stderr);
        assert!(
            first.stdout.contains("in 256 I/Os"),
            "{name}: {}",
            first.stdout
        );
        assert!(
            first.stdout.contains("calls of fsync"),
            "{name}: {}",
            first.stdout
        );
        // The files took more than that, and mkfs.
        let stats = f.ok(&["trace", "stats", &format!("{name}-1/events.blk")]);
        assert!(
            !stats.contains("mkfs") && !stats.contains("mke2fs"),
            "{name}: {stats}"
        );
        // That a kernel does the same twice does not depend on the filesystem.
        if name == "ext4" {
            let digest = |text: &str| text.split("digest ").nth(1).map(|d| d[..16].to_owned());
            let second = run("again");
            assert_eq!(digest(&first.stdout), digest(&second.stdout));
        }
    }
}

#[test]
fn control_groups_of_a_real_kernel_are_held_to_their_limits() {
    let f = Folder::new();
    let Some(release) = release(&f) else { return };
    f.write(
        "groups.fio",
        "[global]\nioengine=libaio\ndirect=1\niodepth=8\nrw=randread\nsize=64m\nruntime=2\n\
         time_based=1\n[a]\ncgroup=a\n[b]\ncgroup=b\n",
    );
    let args = [
        "run",
        "groups.fio",
        "--target",
        "kernel",
        "--kernel",
        &release,
    ];
    let more = ["--device", "sata-7200-2008", "--memory", "512m"];
    let limits = [
        "--set",
        "cgroup.a.io.max=riops=20",
        "--set",
        "cgroup.b.io.latency=target=1000",
    ];
    let ran = f.ok(&[&args[..], &more, &limits].concat());
    let group = ran.lines().find(|line| line.starts_with("  a: "));
    let ios = group.and_then(|line| line.split(" in ").nth(1)?.split(' ').next()?.parse().ok());
    let ios: u32 = ios.expect("what a has read");
    assert!(
        (40..=56).contains(&ios),
        "20 a second, and those in flight: {ran}"
    );
    let refused = f.run(&[&args[..], &["--set", "cgroup.a.io.prio.class=nonsense"]].concat());
    assert!(
        refused.stderr.contains("no policy is called 'nonsense'"),
        "{refused:?}"
    );
}

#[test]
fn a_real_kernel_gives_the_same_events_twice_and_a_run_directory() {
    let f = Folder::new();
    let Some(release) = release(&f) else { return };
    let args = ["run", "job.fio", "--target", "kernel", "--kernel", &release];
    let more = [
        "--sched",
        "none,bfq",
        "--device",
        "nvme-consumer",
        "--memory",
        "512m",
    ];
    let run = |out: &str| f.ok(&[&args[..], &more, &["--out", out]].concat());
    let digests = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|l| !l.starts_with("digest"));
        lines.skip(1).take(2).map(str::to_owned).collect()
    };
    let (first, second) = (run("first"), run("second"));
    assert_eq!(digests(&first).len(), 2, "{first}");
    assert_eq!(digests(&first), digests(&second));
    assert!(first.contains("256 I/Os"), "{first}");
    let stats = f.ok(&["trace", "stats", "first/none/events.blk"]);
    assert!(stats.contains("D2C"), "{stats}");
    f.ok(&["why", "first/bfq"]);
    let again = f.ok(&["run", "first/none", "--out", "again"]);
    assert!(again.contains("kernel"), "{again}");
    let changed = f.run(&["compare", "first/none", "second/none"]);
    assert!(
        changed.stdout.contains("identical") || changed.code == Some(0),
        "{changed:?}"
    );
}
