// SPDX-License-Identifier: MIT OR Apache-2.0
//! Event logs of a real kernel, replayed: bios are submitted and requests
//! finished at the recorded times; what is inserted, merged and issued must be
//! the same, in order (`testdata/mq/README.md`).
//!
//! What a log does not say outright is taken from what follows in it: a task
//! has a plug if P follows its bio, and ends it at U or, without a scheduler,
//! when it issues a request. kblockd works when the log shows it at work, and
//! when the task that asked for it had nothing to plug.

use crate::mq_rig::{MqRig, MqSetup};
use blklab_block::mq::Limits;
use blklab_types::{Bio, BioFlags, Op, TaskId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A line of a log.
struct Record {
    time: Time,
    action: &'static str,
    is_write: bool,
    is_sync: bool,
    range: &'static str,
    pid: u32,
}

impl Record {
    fn new(line: &'static str) -> Record {
        let words: Vec<&str> = line.split(' ').collect();
        let [time, action, rwbs, range, pid] = words[..] else {
            panic!("not a record: {line}");
        };
        Record {
            time: Time(time.parse().expect("ns")),
            action,
            is_write: rwbs.contains('W'),
            is_sync: rwbs.contains('S'),
            range,
            pid: pid.parse().expect("a pid"),
        }
    }

    fn bio(&self, task: TaskId) -> Bio {
        let (sector, nr_sectors) = self.range.split_once('+').expect("a range");
        let nr_sectors = nr_sectors.parse().expect("sectors");
        Bio {
            op: if self.is_write { Op::Write } else { Op::Read },
            flags: if self.is_sync {
                BioFlags::SYNC | BioFlags::IDLE
            } else {
                BioFlags::NONE
            },
            sector: sector.parse().expect("a sector"),
            nr_sectors,
            segments: Bio::segments_of_pages(nr_sectors),
            task,
            ..Bio::default()
        }
    }
}

struct Replay {
    rig: MqRig,
    has_scheduler: bool,
    tasks: BTreeMap<u32, TaskId>,
    plugged: BTreeSet<u32>,
}

impl Replay {
    fn task(&mut self, pid: u32) -> TaskId {
        *self.tasks.entry(pid).or_insert_with(|| self.rig.task())
    }

    /// The partition scan, some time before.
    fn scan(&mut self) {
        let task = self.task(1);
        let scan = Bio {
            nr_sectors: 8,
            segments: 1,
            task,
            ..Bio::default()
        };
        self.rig.submit(0, &scan);
        self.rig.settle();
        self.rig.complete_first();
        self.rig.settle();
        self.rig.events();
    }

    fn submit(&mut self, r: &Record, with_plug: bool) {
        let task = self.task(r.pid);
        if with_plug && self.plugged.insert(r.pid) {
            self.rig.enter_as(task, 0, |q, _| q.start_plug(task));
        }
        if !self.rig.submit(0, &r.bio(task)) {
            self.sleep(r);
        }
        if !with_plug {
            self.rig.settle();
        }
    }

    fn sleep(&mut self, r: &Record) {
        let task = self.task(r.pid);
        self.rig
            .enter_as(task, 0, |q, cx| q.flush_plug_to_sleep(cx, task));
    }

    fn unplug(&mut self, r: &Record) {
        let task = self.task(r.pid);
        if self.plugged.remove(&r.pid) {
            self.rig.enter_as(task, 0, |q, cx| q.finish_plug(cx, task));
        }
        self.wake();
    }

    fn complete(&mut self, r: &Record) {
        self.rig.settle();
        let core = self.rig.core();
        let range = |rq| format!("{}+{}", core.rqs[rq].sector, core.rqs[rq].nr_sectors);
        let at = self
            .rig
            .at_device
            .iter()
            .position(|&rq| range(rq) == r.range);
        let at = at.unwrap_or_else(|| panic!("at {}: no {} at the device", r.time, r.range));
        let rq = self.rig.at_device.remove(at);
        self.rig.enter(|q, cx| q.complete(cx, rq, 0));
        self.wake();
    }

    fn wake(&mut self) {
        while !self.rig.woken.is_empty() {
            let task = self.rig.woken.remove(0);
            self.rig.resume(task, 0);
        }
    }

    fn follow(&mut self, records: &[Record], i: usize) {
        let r = &records[i];
        // Time runs a second ahead of the log, because of the scan.
        self.rig.clock_to(Time(r.time.0 + 1_000_000_000));
        match r.action {
            "Q" => {
                let own = records[i + 1..].iter().filter(|n| n.pid == r.pid);
                let next = own.map(|n| n.action).find(|a| !["X", "G"].contains(a));
                self.submit(r, next == Some("P"));
            }
            "U" => self.unplug(r),
            "UT" => {
                self.sleep(r);
                self.rig.settle();
            }
            "D" if !self.has_scheduler && self.plugged.contains(&r.pid) => self.unplug(r),
            "D" => self.rig.settle(),
            "C" => self.complete(r),
            _ => {}
        }
    }
}

/// What is compared, sorted by kind: events of each kind come in the same order.
const KINDS: [&str; 4] = ["I", "M", "F", "D"];

fn replay(
    sched: &'static str,
    mut limits: Limits,
    tunables: &[(&'static str, i64)],
    log: &'static str,
) {
    let records: Vec<Record> = log.lines().map(Record::new).collect();
    let setup = MqSetup {
        kernel: "6.1",
        sched,
        hz: 250,
        tunables: tunables.to_vec(),
        patches: Vec::new(),
        limits: {
            limits.queue.max_sectors = 1024;
            limits
        },
    };
    let mut replay = Replay {
        rig: setup.rig(),
        has_scheduler: sched != "none",
        tasks: BTreeMap::new(),
        plugged: BTreeSet::new(),
    };
    // BFQ was switched on after it.
    if sched != "bfq" {
        replay.scan();
    }
    for i in 0..records.len() {
        replay.follow(&records, i);
    }
    let got = replay.rig.events();
    for kind in KINDS {
        let is_kind = |e: &&str| e.split(' ').next() == Some(kind);
        let events = got.iter().map(|(_, e)| e.as_str());
        let got: Vec<&str> = events.filter(is_kind).map(|e| &e[2..]).collect();
        let measured = records.iter().filter(|r| r.action == kind);
        let measured: Vec<&str> = measured.map(|r| r.range).collect();
        // The end of the log may cut off what belongs together.
        assert!(got.len() <= measured.len() + 2, "{kind}: {}", got.len());
        assert_eq!(got[..measured.len()], measured, "{kind}");
    }
}

fn tags(queue_depth: u32, nr_requests: Option<u32>) -> Limits {
    Limits {
        queue_depth,
        nr_requests,
        ..Limits::default()
    }
}

#[test]
fn reads_and_writes_under_mq_deadline() {
    let log = include_str!("../../../../testdata/mq/replay/mix-s1mq1-mqd-base.txt");
    replay("mq-deadline", tags(1, Some(128)), &[], log);
    let log = include_str!("../../../../testdata/mq/replay/mixedlite-s1mq1-mqd.txt");
    replay("mq-deadline", tags(1, Some(64)), &[], log);
    let log = include_str!("../../../../testdata/mq/replay/seqrw-s200q32-mqd.txt");
    replay("mq-deadline", tags(32, None), &[], log);
}

#[test]
fn interleaved_writers_under_mq_deadline() {
    let log = include_str!("../../../../testdata/mq/replay/stride-s1mq1-mqd-ad64.txt");
    replay(
        "mq-deadline",
        tags(1, Some(64)),
        &[("async_depth", 64)],
        log,
    );
}

#[test]
fn large_writes_under_kyber() {
    let log = include_str!("../../../../testdata/mq/replay/ddls1-s1mq1-kyber.txt");
    replay("kyber", tags(1, Some(64)), &[], log);
}

#[test]
fn plugged_reads_without_a_scheduler() {
    let log = include_str!("../../../../testdata/mq/replay/merge-n500q4-none.txt");
    replay("none", tags(4, None), &[], log);
}

#[test]
fn two_readers_under_bfq() {
    let log = include_str!("../../../../testdata/mq/replay/seq2r-d31-bfq.txt");
    let mut limits = tags(31, None);
    limits.queue.rotational = true;
    replay("bfq", limits, &[], log);
}

#[test]
fn readers_and_writers_under_bfq() {
    let log = include_str!("../../../../testdata/mq/replay/seqrw-s200q32-bfq.txt");
    replay("bfq", tags(32, None), &[], log);
    let log = include_str!("../../../../testdata/mq/replay/mixedlite-s1mq1-bfq.txt");
    replay("bfq", tags(1, Some(64)), &[], log);
}

#[test]
fn interleaved_writers_under_bfq() {
    let log = include_str!("../../../../testdata/mq/replay/stride-s1mq1-bfq.txt");
    replay("bfq", tags(1, Some(64)), &[], log);
}
