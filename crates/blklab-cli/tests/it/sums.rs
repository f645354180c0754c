// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why` of sums in place of a trace.

use crate::support::Folder;
use serde_json::Value;

/// A sample, by its name.
fn sample(name: &str) -> String {
    let path = blklab_testkit::root().join("testdata/sums").join(name);
    path.display().to_string()
}

/// What is refused, in a line.
fn refused(f: &Folder, args: &[&str]) -> String {
    let done = f.run(args);
    assert_eq!(done.code, Some(2), "{args:?}");
    assert_eq!(done.stderr.lines().count(), 1, "{args:?}: {}", done.stderr);
    done.stderr
}

#[test]
fn every_kind_of_sums_says_what_it_shows_and_what_it_hides() {
    let f = Folder::new();
    for (name, what, shows) in [
        ("iostat.txt", "iostat", "96.9 % of the 148.8 ms are waiting"),
        ("iostat.json", "iostat", "31.5 under way on average"),
        (
            "diskstats.txt",
            "/proc/diskstats",
            "12 were under way when it was read",
        ),
        (
            "io-stat.txt",
            "io.stat",
            "waited 812.3 ms together for budget",
        ),
        (
            "io-pressure.txt",
            "io.pressure",
            "waited for I/O in 82.1 % of the last 10 s",
        ),
        ("biolatency.txt", "histograms", "of 2 kinds: 854 in"),
        ("bpftrace.txt", "histograms", "of 2 kinds: 313 in"),
        (
            "huatuo.json",
            "huatuo's iotracing",
            "90 % of that before the device",
        ),
        ("rezolus.json", "Rezolus", "p99 450.0 ms"),
    ] {
        let path = sample(name);
        let text = f.ok(&["why", &path]);
        let begins = format!("{what}: sums, no single I/Os");
        assert!(text.starts_with(&begins), "{name}: {text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(shows), "{name}: {text}");
        assert!(flat.contains("Not visible in these sums"), "{name}: {text}");
        assert!(
            flat.contains("To see it sudo blklab record"),
            "{name}: {text}"
        );
        assert!(
            text.lines().all(|l| l.chars().count() <= 80),
            "{name}: {text}"
        );
        let json: Value = serde_json::from_str(&f.ok(&["why", &path, "--format", "json"])).unwrap();
        assert_eq!(json["what"], *what, "{name}");
        assert_eq!(json["basis"], "sums without single I/Os");
        let figures = json["subjects"][0]["figures"].as_object().unwrap();
        assert!(
            figures.values().all(Value::is_number) && !figures.is_empty(),
            "{name}"
        );
        assert_eq!(json.get("findings"), None, "{name}: no cause");
    }
}

#[test]
fn further_tables_say_what_they_show() {
    let f = Folder::new();
    for (name, what, shows) in [
        (
            "iostat-excerpt.txt",
            "iostat",
            "the line that names the kernel, which would tell, is missing",
        ),
        ("iostat-wrapped.txt", "iostat", "142 under way on average"),
        (
            "iostat-solaris.txt",
            "iostat",
            "DTrace (io:::start to io:::done)",
        ),
        ("gstat.txt", "iostat", "writes 118/s, 30.4 ms each"),
        (
            "pressure-all.txt",
            "io.pressure",
            "waited for I/O in 4.2 % of the last 10 s",
        ),
        ("btt.txt", "btt", "61 % of the time is in the scheduler"),
        (
            "dtrace.txt",
            "histograms",
            "65536 to 131072 (in the script's unit)",
        ),
        ("metrics.txt", "histograms", "middle 16.0 ms to 32.0 ms"),
        (
            "zpool-latency.txt",
            "zpool iostat",
            "39.0 ms of 41.0 ms are before the disk",
        ),
        ("zpool-histogram.txt", "histograms", "tank disk_wait read"),
        ("pidstat.txt", "processes", "waited 310.0 ms for block I/O"),
        ("iotop.txt", "processes", "waited 26 % of an interval"),
        (
            "biotop.txt",
            "processes",
            "14 of 1 MiB on vda in an interval, 138.2 ms each",
        ),
    ] {
        let text = f.ok(&["why", &sample(name)]);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.starts_with(&format!("{what}: sums, no single I/Os")),
            "{name}: {text}"
        );
        assert!(flat.contains(shows), "{name}: {text}");
        assert!(
            text.lines().all(|l| l.chars().count() <= 80),
            "{name}: {text}"
        );
    }
}

#[test]
fn logs_and_outputs_of_programs_are_answered_too() {
    let f = Folder::new();
    for (name, what, basis, shows) in [
        (
            "hung-tasks.txt",
            "the kernel's log",
            "a kernel's log without I/Os",
            "waits for a commit of ext4's journal",
        ),
        (
            "time-outs.txt",
            "the kernel's log",
            "a kernel's log without I/Os",
            "2 commands that the device had not answered",
        ),
        (
            "xfsslower.txt",
            "times of calls",
            "a program's calls without the I/Os below",
            "205.5 ms the longest, of wal.log at 16:46:12",
        ),
        (
            "strace.txt",
            "times of calls",
            "a program's calls without the I/Os below",
            "syncs 2 of fdatasync, 20.1 ms each",
        ),
        (
            "pg-test-fsync.txt",
            "times of calls",
            "a program's calls without the I/Os below",
            "fdatasync 8.92 ms each, 112/s",
        ),
        (
            "fsyncsnoop.txt",
            "times of calls",
            "a program's calls without the I/Os below",
            "62.0 ms the longest, of /log/current",
        ),
        (
            "ioping.txt",
            "times of calls",
            "a program's calls without the I/Os below",
            "requests 3, 3.11 ms each",
        ),
        (
            "fio.txt",
            "fio",
            "a program's calls without the I/Os below",
            "The job itself keeps that many under way",
        ),
        (
            "fio.json",
            "fio",
            "a program's calls without the I/Os below",
            "syncs 511.2 us each",
        ),
    ] {
        let path = sample(name);
        let text = f.ok(&["why", &path]);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.starts_with(&format!("{what}: ")), "{name}: {text}");
        assert!(
            flat.contains("so that no cause can be named"),
            "{name}: {text}"
        );
        assert!(flat.contains(shows), "{name}: {text}");
        assert!(
            text.lines().all(|l| l.chars().count() <= 80),
            "{name}: {text}"
        );
        let json: Value = serde_json::from_str(&f.ok(&["why", &path, "--format", "json"])).unwrap();
        assert_eq!(json["basis"], *basis, "{name}");
        assert_eq!(json.get("findings"), None, "{name}: no cause");
    }
}

#[test]
fn sums_come_through_a_pipe_too() {
    let f = Folder::new();
    let script = format!("gzip -c {} | blklab why - -n 1 -v", sample("iostat.txt"));
    let text = f.shell(&script).stdout;
    assert!(
        text.contains("\nsda\n") && !text.contains("\nnvme0n1\n"),
        "{text}"
    );
    assert!(text.contains("between_ends_ms=4.629"), "{text}");
}

#[test]
fn what_means_single_ios_is_refused() {
    let f = Folder::new();
    let path = sample("iostat.txt");
    for option in [
        "--slow=1",
        "--at=1s",
        "--what-if",
        "--kernel=6.12",
        "--set=nr_requests=4",
    ] {
        let error = refused(&f, &["why", &path, option]);
        let name = option.split('=').next().unwrap();
        assert!(
            error.starts_with(&format!("blklab: {name}: is about single I/Os")),
            "{error}"
        );
    }
    f.write("cut.txt", "Device            r/s     w/s     rrqm/s\n");
    let error = refused(&f, &["why", "cut.txt"]);
    assert!(
        error.contains("cut.txt: iostat: no row of a device"),
        "{error}"
    );
    let error = refused(&f, &["trace", "stats", &path]);
    assert!(
        error.contains("`blklab why FILE` says what they show"),
        "{error}"
    );
}
