// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options of a fio job (3.33) that do what a stream did.

use super::stream::{Path, Stream, Unit};
use crate::recorded::Waiting;
use blklab_types::{BioFlags, Op, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::fmt;

/// Share that counts as all.
const NEARLY_ALL: f64 = 0.9;
/// Sizes that `bssplit` gets: fio has 64.
const SIZES_MAX: usize = 32;
/// Deepest queue of a job.
const DEPTH_MAX: usize = 65_536;
/// Depth of a job whose own is not shown, since there were fewer requests: whatever is deeper
/// than that waits for them as the recorded process did.
const HELD_DEPTH: usize = 64;
/// Units that it takes to see where on the disk they lie most, some in each slice.
const ZONES_FROM: usize = 200;
/// Slices of the range that are looked at: five percent each.
const SLICES: usize = 20;
/// Share of a slice, as a multiple of an even one, from which the range has zones.
const UNEVEN: f64 = 4.0;
/// Pauses that differ from the middle one by no more than this share are about as long.
const ALIKE: f64 = 0.1;
/// Pauses shorter than this are what fio and the system call take themselves.
const PAUSE_MIN_NS: f64 = 1500.0;
/// Blocks of the random map beyond which jobs do without.
const MAP_MAX: u64 = 8 << 20;

/// A section of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Why its options are these, in words.
    pub remark: String,
    /// Options and values, in order.
    pub options: Vec<(&'static str, String)>,
}

impl Section {
    fn set(&mut self, option: &'static str, value: impl fmt::Display) {
        self.options.push((option, value.to_string()));
    }

    /// The value of an option.
    pub fn get(&self, option: &str) -> Option<&str> {
        let found = self.options.iter().find(|(name, _)| *name == option);
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}]\n; {}", self.name, self.remark)?;
        for (name, value) in &self.options {
            writeln!(f, "{name}={value}")?;
        }
        Ok(())
    }
}

/// The section of a stream; `begin_ns` is when the first one starts.
pub(super) fn section(s: &Stream, begin_ns: u64) -> Section {
    let mut out = Section {
        name: s.name.clone(),
        remark: remark(s),
        options: Vec::new(),
    };
    out.set("direct", u8::from(s.path == Path::Direct));
    order(s, &mut out);
    sizes(s, &mut out);
    depth(s, &mut out);
    pauses(s, &mut out);
    syncs(s, &mut out);
    let delay_us = (s.begin().ns() - begin_ns.min(s.begin().ns())) / 1000;
    if delay_us > 0 {
        out.set("startdelay", format!("{delay_us}us"));
    }
    out
}

fn remark(s: &Stream) -> String {
    let what = match s.path {
        Path::Direct if s.is_held() => {
            "waits for requests: how many it would have under way is not shown".to_owned()
        }
        Path::Direct => s.waiting.to_string(),
        Path::Buffered => "the page cache wrote it".to_owned(),
    };
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let (bios, ios) = (s.nr_bios, s.units.len() as u64);
    format!(
        "{bios} bio{} in {ios} I/O{}; {what}",
        plural(bios),
        plural(ios)
    )
}

/// Distance from the end of a unit to the next, in bytes.
fn steps(units: &[Unit]) -> impl Iterator<Item = i64> + '_ {
    let step = |p: &[Unit]| (p[1].sector as i64).wrapping_sub(p[0].end() as i64);
    units
        .windows(2)
        .map(move |p| step(p).wrapping_mul(SECTOR_BYTES as i64))
}

/// Mode, range and amount.
fn order(s: &Stream, out: &mut Section) {
    let units = &s.units;
    let count = |op| units.iter().filter(|u| u.op == op).count();
    let (reads, writes, trims) = (count(Op::Read), count(Op::Write), count(Op::Discard));
    let kind = match (reads, writes, trims) {
        (0, 0, _) => "trim",
        (0, _, _) => "write",
        (_, 0, _) => "read",
        _ => "rw",
    };
    let nr_steps = units.len().saturating_sub(1).max(1) as f64;
    let share = |wanted: i64| steps(units).filter(|s| *s == wanted).count() as f64 / nr_steps;
    // What the page cache wrote in one place was written there in order.
    let gathered = s.path == Path::Buffered && s.name == "writer";
    let (sequential, stride) = match units.len() {
        1 => (1.0, 0),
        _ if gathered => (1.0, 0),
        _ => {
            let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
            steps(units).for_each(|s| *seen.entry(s).or_insert(0) += 1);
            let most = seen.into_iter().max_by_key(|(_, n)| *n);
            let (step, n) = most.unwrap_or((0, 0));
            if step != 0 && n as f64 / nr_steps >= NEARLY_ALL {
                (1.0, step)
            } else {
                (share(0), 0)
            }
        }
    };
    let low = units.iter().map(|u| u.sector).min().unwrap_or(0);
    let high = units.iter().map(Unit::end).max().unwrap_or(0);
    let range = (high - low).saturating_mul(SECTOR_BYTES);
    let random = match kind {
        "rw" => "randrw".to_owned(),
        kind => format!("rand{kind}"),
    };
    if sequential >= NEARLY_ALL {
        let mode = if stride == 0 {
            kind.to_owned()
        } else {
            format!("{kind}:{stride}")
        };
        out.set("rw", mode);
    } else {
        out.set("rw", random);
        if sequential > 1.0 - NEARLY_ALL {
            let percent = (100.0 * (1.0 - sequential)).round();
            out.set("percentage_random", percent);
        }
    }
    if kind == "rw" {
        let share = 100.0 * reads as f64 / (reads + writes) as f64;
        out.set("rwmixread", share.round());
    }
    // A sequential job begins where the stream began.
    let begin = if sequential >= NEARLY_ALL && stride == 0 {
        units[0].sector
    } else {
        low
    };
    out.set("offset", begin.saturating_mul(SECTOR_BYTES));
    let total = s.bytes();
    if sequential >= NEARLY_ALL && stride == 0 && begin == low {
        // One pass, or several.
        out.set("size", range.min(total).max(SECTOR_BYTES));
        if total > range {
            out.set("io_size", total);
        }
    } else {
        out.set(
            "size",
            (high - begin)
                .saturating_mul(SECTOR_BYTES)
                .max(SECTOR_BYTES),
        );
        out.set("io_size", total);
    }
    if sequential < NEARLY_ALL {
        randomness(units, low, high, out);
    }
}

/// How random offsets lie in their range.
fn randomness(units: &[Unit], low: u64, high: u64, out: &mut Section) {
    let mut starts: Vec<u64> = units.iter().map(|u| u.sector).collect();
    starts.sort_unstable();
    let nr_again = starts.windows(2).filter(|p| p[0] == p[1]).count();
    let smallest = units.iter().map(|u| u.nr_sectors).min().unwrap_or(1).max(1);
    if nr_again > 0 || (high - low) / smallest > MAP_MAX {
        out.set("norandommap", 1);
    }
    if units.len() < ZONES_FROM || high - low < SLICES as u64 {
        return;
    }
    let width = (high - low).div_ceil(SLICES as u64);
    let mut slices = [0_usize; SLICES];
    for start in &starts {
        slices[((start - low) / width) as usize] += 1;
    }
    let even = units.len() as f64 / SLICES as f64;
    let most = slices.iter().copied().max().unwrap_or(0) as f64;
    if most < UNEVEN * even {
        return;
    }
    out.set("random_distribution", zones(&slices));
}

/// `zoned:ACCESS/RANGE:…`, percent of accesses and of the range: neighbouring slices of about
/// the same share are one zone.
fn zones(slices: &[usize; SLICES]) -> String {
    let mut zones: Vec<(usize, usize)> = Vec::new();
    for &n in slices {
        match zones.last_mut() {
            Some((sum, wide)) => {
                let mean = *sum as f64 / *wide as f64;
                let alike = (n as f64 - mean).abs() <= 0.5 * mean.max(n as f64);
                if alike {
                    *sum += n;
                    *wide += 1;
                } else {
                    zones.push((n, 1));
                }
            }
            None => zones.push((n, 1)),
        }
    }
    let percents = percents(&zones.iter().map(|(n, _)| *n).collect::<Vec<_>>());
    let width = 100 / SLICES;
    let zone = |(percent, (_, n)): (&u64, &(usize, usize))| format!("{percent}/{}", n * width);
    let texts: Vec<String> = percents.iter().zip(&zones).map(zone).collect();
    format!("zoned:{}", texts.join(":"))
}

/// Whole percents that add up to 100.
pub(super) fn percents(counts: &[usize]) -> Vec<u64> {
    let total = counts.iter().sum::<usize>().max(1) as u64;
    let exact = |n: usize| n as u64 * 100;
    let mut percents: Vec<u64> = counts.iter().map(|n| exact(*n) / total).collect();
    let mut by_rest: Vec<usize> = (0..counts.len()).collect();
    by_rest.sort_by_key(|i| std::cmp::Reverse(exact(counts[*i]) % total));
    let missing = 100_u64.saturating_sub(percents.iter().sum());
    for i in by_rest.into_iter().take(missing as usize) {
        percents[i] += 1;
    }
    percents
}

/// `bs` or `bssplit`, each direction for itself.
fn sizes(s: &Stream, out: &mut Section) {
    if s.path == Path::Buffered {
        // The page cache decides how large its bios are.
        let smallest = s.units.iter().map(|u| u.nr_sectors * SECTOR_BYTES).min();
        let bytes = if out.get("rw").is_some_and(is_random) {
            smallest.unwrap_or(SECTOR_BYTES)
        } else {
            s.bytes().min(64 << 10)
        };
        out.set("bs", bytes.max(SECTOR_BYTES));
        return;
    }
    let sizes_of = |op: Op| {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for u in s.units.iter().filter(|u| u.op == op) {
            *sizes.entry(u.nr_sectors).or_insert(0) += 1;
        }
        let mut sizes: Vec<(u64, usize)> = sizes.into_iter().collect();
        sizes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        sizes.truncate(SIZES_MAX);
        sizes.sort_unstable();
        sizes
    };
    let all = [
        sizes_of(Op::Read),
        sizes_of(Op::Write),
        sizes_of(Op::Discard),
    ];
    let used: Vec<&Vec<(u64, usize)>> = all.iter().filter(|v| !v.is_empty()).collect();
    if used.iter().all(|v| v.len() == 1) && used.windows(2).all(|p| p[0][0].0 == p[1][0].0) {
        out.set("bs", used[0][0].0 * SECTOR_BYTES);
        return;
    }
    let split = |sizes: &Vec<(u64, usize)>| {
        let percents = percents(&sizes.iter().map(|(_, n)| *n).collect::<Vec<_>>());
        let shown = sizes.iter().zip(percents).filter(|(_, p)| *p > 0);
        let shown = shown.map(|((sectors, _), p)| format!("{}/{p}", sectors * SECTOR_BYTES));
        shown.collect::<Vec<_>>().join(":")
    };
    let value = match used[..] {
        [one] => split(one),
        _ => {
            let any = used[0];
            let or_any = |v: &Vec<(u64, usize)>| split(if v.is_empty() { any } else { v });
            format!("{},{}", or_any(&all[0]), or_any(&all[1]))
        }
    };
    out.set("bssplit", value);
    // A map of blocks of another size than the smallest would forbid most of them.
    let one_size = used.iter().all(|v| v.len() == 1);
    if !one_size && out.get("norandommap").is_none() && out.get("rw").is_some_and(is_random) {
        out.set("norandommap", 1);
    }
}

fn is_random(rw: &str) -> bool {
    rw.starts_with("rand")
}

/// Engine and depth.
fn depth(s: &Stream, out: &mut Section) {
    let queue = |out: &mut Section, depth: usize| {
        let depth = depth.clamp(1, DEPTH_MAX);
        if depth == 1 {
            out.set("ioengine", "psync");
        } else {
            out.set("ioengine", "libaio");
            out.set("iodepth", depth);
        }
    };
    if s.path == Path::Buffered {
        return queue(out, 1);
    }
    if s.is_held() {
        return queue(out, HELD_DEPTH.max(4 * s.most_under_way()));
    }
    match s.waiting {
        Waiting::Depth(n) => {
            let per_bio = s.units.len() as f64 / s.nr_bios.max(1) as f64;
            queue(out, (f64::from(n) * per_bio).round() as usize);
        }
        Waiting::Until | Waiting::Paced => {
            let mut bursts: Vec<usize> = Vec::new();
            for u in &s.units {
                match bursts.last_mut() {
                    Some(burst) if !u.woke => *burst += 1,
                    _ => bursts.push(1),
                }
            }
            bursts.sort_unstable();
            let usual = bursts[bursts.len() * 8 / 10];
            queue(out, usual);
            if usual > 1 {
                out.set("iodepth_batch_submit", usual);
                out.set("iodepth_batch_complete_min", usual);
            }
        }
        Waiting::Free => {
            queue(out, s.most_under_way());
        }
    }
}

/// Pauses and rates.
fn pauses(s: &Stream, out: &mut Section) {
    let units = &s.units;
    let gaps = || units.windows(2).map(|p| p[1].at.ns() - p[0].at.ns());
    let length: u64 = gaps().sum();
    let per_s = |n: usize, ns: u64| (n as f64 * 1e9 / ns.max(1) as f64).round().max(1.0);
    if s.is_held() {
        return;
    }
    match s.waiting {
        Waiting::Depth(_) => {}
        Waiting::Paced => {
            let starts = units.iter().filter(|u| u.woke).count();
            if starts > 0 {
                out.set("rate_iops", per_s(units.len().saturating_sub(1), length));
            }
        }
        Waiting::Until => {
            let thinks = units.iter().skip(1).filter(|u| u.woke);
            pause(thinks.map(|u| u.think.ns()).collect(), units.len(), out);
        }
        // Requests, or room for dirty pages, held it back.
        Waiting::Free if s.nr_slept * 10 > s.nr_bios => {}
        Waiting::Free if s.path == Path::Buffered => {
            let rate = s.bytes() as f64 * 1e9 / length.max(1) as f64;
            if units.len() > 1 && !is_busy(units) {
                out.set("rate", rate.round().max(1.0));
            }
        }
        Waiting::Free if units.len() > 1 => {
            let (long, total) = long_ones(&gaps().collect::<Vec<_>>());
            if total * 2 > length && !long.is_empty() {
                let blocks = units.len().div_ceil(long.len() + 1);
                out.set("thinktime", (total / long.len() as u64 / 1000).max(1));
                out.set("thinktime_blocks", blocks);
            } else {
                out.set("rate_iops", per_s(units.len() - 1, length));
            }
        }
        Waiting::Free => {}
    }
}

/// Whether some of the units are nearly always under way.
fn is_busy(units: &[Unit]) -> bool {
    let begin = units.first().map_or(0, |u| u.at.ns());
    let (mut busy, mut until) = (0, begin);
    for u in units {
        let Some(done) = u.done else { continue };
        let from = u.at.ns().max(until);
        busy += done.ns().saturating_sub(from);
        until = until.max(done.ns());
    }
    busy as f64 >= NEARLY_ALL * (until - begin) as f64
}

/// Those that are ten times the mean or more, and their sum.
fn long_ones(values: &[u64]) -> (Vec<u64>, u64) {
    let mean = values.iter().sum::<u64>() / values.len().max(1) as u64;
    let is_long = |v: &u64| *v >= mean.saturating_mul(10).max(1);
    let long: Vec<u64> = values.iter().copied().filter(is_long).collect();
    let total = long.iter().sum();
    (long, total)
}

/// The middle one, if nearly all are about as long: their mean would be off by what few of
/// them, which something disturbed, were longer, and the process out of step with a disk that
/// turns.
fn usual(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize] as f64;
    let (few, middle, most) = (at(1.0 - NEARLY_ALL), at(0.5), at(NEARLY_ALL));
    let even = middle - few <= ALIKE * middle && most - middle <= ALIKE * middle;
    even.then_some(middle)
}

/// `thinktime`, after each I/O or after so many, if few pauses are most of the time.
fn pause(thinks: Vec<u64>, nr_units: usize, out: &mut Section) {
    if thinks.is_empty() {
        return;
    }
    let sum: u64 = thinks.iter().sum();
    let n = thinks.len();
    let (long, total) = long_ones(&thinks);
    if total * 2 > sum && !long.is_empty() {
        let blocks = nr_units.div_ceil(long.len() + 1);
        out.set("thinktime", (sum / long.len() as u64 / 1000).max(1));
        out.set("thinktime_blocks", blocks.max(1));
        return;
    }
    let usual = usual(thinks).unwrap_or(sum as f64 / n as f64);
    if usual >= PAUSE_MIN_NS {
        // A microsecond is fio's own.
        out.set("thinktime", ((usual - 1000.0) / 1000.0).round().max(1.0));
        let blocks = nr_units.div_ceil(n + 1);
        if blocks > 1 {
            out.set("thinktime_blocks", blocks);
        }
    }
}

/// Syncs after writes.
fn syncs(s: &Stream, out: &mut Section) {
    let writes = s.units.iter().filter(|u| u.op == Op::Write);
    let nr_writes = writes.clone().count() as u64;
    let fua = writes.filter(|u| u.flags.any(BioFlags::FUA | BioFlags::BARRIER));
    if nr_writes > 0 && fua.count() as u64 * 2 > nr_writes {
        out.set("sync", "dsync");
    } else if s.nr_flushes > 0 && nr_writes > 0 {
        out.set(
            "fsync",
            (nr_writes as f64 / s.nr_flushes as f64).round().max(1.0),
        );
    }
}
