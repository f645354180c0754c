// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulated run knows of its waits, added up by process. The detectors see
//! nothing of it.

use blklab_trace::truth::{Kind, Truth, TruthSink, Why};
use blklab_trace::{WaitLabels, Waited};
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a process waited for.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    /// The time of its bios from Q to the end, ns.
    pub(super) waited_ns: u64,
    /// From S to G, ns.
    pub(super) sleep_ns: u64,
    /// Between insertion and hand-over, by reason, ns.
    pub(super) why: BTreeMap<Why, u64>,
}

impl Sum {
    /// Adds another process's.
    pub(super) fn add(&mut self, other: &Sum) {
        self.waited_ns += other.waited_ns;
        self.sleep_ns += other.sleep_ns;
        for (why, ns) in &other.why {
            *self.why.entry(*why).or_default() += ns;
        }
    }
}

/// Whom waits are told to.
type Listener = Box<dyn FnMut(&Waited<'_>)>;

/// Adds up what the truth stream says.
pub(super) struct Sums {
    labels: WaitLabels<Listener>,
    by_process: Arc<Mutex<BTreeMap<Pid, Sum>>>,
    asleep: BTreeMap<Pid, Time>,
}

impl Sums {
    /// Adds to these.
    pub(super) fn new(by_process: Arc<Mutex<BTreeMap<Pid, Sum>>>) -> Sums {
        let of_labels = Arc::clone(&by_process);
        let report = move |w: &Waited<'_>| {
            let mut all = of_labels.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut all = self
            .by_process
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match record.kind {
            Kind::SleepRequest => {
                self.asleep.entry(record.pid).or_insert(record.time);
            }
            Kind::GetRequest => {
                if let Some(since) = self.asleep.remove(&record.pid) {
                    all.entry(record.pid).or_default().sleep_ns += record.time.since(since).0;
                }
            }
            Kind::BioDone => {
                all.entry(record.pid).or_default().waited_ns += record.arg;
            }
            _ => {}
        }
    }
}
