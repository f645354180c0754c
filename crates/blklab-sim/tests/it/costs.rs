// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes time of one processor that tasks share.

use crate::rig::{Ran, experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_fiostat::Ddir;

/// Linux 6.1 with one processor and a null_blk of 500 us.
fn one_processor(scheduler: &str, settings: &[(&str, &str)], memory_backed: bool) -> Experiment {
    let mut e = experiment();
    e.choose_kernel("6.1".parse().unwrap());
    e.choose_scheduler(scheduler).unwrap();
    let switch = if memory_backed { "on" } else { "off" };
    let params = [
        ("completion_nsec", "500000"),
        ("hw_queue_depth", "4"),
        ("memory_backed", switch),
    ];
    e.device = DeviceSpec {
        name: "null_blk".to_owned(),
        params: params.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
    };
    e.set("cpus", "1").unwrap();
    e.set("switch_cost_ns", "2000").unwrap();
    for (key, value) in settings {
        e.set(key, value).unwrap();
    }
    e
}

const READ: &str = "[a]\nioengine=psync\ndirect=1\nrw=randread\nsize=1m\nnumber_ios=20\n";

/// Completion latency in ns, least and most.
fn clat(r: &Ran) -> (u64, u64) {
    let read = r.job("a").stat.dir(Ddir::Read);
    (read.clat.stat.min, read.clat.stat.max)
}

#[test]
fn a_read_takes_call_interrupt_and_a_change_of_tasks() {
    let settings = [("call_cost_ns", "4000"), ("interrupt_cost_ns", "1000")];
    let r = run(&one_processor("none", &settings, false), READ);
    assert_eq!(clat(&r), (507_000, 507_000));
}

#[test]
fn with_a_scheduler_kblockd_takes_its_time_before_the_device() {
    let settings = [("dispatch_cost_ns", "3000")];
    let job = format!("{READ}filename=/dev/sda\n");
    let r = run(&one_processor("mq-deadline", &settings, false), &job);
    // Two changes of tasks.
    assert_eq!(clat(&r), (507_000, 507_000));
}

#[test]
fn who_calls_the_driver_copies() {
    let settings = [("driver_copy_ns", "600000")];
    let r = run(&one_processor("none", &settings, false), READ);
    assert_eq!(clat(&r), (502_000, 502_000), "nothing is kept");
    let r = run(&one_processor("none", &settings, true), READ);
    assert_eq!(clat(&r), (600_000, 600_000), "done when it has copied");
}

#[test]
fn the_main_process_delays_a_job_every_ten_ms() {
    let job = "[a]\nioengine=psync\ndirect=1\nrw=randread\nsize=1m\nruntime=1\ntime_based=1\n";
    let without = run(&one_processor("none", &[], false), job);
    let with = [("look_cost_ns", "400000")];
    let with = run(&one_processor("none", &with, false), job);
    assert_eq!(clat(&without), (502_000, 502_000));
    let (least, most) = clat(&with);
    assert!(least == 502_000 && most > 600_000, "{least} to {most}");
}

#[test]
fn pages_that_are_written_take_time_of_who_writes_them() {
    let job = "[a]\nrw=write\nbs=1m\nsize=1m\nend_fsync=1\n";
    let took = |cost| {
        let r = run(
            &one_processor("none", &[("writeout_cost_ns", cost)], false),
            job,
        );
        r.outcome.end.ns()
    };
    // 256 pages, and changes of tasks.
    let more = took("1000") - took("0");
    assert!((256_000..270_000).contains(&more), "{more}");
}
