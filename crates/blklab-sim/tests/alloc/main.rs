// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nothing is allocated per I/O once the run has reached its steady state:
//! twice as many I/Os cost no more allocations.

use allocation_counter::measure;
use blklab_experiment::{DeviceSpec, Experiment, MdOptions, MdSpec, Workload};
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_sim::{Sinks, build_machine, spawn_processes};
use blklab_trace::NullSink;
use blklab_types::Time;
use std::sync::Arc;

fn experiment(kernel: &str, scheduler: &str, workload: Workload) -> Experiment {
    let mut e = Experiment::new("alloc", workload);
    e.kernel = kernel.parse().expect("a version");
    e.scheduler = scheduler.to_owned();
    e.device = DeviceSpec {
        name: "serial".to_owned(),
        params: vec![("read_ns".to_owned(), "20000".to_owned())],
    };
    e.queue.queue_depth = Some(31);
    e
}

fn sinks() -> Sinks {
    Sinks::of_events(Box::new(NullSink))
}

/// Allocations of an experiment with explicit processes, from start to end.
fn allocations(e: &Experiment) -> u64 {
    let Workload::Processes(p) = &e.workload else {
        unreachable!()
    };
    measure(|| {
        let m = build_machine(e, sinks(), Arc::default()).expect("a machine");
        spawn_processes(&m, e, p);
        m.run(Time::MAX);
    })
    .count_total
}

/// Allocations of closed loops of strided reads or writes, one per letter.
fn processes(kernel: &str, scheduler: &str, letters: &str, count: u64) -> u64 {
    let process = |(i, letter): (usize, char)| {
        let (rw, depth) = if letter == 'r' {
            ("read", 32 / letters.len())
        } else {
            ("write", 16)
        };
        let (pid, start) = (7 + i, 100_000_000 * i);
        let text = format!(
            r#"{{"name":"p{i}","pid":{pid},"depth":{depth},"io":{{"pattern":"sequential",
                "rw":"{rw}","start":{start},"nsect":1024,"count":{count}}}}}"#
        );
        serde_json::from_str(&text).expect("a process")
    };
    let all = letters.chars().enumerate().map(process).collect();
    let e = experiment(kernel, scheduler, Workload::Processes(all));
    allocations(&e)
}

/// Allocations of readers and writers on an array.
fn array(level: &str, count: u64) -> u64 {
    let process = |(i, rw): (u64, &str)| {
        let text = format!(
            r#"{{"name":"{rw}","pid":{},"depth":8,"io":{{"pattern":"sequential","rw":"{rw}",
                "start":{},"nsect":128,"count":{count}}}}}"#,
            7 + i,
            i * 500_000_000
        );
        serde_json::from_str(&text).expect("a process")
    };
    let all = (0..).zip(["read", "write"]).map(process).collect();
    let mut e = experiment("2.6.28", "deadline", Workload::Processes(all));
    e.md = Some(MdSpec::new(level, 2, &MdOptions::default()).expect("an array"));
    allocations(&e)
}

#[test]
fn arrays_allocate_nothing_per_io() {
    for level in ["raid0", "raid1"] {
        let (n, twice) = (array(level, 5_000), array(level, 10_000));
        assert!(
            twice <= n + 8,
            "{level}: {n} allocations for 10000 I/Os, {twice} for 20000"
        );
    }
}

/// Allocations of a fio job of direct random reads.
fn fio(number_ios: u64) -> u64 {
    let text = format!(
        "[a]\nioengine=libaio\niodepth=16\ndirect=1\nrw=randread\nsize=64m\nnumber_ios={number_ios}\n"
    );
    let e = experiment("2.6.28", "deadline", Workload::Processes(Vec::new()));
    measure(|| {
        let jobs = parse("a", &text, &ParseOptions::default(), &Fixed::default()).expect("a job");
        blklab_sim::fio::run_fio(&e, jobs, sinks(), Arc::default()).expect("a run");
    })
    .count_total
}

#[test]
fn the_block_layer_allocates_nothing_per_io() {
    for (kernel, scheduler, letters) in [
        ("2.6.28", "noop", "r"),
        ("2.6.28", "deadline", "r"),
        ("2.6.28", "anticipatory", "r"),
        ("2.6.28", "anticipatory", "rrrw"),
        ("4.19", "noop", "r"),
        ("4.19", "deadline", "r"),
        ("6.1", "none", "rrrw"),
        ("6.1", "mq-deadline", "rrrw"),
        ("6.1", "kyber", "rrrw"),
        ("6.1", "bfq", "rrrw"),
        ("6.18", "mq-deadline", "r"),
        ("6.18", "bfq", "r"),
    ] {
        let (n, twice) = (
            processes(kernel, scheduler, letters, 5_000),
            processes(kernel, scheduler, letters, 10_000),
        );
        assert!(
            twice <= n + 4,
            "{kernel} {scheduler} {letters}: {n} allocations for 5000 I/Os, {twice} for 10000"
        );
    }
}

/// Allocations of readers and writers side by side.
fn crowd(kernel: &str, scheduler: &str, count: u64) -> u64 {
    let process = |i: u64| {
        let (rw, start) = (if i % 3 == 2 { "write" } else { "read" }, i * 500_000_000);
        let text = format!(
            r#"{{"name":"p{i}","pid":{},"depth":4,
                "io":{{"pattern":"sequential","rw":"{rw}","start":{start},"nsect":8,
                "count":{count}}}}}"#,
            100 + i
        );
        serde_json::from_str(&text).expect("a process")
    };
    let e = experiment(
        kernel,
        scheduler,
        Workload::Processes((0..8).map(process).collect()),
    );
    allocations(&e)
}

#[test]
fn cfq_allocates_nothing_per_io() {
    for kernel in [
        "2.6.16", "2.6.18", "2.6.24", "2.6.28", "2.6.32", "2.6.33", "3.7", "4.19",
    ] {
        let (n, twice) = (crowd(kernel, "cfq", 1_000), crowd(kernel, "cfq", 2_000));
        assert!(
            twice <= n + 4,
            "{kernel}: {n} allocations for 8000 I/Os, {twice} for 16000"
        );
    }
}

#[test]
fn fio_jobs_allocate_nothing_per_io() {
    let (n, twice) = (fio(4_000), fio(8_000));
    assert!(
        twice <= n + 16,
        "{n} allocations for 4000 I/Os, {twice} for 8000"
    );
}
