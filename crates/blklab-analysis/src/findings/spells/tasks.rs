// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that sleep, are woken, and run again.

use super::{OPEN_MAX, Spell, What, evidence, may_wait};
use crate::findings::finding::Evidence;
use blklab_trace::{KernelEvent, Tracepoint};
use blklab_types::{Dev, Pid, Time};
use std::collections::HashMap;

/// A task that runs so soon after it was woken did not wait.
const SHORT_NS: u64 = 50_000;

/// A task that slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// When it was woken.
    pub woken: Time,
    /// Who ran on its CPU before it.
    pub ran: Pid,
}

/// A task that sleeps.
#[derive(Debug)]
struct Asleep {
    since: Time,
    woken: Option<(Time, Evidence)>,
    /// As the lines of evidence of its going to sleep.
    begun: Evidence,
}

/// All tasks that sleep.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    // Looked up, never gone through.
    asleep: HashMap<Pid, Asleep>,
}

impl Tasks {
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent) -> Option<Spell> {
        match e.point {
            Tracepoint::Wakeup { pid } => {
                let asleep = self.asleep.get_mut(&pid)?;
                if asleep.woken.is_none() {
                    asleep.woken = Some((e.time, evidence(number, e)));
                }
                None
            }
            Tracepoint::Switch {
                prev,
                prev_state,
                next,
            } => {
                let spell = self.runs(number, e, next, prev);
                if prev > 0 && may_wait(prev_state) && self.asleep.len() < OPEN_MAX {
                    let asleep = Asleep {
                        since: e.time,
                        woken: None,
                        begun: evidence(number, e),
                    };
                    self.asleep.insert(prev, asleep);
                } else {
                    self.asleep.remove(&prev);
                }
                spell
            }
            _ => None,
        }
    }

    /// A task runs, where another one ran.
    fn runs(&mut self, number: u64, e: &KernelEvent, pid: Pid, ran: Pid) -> Option<Spell> {
        let asleep = self.asleep.remove(&pid)?;
        // When it could have gone on only its wake-up says: it may sleep for something else
        // than its I/O.
        let (woken, said) = asleep.woken?;
        if e.time.since(woken).0 < SHORT_NS {
            return None;
        }
        let all = vec![asleep.begun, said, evidence(number, e)];
        Some(Spell {
            from: asleep.since,
            to: e.time,
            dev: Dev::default(),
            pid,
            what: What::OffCpu(OffCpu { woken, ran }),
            evidence: all,
        })
    }
}
