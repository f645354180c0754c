// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording as a law of a device sees it, and how surprising it is then.

use super::{Command, entropy, quantiles};
use blklab_analysis::spread::{middle, percentile};
use blklab_types::{Op, Time};
use std::collections::{BTreeMap, VecDeque};

/// Nats that a command costs which a law says cannot have ended yet.
const IMPOSSIBLE: f64 = 7.0;

/// Nats that a number costs which is fitted.
const NUMBER: f64 = 8.0;

/// What a device may do in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Law {
    /// Commands that are served at a time.
    pub(super) channels: u32,
    /// Whether one channel takes the nearest of the waiting commands, not the oldest.
    pub(super) nearest: bool,
    /// Behind how many commands a sequential one may begin.
    pub(super) streams: usize,
}

impl Law {
    /// All with so many channels.
    pub(super) fn all(channels: u32) -> impl Iterator<Item = Law> {
        let orders = [false, true]
            .into_iter()
            .filter(move |o| !o || channels == 1);
        orders.flat_map(move |nearest| {
            [1, 8].map(|streams| Law {
                channels,
                nearest,
                streams,
            })
        })
    }
}

/// A command in the eyes of a law.
#[derive(Clone, Copy, Debug)]
struct Service {
    op: Op,
    is_sequential: bool,
    nr_sectors: f64,
    /// Square root of the distance from where the head was, in sectors; 0 of sequential ones.
    root: f64,
    /// From its beginning to its end; less than nothing if the law says that it cannot be.
    ns: f64,
}

/// What a law makes of a recording.
pub(super) struct Explained {
    law: Law,
    kinds: BTreeMap<(Op, bool), Vec<f64>>,
    reads_per_sector: f64,
    writes_per_sector: f64,
    per_root: f64,
    /// How surprising the recording is, in nats.
    pub(super) nats: f64,
}

impl Explained {
    /// `by_issue` is in the order of hand-over, and not empty.
    pub(super) fn new(by_issue: &[Command], law: Law) -> Explained {
        let (services, choices) = if law.channels == 1 {
            one_by_one(by_issue, law)
        } else {
            (beside_each_other(by_issue, law), 0.0)
        };
        let latencies = by_issue.iter().map(|c| c.complete.since(c.issue).ns());
        let usual = percentile(50, latencies.collect()).expect("there are commands");
        let usual = usual.max(1) as f64;
        let resolution = (usual / 1000.0).max(100.0);
        let (possible, impossible): (Vec<Service>, Vec<Service>) =
            services.into_iter().partition(|s| s.ns >= 0.0);
        let base = choices + impossible.len() as f64 * (IMPOSSIBLE + usual.ln());
        let mut best = Explained {
            law,
            kinds: BTreeMap::new(),
            reads_per_sector: 0.0,
            writes_per_sector: 0.0,
            per_root: 0.0,
            nats: 0.0,
        };
        best.sort(&possible, resolution);
        // Length, and the way of the head, count where they explain something.
        best.improve(&possible, resolution, |e| {
            e.reads_per_sector = per_sector(&possible, Op::Read);
        });
        best.improve(&possible, resolution, |e| {
            e.writes_per_sector = per_sector(&possible, Op::Write);
        });
        if law.channels == 1 {
            best.improve(&possible, resolution, |e| {
                e.per_root = e.per_root(&possible);
            });
        }
        best.nats += base;
        best
    }

    /// Keeps a change if the recording is less surprising then.
    fn improve(&mut self, services: &[Service], resolution: f64, change: impl Fn(&mut Explained)) {
        let mut other = Explained {
            kinds: BTreeMap::new(),
            ..*self
        };
        change(&mut other);
        other.sort(services, resolution);
        other.nats += NUMBER;
        if other.nats < self.nats {
            *self = other;
        }
    }

    /// Sorts what remains of the times by kind, and says how surprising they are.
    fn sort(&mut self, services: &[Service], resolution: f64) {
        let (split, apart) = self.kinds_of(services, resolution, true);
        let (joint, together) = self.kinds_of(services, resolution, false);
        (self.kinds, self.nats) = if apart < together {
            (split, apart)
        } else {
            (joint, together)
        };
    }

    fn kinds_of(
        &self,
        services: &[Service],
        resolution: f64,
        splits: bool,
    ) -> (BTreeMap<(Op, bool), Vec<f64>>, f64) {
        let mut kinds: BTreeMap<(Op, bool), Vec<f64>> = BTreeMap::new();
        for s in services {
            let kind = (s.op, splits && s.is_sequential);
            kinds.entry(kind).or_default().push(self.rest(s));
        }
        let mut nats = 0.0;
        for values in kinds.values_mut() {
            nats += values.len() as f64 * entropy::of_values(values, resolution) + NUMBER;
        }
        (kinds, nats)
    }

    /// What remains of a time without what length and distance explain.
    fn rest(&self, s: &Service) -> f64 {
        let per_sector = match s.op {
            Op::Read => self.reads_per_sector,
            Op::Write => self.writes_per_sector,
            Op::Flush | Op::Discard => 0.0,
        };
        s.ns - per_sector * s.nr_sectors - self.per_root * s.root
    }

    /// Time for each unit of the root of the distance.
    fn per_root(&self, services: &[Service]) -> f64 {
        let moved = services.iter().filter(|s| s.root > 0.0);
        let mut moved: Vec<(f64, f64)> = moved.map(|s| (s.root, self.rest(s))).collect();
        moved.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Medians of as many commands each: some lie in a cache, some wait for a turn.
        let points = moved.chunks(moved.len().div_ceil(32).max(8)).map(|part| {
            let root = part[part.len() / 2].0;
            let time = middle(part.iter().map(|p| p.1).collect());
            (root, time.expect("a chunk has commands"), part.len() as f64)
        });
        slope(&points.collect::<Vec<_>>())
    }

    /// Parameters of the device `measured`.
    pub(super) fn params(mut self) -> Vec<(String, String)> {
        let mut all = vec![("channels".to_owned(), self.law.channels.to_string())];
        let mut set = |name: &str, value: String| all.push((name.to_owned(), value));
        if self.law.nearest {
            set("order", "nearest".to_owned());
        }
        let has = |e: &Explained, op, seq| e.kinds.contains_key(&(op, seq));
        for (op, name) in [(Op::Read, "read"), (Op::Write, "write")] {
            // A device without reads reads as it writes.
            let usual = match op {
                Op::Read => &[
                    (op, false),
                    (op, true),
                    (Op::Write, false),
                    (Op::Write, true),
                ][..],
                _ => &[(op, false), (op, true)],
            };
            let usual = usual
                .iter()
                .find(|(op, seq)| has(&self, *op, *seq))
                .copied();
            if let Some(values) = usual.and_then(|kind| self.kinds.get_mut(&kind)) {
                set(name, quantiles::text(values));
            }
            if has(&self, op, false)
                && let Some(values) = self.kinds.get_mut(&(op, true))
            {
                set(&format!("{name}_sequential"), quantiles::text(values));
            }
        }
        for (op, name) in [(Op::Flush, "flush"), (Op::Discard, "discard")] {
            if let Some(values) = self.kinds.get_mut(&(op, false)) {
                set(name, quantiles::text(values));
            }
        }
        let (reads, writes) = (self.reads_per_sector, self.writes_per_sector);
        for (name, ns) in [("read", reads), ("write", writes)] {
            if ns >= 1.0 {
                set(&format!("{name}_ns_per_sector"), format!("{ns:.0}"));
            }
        }
        if self.per_root > 0.0 {
            set("b_ns_per_sqrt_sector", format!("{:.3}", self.per_root));
        }
        if self.law.streams > 1 && self.kinds.keys().any(|(_, seq)| *seq) {
            set("streams", self.law.streams.to_string());
        }
        all
    }
}

/// Where the device is, and where it was.
struct Head {
    at: u64,
    ends: VecDeque<u64>,
    streams: usize,
}

impl Head {
    fn new(law: Law) -> Head {
        Head {
            at: 0,
            ends: VecDeque::with_capacity(law.streams),
            streams: law.streams,
        }
    }

    fn serve(&mut self, c: &Command, ns: f64) -> Service {
        let moves = matches!(c.op, Op::Read | Op::Write);
        let is_sequential = moves && self.ends.contains(&c.sector);
        let distance = c.sector.abs_diff(self.at) as f64;
        if moves {
            self.at = c.end();
            if self.ends.len() == self.streams {
                self.ends.pop_front();
            }
            self.ends.push_back(self.at);
        }
        Service {
            op: c.op,
            is_sequential,
            nr_sectors: f64::from(c.nr_sectors),
            root: if moves && !is_sequential {
                distance.sqrt()
            } else {
                0.0
            },
            ns,
        }
    }
}

/// From `start` to the end of a command; negative if it ended before.
fn ns_from(start: Time, c: &Command) -> f64 {
    if c.complete >= start {
        c.complete.since(start).ns() as f64
    } else {
        -1.0
    }
}

/// Several channels: a command begins when it is handed over, or when so many have ended that
/// one is free for it.
fn beside_each_other(by_issue: &[Command], law: Law) -> Vec<Service> {
    let mut ends: Vec<Time> = by_issue.iter().map(|c| c.complete).collect();
    ends.sort_unstable();
    let mut head = Head::new(law);
    let served = by_issue.iter().enumerate().map(|(i, c)| {
        let freed = i.checked_sub(law.channels as usize).map(|i| ends[i]);
        let start = freed.map_or(c.issue, |freed| freed.max(c.issue));
        head.serve(c, ns_from(start, c))
    });
    served.collect()
}

/// One channel: commands were served in the order of their ends. Says how surprising the
/// choices among waiting commands were, too.
fn one_by_one(by_issue: &[Command], law: Law) -> (Vec<Service>, f64) {
    let mut by_end: Vec<usize> = (0..by_issue.len()).collect();
    by_end.sort_by_key(|i| by_issue[*i].complete);
    let mut head = Head::new(law);
    let mut services = Vec::with_capacity(by_issue.len());
    let (mut next, mut free) = (0, Time::ZERO);
    // Handed over and not begun, oldest first.
    let mut waiting: Vec<usize> = Vec::new();
    let (mut nr_choices, mut nr_odd, mut odd_nats) = (0_usize, 0_usize, 0.0);
    for i in by_end {
        let c = &by_issue[i];
        let start = free.max(c.issue);
        while next < by_issue.len() && by_issue[next].issue <= start {
            waiting.push(next);
            next += 1;
        }
        if waiting.len() > 1 {
            let expected = if law.nearest {
                let nearest = waiting
                    .iter()
                    .min_by_key(|w| by_issue[**w].sector.abs_diff(head.at));
                nearest.copied()
            } else {
                waiting.first().copied()
            };
            nr_choices += 1;
            if expected != Some(i) {
                nr_odd += 1;
                odd_nats += (waiting.len() as f64).ln();
            }
        }
        waiting.retain(|w| *w != i);
        services.push(head.serve(c, ns_from(start, c)));
        free = c.complete;
    }
    let share = nr_odd as f64 / nr_choices.max(1) as f64;
    let nats = nr_choices as f64 * entropy::of_choice(share) + odd_nats;
    (services, nats)
}

/// Time for each sector of commands of a direction.
fn per_sector(services: &[Service], op: Op) -> f64 {
    let mut by_length: BTreeMap<(bool, u64), Vec<f64>> = BTreeMap::new();
    let mut least = f64::MAX;
    for s in services.iter().filter(|s| s.op == op) {
        let key = (s.is_sequential, s.nr_sectors as u64);
        by_length.entry(key).or_default().push(s.ns);
        least = least.min(s.ns / s.nr_sectors.max(1.0));
    }
    let mut slopes = [0.0; 2];
    let mut weights = [0.0; 2];
    for (place, sequential) in [false, true].into_iter().enumerate() {
        let own = by_length.iter().filter(|((seq, _), _)| *seq == sequential);
        let points: Vec<(f64, f64, f64)> = own
            .filter_map(|((_, n), times)| {
                let time = middle(times.clone())?;
                Some((*n as f64, time, times.len() as f64))
            })
            .collect();
        slopes[place] = slope(&points);
        weights[place] = if points.len() > 1 {
            points.iter().map(|p| p.2).sum()
        } else {
            0.0
        };
    }
    let total: f64 = weights.iter().sum();
    if total == 0.0 {
        return 0.0;
    }
    let mean = (slopes[0] * weights[0] + slopes[1] * weights[1]) / total;
    // No command is faster than its sectors.
    mean.min(least).max(0.0).floor()
}

/// The slope of the line nearest to points (x, y, weight); 0 if there is none, or it falls.
fn slope(points: &[(f64, f64, f64)]) -> f64 {
    let sum = |f: fn(&(f64, f64, f64)) -> f64| points.iter().map(f).sum::<f64>();
    let weight = sum(|p| p.2);
    let (x, y) = (sum(|p| p.0 * p.2) / weight, sum(|p| p.1 * p.2) / weight);
    let (mut xy, mut xx) = (0.0, 0.0);
    for p in points {
        xy += p.2 * (p.0 - x) * (p.1 - y);
        xx += p.2 * (p.0 - x) * (p.0 - x);
    }
    if xx > 0.0 { (xy / xx).max(0.0) } else { 0.0 }
}
