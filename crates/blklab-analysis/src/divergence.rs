// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where two streams of events of one experiment part: a real kernel beside its model, two
//! kernels, two schedulers.
//!
//! Requests are told by direction, first sector and length, and compared in the order in
//! which the driver got them, device by device. Where the orders part, the events before
//! say what the other request was doing meanwhile, and so what [`Kind`] of difference it is.
//! Times count from the first bio of either stream.

mod state;

use crate::common;
use crate::stats::Phases;
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Op, Time};
use serde::{Serialize, Serializer};
use state::{State, Stream};
use std::fmt;

/// Two processes that were woken within this belong to one instant: which of them goes first
/// is chance of the code, not of the block layer.
pub const TIE_NS: u64 = 1000;

/// One of the two streams.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What sentences call it: kernel, sim.
    pub name: &'a str,
    /// Its events, in order.
    pub events: &'a [Event],
    /// The devices whose requests are compared: the first of one stream with the first of the
    /// other, and so on.
    pub devices: &'a [Dev],
}

/// How the dispatches of a device compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Its number in either stream.
    #[serde(serialize_with = "devs_text")]
    pub devices: [Dev; 2],
    /// Dispatches in either stream.
    pub dispatches: [usize; 2],
    /// Dispatches before the first that differs.
    pub same: usize,
    /// Length of the longest common subsequence over that of the longer order; none if they
    /// are too far apart to tell.
    pub common: Option<f64>,
    /// Where the orders part.
    pub first: Option<Divergence>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// Which dispatch, from 0.
    pub index: usize,
    /// What kind of difference it is.
    pub kind: Kind,
    /// When either stream dispatches, in ns from its first bio.
    pub at_ns: [Option<u64>; 2],
    /// What either stream dispatches.
    #[serde(serialize_with = "events_text")]
    pub events: [Option<Event>; 2],
    /// All of it in words.
    pub sentence: String,
}

/// What parts two orders, by what the request that one stream dispatches is doing in the
/// other. `0` and `1` are the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two requests come at the same instant, and another one is first.
    Tie,
    /// Two processes begin together, and another one is first: which of them has the
    /// processor first is chance of how they came to be, not of the block layer.
    Begin,
    /// One stream ends before the other.
    Ends(usize),
    /// A request that is dispatched on this side alone.
    Only(usize),
    /// Bios are merged on this side that are not on the other.
    Merged(usize),
    /// The same bio is split otherwise.
    Split,
    /// A bio comes later on this side.
    Later(usize),
    /// So does the first bio of a process.
    Starts(usize),
    /// A bio waits for a request (a tag) on this side.
    NoRequest(usize),
    /// A request is still in its task's plug, or on its way into the scheduler, on this side.
    Plugged(usize),
    /// A bio was refused with EAGAIN on this side alone, since its process does not wait: a
    /// worker of io_uring brings it again.
    Again(usize),
    /// Both schedulers had both requests and chose otherwise.
    Chosen,
}

impl Kind {
    /// In words. `names` are those of the sides.
    pub fn words(self, names: [&str; 2]) -> String {
        match self {
            Kind::Tie => "another request first at the same instant (tie)".to_owned(),
            Kind::Begin => "another of the processes that begin together first (tie)".to_owned(),
            Kind::Ends(side) => format!("{} ends first", names[side]),
            Kind::Only(side) => format!("request in {} only", names[side]),
            Kind::Merged(side) => format!("merge in {} only", names[side]),
            Kind::Split => "split differently".to_owned(),
            Kind::Later(side) => format!("bio comes later in {}", names[side]),
            Kind::Starts(side) => format!("process starts later in {}", names[side]),
            Kind::NoRequest(side) => format!("no request free in {}", names[side]),
            Kind::Plugged(side) => format!("not in the scheduler yet in {}", names[side]),
            Kind::Again(side) => format!("io_uring worker in {} only", names[side]),
            Kind::Chosen => "the scheduler chooses another request".to_owned(),
        }
    }

    /// Whether it is chance of the code, and says nothing of the block layer.
    pub fn is_chance(self) -> bool {
        matches!(self, Kind::Tie | Kind::Begin)
    }

    /// A name without blanks, the same whatever the sides are called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Tie => "tie",
            Kind::Begin => "begin",
            Kind::Ends(0) => "first-ends",
            Kind::Ends(_) => "second-ends",
            Kind::Only(0) => "only-first",
            Kind::Only(_) => "only-second",
            Kind::Merged(0) => "merge-first",
            Kind::Merged(_) => "merge-second",
            Kind::Split => "split",
            Kind::Later(0) => "later-first",
            Kind::Later(_) => "later-second",
            Kind::Starts(0) => "starts-first",
            Kind::Starts(_) => "starts-second",
            Kind::NoRequest(0) => "no-request-first",
            Kind::NoRequest(_) => "no-request-second",
            Kind::Plugged(0) => "plugged-first",
            Kind::Plugged(_) => "plugged-second",
            Kind::Again(0) => "again-first",
            Kind::Again(_) => "again-second",
            Kind::Chosen => "chosen",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Mean times of a phase on either side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseError {
    /// btt's name of it.
    pub name: &'static str,
    /// Bios that have it.
    pub counts: [u64; 2],
    /// Means in ns.
    pub mean_ns: [f64; 2],
}

impl PhaseError {
    /// How much longer it takes on the second side, in ns.
    pub fn difference_ns(&self) -> f64 {
        self.mean_ns[1] - self.mean_ns[0]
    }

    /// The second mean over the first, minus 1; none where the first is 0.
    pub fn relative(&self) -> Option<f64> {
        let [first, second] = self.mean_ns;
        (first > 0.0).then(|| second / first - 1.0)
    }
}

/// The phases that bios have on both sides, in btt's order.
pub fn phase_errors(sides: [&Phases; 2]) -> Vec<PhaseError> {
    let [first, second] = sides.map(Phases::named);
    let pairs = first.into_iter().zip(second);
    let both = pairs.filter(|((_, a), (_, b))| a.count() > 0 && b.count() > 0);
    let errors = both.map(|((name, a), (_, b))| PhaseError {
        name,
        counts: [a.count(), b.count()],
        mean_ns: [a.mean(), b.mean()],
    });
    errors.collect()
}

/// Compares two streams, device by device.
pub fn compare(sides: [Side<'_>; 2]) -> Vec<Comparison> {
    let names = [sides[0].name, sides[1].name];
    let starts = sides.map(|side| first_bio(&side));
    let pairs = sides[0].devices.iter().zip(sides[1].devices);
    let compared = pairs.map(|(a, b)| {
        let devices = [*a, *b];
        let streams = [0, 1].map(|i| Stream::new(sides[i].events, devices[i], starts[i]));
        let orders = [0, 1].map(|i| streams[i].dispatches());
        let same = common_prefix(&orders);
        let [first, second] = &orders;
        let identical = same == first.len() && same == second.len();
        let rest = common::length(&first[same..], &second[same..], is_same);
        let longer = first.len().max(second.len());
        Comparison {
            devices,
            dispatches: [first.len(), second.len()],
            same,
            common: rest.map(|n| match longer {
                0 => 1.0,
                _ => (same + n) as f64 / longer as f64,
            }),
            first: (!identical).then(|| divergence(names, &streams, &orders, same)),
        }
    });
    compared.collect()
}

impl Comparison {
    /// Whether the orders are the same from end to end.
    pub fn is_identical(&self) -> bool {
        self.first.is_none()
    }

    /// Whether one order is the beginning of the other.
    pub fn is_prefix(&self) -> bool {
        let first = self.first.as_ref();
        first.is_none_or(|d| matches!(d.kind, Kind::Ends(_)))
    }
}

/// "identical over 1204 dispatches", or where the orders part.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first {
            None => write!(f, "identical over {} dispatches", self.same),
            Some(first) => f.write_str(&first.sentence),
        }
    }
}

fn first_bio(side: &Side<'_>) -> Time {
    let mut events = side.events.iter();
    let first = events.find(|e| e.action == Action::Queue && side.devices.contains(&e.dev));
    first.map_or(Time::ZERO, |e| e.time)
}

/// Whether two dispatches are of the same request.
fn is_same(a: &Event, b: &Event) -> bool {
    (a.rwbs.op(), a.sector, a.bytes) == (b.rwbs.op(), b.sector, b.bytes)
}

fn common_prefix([first, second]: &[Vec<Event>; 2]) -> usize {
    let pairs = first.iter().zip(second);
    pairs.take_while(|(a, b)| is_same(a, b)).count()
}

fn divergence(
    names: [&str; 2],
    streams: &[Stream<'_>; 2],
    orders: &[Vec<Event>; 2],
    index: usize,
) -> Divergence {
    let events = [0, 1].map(|i| orders[i].get(index).copied());
    let at_ns = [0, 1].map(|i| events[i].map(|e: Event| streams[i].since_start(e.time)));
    let (kind, why) = match events {
        [Some(a), Some(b)] => {
            let here = [a, b];
            reason(names, streams, orders, index, here)
        }
        [None, _] => (Kind::Ends(0), left_over(names, orders, 0, index)),
        [_, None] => (Kind::Ends(1), left_over(names, orders, 1, index)),
    };
    let shown = [0, 1].map(|i| match events[i].zip(at_ns[i]) {
        None => format!("{} nothing", names[i]),
        Some((event, ns)) => format!("{} issues {} at {}", names[i], request(&event), time(ns)),
    });
    Divergence {
        index,
        kind,
        at_ns,
        events,
        sentence: format!("dispatch {}: {}, {}; {why}", index + 1, shown[0], shown[1]),
    }
}

fn left_over(names: [&str; 2], orders: &[Vec<Event>; 2], ended: usize, index: usize) -> String {
    let more = orders[1 - ended].len() - index;
    format!("{} has {more} more", names[1 - ended])
}

/// Why one stream dispatches this and the other that.
fn reason(
    names: [&str; 2],
    streams: &[Stream<'_>; 2],
    orders: &[Vec<Event>; 2],
    index: usize,
    here: [Event; 2],
) -> (Kind, String) {
    if let Some(found) = lengths(names, streams, here) {
        return found;
    }
    let again = [0, 1].map(|i| streams[i].is_refused_before(here[i].time));
    if again[0] != again[1] {
        let side = usize::from(again[1]);
        let why = format!("{} refused bios with EAGAIN before", names[side]);
        return (Kind::Again(side), why);
    }
    // Where the request of one side is in the other's order.
    let places = [0, 1].map(|i| {
        let rest = &orders[1 - i][index..];
        rest.iter().position(|e| is_same(e, &here[i]))
    });
    if let Some(i) = [0, 1].into_iter().find(|i| places[*i].is_none()) {
        let other = names[1 - i];
        let what = request(&here[i]);
        if let Some(inside) = orders[1 - i][index..]
            .iter()
            .find(|e| overlaps(e, &here[i]))
        {
            return joined(names, streams, i, here[i], *inside);
        }
        return (Kind::Only(i), format!("{other} never issues {what}"));
    }
    // numbers[i][j] is the place in order j of what side i issues here.
    let place = |i: usize| index + places[i].unwrap_or(0);
    let numbers = [[index, place(0)], [place(1), index]];
    let states = [0, 1].map(|i| streams[i].state(numbers[1 - i][i], here[i].time));
    if states.contains(&State::NotCome) {
        return arrivals(names, streams, numbers, here);
    }
    let later = [0, 1].map(|i| {
        let other = streams[i].number(numbers[1 - i][i]);
        time(other.time.since(here[i].time).ns())
    });
    // The one of the two that was not ready says why.
    let not_ready = [0, 1].into_iter().find_map(|i| match states[i] {
        State::Queued => Some((i, Kind::NoRequest(i), "waits for a request")),
        State::Plugged => Some((i, Kind::Plugged(i), "is not in the scheduler yet")),
        State::NotCome | State::Waiting => None,
    });
    if let Some((i, kind, what)) = not_ready {
        let (name, other) = (names[i], request(&here[1 - i]));
        let why = format!("in {name} {other} {what} and is issued {} later", later[i]);
        return (kind, why);
    }
    let both = format!(
        "both have both; {} issues the other {} later, {} {} later",
        names[0], later[0], names[1], later[1]
    );
    let tied = [0, 1].map(|i| streams[i].inserted_together(numbers[0][i], numbers[1][i]));
    if tied[0] || tied[1] {
        return (Kind::Tie, format!("{both}, and they came at one instant"));
    }
    (Kind::Chosen, both)
}

/// Two bios that come in another order: which of them is late, and where.
fn arrivals(
    names: [&str; 2],
    streams: &[Stream<'_>; 2],
    numbers: [[usize; 2]; 2],
    here: [Event; 2],
) -> (Kind, String) {
    let tied = [0, 1].map(|i| streams[i].tied(numbers[0][i], numbers[1][i]));
    let late = [0, 1].map(|r| {
        let comes = [0, 1].map(|i| streams[i].comes(numbers[r][i]));
        i128::from(comes[1]) - i128::from(comes[0])
    });
    let r = usize::from(late[1].abs() > late[0].abs());
    let side = usize::from(late[r] > 0);
    let what = request(&here[r]);
    let ns = u64::try_from(late[r].unsigned_abs()).unwrap_or(u64::MAX);
    let mut why = format!("{what} comes {} later in {}", time(ns), names[side]);
    if tied[0] || tied[1] {
        why.push_str(", and both belong to one instant");
        return (Kind::Tie, why);
    }
    let begin = |i: usize| (0..2).all(|r| streams[i].is_first(numbers[r][i]));
    if begin(0) && begin(1) {
        why.push_str(", and both are the first of processes that begin together");
        return (Kind::Begin, why);
    }
    if streams[side].is_first(numbers[r][side]) {
        return (Kind::Starts(side), why);
    }
    (Kind::Later(side), why)
}

/// The same place in different lengths.
fn lengths(
    names: [&str; 2],
    streams: &[Stream<'_>; 2],
    here: [Event; 2],
) -> Option<(Kind, String)> {
    let [a, b] = here;
    if a.rwbs.op() != b.rwbs.op() || a.rwbs.op() == Some(Op::Flush) || !overlaps(&a, &b) {
        return None;
    }
    let long = usize::from(b.bytes > a.bytes);
    Some(joined(names, streams, 1 - long, here[1 - long], here[long]))
}

/// A request of side `i`, and one of the other that has its sectors, too.
fn joined(
    names: [&str; 2],
    streams: &[Stream<'_>; 2],
    i: usize,
    own: Event,
    other: Event,
) -> (Kind, String) {
    let merges = [
        streams[i].merges_into(&own),
        streams[1 - i].merges_into(&other),
    ];
    match merges {
        [a, b] if a == b => {
            let what = format!(
                "{} has {} where {} has {}",
                names[i],
                request(&own),
                names[1 - i],
                request(&other)
            );
            (Kind::Split, what)
        }
        [a, b] => {
            let side = if b > a { 1 - i } else { i };
            let what = format!(
                "{} merges {} bios into it, {} {}",
                names[side],
                a.max(b),
                names[1 - side],
                a.min(b)
            );
            (Kind::Merged(side), what)
        }
    }
}

fn overlaps(a: &Event, b: &Event) -> bool {
    a.rwbs.op() == b.rwbs.op() && a.sector < b.end_sector() && b.sector < a.end_sector()
}

/// `R 2048+8`.
fn request(e: &Event) -> String {
    let letter = match e.rwbs.op() {
        Some(Op::Read) => 'R',
        Some(Op::Write) => 'W',
        Some(Op::Discard) => 'D',
        Some(Op::Flush) => 'F',
        None => 'N',
    };
    format!("{letter} {}+{}", e.sector, e.nr_sectors())
}

/// A time in words, to the nanosecond below a millisecond.
fn time(ns: u64) -> String {
    match ns {
        0..=999 => format!("{ns} ns"),
        1000..=999_999 => format!("{}.{:03} us", ns / 1000, ns % 1000),
        _ => format!("{}.{:06} ms", ns / 1_000_000, ns % 1_000_000),
    }
}

fn devs_text<S: Serializer>(devices: &[Dev; 2], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(devices.iter().map(ToString::to_string))
}

fn events_text<S: Serializer>(
    events: &[Option<Event>; 2],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().map(|e| e.as_ref().map(Event::to_string)))
}

#[cfg(test)]
mod tests;
