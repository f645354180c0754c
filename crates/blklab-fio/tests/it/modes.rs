// SPDX-License-Identifier: MIT OR Apache-2.0
//! `serialize_overlap`, `io_submit_mode=offload` and flows, job by job.

use blklab_fio::job::Job;
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::range::{FileState, find_ranges};
use blklab_fio::run::{Answer, Completion, Io, JobRun, Step};

fn parsed(text: &str) -> Result<Vec<Job>, String> {
    let options = ParseOptions::default();
    parse("x.fio", text, &options, &Fixed::default())
        .map(|file| file.jobs)
        .map_err(|error| error.problems[0].to_string())
}

fn started(text: &str) -> JobRun {
    let job = parsed(text).expect("accepted").remove(0);
    let ranges = find_ranges(&job, |_| FileState::Missing).expect("ranges");
    JobRun::new(job, &ranges).expect("started")
}

/// Runs a job on an engine that completes only what is reaped. Returns the most
/// I/Os in flight, and whether two of them ever overlapped.
fn run(text: &str) -> (usize, bool, usize) {
    let mut run = started(text);
    let mut in_flight: Vec<Io> = Vec::new();
    let (mut most, mut overlapped, mut issued) = (0, false, 0);
    loop {
        match run.step(0) {
            Step::Issue(io) => {
                let meets = |other: &Io| {
                    io.offset < other.offset + other.length && other.offset < io.offset + io.length
                };
                overlapped |= in_flight.iter().any(meets);
                in_flight.push(io);
                most = most.max(in_flight.len());
                issued += 1;
                run.answer(Answer::Queued, 0);
            }
            Step::Reap { min, .. } => {
                let done: Vec<Completion> = in_flight
                    .drain(..min as usize)
                    .map(|io| Completion {
                        record: io.record,
                        error: 0,
                    })
                    .collect();
                run.reaped(&done, 0);
            }
            Step::Done(outcome) => {
                assert_eq!(outcome.error, 0);
                return (most, overlapped, issued);
            }
            _ => {}
        }
    }
}

#[test]
fn overlapping_ios_wait_for_each_other() {
    let job = "[a]\nioengine=libaio\niodepth=8\nrw=randwrite\nnorandommap\nbsrange=4k-16k\n\
               blockalign=4k\nsize=256k\nio_size=2m\n";
    let (most, overlapped, issued) = run(job);
    assert!(overlapped && most == 8);
    let (most, overlapped, serialized) = run(&format!("{job}serialize_overlap=1\n"));
    assert!(!overlapped && most > 1, "{most}");
    assert_eq!(issued, serialized);
}

#[test]
fn a_job_with_workers_waits_only_for_a_free_record() {
    let mut run = started(
        "[a]\nioengine=psync\niodepth=3\nio_submit_mode=offload\nrate_iops=1000\nsize=1m\n\
         thinktime=500\n",
    );
    let mut now_ns = 0;
    let mut issued = Vec::new();
    let reap = loop {
        match run.step(now_ns) {
            Step::Issue(io) => {
                issued.push(io.record);
                run.answer(Answer::Queued, now_ns);
            }
            Step::Wait { until_ns, .. } => now_ns = until_ns,
            Step::Reap { min, max } => break (min, max),
            Step::Done(_) => panic!("ended with I/Os in flight"),
            _ => {}
        }
    };
    // Neither the rate nor a pause waits for what is in flight; pauses count what is done.
    assert_eq!((issued.len(), reap), (3, (1, 3)));
    assert_eq!(now_ns, 2_000_000);
}

#[test]
fn syncs_of_a_job_with_workers_come_once() {
    let (_, _, issued) = run(
        "[a]\nioengine=psync\niodepth=2\nio_submit_mode=offload\nrw=write\nfsync=4\nsize=32k\n",
    );
    assert_eq!(issued, 8 + 1);
}

#[test]
fn a_flow_that_would_never_end_is_refused() {
    let job_file = |more: &str| {
        format!("[global]\nsize=1m\nflow_id=7\n[a]\nflow=1\n{more}[b]\nflow=2\nstonewall\n")
    };
    let expected = "x.fio:6: flow: job 'b' starts when job 'a' has ended, which its flow holds \
                    back for it for ever (as in fio): give them flow_ids of their own, or 'a' a \
                    runtime";
    assert_eq!(parsed(&job_file("")).err().as_deref(), Some(expected));
    assert!(parsed(&job_file("runtime=1\n")).is_ok());
    assert!(parsed(&job_file("flow_id=8\n")).is_ok());
}
