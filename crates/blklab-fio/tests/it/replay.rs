// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a replaying job issues its I/Os, and what it takes from its log.

use blklab_fio::job::Job;
use blklab_fio::parse::{Fixed, JobFile, ParseOptions, parse};
use blklab_fio::range::{FileState, Layout, find_ranges, layouts};
use blklab_fio::run::{Answer, IoOp, JobRun, Step};

const LOG: &str = "\
fio version 3 iolog
5 /dev/sda add
7 new add
10 /dev/sda open
20 new open
1020 /dev/sda read 8192 4096
1030 new write 0 65536
2030 /dev/sda read 0 512
2030 /dev/sda sync 0 0
5030 new close
5040 /dev/sda close
";

const WAITS: &str = "\
fio version 2 iolog
x add
x open
x wait 3 0
x read 0 4096
x wait 2 0
x read 4096 4096
x wait 10 0
x read 8192 4096
";

fn accepted(text: &str) -> JobFile {
    let around = Fixed {
        files: vec![
            ("v3".to_owned(), LOG.to_owned()),
            ("waits".to_owned(), WAITS.to_owned()),
        ],
        ..Fixed::default()
    };
    match parse("x.fio", text, &ParseOptions::default(), &around) {
        Ok(file) => file,
        Err(error) => panic!("{error}"),
    }
}

/// Issues of a job: microsecond, operation, offset. Each I/O takes so long.
fn issues(job: Job, io_us: u64) -> Vec<(u64, IoOp, u64)> {
    let ranges = find_ranges(&job, |name| match name {
        "/dev/sda" => FileState::Device(1 << 30),
        _ => FileState::Missing,
    })
    .expect("it fits");
    let mut run = JobRun::new(job, &ranges).expect("started");
    let mut now_ns = 0;
    let mut issues = Vec::new();
    loop {
        match run.step(now_ns) {
            Step::Issue(io) => {
                issues.push((now_ns / 1000, io.op, io.offset));
                now_ns += io_us * 1000;
                run.answer(Answer::Completed { error: 0 }, now_ns);
            }
            Step::Wait { until_ns, .. } => now_ns = until_ns,
            Step::Done(outcome) => {
                assert_eq!(outcome.error, 0);
                return issues;
            }
            _ => {}
        }
    }
}

fn only_job(text: &str) -> Job {
    accepted(text).jobs.remove(0)
}

#[test]
fn pauses_count_from_issue_to_issue() {
    let job = || only_job("[r]\nread_iolog=v3\n");
    let ops = [IoOp::Read, IoOp::Write, IoOp::Read, IoOp::Sync];
    let at = |io_us| -> Vec<u64> {
        let issues = issues(job(), io_us);
        assert_eq!(issues.iter().map(|i| i.1).collect::<Vec<_>>(), ops);
        issues.iter().map(|i| i.0).collect()
    };
    // 2 + 3 + 10 us until both files are open, then 1000.
    assert_eq!(at(0), [1015, 1025, 2025, 2025]);
    // What takes longer than the pause delays what follows, and no more.
    assert_eq!(at(300), [1015, 1315, 2315, 2615]);
}

#[test]
fn rates_are_those_of_the_log_unless_scaled_or_left_out() {
    let first_and_last = |options: &str| {
        let issues = issues(only_job(&format!("[r]\nread_iolog=v3\n{options}\n")), 0);
        (issues[0].0, issues[3].0)
    };
    assert_eq!(first_and_last("replay_time_scale=50"), (2030, 4050));
    assert_eq!(first_and_last("replay_time_scale=200"), (507, 1012));
    assert_eq!(first_and_last("replay_no_stall=1"), (0, 0));
}

/// Measured: `wait 1500`, `wait 1000`, `wait 3000` end 1.5, 1.5 and 3 s after
/// the start of fio 3.33.
#[test]
fn waits_of_version_2_are_milliseconds_since_the_start() {
    let at: Vec<u64> = issues(only_job("[r]\nread_iolog=waits\n"), 100)
        .iter()
        .map(|i| i.0)
        .collect();
    assert_eq!(at, [3000, 3100, 10_000]);
}

/// Measured: two reads three seconds apart with runtime=1 take three seconds;
/// number_ios, size and loops change nothing.
#[test]
fn only_the_run_time_bounds_a_replay() {
    let count =
        |options: &str| issues(only_job(&format!("[r]\nread_iolog=waits\n{options}\n")), 0).len();
    assert_eq!(count("number_ios=1\nsize=4k\nio_size=4k\nloops=3"), 3);
    assert_eq!(count("time_based=1\nruntime=1h"), 3);
    // The second comes before the end of the run time, and waits for the third.
    assert_eq!(count("runtime=5ms"), 3);
    assert_eq!(count("runtime=2ms"), 1);
}

#[test]
fn the_log_decides_what_the_job_is() {
    let file = accepted(
        "[r]\nread_iolog=v3:waits\nnumjobs=2\nrw=randwrite\nbs=1k\nsize=1g\nwrite_iolog=w\n\
         filename=z\n",
    );
    let [first, second] = &file.jobs[..] else {
        panic!("two jobs");
    };
    assert_eq!(first.files, ["/dev/sda", "new"]);
    assert_eq!(second.files, ["x"]);
    assert_eq!(first.settings.rw.name(), "rw");
    assert_eq!(second.settings.rw.name(), "read");
    assert_eq!(first.settings.max_bs, [4096, 65536, 1024]);
    assert_eq!(first.settings.write_iolog, None);
    assert_eq!(file.logs, ["v3", "waits"]);
    let notes: Vec<String> = file.notes.iter().map(ToString::to_string).collect();
    let overridden = "x.fio:1: read_iolog: the log decides files, offsets, lengths and their \
                      order: no effect of rw, bs, size, filename, write_iolog";
    assert!(notes.iter().any(|note| note == overridden), "{notes:?}");
}

#[test]
fn files_that_are_read_are_there_and_others_grow() {
    let job = only_job("[r]\nread_iolog=v3\n");
    let ranges = find_ranges(&job, |_| FileState::Missing).expect("files");
    let layouts = layouts(&job, &ranges);
    let sizes: Vec<u64> = layouts.iter().map(Layout::size_bytes).collect();
    assert_eq!(sizes, [12288, 0]);
    let small = find_ranges(&job, |_| FileState::Device(10_000));
    assert_eq!(
        small.unwrap_err().what,
        "v3:6: the replay reaches byte 12288 of /dev/sda, which has 10000; replay_scale= divides \
         all offsets"
    );
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let refused = |lines: &str| {
        let text = format!("[r]\n{lines}\n");
        let around = Fixed::default();
        let error = parse("x.fio", &text, &ParseOptions::default(), &around);
        error.map(drop).unwrap_err().problems[0].to_string()
    };
    for (lines, expected) in [
        ("read_iolog=none", "x.fio:1: read_iolog=none: no such file"),
        (
            "read_iolog=-",
            "x.fio:1: read_iolog=-: a log is a file here, not standard input",
        ),
        (
            "read_iolog=a\nreplay_align=3",
            "x.fio:3: fio: failed parsing replay_align=3: replay_align: must be a power-of-2",
        ),
        (
            "read_iolog=a\nreplay_skip=read,foo",
            "x.fio:3: fio: failed parsing replay_skip=read,foo: Unknown skip type: foo (read, \
             write, trim, sync)",
        ),
        (
            "read_iolog=a:b\nmerge_blktrace_file=m\nmerge_blktrace_iters=1:2:3",
            "x.fio:1: merge_blktrace_iters: 3 numbers for 2 files of read_iolog",
        ),
    ] {
        assert_eq!(refused(lines), expected);
    }
}
