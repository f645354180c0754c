// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the trace as a whole when it has ended.

use super::areas::Areas;
use super::context::Context;
use super::disk::Disk;
use super::finding::listed;
use super::section::Section;
use super::spells::{Spell, What};
use super::sums::{add, is_most};
use super::unflushed;
use super::waits::Wait;
use super::who_waits::Behaviour;
use crate::names::Names;
use blklab_trace::Rwbs;
use blklab_types::{Dev, Op, Pid};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the reader of the trace says about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reading {
    /// Events that are known to be missing: lost, or left out by whoever quoted the
    /// trace.
    pub lost: u64,
    /// Places where lines were left out.
    pub elided: u64,
    /// The format cannot say that events were lost: that none is known to be missing
    /// says nothing.
    pub losses_unsaid: bool,
}

/// Time that somebody waited for I/O of a device, by where it went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Requests that a process waited for.
    pub requests: u64,
    /// All of their time.
    pub waited_ns: u64,
    /// From Q to G.
    pub get_ns: u64,
    /// On a plug.
    pub plug_ns: u64,
    /// In the scheduler while the device had nothing to do.
    pub idle_ns: u64,
    /// In the scheduler while the device was busy.
    pub ahead_ns: u64,
    /// In the device: what a request takes alone.
    pub alone_ns: u64,
    /// In the device: the rest.
    pub behind_ns: u64,
    /// While the device emptied its cache.
    pub flush_ns: u64,
    /// The longest of a request.
    pub worst_ns: u64,
}

impl Account {
    fn add(&mut self, w: &Wait, worst_ns: u64) {
        self.requests += 1;
        for (sum, part) in [
            (&mut self.waited_ns, w.whole_ns()),
            (&mut self.get_ns, w.get_ns),
            (&mut self.plug_ns, w.plug_ns),
            (&mut self.idle_ns, w.idle_ns),
            (&mut self.ahead_ns, w.ahead_ns),
            (&mut self.alone_ns, w.alone_ns),
            (&mut self.behind_ns, w.behind_ns),
            (&mut self.flush_ns, w.flush_ns),
        ] {
            *sum = sum.saturating_add(part);
        }
        self.worst_ns = self.worst_ns.max(worst_ns);
    }
}

/// A device over all sections.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskSum {
    /// Of what somebody waited for.
    pub waited: Account,
    /// Of what nobody waits for: write-back.
    pub background: Account,
    /// Requests that went to the device.
    pub nr_issued: u64,
    /// Requests that ended, flushes apart.
    pub nr_ended: u64,
    /// Bios that ended on a device without requests, and how long they took in all, ns.
    pub bios: (u64, u64),
    /// The longest of them, ns.
    pub bio_worst_ns: u64,
    /// Time in which it had something to do, ns.
    pub busy_ns: u64,
    /// From its first event to its last, ns.
    pub span_ns: u64,
    /// Mean requests at the device while it is busy; of the longest section.
    pub mean_depth: f64,
    /// Median from D to C on an idle device, reads then writes, ns.
    pub alone_ns: [Option<u64>; 2],
    /// Largest request in sectors.
    pub sectors_max: u64,
    /// Commands that empty the cache, and how long they took, ns.
    pub flushes: (u64, u64),
    /// The longest of them, ns.
    pub flush_worst_ns: u64,
    /// Requests and bios that flush the cache or pass it (F): how many, how long, ns.
    pub forced: (u64, u64),
    /// The longest of them, ns.
    pub forced_worst_ns: u64,
    /// Writes that ended after the last flush.
    pub writes_after_flush: u64,
    /// Calls of fsync that ended without a commit or a flush though writes had ended before.
    pub nr_unflushed: u64,
    /// Requests whose merge into another the trace does not show.
    pub nr_silent_merges: u64,
    /// Requests that went to the device and whose beginning is shown, flushes apart.
    pub nr_begun: u64,
    /// Those of them that have not been in a scheduler (no I).
    pub nr_direct: u64,
    events_of: [u64; 17],
    #[serde(skip)]
    told: Option<&'static str>,
    #[serde(skip)]
    last_flush: Option<blklab_types::Time>,
    #[serde(skip)]
    processes: BTreeMap<Pid, Account>,
    #[serde(skip)]
    pub(super) areas: Areas,
    /// Who is taken to wait for writes whose flags do not say it, and why.
    #[serde(skip)]
    pub(super) who_waits: BTreeMap<Pid, Behaviour>,
    /// Writes of which it is not known who waits for them.
    #[serde(skip)]
    pub(super) nr_writes_unknown: u64,
    #[serde(skip)]
    pub(super) nr_errors: u64,
}

/// The trace as a whole.
#[derive(Debug)]
pub struct Whole<'a> {
    /// What is known beside it.
    pub context: &'a Context,
    /// What its reader says.
    pub reading: Reading,
    /// Whether flags of writes say that somebody waits for them.
    pub are_flags_said: bool,
    pub(super) sums: &'a Sums,
}

impl Whole<'_> {
    /// The name of a process.
    pub fn comm(&self, pid: Pid) -> Option<String> {
        self.sums.names.get(pid).map(str::to_owned)
    }

    /// A process in words.
    pub fn who(&self, pid: Pid) -> String {
        self.sums.names.who(pid)
    }

    /// Processes in words.
    pub fn names(&self, pids: impl IntoIterator<Item = Pid>) -> String {
        listed(pids.into_iter().map(|pid| self.who(pid)))
    }

    /// What a process waited for on a device.
    pub fn waited(&self, dev: Dev, pid: Pid) -> Account {
        let disk = self.sums.disks.get(&dev);
        disk.and_then(|d| d.processes.get(&pid))
            .copied()
            .unwrap_or_default()
    }

    /// The scheduler of a device, if the context or a message says which.
    pub fn scheduler(&self, dev: Dev) -> Option<&str> {
        self.context.scheduler().or(self.disk(dev).told)
    }

    /// A device over all sections.
    pub fn disk(&self, dev: Dev) -> &DiskSum {
        static NONE: std::sync::LazyLock<DiskSum> = std::sync::LazyLock::new(DiskSum::default);
        self.sums.disks.get(&dev).unwrap_or(&NONE)
    }
}

/// What is added up while sections pass by.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) names: Names,
    pub(super) disks: BTreeMap<Dev, DiskSum>,
    pub(super) nr_events: u64,
    pub(super) nr_captures: u64,
    pub(super) start: Option<blklab_types::Time>,
    /// Whether events of the page cache, and of a journal, are among those of the trace.
    pub(super) beside: Beside,
}

/// Which other parts of the kernel the trace has events of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Pauses of writers, rounds of write-back.
    pub(super) page_cache: bool,
    /// Commits, waits for room.
    pub(super) journal: bool,
}

impl Beside {
    fn add(&mut self, spell: &Spell) {
        match spell.what {
            What::DirtyPause { .. } | What::Writeback { .. } => self.page_cache = true,
            What::Commit(_) | What::LogFull | What::LogForce(_) => self.journal = true,
            _ => {}
        }
    }
}

/// Processes that are named of those that wait.
const WAITERS_MAX: usize = 5;

impl Sums {
    /// The processes that waited longest, the first of them most.
    pub(super) fn waiters(&self) -> Vec<Pid> {
        let mut waited: BTreeMap<Pid, u64> = BTreeMap::new();
        for (pid, account) in self.disks.values().flat_map(DiskSum::accounts) {
            add(waited.entry(pid).or_default(), account.waited_ns);
        }
        let mut all: Vec<(Pid, u64)> = waited.into_iter().collect();
        all.sort_by_key(|(pid, ns)| (std::cmp::Reverse(*ns), *pid));
        all.into_iter()
            .take(WAITERS_MAX)
            .map(|(pid, _)| pid)
            .collect()
    }

    pub(super) fn section(&mut self, section: &Section) {
        self.nr_events += section.events().len() as u64;
        section.spells.iter().for_each(|s| self.beside.add(s));
        for disk in &section.disks {
            self.disk(section, disk);
        }
        for (dev, nr) in unflushed::fsyncs(section) {
            self.disks.entry(dev).or_default().nr_unflushed += nr;
        }
    }

    fn disk(&mut self, section: &Section, disk: &Disk) {
        let sum = self.disks.entry(disk.dev).or_default();
        sum.areas.add(section, disk);
        sum.nr_errors += disk.shown.nr_errors;
        sum.nr_writes_unknown += disk.who_waits.nr_unknown;
        for (pid, behaviour) in &disk.who_waits.waits {
            sum.who_waits.entry(*pid).or_default().add(behaviour);
        }
        for (r, w) in disk.divided() {
            sum.sectors_max = sum.sectors_max.max(r.sectors());
            let Some(whole) = r.whole().filter(|_| !r.is_flush()) else {
                continue;
            };
            sum.nr_ended += 1;
            if r.is_sync {
                sum.waited.add(w, whole);
                sum.processes.entry(r.pid).or_default().add(w, whole);
            } else {
                sum.background.add(w, whole);
            }
        }
        if disk.nr_issued == 0 {
            sum.bios(disk);
        }
        sum.flushes_and_writes(disk);
        let flushes = disk.requests.iter().filter(|r| r.is_flush());
        for ns in flushes.filter_map(super::disk::Request::d2c) {
            sum.flushes.0 += 1;
            add(&mut sum.flushes.1, ns);
            sum.flush_worst_ns = sum.flush_worst_ns.max(ns);
        }
        let is_longest = is_most(disk.busy_ns, sum.busy_ns);
        sum.nr_issued += disk.nr_issued as u64;
        sum.told = disk.told.or(sum.told);
        add(&mut sum.busy_ns, disk.busy_ns);
        add(&mut sum.span_ns, disk.span[1].since(disk.span[0]).0);
        if is_longest {
            sum.mean_depth = disk.mean_depth;
            sum.alone_ns = disk.service.alone_ns;
        }
        for (sum, n) in sum.events_of.iter_mut().zip(disk.nr_events) {
            *sum += n;
        }
    }
}

impl DiskSum {
    /// What bios took on a device that takes them as they are.
    fn bios(&mut self, disk: &Disk) {
        let ended = disk.bios.iter().filter(|b| b.bytes > 0);
        for ns in ended.filter_map(|b| Some(b.complete?.since(b.queue).0)) {
            self.bios.0 += 1;
            add(&mut self.bios.1, ns);
            self.bio_worst_ns = self.bio_worst_ns.max(ns);
        }
    }

    /// Counts what flushes the cache or passes it, and writes after the last of them.
    fn flushes_and_writes(&mut self, disk: &Disk) {
        let force = |flags: Rwbs| flags.has(Rwbs::FLUSH) || flags.has(Rwbs::FUA);
        let of_requests = disk.requests.iter().map(|r| {
            let is_write = r.is_write() && r.life.bytes > 0;
            (r.flags, is_write, r.start(), r.life.complete)
        });
        let of_bios = disk.bios.iter().map(|b| {
            let is_write = b.op() == Some(Op::Write) && b.bytes > 0;
            (b.rwbs, is_write, Some(b.queue), b.complete)
        });
        let all: Vec<_> = of_requests.chain(of_bios).collect();
        for (flags, _, start, complete) in &all {
            let (Some(start), Some(complete)) = (*start, *complete) else {
                continue;
            };
            if force(*flags) {
                let ns = complete.since(start).0;
                self.forced.0 += 1;
                add(&mut self.forced.1, ns);
                self.forced_worst_ns = self.forced_worst_ns.max(ns);
            }
            if flags.has(Rwbs::FLUSH) && self.last_flush < Some(complete) {
                self.last_flush = Some(complete);
                self.writes_after_flush = 0;
            }
        }
        let last = self.last_flush;
        let after = all.iter().filter(|(flags, is_write, _, complete)| {
            *is_write && !flags.has(Rwbs::FUA) && last.is_some() && *complete > last
        });
        self.writes_after_flush += after.count() as u64;
        // Of the others it is not known: the trace begins behind their I, or shows no G.
        let known = disk.issued().iter().filter(|r| r.is_owner_known);
        for r in known.filter(|r| !r.flags.has(Rwbs::FLUSH)) {
            self.nr_begun += 1;
            self.nr_direct += u64::from(r.life.insert.is_none());
        }
        let silent = disk
            .requests
            .iter()
            .map(|r| u64::from(r.life.nr_silent_merges));
        self.nr_silent_merges += silent.sum::<u64>();
    }

    /// Processes with what they waited for.
    pub(super) fn accounts(&self) -> impl Iterator<Item = (Pid, &Account)> {
        self.processes.iter().map(|(pid, account)| (*pid, account))
    }

    /// Events of a kind.
    pub fn nr(&self, action: blklab_trace::Action) -> u64 {
        self.events_of[action as usize]
    }
}
