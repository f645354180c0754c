// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processor time of requests and the locks of schedulers, with many processors on one
//! NVMe drive: what was measured (ICPE 2024, figure 7) with one process, of which the
//! times are made, and what follows for several.

use crate::rig::{experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_sim::catalogue;
use blklab_trace::Action;
use std::collections::BTreeMap;

/// Linux 6.3 with ten processors and a Samsung 980 PRO.
fn ten_processors(scheduler: &str, settings: &[(&str, &str)]) -> Experiment {
    let mut e = experiment();
    e.choose_kernel("6.3".parse().unwrap(), &catalogue());
    e.device = DeviceSpec {
        name: "samsung-980-pro".to_owned(),
        params: Vec::new(),
    };
    e.queue.queue_depth = None;
    e.choose_scheduler(scheduler, &catalogue()).unwrap();
    for (key, value) in [&[("cpus", "10")], settings].concat() {
        e.set(key, value, &catalogue()).unwrap();
    }
    e
}

/// Random reads of 4 KiB that so many processes complete, in thousands per second, with
/// 128 in flight each.
fn rate(nr_processes: u32, scheduler: &str, settings: &[(&str, &str)]) -> f64 {
    let job = format!(
        "[a]\nioengine=io_uring\ndirect=1\nfilename=/dev/sda\nrw=randread\nnorandommap\n\
         iodepth=128\nnumjobs={nr_processes}\ntime_based\nruntime=8ms\n"
    );
    let r = run(&ten_processors(scheduler, settings), &job);
    // Without the first milliseconds, in which the drive fills.
    let late = |at: u64| (2_000_000..8_000_000).contains(&at);
    let done = r.events.iter().filter(|e| e.action == Action::Complete);
    done.filter(|e| late(e.time.0)).count() as f64 / 6.0
}

#[test]
fn one_process_reads_as_fast_as_the_times_were_made_from() {
    for (scheduler, measured) in [
        ("none", 381.0),
        ("mq-deadline", 310.0),
        ("kyber", 304.0),
        ("bfq", 241.0),
    ] {
        let ratio = rate(1, scheduler, &[]) / measured;
        assert!((ratio - 1.0).abs() < 0.05, "{scheduler}: {ratio}");
    }
}

#[test]
fn several_processes_wait_for_the_lock_that_they_share() {
    let four = |scheduler| rate(4, scheduler, &[]);
    let (none, kyber) = (four("none"), four("kyber"));
    assert!(none > 700.0 && kyber > 0.95 * none, "{none}, {kyber}");
    let (deadline, bfq) = (four("mq-deadline") / 499.0, four("bfq") / 309.0);
    assert!((deadline - 1.0).abs() < 0.15, "{deadline}");
    assert!((bfq - 1.0).abs() < 0.15, "{bfq}");
}

/// More is wanted than there are tokens: no hardware queue waits for ever for one.
#[test]
fn processes_share_the_tokens_of_kyber() {
    let job = "[a]\nioengine=io_uring\ndirect=1\nfilename=/dev/sda\nrw=randread\nnorandommap\n\
               iodepth=128\nnumjobs=4\ntime_based\nruntime=20ms\n";
    let r = run(&ten_processors("kyber", &[]), job);
    let mut reads = BTreeMap::new();
    for e in r.events.iter().filter(|e| e.action == Action::Queue) {
        *reads.entry(e.pid).or_insert(0_u32) += 1;
    }
    let (least, most) = (reads.values().min(), reads.values().max());
    assert_eq!(reads.len(), 4);
    assert!(least.map(|n| 2 * n) > most.copied(), "{reads:?}");
}

#[test]
fn settings_leave_the_times_out() {
    let free = [("processor_time", "0")];
    let (none, bfq) = (rate(2, "none", &free), rate(2, "bfq", &free));
    assert!(none > 700.0 && bfq > 0.95 * none, "{none}, {bfq}");
    // A lock without a price for changing hands.
    let held = rate(4, "bfq", &[("lock_transfer_ns", "0")]);
    assert!(held > 1.5 * rate(4, "bfq", &[]), "{held}");
}

#[test]
fn who_waits_for_each_read_loses_the_time_between_two() {
    let job = "[a]\nioengine=psync\ndirect=1\nfilename=/dev/sda\nrw=read\nnumber_ios=21\n";
    let end = |settings: &[(&str, &str)]| {
        let mut e = ten_processors("mq-deadline", settings);
        e.set("lock_transfer_ns", "0", &catalogue()).unwrap();
        e.device = DeviceSpec {
            name: "null_blk".to_owned(),
            params: vec![("completion_nsec".to_owned(), "500000".to_owned())],
        };
        let r = run(&e, job);
        r.events.iter().map(|e| e.time.0).max().unwrap()
    };
    let free = end(&[("request_cost_ns", "0"), ("sched_cost_ns", "0")]);
    assert_eq!(end(&[]) - free, 20 * (1620 + 600));
}
