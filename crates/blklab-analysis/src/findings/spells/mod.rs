// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other parts of the kernel did for a while: a commit of the journal from its beginning
//! to its end, an fsync, a pause of a task that dirties pages, a command that failed.
//!
//! Events come one at a time; what begins with one and ends with another is a spell. What
//! began before a trace, or does not end in it, is none.

mod commands;
mod cost;
mod journal;
mod log;
mod tasks;

pub use commands::{CommandTry, Fault};
pub use cost::{Cost, CostSaid};
pub use journal::Commit;
pub use log::LogForce;
pub use tasks::OffCpu;

use super::finding::{Evidence, counted, time_text};
use crate::names::Names;
use blklab_trace::{Event, GroupPath, KernelEvent, Tracepoint, WbtStatus, WritebackReason};
use blklab_trace::{TaskState, WritebackStep};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// Things of one kind that are followed at a time; of more, the first.
pub(super) const OPEN_MAX: usize = 1 << 16;

/// Something that went on for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Spell {
    /// When it began.
    pub from: Time,
    /// When it ended.
    pub to: Time,
    /// The device that it concerns, of a file system perhaps a partition; 0,0 if none is
    /// named.
    pub dev: Dev,
    /// Whose it is, or who waits.
    pub pid: Pid,
    /// What it was.
    pub what: What,
    /// Its events.
    pub evidence: Vec<Evidence>,
}

/// What went on.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A commit of jbd2; `pid` is the journal's thread.
    Commit(Commit),
    /// fsync or fdatasync of ext4.
    Fsync {
        /// The file.
        ino: u64,
    },
    /// A task sleeps since too much is dirty.
    DirtyPause {
        /// Pages that it had dirtied since the last time.
        dirtied_pages: u32,
        /// How fast it may go on, in KiB per second.
        ratelimit_kib: u32,
    },
    /// A task waits for room in the journal or log.
    LogFull,
    /// A task waits for a buffer that the journal writes.
    BufferStall,
    /// wbt allows fewer writes than by default, or more.
    Wbt(Wbt),
    /// A task has the log of XFS written and waits for it; where the log's own events do not
    /// say when it is, the spell ends with its beginning.
    LogForce(LogForce),
    /// io.cost takes the device to be so fast.
    Cost(Cost),
    /// io.cost says something of a control group; `pid` is the task that has I/O.
    CostGroup(GroupPath, CostSaid),
    /// A round of write-back of a flusher thread.
    Writeback {
        /// Why.
        reason: WritebackReason,
    },
    /// A command of a driver, from when it got it to when it was done with it.
    Command(CommandTry),
    /// A task that sleeps, is woken, and runs again.
    OffCpu(OffCpu),
}

/// How wbt limits writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wbt {
    /// How often the limit was halved.
    pub step: i32,
    /// Writes that write-back may have under way.
    pub background: u32,
    /// Writes of those who wait.
    pub normal: u32,
    /// The window, us.
    pub window_us: u64,
    /// Windows meanwhile in which reads took too long.
    pub nr_exceeded: u32,
    /// The longest of the shortest reads of these windows, ns.
    pub read_min_ns: u64,
}

impl Spell {
    /// How long it was, ns.
    pub fn ns(&self) -> u64 {
        self.to.since(self.from).0
    }

    /// For how long it went on within a stretch of time, ns.
    pub fn within(&self, from: Time, to: Time) -> u64 {
        let (from, to) = (self.from.max(from), self.to.min(to));
        if from < to { to.since(from).0 } else { 0 }
    }

    /// In words.
    pub fn words(&self, names: &Names) -> String {
        let who = || names.who(self.pid);
        match &self.what {
            What::Commit(c) => format!("commit {} of {}{}", c.tid, who(), c.words()),
            What::Fsync { ino } => format!("{} in fsync of inode {ino}", who()),
            What::DirtyPause {
                dirtied_pages,
                ratelimit_kib,
            } => format!(
                "{} paused in balance_dirty_pages after {}, at {ratelimit_kib} KiB/s",
                who(),
                counted((*dirtied_pages).into(), "pages")
            ),
            What::LogFull => format!("{} waited for room in the journal", who()),
            What::BufferStall => format!("{} waited for a buffer that the journal had", who()),
            What::Wbt(w) => format!(
                "wbt at step {}: {} and {} at a time",
                w.step,
                counted(w.background.into(), "writes of write-back"),
                counted(w.normal.into(), "others")
            ),
            What::LogForce(log) => format!("{} waited for the log{}", who(), log.words()),
            What::Cost(cost) => cost.words(),
            What::CostGroup(group, said) => said.words(&group.to_string()),
            What::Writeback { reason } => {
                format!("{} wrote back ({})", who(), reason.word())
            }
            What::Command(c) => c.words(),
            What::OffCpu(o) => format!(
                "{} was woken and ran {} later, behind {}",
                who(),
                time_text(self.to.since(o.woken).0),
                match o.ran {
                    0 => "no process".to_owned(),
                    pid => names.who(pid),
                }
            ),
        }
    }
}

/// The event as a line of evidence, with the number of the event of the block layer that
/// comes next.
fn evidence(number: u64, e: &KernelEvent) -> Evidence {
    Evidence {
        number,
        event: Event::message(e.time, e.cpu, e.pid, e.dev),
        text: Some(e.point.to_string()),
        stack: None,
    }
}

/// Something that has begun.
#[derive(Clone, Debug)]
struct Begun {
    at: Time,
    dev: Dev,
    evidence: Evidence,
}

/// Puts events together.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    journals: journal::Journals,
    commands: commands::Commands,
    tasks: tasks::Tasks,
    costs: cost::Costs,
    logs: log::Logs,
    fsyncs: BTreeMap<Pid, (u64, Begun)>,
    grants: BTreeMap<Pid, Begun>,
    writebacks: BTreeMap<(Dev, Pid), (WritebackReason, Begun)>,
    wbt: BTreeMap<Dev, (Wbt, Begun)>,
}

/// Adds one unless there are too many.
fn open<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: V) {
    if map.len() < OPEN_MAX || map.contains_key(&key) {
        map.insert(key, value);
    }
}

impl Tracker {
    /// Takes an event; `number` is that of the event of the block layer that comes next,
    /// from 1.
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent, out: &mut Vec<Spell>) {
        let spell = |from, what, evidence| Spell {
            from,
            to: e.time,
            dev: e.dev,
            pid: e.pid,
            what,
            evidence,
        };
        let begun = || Begun {
            at: e.time,
            dev: e.dev,
            evidence: evidence(number, e),
        };
        match e.point {
            Tracepoint::Commit { .. }
            | Tracepoint::CommitStats { .. }
            | Tracepoint::HandleStart { .. }
            | Tracepoint::HandleEnd { .. }
            | Tracepoint::Checkpoint
            | Tracepoint::CheckpointStats { .. }
            | Tracepoint::FastCommitStart
            | Tracepoint::FastCommitStop { .. } => {
                out.extend(self.journals.event(number, e));
            }
            Tracepoint::LockBufferStall { stall_ms } => {
                let ns = u64::from(stall_ms) * 1_000_000;
                let from = Time(e.time.0.saturating_sub(ns));
                out.push(spell(from, What::BufferStall, vec![evidence(number, e)]));
            }
            Tracepoint::SyncFileEnter { ino, .. } => {
                open(&mut self.fsyncs, e.pid, (ino, begun()));
            }
            Tracepoint::SyncFileExit { ino, .. } => {
                let entered = self.fsyncs.remove(&e.pid).filter(|(i, _)| *i == ino);
                out.extend(entered.map(|(ino, b)| {
                    let all = vec![b.evidence, evidence(number, e)];
                    spell(b.at, What::Fsync { ino }, all)
                }));
            }
            Tracepoint::GrantSleep => open(&mut self.grants, e.pid, begun()),
            Tracepoint::GrantWake => {
                let slept = self.grants.remove(&e.pid);
                out.extend(slept.map(|b| {
                    let all = vec![b.evidence, evidence(number, e)];
                    spell(b.at, What::LogFull, all)
                }));
            }
            Tracepoint::BalanceDirtyPages {
                pause_ms,
                dirtied_pages,
                task_ratelimit_kib,
                ..
            } if pause_ms > 0 => {
                let ns = u64::from(pause_ms.unsigned_abs()) * 1_000_000;
                let what = What::DirtyPause {
                    dirtied_pages,
                    ratelimit_kib: task_ratelimit_kib,
                };
                let mut pause = spell(e.time, what, vec![evidence(number, e)]);
                pause.to = Time(e.time.0.saturating_add(ns));
                out.push(pause);
            }
            Tracepoint::Writeback { step, reason, .. } => {
                let key = (e.dev, e.pid);
                match step {
                    WritebackStep::Start => open(&mut self.writebacks, key, (reason, begun())),
                    WritebackStep::Written => {
                        let started = self.writebacks.remove(&key);
                        out.extend(started.map(|(reason, b)| {
                            let all = vec![b.evidence, evidence(number, e)];
                            spell(b.at, What::Writeback { reason }, all)
                        }));
                    }
                    WritebackStep::Queue | WritebackStep::Wait => {}
                }
            }
            Tracepoint::WbtStep {
                step,
                window_us,
                background,
                normal,
                ..
            } => {
                let before = self.wbt.remove(&e.dev);
                out.extend(before.map(|(wbt, b)| wbt_spell(wbt, b, e.time)));
                let wbt = Wbt {
                    step,
                    background,
                    normal,
                    window_us,
                    ..Wbt::default()
                };
                open(&mut self.wbt, e.dev, (wbt, begun()));
            }
            Tracepoint::WbtTimer { status, .. } => {
                if let Some((wbt, _)) = self.wbt.get_mut(&e.dev) {
                    wbt.nr_exceeded += u32::from(status == WbtStatus::Exceeded);
                }
            }
            Tracepoint::WbtStat { read_min_ns, .. } => {
                if let Some((wbt, _)) = self.wbt.get_mut(&e.dev) {
                    wbt.read_min_ns = wbt.read_min_ns.max(read_min_ns);
                }
            }
            Tracepoint::WbtLat { lat_us } => {
                if let Some((wbt, _)) = self.wbt.get_mut(&e.dev) {
                    wbt.read_min_ns = wbt.read_min_ns.max(lat_us.saturating_mul(1000));
                }
            }
            Tracepoint::NvmeSetup { .. }
            | Tracepoint::NvmeComplete { .. }
            | Tracepoint::ScsiStart(_)
            | Tracepoint::ScsiRefused { .. }
            | Tracepoint::ScsiDone { .. }
            | Tracepoint::ScsiTimeout(_)
            | Tracepoint::UfsCommand { .. }
            | Tracepoint::MmcStart { .. }
            | Tracepoint::MmcDone { .. } => out.extend(self.commands.event(number, e)),
            Tracepoint::Switch { .. } | Tracepoint::Wakeup { .. } => {
                out.extend(self.tasks.event(number, e));
            }
            Tracepoint::LogForce | Tracepoint::Iclog { .. } => self.logs.event(number, e, out),
            Tracepoint::CostActivate { .. }
            | Tracepoint::CostShortage { .. }
            | Tracepoint::CostRate { .. }
            | Tracepoint::CostDebt { .. } => out.extend(self.costs.event(number, e)),
            Tracepoint::BalanceDirtyPages { .. }
            | Tracepoint::WritePages { .. }
            | Tracepoint::XfsFsync { .. }
            | Tracepoint::ScsiEhWakeup { .. } => {}
        }
    }

    /// A section ends: what lasts until something else happens is told as far as it went.
    pub(super) fn cut(&mut self, now: Time, out: &mut Vec<Spell>) {
        out.extend(self.costs.cut(now));
        for (wbt, b) in self.wbt.values_mut() {
            if b.at < now {
                out.push(wbt_spell(*wbt, b.clone(), now));
                b.at = now;
                (wbt.nr_exceeded, wbt.read_min_ns) = (0, 0);
            }
        }
    }
}

fn wbt_spell(wbt: Wbt, b: Begun, to: Time) -> Spell {
    Spell {
        from: b.at,
        to: to.max(b.at),
        dev: b.dev,
        pid: 0,
        what: What::Wbt(wbt),
        evidence: vec![b.evidence],
    }
}

/// Whether a task that sleeps like this may wait for I/O.
fn may_wait(state: TaskState) -> bool {
    matches!(state, TaskState::Uninterruptible | TaskState::Interruptible)
}
