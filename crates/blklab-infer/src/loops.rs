// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process waits for before it submits its next bio.
//!
//! A process *wakes* where one of its bios has ended since it submitted the one before. How
//! many others are under way then says how it waits:
//!
//! - mostly none: it waits for all of them;
//! - as many each time, up to the same number: it keeps a queue of that depth full;
//! - as many as happen to be: it waits if it goes on soon after the end of a bio, and not
//!   somewhere between the end of one and the end of the next.
//!
//! Some processes wait for one kind of bio and not for the other, as one that reads a file
//! and writes another through the page cache. Three sets are tried: all bios, those that say
//! that somebody waits for them, the others. The clearest answer counts.

use crate::recorded::{Marks, Waiting};
use crate::seen::Seen;
use blklab_types::{BioFlags, Op, Span, Time};

/// Share of wakes that have to agree.
const SHARE: f64 = 0.8;
/// Wakes that it takes to tell a reaction from a coincidence.
const WAKES_MIN: usize = 8;
/// Mean place between the end of one bio and that of the next at which a process submits,
/// below which it reacts. One that does not care submits anywhere: 0.5.
const PROMPT: f64 = 0.25;
/// The same, above which a queue that is always as deep is no loop.
const CHANCE: f64 = 0.4;
/// Starts whose distances vary less than this (standard deviation over mean) come at a rate.
const EVEN: f64 = 0.05;
/// Starts that it takes to know a rate.
const STARTS_MIN: usize = 16;

/// The waits of a process.
pub(crate) struct Waits {
    pub(crate) kind: Waiting,
    /// One for each bio.
    pub(crate) bios: Vec<Wait>,
}

/// What one bio waits for; see [`crate::Bio`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wait {
    pub(crate) room: u32,
    pub(crate) think: Span,
    pub(crate) marks: Marks,
}

/// Some of the bios of a process: a bit for each of the three sets.
#[derive(Clone, Copy)]
enum Set {
    All,
    Sync,
    Other,
}

impl Set {
    /// Whether a bio is of the set and can be waited for.
    fn has(self, b: &Seen) -> bool {
        let ordered = BioFlags::SYNC | BioFlags::FLUSH | BioFlags::FUA | BioFlags::BARRIER;
        let is_sync = matches!(b.op, Op::Read | Op::Flush) || b.flags.any(ordered);
        let fits = match self {
            Set::All => true,
            Set::Sync => is_sync,
            Set::Other => !is_sync,
        };
        fits && b.done != Time::MAX
    }
}

/// What the waits of a set look like.
struct Found {
    kind: Waiting,
    /// How clear it is, 0 to 1.
    score: f64,
}

/// What each bio of a process waited for. They are in order of time.
pub(crate) fn waits(bios: &[Seen]) -> Waits {
    let mut best = (Set::All, found(bios, Set::All));
    for set in [Set::Sync, Set::Other] {
        let other = found(bios, set);
        if other.score > best.1.score {
            best = (set, other);
        }
    }
    let (set, found) = best;
    let mut waits = Waits {
        kind: found.kind,
        bios: arranged(bios, set, found.kind),
    };
    if found.kind == Waiting::Until && set_rate(bios, &mut waits.bios) {
        waits.kind = Waiting::Paced;
    }
    waits
}

/// The ends of the bios of a set, in order.
fn ends(bios: &[Seen], set: Set) -> Vec<Time> {
    let mut ends: Vec<Time> = bios.iter().filter(|b| set.has(b)).map(|b| b.done).collect();
    ends.sort_unstable();
    ends
}

fn found(bios: &[Seen], set: Set) -> Found {
    let ends = ends(bios, set);
    let (mut submitted, mut ended) = (0_usize, 0_usize);
    let mut ended_before = 0;
    let (mut wakes, mut from_none, mut slept) = (0_usize, 0_usize, 0_usize);
    let (mut places, mut nr_places) = (0.0, 0_usize);
    let mut peaks: Vec<usize> = Vec::new();
    let mut peak = 0;
    let mut slept_before = false;
    for b in bios.iter().filter(|b| set.has(b)) {
        while ends.get(ended).is_some_and(|e| *e <= b.time) {
            ended += 1;
        }
        if ended > ended_before {
            peaks.push(peak);
            wakes += 1;
            let under_way = submitted.saturating_sub(ended);
            from_none += usize::from(under_way == 0);
            slept += usize::from(slept_before);
            if under_way > 0
                && let Some(next) = ends.get(ended)
            {
                let last = ends[ended - 1];
                let gap = next.since(last).ns();
                if gap > 0 {
                    places += b.time.since(last).ns() as f64 / gap as f64;
                    nr_places += 1;
                }
            }
            ended_before = ended;
        }
        slept_before = b.marks.has(Marks::SLEPT);
        submitted += 1;
        peak = submitted.saturating_sub(ended);
    }
    peaks.push(peak);
    if wakes == 0 {
        return Found {
            kind: Waiting::Free,
            score: 0.0,
        };
    }
    let share = |n: usize| n as f64 / wakes as f64;
    if share(from_none) >= SHARE {
        return Found {
            kind: Waiting::Until,
            score: share(from_none),
        };
    }
    peaks.sort_unstable();
    // A completion that the trace has lost would show too deep a queue.
    let depth = peaks[(peaks.len() - 1) * 98 / 100];
    let full = peaks.iter().filter(|p| **p + depth / 8 >= depth).count();
    let full = full as f64 / peaks.len() as f64;
    let prompt = places / nr_places.max(1) as f64;
    // Bios at a rate that all take as long are always as many, too.
    let is_chance = nr_places >= WAKES_MIN && prompt > CHANCE;
    if full >= SHARE && depth > 1 && share(slept) < 0.5 && wakes >= 2 && !is_chance {
        return Found {
            kind: Waiting::Depth(u32::try_from(depth).unwrap_or(u32::MAX)),
            score: full,
        };
    }
    if nr_places >= WAKES_MIN && prompt <= PROMPT && share(slept) < 0.5 {
        return Found {
            kind: Waiting::Until,
            score: SHARE - prompt,
        };
    }
    Found {
        kind: Waiting::Free,
        score: 0.0,
    }
}

/// Room and pauses of all bios, if those of `set` are waited for in this way.
fn arranged(bios: &[Seen], set: Set, kind: Waiting) -> Vec<Wait> {
    let ends = ends(bios, set);
    let (mut submitted, mut ended) = (0_usize, 0_usize);
    let mut ended_before = 0;
    let mut returned: Option<Time> = None;
    let mut waits = Vec::with_capacity(bios.len());
    for b in bios {
        while ends.get(ended).is_some_and(|e| *e <= b.time) {
            ended += 1;
        }
        let under_way = submitted.saturating_sub(ended);
        let room = match kind {
            Waiting::Free => 0,
            Waiting::Depth(n) => (n as usize).max(under_way + 1),
            Waiting::Until | Waiting::Paced => under_way + 1,
        };
        // How many must have ended before there is room.
        let needed = if room == 0 {
            0
        } else {
            (submitted + 1).saturating_sub(room)
        };
        let had_room = needed.checked_sub(1).and_then(|i| ends.get(i)).copied();
        let since = returned.max(had_room.filter(|_| kind != Waiting::Free));
        let mut marks = Marks::default();
        if set.has(b) && kind != Waiting::Free {
            marks = marks.with(Marks::AWAITED);
        }
        if ended > ended_before {
            marks = marks.with(Marks::WOKE);
            ended_before = ended;
        }
        waits.push(Wait {
            room: u32::try_from(room).unwrap_or(u32::MAX),
            think: since.map_or(Span::ZERO, |since| b.time.since(since)),
            marks,
        });
        submitted += usize::from(set.has(b));
        returned = Some(b.returned);
    }
    waits
}

/// Whether a process that waits starts at a rate: then its pauses count from start to start.
fn set_rate(bios: &[Seen], waits: &mut [Wait]) -> bool {
    let starts = waits.iter().enumerate();
    let starts = starts.filter(|(i, w)| *i == 0 || w.marks.has(Marks::WOKE));
    let starts: Vec<usize> = starts.map(|(i, _)| i).collect();
    if starts.len() < STARTS_MIN {
        return false;
    }
    let pairs = || starts.windows(2).map(|p| (p[0], p[1]));
    let distances = pairs().map(|(a, b)| bios[b].time.since(bios[a].time).ns());
    let (distance, distance_varies) = spread(distances);
    let thinks = pairs().map(|(_, b)| waits[b].think.ns());
    let (think, think_varies) = spread(thinks);
    // If the device always took the same time, both are even and mean the same.
    let is_rate = distance > 0.0
        && distance_varies < EVEN * distance
        && think > 0.0
        && think_varies > 2.0 * distance_varies;
    if is_rate {
        for (a, b) in pairs() {
            waits[b].think = bios[b].time.since(bios[a].time);
        }
    }
    is_rate
}

/// Mean and standard deviation.
fn spread(values: impl Iterator<Item = u64> + Clone) -> (f64, f64) {
    let n = values.clone().count().max(1) as f64;
    let mean = values.clone().map(|v| v as f64).sum::<f64>() / n;
    let square = values.map(|v| (v as f64 - mean).powi(2)).sum::<f64>() / n;
    (mean, square.sqrt())
}
