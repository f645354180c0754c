// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of every multi-queue scheduler, and of none, under random
//! devices, tunables, priorities and loads: nothing is lost, doubled or
//! invented, limits hold, everything drains, runs repeat; and how long requests
//! of the known schedulers wait at most.

use crate::load::{Values, version};
use crate::mq_load::{Config, Load, pairs};
use crate::mq_table::{Arrival, MqTable, ms, series};
use blklab_block::mq::Limits;
use blklab_engine::Stream;
use blklab_trace::truth::{Kind, Truth};
use blklab_types::{Op, PrioClass, Time};
use std::collections::BTreeMap;

const STEPS: u32 = 400;

/// Limits that hold at any time.
fn check_limits(load: &Load) {
    let (r, limits) = (&load.rig, &load.config.setup.limits);
    let sets = if limits.shared_tags {
        1
    } else {
        limits.nr_hw_queues
    };
    let tags = limits.queue_depth * u32::from(sets);
    let bounds = [Some(tags), limits.budget, limits.refuses_above];
    let most = bounds.into_iter().flatten().min().expect("a bound");
    assert!(r.at_device.len() <= most as usize, "{:?}", load.config);
    for (i, rq) in r.at_device.iter().enumerate() {
        assert!(!r.at_device[..i].contains(rq), "twice: {:?}", load.config);
    }
}

/// What holds when everything is done.
fn check_end(load: &Load, records: &[Truth]) {
    let mut done = load.rig.done.clone();
    done.sort_unstable();
    let all: Vec<u64> = (0..load.submitted).collect();
    assert_eq!(done, all, "every bio once: {:?}", load.config);
    if load.config.setup.sched != "none" {
        assert!(records.iter().any(|r| r.kind == Kind::Insert));
    }
    if !load.config.requeues {
        let mut sum = [0; 2];
        for r in records.iter().filter(|r| r.kind == Kind::HandOver) {
            if r.op != Op::Flush {
                sum[r.op.data_dir()] += u64::from(r.nr_sectors);
            }
        }
        assert_eq!(sum, load.sectors, "every sector once: {:?}", load.config);
    }
}

/// All events of a run, and all truth records.
fn run(config: &Config, seed: u64) -> (Vec<(Time, String)>, Vec<Truth>) {
    let mut load = Load::new(config.clone(), seed);
    for _ in 0..STEPS {
        load.step();
        check_limits(&load);
    }
    assert!(load.drain(), "does not drain: {:?}", load.config);
    load.exit_all();
    let records = load.rig.truths();
    check_end(&load, &records);
    (load.rig.events(), records)
}

fn run_all(values: Values, seeds: std::ops::Range<u64>) {
    for (sched, kernel) in pairs() {
        for seed in seeds.clone() {
            let mut s = Stream::named(seed, &format!("{} {kernel}", sched.name));
            let config = Config::random(&mut s, sched, kernel, values);
            let first = run(&config, seed);
            if seed % 8 == 0 {
                assert!(run(&config, seed) == first, "repeats: {config:?}");
            }
        }
    }
}

#[test]
fn with_default_tunables() {
    run_all(Values::Default, 0..40);
}

#[test]
fn with_random_tunables() {
    run_all(Values::Random, 100..160);
}

#[test]
fn with_tunables_at_their_ends() {
    run_all(Values::Smallest, 200..212);
    run_all(Values::Largest, 300..312);
}

/// Priority class and jiffy of insertion of requests in the scheduler or the
/// driver.
#[derive(Default)]
struct Classes {
    of: BTreeMap<u32, (PrioClass, u64)>,
}

impl Classes {
    /// Follows one record; the class and age of a request that was handed over,
    /// if a better class was there.
    fn follow(&mut self, r: &Truth, load: &Load) -> Option<u64> {
        let jiffies = load.rig.agenda.timers.hz().jiffies_at(r.time).0;
        match r.kind {
            Kind::Insert => {
                let rq = blklab_block::RqId(r.request);
                let class = match load.rig.core().rqs[rq].ioprio.class {
                    PrioClass::None => PrioClass::BestEffort,
                    class => class,
                };
                self.of.insert(r.request, (class, jiffies));
            }
            Kind::Absorbed => {
                if let Some((_, inserted)) = self.of.remove(&r.request) {
                    let survivor = self.of.get_mut(&(r.arg as u32)).expect("it waits");
                    survivor.1 = survivor.1.min(inserted);
                }
            }
            Kind::Complete => {
                self.of.remove(&r.request);
            }
            Kind::HandOver => {
                let (class, inserted) = self.of[&r.request];
                let better = self.of.values().any(|(other, _)| *other < class);
                return better.then_some(jiffies - inserted);
            }
            _ => {}
        }
        None
    }
}

/// From 5.16 on a class is served while a better one has anything only if the
/// request has aged.
#[test]
fn classes_of_mq_deadline_are_strict() {
    let aging_ms = 40;
    for (sched, kernel) in pairs().filter(|(s, _)| s.name == "mq-deadline") {
        if version(kernel) < version("5.16") {
            continue;
        }
        let mut nr_aged = 0;
        for seed in 0..60 {
            let mut s = Stream::named(seed, kernel);
            let mut config = Config::random(&mut s, sched, kernel, Values::Default);
            config.setup.tunables = vec![("prio_aging_expire", aging_ms)];
            config.setup.limits = Limits {
                budget: Some(2),
                queue_depth: 32,
                refuses_above: None,
                nr_hw_queues: 1,
                ..config.setup.limits
            };
            config.setup.limits.queue.has_flush = false;
            config.requeues = false;
            let mut load = Load::new(config, seed);
            let mut classes = Classes::default();
            for _ in 0..2 * STEPS {
                load.step();
                for r in load.rig.truths() {
                    if let Some(age) = classes.follow(&r, &load) {
                        let hz = load.rig.agenda.timers.hz();
                        assert!(age >= hz.from_ms(aging_ms as u64), "{kernel} {seed}: {age}");
                        nr_aged += 1;
                    }
                }
            }
        }
        assert!(nr_aged > 0, "{kernel}: nothing aged");
    }
}

/// When a request was dispatched, in ms.
fn dispatched(table: MqTable, name: &str) -> u64 {
    let all = table.run();
    let found = all
        .iter()
        .find_map(|d| d.strip_prefix(name)?.strip_prefix('@'));
    ms(found.expect("dispatched")).0 / 1_000_000
}

/// Reads come without end, each ahead of the one before, 10 ms apiece; an older
/// read behind them waits until it has expired and the batch is over, a write
/// for two batches more, the idle class until it has aged.
#[test]
fn waits_of_mq_deadline_are_bounded() {
    let sweep = |others: &str| {
        let mut a: Vec<Arrival> = crate::mq_table::arrivals(others);
        for k in 0..1300 {
            a.push(Arrival::new(&format!(
                "{} BE s{k} {}",
                10 * k,
                5000 + 8 * k
            )));
        }
        a
    };
    for kernel in ["5.10", "6.1", "6.12"] {
        let table = |a| MqTable::new(kernel, "mq-deadline", 1, "10", a);
        let waited = dispatched(table(sweep("15 BE old 10")), "old") - 15;
        assert!(waited <= 500 + 17 * 10, "{kernel}: {waited}");
        let waited = dispatched(table(sweep("15 BE w 10w")), "w") - 15;
        assert!(waited <= 3 * 16 * 10 + 10, "{kernel}: {waited}");
        if kernel != "5.10" {
            let waited = dispatched(table(sweep("15 IDLE i 10")), "i") - 15;
            assert!((10_000..10_020).contains(&waited), "{kernel}: {waited}");
        }
    }
}

/// A domain waits for a batch of each of the others.
#[test]
fn waits_of_kyber_are_bounded() {
    let mut a = series("0", "P", "r", 100, (5000, 8), "");
    a.extend(series("0", "P", "w", 100, (9000, 8), "w"));
    a.extend(series("0.5", "P", "d", 1, (20000, 8), "d"));
    let mut table = MqTable::new("6.1", "kyber", 1, "1", a);
    table.setup.limits.nr_requests = Some(1024);
    let waited = dispatched(table, "d0");
    assert!(waited <= 16 + 8, "{waited}");
}
