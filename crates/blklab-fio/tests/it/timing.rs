// SPDX-License-Identifier: MIT OR Apache-2.0
//! What depends on time: rates, pauses, run time, latency targets, errors.

use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::range::{FileState, find_ranges};
use blklab_fio::run::{Answer, Completion, JobRun, Step};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;

fn start(options: &str) -> JobRun {
    let text = format!("[t]\n{options}\n");
    let mut file =
        parse("t.fio", &text, &ParseOptions::default(), &Fixed::default()).expect("accepted");
    let job = file.jobs.remove(0);
    let ranges = find_ranges(&job, |_| FileState::Missing).expect("set up");
    JobRun::new(job, &ranges).expect("started")
}

/// Runs a job whose I/Os take `io_ns` each, on a synchronous engine. Returns
/// when each I/O was issued, and the error the job ended with.
fn run(options: &str, io_ns: u64) -> (Vec<u64>, i32) {
    let mut run = start(options);
    let (mut now, mut times) = (0, Vec::new());
    loop {
        match run.step(now) {
            Step::Issue(_) => {
                times.push(now);
                now += io_ns;
                run.answer(Answer::Completed { error: 0 }, now);
            }
            Step::Wait { until_ns, .. } => {
                assert!(until_ns > now);
                now = until_ns;
            }
            Step::Done(outcome) => return (times, outcome.error),
            _ => {}
        }
        assert!(times.len() < 1_000_000);
    }
}

#[test]
fn a_rate_spaces_the_ios() {
    let (times, _) = run("ioengine=null\nsize=40k\nrate=409600", MS);
    let expected: Vec<u64> = (0..10).map(|io| io * 10 * MS).collect();
    // Each wait is counted from where the last one ended, in microseconds.
    assert_eq!(times, expected);
}

#[test]
fn a_rate_in_ios_counts_the_smallest_length() {
    let (times, _) = run("ioengine=null\nsize=16k\nrate_iops=100", MS);
    assert_eq!(times, [0, 10 * MS, 20 * MS, 30 * MS]);
}

#[test]
fn poisson_gaps_vary_around_the_mean() {
    let (times, _) = run(
        "ioengine=null\nsize=4m\nrate_iops=100\nrate_process=poisson",
        MS / 1000,
    );
    let mean_ms = times[times.len() - 1] / (times.len() as u64 - 1) / MS;
    assert!((8..=12).contains(&mean_ms), "{mean_ms} ms");
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().any(|&gap| gap < 2 * MS) && gaps.iter().any(|&gap| gap > 20 * MS));
}

#[test]
fn pauses_follow_every_few_ios() {
    let (times, _) = run(
        "ioengine=null\nsize=24k\nthinktime=5000\nthinktime_spin=1000\nthinktime_blocks=2",
        MS,
    );
    assert_eq!(times, [0, MS, 7 * MS, 8 * MS, 14 * MS, 15 * MS]);
}

#[test]
fn run_time_ends_a_job_and_ramp_time_comes_before_it() {
    let (times, error) = run("ioengine=null\nsize=1m\ntime_based\nruntime=10ms", MS);
    assert_eq!((times.len(), error), (10, 0));
    let (times, _) = run(
        "ioengine=null\nsize=1m\ntime_based\nruntime=10ms\nramp_time=5ms",
        MS,
    );
    assert_eq!(times.len(), 15);
}

#[test]
fn a_lowest_rate_that_is_missed_fails_the_job() {
    let (_, error) = run("ioengine=null\nsize=1g\nrate_iops_min=100", 20 * MS);
    assert_eq!(error, 5);
    let (_, error) = run("ioengine=null\nsize=4m\nrate_iops_min=100", 2 * MS);
    assert_eq!(error, 0);
}

#[test]
fn too_long_a_latency_fails_the_job() {
    let (times, error) = run("ioengine=null\nsize=1m\nmax_latency=500", MS);
    assert_eq!((times.len(), error), (1, 110));
}

/// A device that takes one request at a time, one millisecond each: latency is
/// the depth in milliseconds.
fn depth_found(options: &str) -> (u32, i32) {
    let mut run = start(options);
    let mut queue: VecDeque<u32> = VecDeque::new();
    let (mut now, mut depth) = (0, 0);
    loop {
        match run.step(now) {
            Step::Issue(io) => {
                queue.push_back(io.record);
                run.answer(Answer::Queued, now);
            }
            Step::Reap { min, .. } => {
                assert!(queue.len() >= min as usize);
                now += u64::from(min) * MS;
                let done: Vec<Completion> = queue
                    .drain(..min as usize)
                    .map(|record| Completion { record, error: 0 })
                    .collect();
                run.reaped(&done, now);
            }
            Step::Done(outcome) => return (depth, outcome.error),
            _ => {}
        }
        depth = run.depth_now();
    }
}

#[test]
fn a_latency_target_finds_its_depth() {
    let options = "ioengine=libaio\niodepth=64\nsize=1g\nrw=randread\nlatency_target=6500\nlatency_window=100ms\n\
                   runtime=20s\ntime_based\nlatency_percentile=90";
    let (depth, error) = depth_found(options);
    assert_eq!(error, 0);
    assert!((5..=7).contains(&depth), "depth {depth}");
    let impossible = options
        .replace("latency_target=6500", "latency_target=10")
        .replace("=90", "=100");
    assert_eq!(depth_found(&impossible).1, 110);
}

#[test]
fn errors_end_a_job_unless_it_continues() {
    let count = |options: &str| {
        let mut run = start(options);
        let mut ios = 0;
        loop {
            match run.step(0) {
                Step::Issue(_) => {
                    ios += 1;
                    run.answer(
                        Answer::Completed {
                            error: if ios == 3 { 5 } else { 0 },
                        },
                        0,
                    );
                }
                Step::Done(outcome) => return (ios, outcome.error, outcome.errors),
                _ => {}
            }
        }
    };
    assert_eq!(count("ioengine=null\nsize=40k"), (3, 5, 1));
    assert_eq!(
        count("ioengine=null\nsize=40k\ncontinue_on_error=io"),
        (10, 0, 1)
    );
    // Other errors than EIO have to be listed.
    assert_eq!(
        count("ioengine=null\nsize=40k\nignore_error=EINVAL"),
        (3, 5, 1)
    );
    assert_eq!(
        count("ioengine=null\nsize=40k\nignore_error=EINVAL:5"),
        (10, 0, 1)
    );
}

#[test]
fn a_wait_beyond_the_run_time_ends_the_job_even_in_the_ramp() {
    let (times, error) = run(
        "ioengine=null\nsize=1m\nruntime=1\nramp_time=2\nrate_iops=10",
        1,
    );
    assert_eq!((times.len(), error), (10, 0));
    let (times, _) = run(
        "ioengine=null\nsize=1m\nruntime=5\nramp_time=10\nrate=100k",
        1,
    );
    assert_eq!(times.len(), 125);
    // A pass ends, the next issues what is due at once and ends the job.
    let (times, _) = run(
        "ioengine=null\nsize=1m\nruntime=1\nramp_time=2\nrate_iops=10\ntime_based",
        1,
    );
    assert_eq!(times.len(), 11);
    // What is due when ramp and run time are over ends the ramp.
    let options = "ioengine=null\nsize=1m\nruntime=1\nramp_time=1\nrate_iops=10\ntime_based";
    assert!(run(options, 1).0.len() > 20);
}

/// The error comes while the job reaps before it waits for its rate.
#[test]
fn an_error_before_a_wait_for_the_rate_ends_the_job() {
    let mut run = start("ioengine=libaio\niodepth=2\nsize=1m\nrate_iops=50");
    let (mut now, mut ios) = (0, 0);
    let mut in_flight: VecDeque<u32> = VecDeque::new();
    for _ in 0..1000 {
        match run.step(now) {
            Step::Issue(io) => {
                ios += 1;
                in_flight.push_back(io.record);
                run.answer(Answer::Queued, now);
            }
            Step::Reap { .. } => {
                let failed: Vec<Completion> = in_flight
                    .drain(..)
                    .map(|record| Completion { record, error: 22 })
                    .collect();
                run.reaped(&failed, now);
            }
            Step::Wait { until_ns, .. } => now = until_ns,
            Step::Done(outcome) => {
                // As in fio, the I/O that waited is issued yet.
                assert_eq!((ios, outcome.error, outcome.first_error), (2, 22, 22));
                assert_eq!(run.failures().len() as u64, outcome.errors);
                return;
            }
            _ => {}
        }
    }
    panic!("the job never ends");
}
