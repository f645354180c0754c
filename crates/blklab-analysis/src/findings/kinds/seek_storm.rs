// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequential streams take turns on a device that seeks: each request begins with the
//! way from one stream's place to the other's.
//!
//! What a turn costs is measured in the trace itself: what the device takes for a
//! request of a stream right behind the stream's own, and what it takes for one behind
//! another stream's. Flash takes the same for both, and nothing is said.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside, Serving};
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, is_longer};
use crate::findings::waits::LONG_FACTOR;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use crate::spread::percentile;
use blklab_types::{Dev, Op, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "seek-storm",
    what: "sequential streams take turns, and the device seeks at every turn",
    rule: Rule {
        condition: "of a process's requests that begin where its last one ended, some go to the \
                    device right behind another such stream's, far away, and the device takes \
                    longer for them than for those right behind their own stream's",
        threshold: "half or more of a process's requests, 16 at least, begin so, and a quarter or \
                    more of these go behind another's, 1 MiB or more away; more than 4 times as \
                    long (the median of both, 8 or more of each; if there are not so many and \
                    queue/rotational is 1, more than twice what 100 MB/s take), 1 ms more at \
                    least; 20 % of its process's waiting or more",
        exception: "",
    },
    explains: &["rate-capped"],
    remedies: &[READ_AHEAD, LARGER_IO, BY_STREAM],
    rests_on_absence: false,
    detector: || Box::new(SeekStorm::default()),
};

const READ_AHEAD: Remedy = Remedy::set(
    "longer-turns",
    "queue/read_ahead_kb",
    "",
    "fewer and longer turns of readers through the page cache",
);

const LARGER_IO: Remedy = Remedy::outside(
    "larger-or-one-after-other",
    Outside::Applications,
    "larger I/O in each stream, or one stream after the other",
);

const BY_STREAM: Remedy = Remedy::act(
    "scheduler-by-stream",
    Act::Scheduler(Serving::ByStream),
    "a scheduler that stays with a stream for a while (bfq or cfq with slice_idle)",
);

/// Requests that make a stream.
const STREAM_MIN: u64 = 16;

/// Requests of which a median says something.
const MEDIAN_OF_MIN: usize = 8;

/// Streams nearer to each other than this, in sectors, share a place.
const FAR_SECTORS: u64 = 2048;

/// A turn that costs less is no seek.
const COST_MIN_NS: u64 = 1_000_000;

/// 100 MB/s: what a disk that rotates reads and writes along a stream, or more.
const SLOW_NS_PER_SECTOR: u64 = 5_120;

/// As [`LONG_FACTOR`], where what a stream takes by itself is not measured: the rate is low
/// already.
const KNOWN_FACTOR: u64 = 2;

/// A stream: a process and a direction.
type Stream = (Pid, Option<Op>);

#[derive(Debug, Default)]
struct SeekStorm {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    turns: u64,
    sectors: u64,
    turn_ns: u64,
    along_ns: u64,
    /// Whether that is the median of many.
    is_measured: bool,
}

/// A request of a stream that goes on where the stream's last one ended.
#[derive(Clone, Copy, Debug)]
struct Step {
    place: usize,
    /// The request that went to the device before it is another stream's, far away.
    turn_from: Option<usize>,
    /// What the device takes for it from when it has nothing older.
    took_ns: u64,
}

/// What turns cost, by when they ended.
struct Costs(Vec<(Time, u64)>);

impl Costs {
    fn new<'a>(disk: &Disk, turns: impl Iterator<Item = &'a Step>, along_ns: u64) -> Costs {
        let cost = |s: &Step| {
            let end = disk.requests[s.place].life.complete.unwrap_or_default();
            (end, s.took_ns.saturating_sub(along_ns))
        };
        let mut all: Vec<(Time, u64)> = turns.map(cost).collect();
        all.sort_unstable();
        let mut sum = 0;
        for (_, ns) in &mut all {
            add(&mut sum, *ns);
            *ns = sum;
        }
        Costs(all)
    }

    /// Those that end while a request is at the device, its own turn among them: it waits
    /// for each.
    fn during(&self, r: &Request) -> u64 {
        let until = |t: Option<Time>| {
            let place = self.0.partition_point(|(end, _)| Some(*end) <= t);
            place.checked_sub(1).map_or(0, |i| self.0[i].1)
        };
        until(r.life.complete) - until(r.life.issue)
    }
}

impl Detector for SeekStorm {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            self.disk(section, disk, context);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

fn stream(r: &Request) -> Stream {
    (r.pid, r.op())
}

/// The steps of each stream, if it is one.
fn streams(disk: &Disk) -> BTreeMap<Stream, Vec<Step>> {
    let mut ends: BTreeMap<Stream, u64> = BTreeMap::new();
    let mut counts: BTreeMap<Stream, u64> = BTreeMap::new();
    let mut steps: BTreeMap<Stream, Vec<Step>> = BTreeMap::new();
    let mut before: Option<(usize, Time)> = None;
    for (place, r) in disk.issued().iter().enumerate() {
        let (Some(issue), Some(complete)) = (r.life.issue, r.life.complete) else {
            continue;
        };
        let has_data = (r.is_read() || r.is_write()) && r.life.bytes > 0;
        if !has_data || !r.is_owner_known {
            before = None;
            continue;
        }
        *counts.entry(stream(r)).or_default() += 1;
        let goes_on = ends.insert(stream(r), r.end()) == Some(r.life.sector);
        if let (Some((last, ended)), true) = (before, goes_on) {
            let other = &disk.requests[last];
            let is_turn = stream(other) != stream(r);
            let is_far = other.end().abs_diff(r.life.sector) >= FAR_SECTORS;
            if is_turn == is_far {
                steps.entry(stream(r)).or_default().push(Step {
                    place,
                    turn_from: is_turn.then_some(last),
                    took_ns: complete.since(issue.max(ended).min(complete)).0,
                });
            }
        }
        let ended = before.map_or(complete, |(_, ended)| ended.max(complete));
        before = Some((place, ended));
    }
    steps.retain(|stream, steps| {
        let all = counts.get(stream).copied().unwrap_or(0);
        all >= STREAM_MIN && steps.len() as u64 * 2 >= all
    });
    steps
}

impl SeekStorm {
    fn disk(&mut self, section: &Section, disk: &Disk, context: &Context) {
        // Half or more of the requests of two streams.
        if (disk.nr_behind as u64) < STREAM_MIN {
            return;
        }
        let streams = streams(disk);
        if streams.len() < 2 {
            return;
        }
        let is_stream = |place: usize| streams.contains_key(&stream(&disk.requests[place]));
        let median = |all: Vec<u64>| {
            let is_enough = all.len() >= MEDIAN_OF_MIN;
            percentile(50, all).filter(|_| is_enough)
        };
        let all = || streams.values().flatten();
        let along = all().filter(|s| s.turn_from.is_none()).map(|s| s.took_ns);
        let turns = all().filter(|s| s.turn_from.is_some_and(is_stream));
        let Some(turn_ns) = median(turns.clone().map(|s| s.took_ns).collect()) else {
            return;
        };
        let measured = median(along.collect());
        // A disk that rotates is known to go along a stream at no less than a rate.
        let known = || {
            let sectors = turns.clone().map(|s| disk.requests[s.place].sectors());
            let sectors = percentile(50, sectors.collect())?;
            let ns = sectors.saturating_mul(SLOW_NS_PER_SECTOR);
            (context.rotates() == Some(true)).then_some(ns)
        };
        let (along_ns, factor) = match measured {
            Some(ns) => (ns, LONG_FACTOR),
            None => match known() {
                Some(ns) => (ns, KNOWN_FACTOR),
                None => return,
            },
        };
        if !is_longer(turn_ns, factor, along_ns) || turn_ns - along_ns < COST_MIN_NS {
            return;
        }
        let costs = Costs::new(disk, turns.clone(), along_ns);
        let sum = self.disks.entry(disk.dev).or_default();
        (sum.turn_ns, sum.along_ns) = (turn_ns, along_ns);
        sum.is_measured |= measured.is_some();
        for steps in streams.values() {
            let turns = steps.iter().filter(|s| s.turn_from.is_some_and(is_stream));
            if turns.clone().count() * 4 < steps.len() {
                continue;
            }
            for step in turns {
                let r = &disk.requests[step.place];
                let other = &disk.requests[step.turn_from.expect("it is a turn")];
                let ns = costs.during(r);
                sum.turns += 1;
                add(&mut sum.sectors, r.sectors());
                sum.harm.blame(other.pid, 1);
                sum.harm.add(r.pid, ns, || {
                    let mut evidence = section.of_request(other);
                    evidence.extend(section.of_request(r));
                    in_order(&mut evidence);
                    Instance {
                        time: r.life.issue.unwrap_or_default(),
                        delay_ns: Some(ns),
                        evidence,
                    }
                });
            }
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let kb = self.sectors / self.turns.max(1) / 2;
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "turns";
        f.what = format!(
            "Streams of {} take turns, {kb} KiB at a time: the device takes {} for a request \
             behind another stream's, and {}{} for one behind its own.",
            f.victim_names(),
            time_text(self.turn_ns),
            if self.is_measured {
                ""
            } else {
                "hardly more than "
            },
            time_text(self.along_ns)
        );
        f.how = "Each turn is a seek from one stream's place to the other's, which is as long for \
                 a small request as for a large one."
            .to_owned();
        f.remedies = vec![READ_AHEAD.to(4 * kb.max(128)), LARGER_IO];
        if !matches!(whole.scheduler(dev), Some("cfq" | "bfq" | "anticipatory")) {
            f.remedies.push(BY_STREAM);
        }
        if !self.is_measured {
            f.doubt(
                Confidence::Likely,
                "what the device takes along one stream: hardly any request goes there behind its \
                 own stream's; 100 MB/s are assumed",
            );
        }
        f.figures = vec![
            ("behind another stream's", self.turn_ns as f64, "ns"),
            ("behind its own", self.along_ns as f64, "ns"),
        ];
        Some(f)
    }
}
