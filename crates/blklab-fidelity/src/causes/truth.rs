// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulated run knows of its waits, added up by process. The detectors see
//! nothing of it.

use blklab_trace::truth::{Kind, Truth, TruthSink, Why};
use blklab_trace::{WaitLabels, Waited};
use blklab_types::{Pid, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a process waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// Bios that ended.
    pub(super) bios: u64,
    /// Their time from Q to the end, ns.
    pub(super) waited_ns: u64,
    /// The longest, ns.
    pub(super) worst_ns: u64,
    /// From S to G, ns.
    pub(super) sleep_ns: u64,
    /// Between insertion and hand-over, by reason, ns.
    pub(super) why: BTreeMap<Why, u64>,
    /// Commands of it that the device got.
    pub(super) commands: u64,
    /// Their sectors.
    pub(super) sectors: u64,
}

impl Sum {
    /// Adds another process's.
    pub(super) fn add(&mut self, other: &Sum) {
        self.bios += other.bios;
        self.waited_ns += other.waited_ns;
        self.worst_ns = self.worst_ns.max(other.worst_ns);
        self.sleep_ns += other.sleep_ns;
        for (why, ns) in &other.why {
            *self.why.entry(*why).or_default() += ns;
        }
        self.commands += other.commands;
        self.sectors += other.sectors;
    }
}

/// Whom waits are told to.
type Listener = Box<dyn FnMut(&Waited<'_>)>;

/// Adds up what the truth stream says.
pub(super) struct Sums {
    labels: WaitLabels<Listener>,
    by_process: Rc<RefCell<BTreeMap<Pid, Sum>>>,
    asleep: BTreeMap<Pid, Time>,
}

impl Sums {
    /// Adds to these.
    pub(super) fn new(by_process: Rc<RefCell<BTreeMap<Pid, Sum>>>) -> Sums {
        let of_labels = Rc::clone(&by_process);
        let report = move |w: &Waited<'_>| {
            let mut all = of_labels.borrow_mut();
            let sum = all.entry(w.request.pid).or_default();
            for label in w.labels {
                *sum.why.entry(label.why).or_default() += label.span.0;
            }
        };
        Sums {
            labels: WaitLabels::new(Box::new(report)),
            by_process,
            asleep: BTreeMap::new(),
        }
    }
}

impl TruthSink for Sums {
    fn truth(&mut self, record: &Truth, text: &str) {
        self.labels.truth(record, text);
        let mut all = self.by_process.borrow_mut();
        match record.kind {
            Kind::SleepRequest => {
                self.asleep.entry(record.pid).or_insert(record.time);
            }
            Kind::GetRequest => {
                if let Some(since) = self.asleep.remove(&record.pid) {
                    all.entry(record.pid).or_default().sleep_ns += record.time.since(since).0;
                }
            }
            Kind::HandOver => {
                let sum = all.entry(record.pid).or_default();
                sum.commands += 1;
                sum.sectors += u64::from(record.nr_sectors);
            }
            Kind::BioDone => {
                let sum = all.entry(record.pid).or_default();
                sum.bios += 1;
                sum.waited_ns += record.arg;
                sum.worst_ns = sum.worst_ns.max(record.arg);
            }
            _ => {}
        }
    }
}
