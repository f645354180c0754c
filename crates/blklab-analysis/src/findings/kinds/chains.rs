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
use crate::findings::waits::Wait;
use blklab_trace::Rwbs;
use blklab_types::{Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

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

/// So often a process goes on after a chain, so that it waits for it.
const TIMES_MIN: u64 = 3;

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
fn flushed_again(disk: &Disk, record: &Request, end: Time, asked: &[Time]) -> Time {
    if !record.flags.has(Rwbs::FUA) {
        return end;
    }
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

/// What was written since the device's cache was emptied last.
#[derive(Debug, Default)]
struct Cache {
    bytes: BTreeMap<Pid, u64>,
}

impl Cache {
    fn written(&mut self, r: &Request) {
        if r.is_owner_known {
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
/// has queued: it is of the one whose commit is under way.
fn handed_on(r: &Request, start: Time, begun: &BTreeMap<Pid, Begun>, journals: &Tasks) -> Pid {
    if r.is_owner_known || r.pid != 0 {
        return r.pid;
    }
    let is_open = |b: &Begun| start.0 <= b.until.0.saturating_add(NEAR_NS);
    let mut open = begun
        .iter()
        .filter(|(pid, b)| journals.has(**pid) && is_open(b));
    match (open.next(), open.next()) {
        (Some((pid, _)), None) => *pid,
        _ => r.pid,
    }
}

/// Where only D is shown, a record begins when the flush before it has ended: until then the commit
/// is under way.
fn flushed_before(start: Time, end: Time, begun: &mut BTreeMap<Pid, Begun>, journals: &Tasks) {
    let open = begun.iter_mut().filter(|(pid, _)| journals.has(**pid));
    for (_, b) in open {
        if start.0 <= b.until.0.saturating_add(NEAR_NS) {
            b.until = b.until.max(end);
        }
    }
}

/// Commits, in order of their ends: a request that flushes or forces its data out, and
/// the writes of its process that went right before it. `journals` are threads of filesystems'
/// journals.
pub(super) fn chains(disk: &Disk, journals: &Tasks) -> Vec<Chain> {
    let mut begun: BTreeMap<Pid, Begun> = BTreeMap::new();
    let mut chains = Vec::new();
    let mut cache = Cache::default();
    let mut order: Vec<usize> = (0..disk.requests.len()).collect();
    order.sort_by_key(|i| (disk.requests[*i].start(), *i));
    let records = order.iter().filter(|i| flushes(&disk.requests[**i]));
    let asked: Vec<Time> = records.filter_map(|i| disk.requests[*i].start()).collect();
    for i in order {
        let r = &disk.requests[i];
        let (Some(start), Some(end)) = (r.start(), r.life.complete) else {
            continue;
        };
        if r.is_flush() && !r.is_owner_known {
            flushed_before(start, end, &mut begun, journals);
        }
        if r.is_flush() || !r.is_write() {
            continue;
        }
        let pid = handed_on(r, start, &begun, journals);
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
        if !flushes(r) {
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
        let end = end.max(flushed_again(disk, r, end, &asked));
        let until = until.max(end);
        let before_record = if first == i { (0, None) } else { others };
        let commands_ns = disk.flushes.within(begin, until);
        let data = data.much().filter(|_| journals.has(pid));
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

/// A wait for a chain of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited {
    pub(super) chain: Chain,
    /// From the end of the process's last I/O.
    pub(super) ns: u64,
    /// From the beginning of its last write: what a call that writes and syncs takes.
    pub(super) with_write_ns: u64,
}

/// Processes that wait for chains of others, with each of these waits.
pub(super) fn waiters(disk: &Disk, chains: &[Chain]) -> BTreeMap<Pid, Vec<Waited>> {
    let mut of_pid: BTreeMap<Pid, Vec<([Time; 2], bool)>> = BTreeMap::new();
    for r in &disk.requests {
        if let (Some(start), Some(end)) = (r.start(), r.life.complete) {
            let ios = of_pid.entry(r.pid).or_default();
            ios.push(([start, end], r.is_write()));
        }
    }
    let own: BTreeSet<Pid> = chains.iter().map(|c| c.pid).collect();
    // Nobody waits as process 0: it hands on what others have queued.
    of_pid.retain(|pid, _| !own.contains(pid) && *pid != 0);
    let mut waiters = BTreeMap::new();
    for (pid, mut ios) in of_pid {
        ios.sort_unstable();
        let mut waited = Vec::new();
        let mut pauses = 0;
        for pair in ios.windows(2) {
            let [([start, end], is_write), ([next, _], _)] = [pair[0], pair[1]];
            if next <= end || next.since(end).0 < SLOW_NS {
                continue;
            }
            pauses += 1;
            let i = chains.partition_point(|c| c.end <= next);
            let Some(chain) = i.checked_sub(1).map(|i| chains[i]) else {
                continue;
            };
            let starts = chain.begin >= end && chain.begin.since(end).0 <= NEAR_NS;
            if starts && next.since(chain.end).0 <= NEAR_NS {
                let from = if is_write { start } else { end };
                waited.push(Waited {
                    chain,
                    ns: next.since(end).0,
                    with_write_ns: next.since(from).0,
                });
            }
        }
        if waited.len() as u64 >= TIMES_MIN && waited.len() * 2 >= pauses {
            waiters.insert(pid, waited);
        }
    }
    waiters
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
