// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commits of a journal as chains of requests, and who waits for them.
//!
//! The data, the journal's blocks, then the commit record, before which the cache is flushed and
//! which is written with FUA or flushed again (`fs/jbd2/commit.c`, `block/blk-flush.c`). Who
//! called fsync waits from its last write to the end of the chain.

use crate::findings::Instance;
use crate::findings::disk::{Disk, Request};
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, is_most, percent, total};
use crate::findings::tasks::Tasks;
use crate::findings::threads::{hands_on, is_journal};
use crate::findings::waits::Wait;
use blklab_trace::{Action, Rwbs};
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;

/// A flush and what belongs to it follow each other so soon: an interrupt lies between them.
const SOON_NS: u64 = 200_000;

/// A flush that takes less is none that anybody waits for.
pub(super) const SLOW_NS: u64 = 1_000_000;

/// Between what a process does and the chain that it waits for.
pub(super) const NEAR_NS: u64 = 1_000_000;

/// A flush that takes so long and empties the cache of so much that another one has written,
/// nearly all of what is in it, in per cent, takes long for that.
const LONG_FLUSH_NS: u64 = 5_000_000;
const MUCH_BYTES: u64 = 1 << 20;
const FILLED_PERCENT: u64 = 75;

/// A smaller part of a wait than this, in per cent, is none that anybody notices.
const NOTABLE_PERCENT: u64 = 20;

/// So many flushes before which nobody else has filled the cache say what one usually takes.
const USUAL_MIN: usize = 8;

/// Threads that a commit is written by.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// Those of journals.
    journals: Tasks,
    /// Those that hand on to the device what others have queued.
    handers: Tasks,
}

impl Writers {
    /// A task has a name now.
    pub(super) fn named(&mut self, pid: Pid, comm: &str) {
        self.journals.named(pid, is_journal(comm));
        self.handers.named(pid, hands_on(comm));
    }

    /// Whether a task is the thread of a journal.
    pub(super) fn is_journal(&self, pid: Pid) -> bool {
        self.journals.has(pid)
    }

    /// Whether a task only hands on what others have queued.
    pub(super) fn hands_on(&self, pid: Pid) -> bool {
        pid == 0 || self.handers.has(pid)
    }
}

/// From the first write of a commit to the end of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) begin: Time,
    pub(super) end: Time,
    pub(super) pid: Pid,
    /// Places of its first request and of its record.
    places: [usize; 2],
    /// From the beginning of the record to its end.
    pub(super) flush_ns: u64,
    /// While the device empties its cache, as commands show it.
    commands_ns: u64,
    /// For others' requests, in the queue and at the device: the longest before the record, and
    /// the record.
    pub(super) others_ns: u64,
    /// Who has most of the work there.
    pub(super) culprit: Option<Pid>,
    /// Of that time the part in which the device empties its cache of what others have written.
    pub(super) filled_ns: u64,
    /// Of that time the part in which the journal's thread writes data of files that others have
    /// written, which have to be safe before its own blocks (data=ordered).
    pub(super) data_ns: u64,
}

impl Chain {
    /// How long it takes.
    pub(super) fn ns(&self) -> u64 {
        self.end.since(self.begin).0
    }

    /// The same, where another one had filled the device's cache before it: what emptying it
    /// takes longer than it usually does is for that one's data. `worst_ns` is the longest wait
    /// for others' requests.
    fn filled_by(self, filler: Option<Pid>, worst_ns: u64, usual_ns: Option<u64>) -> Chain {
        let is_long = self.commands_ns >= LONG_FLUSH_NS;
        let usual_ns = usual_ns.filter(|ns| self.commands_ns >= ns.saturating_mul(2));
        let filled_ns = match (filler, usual_ns) {
            (None, _) => return self,
            (Some(_), _) if is_long => self.commands_ns,
            (Some(_), Some(usual_ns)) => self.commands_ns - usual_ns,
            (Some(_), None) => return self,
        };
        Chain {
            commands_ns: self.commands_ns - filled_ns,
            others_ns: self.others_ns.saturating_add(filled_ns),
            culprit: if filled_ns > worst_ns {
                filler
            } else {
                self.culprit
            },
            filled_ns,
            ..self
        }
    }

    /// What is left of a wait for it without others' requests.
    pub(super) fn without_others_ns(&self, waited_ns: u64) -> u64 {
        waited_ns.saturating_sub(self.others_ns)
    }

    /// Whether others' requests are why somebody waits so long for it: most of it is waiting for
    /// them, and not for a flush, or nobody would call it long without them.
    pub(super) fn is_behind_others(&self, waited_ns: u64) -> bool {
        let is_most = is_most(self.others_ns, self.ns()) && self.others_ns > self.commands_ns;
        let is_short = self.without_others_ns(waited_ns) < SLOW_NS;
        is_most || (is_short && percent(self.others_ns, waited_ns) >= NOTABLE_PERCENT)
    }
}

/// A commit whose record has not come yet.
#[derive(Clone, Copy)]
struct Begun {
    begin: Time,
    until: Time,
    first: usize,
    others: (u64, Option<Pid>),
    data: Data,
}

/// What a journal's thread writes before its own blocks: data lie elsewhere, and the journal's
/// blocks one behind the other, up to the record.
#[derive(Clone, Copy, Debug)]
struct Data {
    bytes: u64,
    until: Time,
    /// The writes that follow each other at last: where they end, how much they are, and when the
    /// last one is over.
    run: (u64, u64, Time),
}

impl Data {
    fn new(first: &Request, end: Time) -> Data {
        Data {
            bytes: 0,
            until: Time::ZERO,
            run: (first.end(), first.life.bytes, end),
        }
    }

    fn write(&mut self, r: &Request, end: Time) {
        let (run_end, bytes, until) = self.run;
        if r.life.sector == run_end {
            self.run = (r.end(), bytes.saturating_add(r.life.bytes), until.max(end));
            return;
        }
        add(&mut self.bytes, bytes);
        self.until = self.until.max(until);
        self.run = (r.end(), r.life.bytes, end);
    }

    /// How much it is, and until when it takes, if it is much.
    fn much(self) -> Option<(u64, Time)> {
        (self.bytes >= MUCH_BYTES).then_some((self.bytes, self.until))
    }
}

/// How long a request waits behind others', and who has most of the work there.
fn behind_others(w: &Wait) -> (u64, Option<Pid>) {
    let parts = [
        (w.ahead_ns, w.ahead.as_deref()),
        (w.behind_ns, w.behind.as_deref()),
    ];
    let of_others = parts.into_iter().filter_map(|(ns, ahead)| {
        let ahead = ahead?;
        is_most(ahead.others_work(), ahead.work()).then_some((ns, ahead.worker()))
    });
    of_others.fold((0, None), |(sum, who), (ns, pid)| {
        (sum.saturating_add(ns), if ns > sum / 2 { pid } else { who })
    })
}

/// Whether any request of a device flushes its cache or passes it.
pub(super) fn shows_flushes(disk: &Disk) -> bool {
    let flags = disk.shown.flags;
    flags.has(Rwbs::FLUSH) || flags.has(Rwbs::FUA)
}

/// Whether a request flushes the cache or passes it, beside its data.
pub(super) fn flushes(r: &Request) -> bool {
    !r.is_flush() && (r.flags.has(Rwbs::FLUSH) || r.flags.has(Rwbs::FUA))
}

/// The end of the flush that stands in for FUA where the device has none: it comes right behind
/// the record, whose C is that of its data, and nobody has asked for another one meanwhile.
/// `asked` are the times at which records are queued, in order.
fn flushed_again(disk: &Disk, end: Time, asked: &[Time]) -> Time {
    let from = disk.issued().partition_point(|r| r.life.issue < Some(end));
    let next = disk.issued()[from..].iter().find(|r| r.is_flush());
    let asked_next = asked.get(asked.partition_point(|q| *q < end));
    let is_its = |r: &&Request| {
        let issued = r.life.issue.filter(|d| d.since(end).0 <= NEAR_NS);
        issued.is_some_and(|d| asked_next.is_none_or(|q| *q > d))
    };
    next.filter(is_its)
        .and_then(|r| r.life.complete)
        .unwrap_or(end)
}

/// Whether a write is a record though its flags do not say so. Where only D and C are shown, a
/// flush and what belongs to it are commands of their own: it is handed on to the device when one
/// flush has ended, and the next one when it has.
fn is_between_flushes(disk: &Disk, r: &Request, flushes: &Flushes, writers: &Writers) -> bool {
    let (Some(issue), Some(complete)) = (r.life.issue, r.life.complete) else {
        return false;
    };
    let is_bare = !disk.has(Action::Queue) && r.begins_with_issue() && writers.hands_on(r.pid);
    let is_waited_for = r.is_sync && r.is_write() && !r.is_flush();
    is_bare && is_waited_for && flushes.ended_before(issue) && flushes.begun_after(complete)
}

/// When flushes of a device begin and end, each in order.
struct Flushes {
    begins: Vec<Time>,
    ends: Vec<Time>,
}

impl Flushes {
    fn new(disk: &Disk) -> Flushes {
        let commands = || disk.issued().iter().filter(|r| r.is_flush());
        let mut ends: Vec<Time> = commands().filter_map(|r| r.life.complete).collect();
        ends.sort_unstable();
        Flushes {
            begins: commands().filter_map(|r| r.life.issue).collect(),
            ends,
        }
    }

    /// Whether one has ended right before a time.
    fn ended_before(&self, time: Time) -> bool {
        let upto = self.ends.partition_point(|end| *end <= time);
        let last = upto.checked_sub(1).map(|i| self.ends[i]);
        last.is_some_and(|end| time.since(end).0 <= SOON_NS)
    }

    /// Whether one begins right after a time.
    fn begun_after(&self, time: Time) -> bool {
        let from = self.begins.partition_point(|begin| *begin < time);
        let next = self.begins.get(from);
        next.is_some_and(|begin| begin.since(time).0 <= SOON_NS)
    }
}

/// What was written since the device's cache was emptied last.
#[derive(Debug, Default)]
struct Cache {
    bytes: BTreeMap<Pid, u64>,
}

impl Cache {
    fn written(&mut self, r: &Request) {
        if r.has_owner() {
            add(self.bytes.entry(r.pid).or_default(), r.life.bytes);
        }
    }

    /// It is emptied for one process: another one that has written nearly all of what is in it,
    /// if there is one, and it is much; or itself, if that is data of others.
    fn emptied(&mut self, by: Pid, data_bytes: u64) -> Option<Pid> {
        let bytes = std::mem::take(&mut self.bytes);
        let all = total(bytes.values().copied());
        let (pid, most) = bytes.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let is_nearly_all = most >= MUCH_BYTES && percent(most, all) >= FILLED_PERCENT;
        let is_data = percent(data_bytes, all) >= FILLED_PERCENT;
        (is_nearly_all && (pid != by || is_data)).then_some(pid)
    }
}

/// Whose a write is. Where only D is shown, whoever runs the queue hands on what a journal's thread
/// has queued: if somebody waits for it, it is of the one whose commit is under way, or whose last
/// record ends where it begins, as the blocks of a journal follow each other. `ends` is where that is.
fn handed_on(
    r: &Request,
    start: Time,
    begun: &BTreeMap<Pid, Begun>,
    ends: &BTreeMap<Pid, u64>,
    writers: &Writers,
) -> Pid {
    if r.is_owner_known || !writers.hands_on(r.pid) || !r.is_sync {
        return r.pid;
    }
    if let Some((pid, _)) = ends.iter().find(|(_, end)| **end == r.life.sector) {
        return *pid;
    }
    let is_open = |b: &Begun| start.0 <= b.until.0.saturating_add(NEAR_NS);
    let mut open = begun
        .iter()
        .filter(|(pid, b)| writers.is_journal(**pid) && is_open(b));
    match (open.next(), open.next()) {
        (Some((pid, _)), None) => *pid,
        _ => r.pid,
    }
}

/// Where only D is shown, a record begins when the flush before it has ended: until then the commit
/// is under way.
fn flushed_before(start: Time, end: Time, begun: &mut BTreeMap<Pid, Begun>, writers: &Writers) {
    let open = begun
        .iter_mut()
        .filter(|(pid, _)| writers.is_journal(**pid));
    for (_, b) in open {
        if start.0 <= b.until.0.saturating_add(NEAR_NS) {
            b.until = b.until.max(end);
        }
    }
}

/// Commits, in order of their ends: a request that flushes or forces its data out, and
/// the writes of its process that went right before it.
pub(super) fn chains(disk: &Disk, writers: &Writers) -> Vec<Chain> {
    let mut begun: BTreeMap<Pid, Begun> = BTreeMap::new();
    let mut chains = Vec::new();
    let mut cache = Cache::default();
    let mut ends: BTreeMap<Pid, u64> = BTreeMap::new();
    let mut order: Vec<usize> = (0..disk.requests.len()).collect();
    order.sort_by_key(|i| (disk.requests[*i].start(), *i));
    let emptied = Flushes::new(disk);
    let is_bare = |r: &Request| is_between_flushes(disk, r, &emptied, writers);
    let is_record = |r: &Request| flushes(r) || is_bare(r);
    let records = order.iter().filter(|i| is_record(&disk.requests[**i]));
    let asked: Vec<Time> = records.filter_map(|i| disk.requests[*i].start()).collect();
    for i in order {
        let r = &disk.requests[i];
        let (Some(start), Some(end)) = (r.start(), r.life.complete) else {
            continue;
        };
        if r.is_flush() && !r.is_owner_known {
            flushed_before(start, end, &mut begun, writers);
        }
        if r.is_flush() || !r.is_write() {
            continue;
        }
        let pid = handed_on(r, start, &begun, &ends, writers);
        cache.written(r);
        let own = disk.waits.get(i).map_or((0, None), behind_others);
        let fresh = Begun {
            begin: start,
            until: end,
            first: i,
            others: own,
            data: Data::new(r, end),
        };
        let before = begun.remove(&pid);
        let goes_on = before.filter(|b| start.0 <= b.until.0.saturating_add(NEAR_NS));
        let mut chain = goes_on.unwrap_or(fresh);
        chain.until = chain.until.max(end);
        if goes_on.is_some() {
            chain.data.write(r, end);
        }
        if !is_record(r) {
            chain.others = chain.others.max(own);
            begun.insert(pid, chain);
            continue;
        }
        let Begun {
            begin,
            until,
            first,
            others,
            data,
        } = chain;
        let is_forced = r.flags.has(Rwbs::FUA) || is_bare(r);
        let end = if is_forced {
            end.max(flushed_again(disk, end, &asked))
        } else {
            end
        };
        let until = until.max(end);
        let before_record = if first == i { (0, None) } else { others };
        let commands_ns = disk.flushes.within(begin, until);
        let data = data.much().filter(|_| writers.is_journal(pid));
        let data_ns = data.map_or(0, |(_, until)| until.since(begin).0);
        let worst = own.max(before_record).max((data_ns, Some(pid)));
        let chain = Chain {
            begin,
            end: until,
            pid,
            places: [first, i],
            flush_ns: end.since(start).0,
            commands_ns,
            others_ns: total([own.0, before_record.0.max(data_ns)]),
            culprit: worst.1.filter(|_| worst.0 > 0),
            filled_ns: 0,
            data_ns,
        };
        if writers.is_journal(pid) {
            ends.insert(pid, r.end());
        }
        let data_bytes = data.map_or(0, |(bytes, _)| bytes);
        chains.push((chain, worst.0, cache.emptied(pid, data_bytes)));
    }
    let usual_ns = usual_flush(&chains);
    let mut chains: Vec<Chain> = chains
        .into_iter()
        .map(|(chain, worst_ns, filler)| chain.filled_by(filler, worst_ns, usual_ns))
        .collect();
    chains.sort_by_key(|c| c.end);
    chains
}

/// What emptying the cache takes for half of the commits before which nobody else has filled it;
/// none if there are too few.
fn usual_flush(chains: &[(Chain, u64, Option<Pid>)]) -> Option<u64> {
    let own = chains
        .iter()
        .filter(|(c, _, filler)| filler.is_none() && c.commands_ns > 0);
    let mut own: Vec<u64> = own.map(|(c, ..)| c.commands_ns).collect();
    own.sort_unstable();
    own.get(own.len() / 2)
        .copied()
        .filter(|_| own.len() >= USUAL_MIN)
}

/// The chain: its first request and its record.
pub(super) fn instance(section: &Section, disk: &Disk, chain: &Chain, ns: u64) -> Instance {
    let mut evidence = Vec::new();
    for place in chain.places {
        evidence.extend(section.of_request(&disk.requests[place]));
    }
    let within = disk.issued_between(chain.begin, chain.end);
    for r in within
        .map(|i| &disk.requests[i])
        .filter(|r| r.is_flush())
        .take(1)
    {
        evidence.extend(section.of_request(r));
    }
    in_order(&mut evidence);
    Instance {
        time: chain.begin,
        delay_ns: Some(ns),
        evidence,
    }
}
