// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small contiguous requests that go to the device one by one.
//!
//! The block layer merges a bio into a request that waits: on its task's plug, or in
//! the scheduler. Without a plug and without a scheduler that holds requests there is
//! nothing to merge into; two requests that wait side by side can still be left alone
//! (linux-kernel, October 2008, on cfq and ext3's journal).

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use crate::merges::both_waited;
use blklab_trace::{Action, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::collections::{BTreeMap, HashMap};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "missed-merge",
    what: "contiguous requests of one direction go to the device one by one",
    rule: Rule {
        condition: "a request is inserted right behind one that still waits in the scheduler; or \
                    a small one is queued right behind one of its own process that has not ended",
        threshold: "small is 64 KiB or less; 5 % of the device's requests or more",
        exception: "together they are larger than max_sectors_kb, or have more pages than \
                    max_segments where no request of the trace has more (if neither is known: \
                    than any request of the trace; of two that both wait one is among 4 or more \
                    that are the largest, 127 KiB at least)",
    },
    explains: &["deep-queue", "no-request-free", "behind-other"],
    remedies: &[LOOK_UP, LARGER_WRITES, PLUG, BATCH, HOLDING],
    rests_on_absence: true,
    detector: || Box::new(MissedMerges::default()),
};

const LOOK_UP: Remedy = Remedy::kernel(
    "look-neighbour-up",
    Act::Outside(Outside::Kernel),
    "look the neighbour up when a request is made or grows (cfq did not for \
     requests of another process; 2.6.28 tries on each insertion)",
);

const LARGER_WRITES: Remedy = Remedy::outside(
    "larger-writes",
    Outside::Applications,
    "larger writes, or write-back of a file by one process at a time",
);

const PLUG: Remedy = Remedy::kernel(
    "plug-around-loop",
    Act::Batch,
    "plug around the loop that submits them (blk_start_plug, blk_finish_plug): \
     read-ahead of metadata without one sends each block alone",
);

const BATCH: Remedy = Remedy::act(
    "in-batches",
    Act::Batch,
    "submit in batches, so that a plug holds them (io_submit of many, fio \
     iodepth_batch, io_uring), or in larger blocks",
);

const HOLDING: Remedy = Remedy::set(
    "scheduler-that-holds",
    "queue/scheduler",
    "mq-deadline",
    "holds requests while the device is busy, so that they merge; with nr_requests \
     well above the device's depth",
);

/// Larger requests gain little by merging.
const SMALL_SECTORS: u64 = 128;

/// Where the trace shows no completions, requests queued so close to each other were
/// under way together.
const TOGETHER_NS: u64 = 100_000;

/// Less than this part of the requests is not worth a word.
const SHARE_MIN: f64 = 0.05;

/// The largest request assumed if neither context nor trace tells: the `max_sectors_kb`
/// of old kernels was 512, that of none is less than 64.
const SECTORS_MAX_ASSUMED: u64 = 128;

/// Smaller limits of the queue are set by hand only: `max_sectors_kb` is 127 or more where
/// nobody lowers it (`BLK_SAFE_MAX_SECTORS`, include/linux/blkdev.h).
const LIMIT_LEAST: u64 = 254;

/// A page in sectors, where a segment is one.
const PAGE_SECTORS: u64 = 8;

/// So many requests of one length, and none longer, show a limit.
const AT_LIMIT_MIN: usize = 4;

/// The largest request that the queue takes.
#[derive(Clone, Copy)]
enum Limit {
    /// The context says so.
    Known(u64),
    /// Many are as large as this and none is larger.
    Shown(u64),
    /// None is larger.
    Unknown(u64),
}

impl Limit {
    fn found(disk: &Disk, context: &Context) -> Limit {
        let known = context.sectors_max();
        let sizes = || {
            disk.requests
                .iter()
                .filter(|r| can_merge(r))
                .map(Request::sectors)
        };
        let largest = sizes().max().unwrap_or(0);
        // Pages that lie apart in memory are a segment each; larger requests show that they do
        // not.
        let segments = context.queue("max_segments");
        let in_segments = segments.map(|n| n.saturating_mul(PAGE_SECTORS).max(largest));
        if let Some(known) = known.into_iter().chain(in_segments).min() {
            return Limit::Known(known);
        }
        let are_many = || sizes().filter(|s| *s == largest).count() >= AT_LIMIT_MIN;
        if largest >= LIMIT_LEAST && are_many() {
            Limit::Shown(largest)
        } else {
            Limit::Unknown(largest.max(SECTORS_MAX_ASSUMED))
        }
    }

    fn sectors(self) -> u64 {
        let (Limit::Known(n) | Limit::Shown(n) | Limit::Unknown(n)) = self;
        n
    }

    /// Whether two requests that both wait may become one: together they fit, or it is not
    /// known that they do not.
    fn may_hold(self, first: u64, second: u64) -> bool {
        match self {
            Limit::Known(max) => first + second <= max,
            Limit::Shown(max) => first.max(second) < max,
            Limit::Unknown(_) => true,
        }
    }
}

#[derive(Debug, Default)]
struct MissedMerges {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Both waited in the scheduler.
    waiting: u64,
    /// The second came after an unplug of its process.
    unplugged: u64,
    issued_at_once: u64,
    sectors: [u64; 2],
    nr_issued: u64,
    fits_largest: u64,
    costs: bool,
    is_read: u64,
    /// Somebody waits for the second.
    is_sync: u64,
    is_ahead: u64,
    /// How many in a row, at most.
    longest_run: u64,
}

impl Detector for MissedMerges {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            let unplugs: Vec<(Pid, Time)> = unplugs(section, disk);
            self.disk(section, disk, &unplugs, context);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// When processes unplugged, in order.
fn unplugs(section: &Section, disk: &Disk) -> Vec<(Pid, Time)> {
    if !disk.has(Action::Unplug) && !disk.has(Action::UnplugTimer) {
        return Vec::new();
    }
    let of_dev = section.events().iter().filter(|e| e.dev == disk.dev);
    let mut all: Vec<(Pid, Time)> = of_dev
        .filter(|e| matches!(e.action, Action::Unplug | Action::UnplugTimer))
        .map(|e| (e.pid, e.time))
        .collect();
    all.sort_unstable();
    all
}

/// Whether a process unplugged between two times.
fn unplugged(unplugs: &[(Pid, Time)], pid: Pid, from: Time, to: Time) -> bool {
    let first = unplugs.partition_point(|(p, t)| (*p, *t) < (pid, from));
    unplugs
        .get(first)
        .is_some_and(|(p, t)| *p == pid && *t <= to)
}

/// Whether a request may be merged with another at all.
fn can_merge(r: &Request) -> bool {
    let special = [
        Rwbs::FLUSH,
        Rwbs::FUA,
        Rwbs::DISCARD,
        Rwbs::BARRIER,
        Rwbs::PC,
    ];
    r.life.bytes > 0 && !special.iter().any(|flag| r.flags.has(*flag))
}

/// How the second of two was missed.
enum Missed {
    /// Both waited.
    Waiting,
    /// The first was under way.
    UnderWay,
}

fn missed(first: &Request, second: &Request, limit: Limit) -> Option<Missed> {
    if both_waited(first.life.insert, first.life.issue, second.life.insert) {
        let may = limit.may_hold(first.sectors(), second.sectors());
        return may.then_some(Missed::Waiting);
    }
    let fits = first.sectors() + second.sectors() <= limit.sectors();
    let begin = second.start()?;
    let follows = first.pid == second.pid && first.start() <= Some(begin);
    let under_way = match first.life.complete {
        Some(complete) => begin < complete,
        None => first
            .last_queue
            .or(first.start())
            .is_some_and(|t| begin >= t && begin.since(t).0 <= TOGETHER_NS),
    };
    let small = first.sectors().max(second.sectors()) <= SMALL_SECTORS;
    (follows && under_way && small && fits).then_some(Missed::UnderWay)
}

impl MissedMerges {
    fn disk(&mut self, section: &Section, disk: &Disk, unplugs: &[(Pid, Time)], context: &Context) {
        let largest = disk
            .requests
            .iter()
            .map(Request::sectors)
            .max()
            .unwrap_or(0);
        let limit = Limit::found(disk, context);
        // By where they end, the latest last, with the length of the row they end.
        let mut ends: HashMap<(bool, u64), Vec<(usize, u64)>> = HashMap::new();
        let mut begun: Vec<usize> = (0..disk.requests.len()).collect();
        begun.retain(|i| {
            let r = &disk.requests[*i];
            (r.is_behind || r.is_followed) && can_merge(r)
        });
        begun.sort_by_key(|i| (disk.requests[*i].start(), *i));
        for i in begun {
            let second = &disk.requests[i];
            let key = (second.is_read(), second.life.sector);
            let before = ends.get(&key).filter(|_| second.is_behind);
            let before = before.into_iter().flatten().rev().take(4);
            let found = before
                .filter_map(|(j, run)| {
                    let first = &disk.requests[*j];
                    missed(first, second, limit).map(|how| (first, how, run + 1))
                })
                .next();
            let run = found.as_ref().map_or(1, |(.., run)| *run);
            if second.is_followed {
                let own = ends.entry((second.is_read(), second.end())).or_default();
                own.push((i, run));
                if own.len() > 8 {
                    own.remove(0);
                }
            }
            let Some((first, how, run)) = found else {
                continue;
            };
            let sum = self.disks.entry(disk.dev).or_default();
            let took = second.whole();
            let instance = || instance(section, disk, first, second, took);
            // Nobody waits for write-back: it costs commands.
            let delay = took.filter(|_| second.is_sync).unwrap_or(0);
            sum.harm.add(second.pid, delay, instance);
            sum.costs |= took.is_some();
            sum.is_sync += u64::from(second.is_sync);
            sum.waiting += u64::from(matches!(how, Missed::Waiting));
            sum.fits_largest += u64::from(first.sectors() + second.sectors() <= largest);
            let [from, to] = [first.start(), second.start()].map(Option::unwrap_or_default);
            sum.unplugged += u64::from(unplugged(unplugs, second.pid, from, to));
            sum.issued_at_once += u64::from(first.life.issue < second.start());
            sum.sectors[0] = sum.sectors[0].max(first.sectors());
            sum.sectors[1] = sum.sectors[1].max(second.sectors());
            sum.is_read += u64::from(second.is_read());
            sum.is_ahead += u64::from(second.flags.has(Rwbs::AHEAD));
            sum.longest_run = sum.longest_run.max(run);
        }
        if let Some(sum) = self.disks.get_mut(&disk.dev) {
            sum.nr_issued += disk.requests.len() as u64;
        }
    }
}

/// The first: its beginning and D; the second: its beginning, I and D.
fn instance(
    section: &Section,
    disk: &Disk,
    first: &Request,
    second: &Request,
    took: Option<u64>,
) -> Instance {
    let mut evidence = Vec::new();
    for r in [first, second] {
        let sectors = [r.life.sector, r.end()];
        let life = &r.life;
        for (action, time) in [
            (Action::Queue, r.queue),
            (Action::GetRequest, life.get),
            (Action::Insert, life.insert),
            (Action::Issue, life.issue),
        ] {
            evidence.extend(time.and_then(|t| section.find(action, disk.dev, t, sectors)));
        }
    }
    in_order(&mut evidence);
    Instance {
        time: second.start().unwrap_or_default(),
        delay_ns: took,
        evidence,
    }
}

impl Sum {
    fn finding(self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        if (count as f64) < SHARE_MIN * self.nr_issued as f64 {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        f.extra_commands = Some(count);
        f.of = "requests that could have been merged";
        if self.is_sync == 0 {
            f.weight = Weight::Background;
            (f.total_ns, f.worst_ns) = (None, None);
        }
        if !self.costs {
            (f.total_ns, f.worst_ns) = (None, None);
            f.missing
                .push("completions (C): what the commands cost is not shown".to_owned());
        }
        let who = f.victim_names();
        let what = match (self.is_ahead * 2 > count, self.is_read * 2 > count) {
            (true, _) => "read-ahead reads",
            (_, true) => "reads",
            _ => "writes",
        };
        f.what = match count {
            1 => format!(
                "A request of {who} is made right behind one that waits instead of being merged \
                 into it: {} and {} sectors, each its own command.",
                self.sectors[0], self.sectors[1]
            ),
            n => format!(
                "Contiguous {what} of {who}, up to {} KiB each, go to the device one by one: {n} \
                 commands more than needed, up to {} in a row.",
                self.sectors[0].max(self.sectors[1]) / 2,
                self.longest_run
            ),
        };
        self.explain(&mut f, whole);
        Some(f)
    }

    fn explain(&self, f: &mut Finding, whole: &Whole<'_>) {
        let count = self.harm.count();
        let context = whole.context;
        let scheduler = whole.scheduler(f.dev);
        if self.waiting * 2 > count {
            f.how = "Both were in the scheduler at the same time, so neither a plug nor the \
                     scheduler's hash of requests brought them together."
                .to_owned();
            match context.sectors_max() {
                Some(_) if context.queue("max_segments").is_some() => {}
                Some(_) => f.doubt(Confidence::Likely, "max_segments of the queue"),
                None if self.fits_largest * 2 > count => f.doubt(
                    Confidence::Likely,
                    "max_segments and max_sectors_kb of the queue",
                ),
                None => f.doubt(
                    Confidence::Possible,
                    "max_sectors_kb and max_segments of the queue: no request of the trace is as \
                     large as the two together",
                ),
            }
            f.remedies = vec![LOOK_UP, LARGER_WRITES];
            return;
        }
        let mut how = format!(
            "Each is queued while the one before it is under way, {}",
            if self.unplugged * 2 > count {
                "but the task unplugs in between: it submits one at a time"
            } else {
                "without a plug in between that would have held it"
            }
        );
        match scheduler {
            Some(name @ ("none" | "noop")) => {
                how += &format!(", and {name} holds nothing that it could be merged into.");
            }
            _ => how.push('.'),
        }
        f.how = how;
        f.confidence = Confidence::Likely;
        if self.unplugged == 0 && whole.disk(f.dev).nr(Action::Unplug) == 0 {
            f.missing
                .push("whether plug and unplug (P, U) were recorded".to_owned());
        }
        if let (Some(mean), false) = (f.total_ns.map(|t| t / count.max(1)), count == 1) {
            f.how += &format!(
                " One such command takes {} from its beginning.",
                time_text(mean)
            );
        }
        f.remedies = vec![if self.is_ahead * 2 > count {
            PLUG
        } else {
            BATCH
        }];
        if matches!(scheduler, Some("none" | "noop")) {
            f.remedies.push(HOLDING);
        }
    }
}
