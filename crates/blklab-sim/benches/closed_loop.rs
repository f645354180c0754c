// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated I/Os per second of wall time: one closed loop of random reads
//! and writes at depth 32 on a serial device, or several that share that
//! depth, events counted and digested but not written.

use blklab_experiment::{DeviceSpec, Experiment, Workload};
use blklab_sim::{Sinks, build_machine, spawn_processes};
use blklab_trace::{DigestSink, NullSink};
use blklab_types::Time;
use blklab_workload::{Io, Process};
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const IOS: u64 = 200_000;

fn experiment(kernel: &str, scheduler: &str, processes: u32) -> Experiment {
    experiment_at(kernel, scheduler, processes, 32 / processes.min(32))
}

fn experiment_at(kernel: &str, scheduler: &str, processes: u32, depth: u32) -> Experiment {
    let mut x = 1_u64;
    let mut random = move || {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        x >> 33
    };
    let per_process = IOS / u64::from(processes);
    let processes = (0..processes)
        .map(|i| {
            let sectors = (0..per_process)
                .map(|_| random() % 100_000_000 * 8)
                .collect();
            let rw = if i % 2 == 0 { "read" } else { "write" };
            process(i, depth, rw, sectors)
        })
        .collect();
    let mut e = Experiment::new("bench", Workload::Processes(processes));
    e.kernel = kernel.parse().expect("a version");
    e.scheduler = scheduler.to_owned();
    e.device = DeviceSpec {
        name: "serial".to_owned(),
        params: vec![("read_ns".to_owned(), "1000".to_owned())],
    };
    e
}

fn process(i: u32, depth: u32, rw: &str, sectors: Vec<u64>) -> Process {
    let template = format!(
        r#"{{"name":"p{i}","pid":{},"depth":{depth},"unplug":"on_wait",
            "io":{{"pattern":"list","rw":"{rw}","nsect":8,"sectors":[]}}}}"#,
        100 + i
    );
    let mut p: Process = serde_json::from_str(&template).expect("a process");
    if let Io::List { sectors: list, .. } = &mut p.io {
        *list = sectors;
    }
    p
}

fn run(e: &Experiment) -> u64 {
    let sinks = Sinks::of_events(Box::new(DigestSink::<NullSink>::default()));
    let machine = build_machine(e, sinks, std::sync::Arc::default()).expect("a machine");
    let Workload::Processes(processes) = &e.workload else {
        return 0;
    };
    spawn_processes(&machine, e, processes);
    machine.run(Time::MAX);
    machine.now().0
}

#[divan::bench(args = ["2.6.28", "4.19"])]
fn noop(bencher: divan::Bencher<'_, '_>, kernel: &str) {
    let e = experiment(kernel, "noop", 1);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

#[divan::bench(args = ["2.6.28", "4.19"])]
fn deadline(bencher: divan::Bencher<'_, '_>, kernel: &str) {
    let e = experiment(kernel, "deadline", 1);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

/// Eight processes at depth 4; odd ones write.
#[divan::bench]
fn anticipatory(bencher: divan::Bencher<'_, '_>) {
    let e = experiment("2.6.28", "anticipatory", 8);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

#[divan::bench(args = [2, 8, 32, 1000, 10_000])]
fn anticipatory_processes(bencher: divan::Bencher<'_, '_>, processes: u32) {
    let e = experiment("2.6.28", "anticipatory", processes);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

#[divan::bench(args = [2, 8, 32, 1000, 10_000])]
fn deadline_processes(bencher: divan::Bencher<'_, '_>, processes: u32) {
    let e = experiment("2.6.28", "deadline", processes);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

/// Eight processes, four requests each.
#[divan::bench(args = ["2.6.18", "2.6.28", "2.6.33", "4.19"])]
fn cfq(bencher: divan::Bencher<'_, '_>, kernel: &str) {
    let e = experiment_at(kernel, "cfq", 8, 4);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

#[divan::bench(args = [8, 32, 1000, 10_000])]
fn cfq_2_6_28_processes(bencher: divan::Bencher<'_, '_>, processes: u32) {
    let e = experiment("2.6.28", "cfq", processes);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

#[divan::bench(args = [8, 32, 1000, 10_000])]
fn cfq_4_19_processes(bencher: divan::Bencher<'_, '_>, processes: u32) {
    let e = experiment("4.19", "cfq", processes);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

/// Multi-queue: eight processes at depth 32 on a device of 32 tags; odd ones
/// write.
#[divan::bench(args = ["none", "mq-deadline", "kyber", "bfq"])]
fn multi_queue(bencher: divan::Bencher<'_, '_>, scheduler: &str) {
    let e = multi_queue_experiment(scheduler, 8, 32);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

/// BFQ with one queue per process.
#[divan::bench(args = [8, 100, 1000, 10_000])]
fn bfq_processes(bencher: divan::Bencher<'_, '_>, processes: u32) {
    let e = multi_queue_experiment("bfq", processes, 1);
    bencher
        .counter(ItemsCount::new(IOS))
        .bench_local(|| run(&e));
}

fn multi_queue_experiment(scheduler: &str, processes: u32, depth: u32) -> Experiment {
    let mut e = experiment_at("6.1", scheduler, processes, depth);
    e.device = DeviceSpec {
        name: "null_blk".to_owned(),
        params: [("completion_nsec", "32000"), ("hw_queue_depth", "32")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
    };
    e
}
