// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commits of jbd2 and what its tasks wait for.

use super::{Begun, OPEN_MAX, Spell, What, evidence, open};
use crate::findings::finding::{Evidence, time_text};
use blklab_trace::{CommitStep, KernelEvent, Tracepoint};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// A commit (`jbd2_journal_commit_transaction`, fs/jbd2/commit.c).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The transaction's number.
    pub tid: u32,
    /// When each step began, in the order of [`CommitStep`]; its end is the last.
    pub steps: [Option<Time>; 5],
    /// The task that kept its handle open for longest while the commit waited for it, and for
    /// how long after the commit began, ns.
    pub holder: Option<(Pid, u64)>,
    /// What the kernel says of the longest wait for a handle, and the part that is measured
    /// beside it: ticks of logging.
    pub wait_ticks: u32,
    /// Ticks from the beginning of logging to the end.
    pub logging_ticks: u32,
    /// Blocks written to the journal.
    pub blocks_logged: u32,
}

impl Commit {
    /// From one step to another, ns; none if one of them is not in the trace.
    pub fn between(&self, from: CommitStep, to: CommitStep) -> Option<u64> {
        let [from, to] = [from, to].map(|step| self.steps[step as usize]);
        Some(to?.since(from?).0)
    }

    /// Its parts, where they are known.
    pub(super) fn words(&self) -> String {
        let parts = [
            (CommitStep::Start, CommitStep::Flushing, "handles"),
            (CommitStep::Flushing, CommitStep::Logging, "data"),
            (CommitStep::Logging, CommitStep::End, "journal and data"),
        ];
        let known = parts.into_iter().filter_map(|(from, to, what)| {
            let ns = self.between(from, to).filter(|ns| *ns >= 1000)?;
            Some(format!("{what} {}", time_text(ns)))
        });
        let known: Vec<String> = known.collect();
        match known.as_slice() {
            [] => String::new(),
            known => format!(": {}", known.join(", ")),
        }
    }
}

/// A commit under way.
#[derive(Debug)]
struct Open {
    from: Time,
    commit: Commit,
    evidence: Vec<Evidence>,
}

/// All journals.
#[derive(Debug, Default)]
pub(super) struct Journals {
    commits: BTreeMap<Dev, Open>,
    fast: BTreeMap<Dev, Begun>,
    checkpoints: BTreeMap<Pid, Begun>,
}

impl Journals {
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent) -> Option<Spell> {
        match e.point {
            Tracepoint::Commit { step, tid } => return self.step(number, e, step, tid),
            Tracepoint::CommitStats {
                tid,
                wait_ticks,
                logging_ticks,
                blocks_logged,
                ..
            } => {
                let open = self.open(e.dev, tid)?;
                open.commit.wait_ticks = wait_ticks;
                open.commit.logging_ticks = logging_ticks;
                open.commit.blocks_logged = blocks_logged;
                open.evidence.push(evidence(number, e));
            }
            Tracepoint::HandleEnd { tid, .. } => {
                let open = self.open(e.dev, tid)?;
                if open.commit.steps[CommitStep::Flushing as usize].is_none() {
                    // The last one counts: the commit goes on with it.
                    let ns = e.time.since(open.from).0;
                    open.commit.holder = Some((e.pid, ns));
                }
            }
            Tracepoint::Checkpoint => {
                let begun = Begun {
                    at: e.time,
                    dev: e.dev,
                    evidence: evidence(number, e),
                };
                super::open(&mut self.checkpoints, e.pid, begun);
            }
            // Whoever frees room is told so for each transaction.
            Tracepoint::CheckpointStats { written, .. } => {
                let begun = self.checkpoints.remove(&e.pid).filter(|_| written > 0)?;
                return Some(Spell {
                    from: begun.at,
                    to: e.time,
                    dev: e.dev,
                    pid: e.pid,
                    what: What::LogFull,
                    evidence: vec![begun.evidence, evidence(number, e)],
                });
            }
            Tracepoint::FastCommitStart => {
                let begun = Begun {
                    at: e.time,
                    dev: e.dev,
                    evidence: evidence(number, e),
                };
                open(&mut self.fast, e.dev, begun);
            }
            Tracepoint::FastCommitStop { blocks, .. } => {
                // Without blocks it became a full commit, which has events of its own.
                let begun = self.fast.remove(&e.dev).filter(|_| blocks > 0)?;
                let mut commit = Commit {
                    blocks_logged: blocks,
                    ..Commit::default()
                };
                commit.steps[CommitStep::Logging as usize] = Some(begun.at);
                commit.steps[CommitStep::End as usize] = Some(e.time);
                return Some(Spell {
                    from: begun.at,
                    to: e.time,
                    dev: e.dev,
                    pid: e.pid,
                    what: What::Commit(commit),
                    evidence: vec![begun.evidence, evidence(number, e)],
                });
            }
            _ => {}
        }
        None
    }

    fn open(&mut self, dev: Dev, tid: u32) -> Option<&mut Open> {
        self.commits.get_mut(&dev).filter(|o| o.commit.tid == tid)
    }

    fn step(&mut self, number: u64, e: &KernelEvent, step: CommitStep, tid: u32) -> Option<Spell> {
        let is_known = self.open(e.dev, tid).is_some();
        if !is_known {
            // Of one that began before the trace the beginning is not known.
            let has_room = self.commits.len() < OPEN_MAX || self.commits.contains_key(&e.dev);
            if step > CommitStep::Locking || !has_room {
                self.commits.remove(&e.dev);
                return None;
            }
            let open = Open {
                from: e.time,
                commit: Commit {
                    tid,
                    ..Commit::default()
                },
                evidence: Vec::with_capacity(CommitStep::End as usize + 2),
            };
            self.commits.insert(e.dev, open);
        }
        let open = self.open(e.dev, tid)?;
        open.commit.steps[step as usize] = Some(e.time);
        open.evidence.push(evidence(number, e));
        if step != CommitStep::End {
            return None;
        }
        let open = self.commits.remove(&e.dev)?;
        let mut commit = open.commit;
        commit.steps[CommitStep::Start as usize].get_or_insert(open.from);
        Some(Spell {
            from: open.from,
            to: e.time,
            dev: e.dev,
            pid: e.pid,
            what: What::Commit(commit),
            evidence: open.evidence,
        })
    }
}
