// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job and experiment files of strangers: they write below the working folder
//! or `--out`, replace nothing of somebody's, and show nothing of other files.

use crate::support::Folder;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// Runs a job with this option, which must be refused before anything happens.
fn refused(f: &Folder, option: &str, args: &[&str], expected: &str) {
    f.write(
        "x.fio",
        format!("[a]\nrw=randread\nsize=64k\ndirect=1\n{option}\n"),
    );
    let before = f.names(".");
    let done = f.run(&[&["run", "x.fio"], args].concat());
    assert_eq!(done.code, Some(2), "{option}: {}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{option}: {}", done.stderr);
    assert!(done.stderr.contains(expected), "{option}: {}", done.stderr);
    assert_eq!(f.names("."), before, "{option}");
}

#[test]
fn logs_lie_below_the_working_folder_or_the_run_directory() {
    let f = Folder::new();
    f.write("work/sub/x", "");
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    symlink(elsewhere.path(), f.path("link")).expect("a link");
    let outside = elsewhere.path().display().to_string();
    for option in [
        format!("write_iolog={outside}/x"),
        format!("write_bw_log={outside}/x"),
        "write_bw_log=../x".to_owned(),
        "write_lat_log=work/../../x".to_owned(),
        "write_iops_log=link/x".to_owned(),
        "write_hist_log=/x\nlog_hist_msec=10".to_owned(),
    ] {
        let expected = "not below the working folder; --allow-paths lets";
        refused(&f, &option, &[], expected);
        if !option.contains("link") {
            refused(&f, &option, &["--out", "out"], "not below out");
        }
    }
    refused(&f, "write_bw_log=no/x", &[], "the folder no does not exist");
    let job = "[a]\nrw=randread\nsize=64k\ndirect=1\nwrite_iolog=OUT/x\nwrite_bw_log=OUT/y\n";
    f.write("x.fio", job.replace("OUT", &outside));
    f.ok(&["run", "x.fio", "--allow-paths"]);
    assert!(elsewhere.path().join("x").is_file());
    assert!(elsewhere.path().join("y_bw.1.log").is_file());
    f.write("x.fio", job.replace("OUT", "work/sub"));
    f.ok(&["run", "x.fio"]);
    assert_eq!(f.names("work/sub"), ["x", "y_bw.1.log"]);
    f.ok(&["run", "x.fio", "--out", "out"]);
    assert_eq!(f.names("out/work/sub"), ["x", "y_bw.1.log"]);
}

#[test]
fn only_logs_are_replaced() {
    let f = Folder::new();
    f.write("notes", "mine\n");
    refused(
        &f,
        "write_iolog=notes",
        &[],
        "neither blklab nor fio wrote it",
    );
    assert_eq!(f.read("notes"), "mine\n");
    refused(
        &f,
        "write_iolog=notes",
        &["--allow-paths"],
        "neither blklab",
    );
    symlink("notes", f.path("link")).expect("a link");
    refused(
        &f,
        "write_iolog=link",
        &[],
        "neither blklab nor fio wrote it",
    );
    refused(&f, "write_iolog=x.fio", &[], "x.fio:5: write_iolog");
    f.write(
        "x.fio",
        "[a]\nrw=read\nsize=64k\nwrite_iolog=log\nwrite_lat_log=l\n",
    );
    f.ok(&["run", "x.fio"]);
    f.ok(&["run", "x.fio"]);
    assert!(f.read("log").starts_with("fio version"));
}

/// A link in the place of the temporary file is not followed.
#[test]
fn temporary_files_follow_no_link() {
    let f = Folder::new();
    f.write("mine", "mine\n");
    for name in ["r.json.partial", "t.blk.partial"] {
        symlink("mine", f.path(name)).expect("a link");
    }
    f.ok(&["run", "job.fio", "--output", "r.json", "--trace", "t.blk"]);
    assert_eq!(f.read("mine"), "mine\n");
    assert!(f.path("t.blk").is_file() && f.path("r.json").is_file());
    // What a killed run left behind gives way.
    f.write("s.json.partial", "half");
    f.ok(&["run", "job.fio", "--output", "s.json"]);
    assert!(!f.path("s.json.partial").exists());
}

#[test]
fn an_input_is_never_an_output() {
    let f = Folder::new();
    f.write("common.inc", "size=64k\n");
    f.write("i.fio", "[a]\ninclude common.inc\n");
    f.write("e.toml", "job_file = 'i.fio'\n");
    std::fs::hard_link(f.path("common.inc"), f.path("same")).expect("a link");
    let cases: &[(&[&str], &str)] = &[
        (
            &["run", "job.fio", "--output", "job.fio"],
            "--output: job.fio would replace job.fio",
        ),
        (
            &["run", "i.fio", "--output", "./common.inc"],
            "would replace common.inc",
        ),
        (
            &["run", "i.fio", "--output", "same"],
            "--output: same would replace common.inc",
        ),
        (
            &["run", "e.toml", "--output", "i.fio"],
            "--output: i.fio would replace i.fio",
        ),
        (
            &["run", "e.toml", "--output", "e.toml"],
            "would replace e.toml",
        ),
        (
            &[
                "run", "job.fio", "--output", "o", "--trace", "o.blk", "--out", ".",
            ],
            "--out: ./job.fio",
        ),
        (
            &["run", "job.fio", "--output", "o.txt", "--trace", "./o.txt"],
            "--trace and --output both write ./o.txt",
        ),
    ];
    let before = f.names(".");
    for (args, expected) in cases {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
        assert_eq!(f.names("."), before, "{args:?}");
    }
    f.ok(&["run", "job.fio", "--trace", "t.blk"]);
    let done = f.run(&["trace", "convert", "t.blk", "./t.blk"]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("which this command reads"),
        "{}",
        done.stderr
    );
}

/// Messages say where, and nothing of what stands in somebody's file.
#[test]
fn messages_show_nothing_of_other_files() {
    let f = Folder::new();
    let secret = tempfile::tempdir().expect("a temporary folder");
    let shadow = secret.path().join("shadow");
    std::fs::write(&shadow, "root:hunter2:1\n[client]\npassword=hunter2\n").expect("a file");
    let ini = secret.path().join("ini");
    std::fs::write(&ini, "[client]\npassword=hunter2\nsize=hunter2\n").expect("a file");
    let nested = secret.path().join("nested");
    std::fs::write(&nested, "include hunter2\n").expect("a file");
    let (shadow, ini, nested) = (shadow.display(), ini.display(), nested.display());
    let disk =
        |file| format!("job_file = 'job.fio'\n[device]\nname = 'disksim'\nfile = '{file}'\n");
    for (name, text, expected) in [
        (
            "a.fio",
            format!("[a]\ninclude {shadow}\n"),
            "shadow:2: No new sections",
        ),
        (
            "b.fio",
            format!("[a]\ninclude {nested}\n"),
            "nested:1: include …: cannot read",
        ),
        (
            "c.toml",
            format!("job_file = '{shadow}'\n"),
            "shadow:1: option <…> outside",
        ),
        (
            "d.toml",
            format!("job_file = '{ini}'\n"),
            "ini:2: not an option of fio",
        ),
        ("e.toml", disk(&shadow), "shadow"),
        ("f.toml", disk(&ini), "ini"),
        (
            "g.toml",
            format!("job_file = '{ini}'\nsections = ['x']\n"),
            "ini: no section is called 'x'",
        ),
    ] {
        f.write(name, &text);
        let done = f.run(&["run", name]);
        assert_eq!(done.code, Some(2), "{name}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{name}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{name}: {}", done.stderr);
        assert!(!done.stderr.contains("hunter2"), "{name}: {}", done.stderr);
        assert!(!done.stderr.contains("client"), "{name}: {}", done.stderr);
    }
}

/// Files that files name are regular and of limited size, and are refused at
/// once and in little memory.
#[test]
fn files_that_never_end() {
    let f = Folder::new();
    f.write("big.inc", "a".repeat((1 << 20) + 1));
    f.write("some.inc", "; 1\n".repeat(1 << 18));
    f.write(
        "many.fio",
        "[a]\nsize=64k\n".to_owned() + &"include some.inc\n".repeat(17),
    );
    let fifo = std::process::Command::new("mkfifo")
        .arg(f.path("fifo"))
        .status();
    assert!(fifo.is_ok_and(|s| s.success()), "mkfifo");
    f.write("loop.inc", "include loop.inc\n");
    let job = |file: &str| format!("[a]\ninclude {file}\n");
    let toml = |file: &str| format!("job_file = '{file}'\n");
    let disk =
        |file: &str| format!("job_file = 'job.fio'\n[device]\nname = 'disksim'\nfile = '{file}'\n");
    for (name, text, expected) in [
        (
            "a.fio",
            job("/dev/zero"),
            "include /dev/zero: not a regular file",
        ),
        ("b.fio", job("fifo"), "include fifo: not a regular file"),
        (
            "c.fio",
            job("big.inc"),
            "include big.inc: larger than 1 MiB",
        ),
        ("d.fio", job("loop.inc"), "more than 16 deep"),
        (
            "many.fio",
            f.read("many.fio"),
            "more than 16 MiB are included",
        ),
        (
            "e.toml",
            toml("/dev/zero"),
            "job_file: /dev/zero: not a regular file",
        ),
        ("f.toml", toml("fifo"), "job_file: fifo: not a regular file"),
        (
            "g.toml",
            disk("/dev/zero"),
            "/dev/zero: cannot read: not a regular file",
        ),
        ("h.toml", disk("../fifo"), "fifo"),
    ] {
        f.write(name, &text);
        let done = f.shell(&format!(
            "ulimit -v 2000000; exec timeout 120 blklab run {name}"
        ));
        assert_eq!(done.code, Some(2), "{name}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{name}: {}", done.stderr);
    }
    let done = f.shell("ulimit -v 2000000; exec timeout 120 blklab run /dev/zero");
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("/dev/zero: a device, neither"),
        "{}",
        done.stderr
    );
    f.ok(&["run", "job.fio", "--output", "plain"]);
    let piped = f.shell("cat job.fio | blklab run /dev/stdin --output piped");
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
}

/// Numbers whose product is large are refused at once and in little memory.
#[test]
fn more_memory_than_there_is() {
    let f = Folder::new();
    let groups: String = (0..20_000)
        .map(|i| format!("[cgroup.g{i}]\n'io.max' = 'rbps=1000000'\n"))
        .collect();
    let processes: String = (1..=100_000)
        .map(|i| {
            format!(
                "[[processes]]\nname = 'p'\npid = {i}\nio = {{ pattern = 'sequential', \
                 rw = 'read', start = 0, nsect = 8, count = 1 }}\n"
            )
        })
        .collect();
    for (name, text, expected) in [
        (
            "a.fio",
            "[a]\nsize=1m\nnumjobs=64\niodepth=1048576\n".to_owned(),
            "64.0 GiB of it for iodepth, 67108864 over all jobs; at most 4.0 GiB",
        ),
        (
            "b.fio",
            "[a]\nfilename=/dev/sda\nrw=randread\nbs=512\nnumjobs=64\nsize=400g\n".to_owned(),
            "of it for the maps of blocks that random jobs have touched (norandommap=1",
        ),
        (
            "c.fio",
            "[a]\nsize=1m\nnumjobs=5000\n".to_owned(),
            "maximum number of jobs (4096)",
        ),
        (
            "d.fio",
            "[a]\nsize=1t\nnrfiles=2000000\n".to_owned(),
            "more than 1048576 files",
        ),
        (
            "e.toml",
            "job_file = 'job.fio'\n".to_owned() + &groups,
            "more control groups than 4096",
        ),
        (
            "f.toml",
            processes,
            "GiB of it for 100000 processes; at most 4.0 GiB",
        ),
    ] {
        f.write(name, &text);
        let start = Instant::now();
        let done = f.shell(&format!(
            "ulimit -v 2000000; exec timeout 50 blklab run {name}"
        ));
        assert_eq!(done.code, Some(2), "{name}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{name}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{name}: {}", done.stderr);
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "{name}: {:?}",
            start.elapsed()
        );
    }
}
