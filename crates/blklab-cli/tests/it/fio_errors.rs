// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of jobs: in the table, in fio's formats, in the exit code.

use crate::support::Folder;

/// NTFS-3G refuses direct I/O.
const REFUSED: &str = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=2\nsize=1m\n";

#[test]
fn a_job_that_ends_with_an_error_is_told_and_counts() {
    let f = Folder::new();
    for more in ["", "rate_iops=50\n", "thinktime=100\n"] {
        f.write("a.fio", format!("{REFUSED}{more}"));
        let done = f.run(&["run", "--fs", "ntfs-3g", "a.fio"]);
        assert_eq!(done.code, Some(1), "{more}{}", done.stderr);
        let first = done.stderr.lines().next().unwrap_or("");
        assert_eq!(
            first,
            "fio: io_u error on file a.0.0: Invalid argument: read offset=61440, buflen=4096"
        );
        let expected = "job a: err=22 (Invalid argument): read of 4096 bytes at offset 61440";
        assert!(done.stdout.contains(expected), "{}", done.stdout);
    }
}

#[test]
fn results_in_fios_formats_have_the_error() {
    let f = Folder::new();
    f.write("a.fio", REFUSED);
    let formats = "--output-format=json";
    let done = f.run(&["run", "--fs", "ntfs-3g", formats, "a.fio"]);
    assert!(done.stdout.contains("\"error\" : 22"), "{}", done.stdout);
    f.write("a.fio", format!("{REFUSED}ignore_error=EINVAL\n"));
    let done = f.run(&["run", "--fs", "ntfs-3g", formats, "a.fio"]);
    // As in fio: the error shows, but the job survived it.
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    for line in [
        "\"error\" : 22",
        "\"total_err\" : 256",
        "\"first_error\" : 22",
    ] {
        assert!(done.stdout.contains(line), "{line} in {}", done.stdout);
    }
}

#[test]
fn a_lowest_rate_that_is_missed_is_told_in_fios_words() {
    let f = Folder::new();
    let job = "[a]\nrw=randread\ndirect=1\nsize=1m\ntime_based\nruntime=5\nrate_min=1g\n";
    f.write("a.fio", job);
    let done = f.run(&["run", "a.fio", "--output-format", "normal"]);
    assert_eq!(done.code, Some(1));
    let start = "a: rate_min=1073741824B/s not met, got ";
    assert!(done.stderr.starts_with(start), "{}", done.stderr);
    let expected = "err= 5 (func=check_min_rate, error=Input/output error)";
    assert!(done.stdout.contains(expected), "{}", done.stdout);
}

/// fio 3.33 ends these jobs when their run time is over, though the ramp is not.
#[test]
fn a_ramp_beyond_the_run_time_ends() {
    let f = Folder::new();
    let job = "[a]\nrw=read\nsize=1m\nruntime=1\nramp_time=2\nrate_iops=10\n";
    f.write("a.fio", job);
    assert!(f.ok(&["run", "a.fio"]).contains("40.0KiB in 10 I/Os"));
    assert_eq!(f.ok(&["workload", "a.fio"]).lines().count(), 11);
    let text = f.ok(&["run", "a.fio", "--output-format", "normal"]);
    assert!(!text.contains("clat"), "nothing counts: {text}");
}

/// Messages of fio 3.33 on a loop device without discards and on a file.
#[test]
fn trims_that_cannot_be_are_told_in_fios_words() {
    let f = Folder::new();
    let said = |job: &str, device: &str| {
        f.write("a.fio", format!("[a]\nrw=trim\nsize=64k\n{job}\n"));
        let done = f.run(&["run", "a.fio", "--kernel", "6.1", "--device", device]);
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        (done.stderr, done.stdout)
    };
    let disk = "filename=/dev/sda";
    let (told, table) = said(disk, "sata-7200-2008");
    assert_eq!(
        told,
        "fio: pid=1001, err=95/file:ioengines.c:399, func=td_io_queue, error=Operation not \
         supported\n"
    );
    assert!(
        table.contains("note: trims: device sata-7200-2008 has no discards on kernel 6.1"),
        "{table}"
    );
    let (told, table) = said("", "sata-ssd");
    let expected = "err=25/file:ioengines.c:399, func=td_io_queue, error=Inappropriate ioctl";
    assert!(told.contains(expected), "{told}");
    assert!(table.contains("trims: those of job 'a' fail"), "{table}");
    let (told, _) = said(&format!("{disk}\nioengine=vsync"), "sata-ssd");
    let expected = "err=14/file:engines/sync.c:364, func=xfer vsync, error=Bad address";
    assert!(told.contains(expected), "{told}");
    let job = format!("[a]\nrw=trim\nsize=64k\n{disk}\n");
    f.write("a.fio", job);
    let text = f.ok(&[
        "run",
        "a.fio",
        "--kernel",
        "6.1",
        "--device",
        "sata-ssd",
        "--output-format",
        "json",
    ]);
    assert!(text.contains("\"total_ios\" : 16"), "{text}");
}
