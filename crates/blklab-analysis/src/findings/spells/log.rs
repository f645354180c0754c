// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that have the log of XFS written and wait for it (`xfs_log_force`,
//! `xlog_wait_on_iclog`, fs/xfs/xfs_log.c). From 5.14 on the log's buffers have events of
//! their own, which tell what a task waits for and when it goes on.

use super::{Begun, OPEN_MAX, Spell, What, evidence, open};
use crate::findings::finding::{Evidence, time_text};
use blklab_trace::{IclogStep, KernelEvent, Tracepoint};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// Whoever has the log written does so once more for its last part, at once.
const NESTED_NS: u64 = 1_000_000;

/// A wait for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogForce {
    /// When the buffer that it waits for was submitted, and when it was on the device.
    pub written: [Option<Time>; 2],
}

impl LogForce {
    pub(super) fn words(&self) -> String {
        match self.written {
            [Some(from), Some(to)] if from <= to => {
                format!(", of which its write took {}", time_text(to.since(from).0))
            }
            _ => String::new(),
        }
    }
}

/// A buffer of the log.
#[derive(Debug, Default)]
struct Iclog {
    waiters: Vec<(Pid, Begun, Evidence)>,
    log: LogForce,
    evidence: Vec<Evidence>,
}

/// All logs.
#[derive(Debug, Default)]
pub(super) struct Logs {
    forces: BTreeMap<Pid, Begun>,
    iclogs: BTreeMap<(Dev, u64), Iclog>,
}

impl Logs {
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent, out: &mut Vec<Spell>) {
        let begun = || Begun {
            at: e.time,
            dev: e.dev,
            evidence: evidence(number, e),
        };
        let (step, lsn) = match e.point {
            Tracepoint::LogForce => {
                let before = self.forces.get(&e.pid).map(|b| e.time.since(b.at).0);
                if before.is_none_or(|ns| ns > NESTED_NS) {
                    open(&mut self.forces, e.pid, begun());
                    out.push(Spell {
                        from: e.time,
                        to: e.time,
                        dev: e.dev,
                        pid: e.pid,
                        what: What::LogForce(LogForce::default()),
                        evidence: vec![evidence(number, e)],
                    });
                }
                return;
            }
            Tracepoint::Iclog { step, lsn } => (step, lsn),
            _ => return,
        };
        let key = (e.dev, lsn);
        if self.iclogs.len() >= OPEN_MAX && !self.iclogs.contains_key(&key) {
            return;
        }
        match step {
            IclogStep::Idle => {
                self.forces.remove(&e.pid);
            }
            IclogStep::WaitOn => {
                let force = self.forces.remove(&e.pid).unwrap_or_else(begun);
                let iclog = self.iclogs.entry(key).or_default();
                if iclog.waiters.len() < OPEN_MAX {
                    iclog.waiters.push((e.pid, force, evidence(number, e)));
                }
            }
            IclogStep::Write | IclogStep::SyncDone => {
                let iclog = self.iclogs.entry(key).or_default();
                iclog.log.written[usize::from(step == IclogStep::SyncDone)] = Some(e.time);
                iclog.evidence.push(evidence(number, e));
                iclog.evidence.truncate(2);
            }
            IclogStep::Clean => {
                let iclog = self.iclogs.remove(&key).unwrap_or_default();
                out.extend(iclog.waiters.into_iter().map(|(pid, force, wait)| {
                    Spell {
                        from: force.at,
                        to: e.time,
                        dev: e.dev,
                        pid,
                        what: What::LogForce(iclog.log),
                        evidence: [force.evidence, wait]
                            .into_iter()
                            .chain(iclog.evidence.iter().cloned())
                            .chain([evidence(number, e)])
                            .collect(),
                    }
                }));
            }
        }
    }
}
