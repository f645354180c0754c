// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device from the commands of a trace: the law `measured`, found from the first part of
//! them, and judged by the rest.

use crate::device_file::Line;
use blklab_device::{CmdId, Device, DeviceCx};
use blklab_infer::device::{self, Command, DeviceFit};
use blklab_types::{BioFlags, Error, Op, Slab, Time};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Commands of a kind that it takes to be judged.
const KIND_MIN: usize = 20;

/// Of so many commands one, the last ones, is held out.
const HELD_OUT: usize = 4;

/// Commands of one kind that the law did not see.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Direction, size, place and depth, in words.
    pub name: String,
    /// How many there are.
    pub commands: usize,
    /// Median, and 99th percentile, of the time from D to C in microseconds: recorded, and
    /// of the law.
    pub p50_us: [f64; 2],
    /// The same.
    pub p99_us: [f64; 2],
}

/// A law found from a trace.
#[derive(Clone, Debug)]
pub struct RecordedFit {
    /// The law.
    pub device: DeviceFit,
    /// How near it comes to what it was not made of.
    pub kinds: Vec<Kind>,
}

impl RecordedFit {
    /// The parameters.
    pub fn lines(&self) -> Vec<Line> {
        let line = |(key, value): &(String, String)| Line {
            key: key.clone(),
            value: value.clone(),
            remark: String::new(),
        };
        let depth = Line {
            key: "queue_depth".to_owned(),
            value: self.device.queue_depth.to_string(),
            remark: "the most at a time in the trace".to_owned(),
        };
        self.device.params.iter().map(line).chain([depth]).collect()
    }
}

/// Finds the law of the device that served these commands.
///
/// # Errors
/// If they are too few.
pub fn fit_recording(commands: &[Command]) -> Result<RecordedFit, Error> {
    let mut all: Vec<Command> = commands
        .iter()
        .filter(|c| c.complete >= c.issue)
        .copied()
        .collect();
    all.sort_by_key(|c| c.issue);
    let first = all.len() - all.len() / HELD_OUT;
    let found = device::fit(&all[..first])?;
    let built = built(&found)?;
    // From the beginning, so that what is held out meets the device in its state.
    let ours = replay(built, &all);
    let mut kinds: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let depths = depths(&all);
    for (i, c) in all.iter().enumerate().skip(first) {
        let previous = i.checked_sub(1).map(|p| &all[p]);
        let recorded = c.complete.since(c.issue).ns() as f64 / 1e3;
        let name = kind(c, previous, depths[i]);
        kinds.entry(name).or_default().push((recorded, ours[i]));
    }
    let judged = kinds.into_iter().filter(|(_, t)| t.len() >= KIND_MIN);
    let kinds = judged.map(|(name, times)| {
        let at = |part: f64| {
            let quantile = |pick: fn(&(f64, f64)) -> f64| {
                let mut values: Vec<f64> = times.iter().map(pick).collect();
                values.sort_by(f64::total_cmp);
                values[((values.len() as f64 * part) as usize).min(values.len() - 1)]
            };
            [quantile(|t| t.0), quantile(|t| t.1)]
        };
        Kind {
            name,
            commands: times.len(),
            p50_us: at(0.5),
            p99_us: at(0.99),
        }
    });
    Ok(RecordedFit {
        device: found,
        kinds: kinds.collect(),
    })
}

fn built(found: &DeviceFit) -> Result<Box<dyn Device>, Error> {
    let none = |_: &str| Err("no files".to_owned());
    // Open loop: the device may be behind the recorded one.
    let depth = blklab_device::MAX_QUEUE_DEPTH;
    blklab_device::build(DeviceFit::NAME, &found.params, depth, &none)
        .map_err(|e| Error::new(e.to_string()))
}

/// How many commands the device had when each was handed over, with it.
fn depths(by_issue: &[Command]) -> Vec<usize> {
    let mut ends: BinaryHeap<Reverse<Time>> = BinaryHeap::new();
    let depth = |c: &Command| {
        while ends.peek().is_some_and(|Reverse(end)| *end <= c.issue) {
            ends.pop();
        }
        ends.push(Reverse(c.complete));
        ends.len()
    };
    by_issue.iter().map(depth).collect()
}

/// What a command is like, in words that sort.
fn kind(c: &Command, previous: Option<&Command>, depth: usize) -> String {
    let op = match c.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => return "flush".to_owned(),
        Op::Discard => return "discard".to_owned(),
    };
    let size = match c.nr_sectors {
        0..=8 => "to 4 KiB",
        9..=64 => "to 32 KiB",
        65..=256 => "to 128 KiB",
        _ => "larger",
    };
    let place = match previous {
        Some(p) if p.sector.saturating_add(u64::from(p.nr_sectors)) == c.sector => "next",
        Some(p) if p.sector.abs_diff(c.sector) < 1 << 21 => "near",
        _ => "far",
    };
    let depth = match depth {
        1 => "alone",
        2..=4 => "depth 2-4",
        5..=16 => "depth 5-16",
        _ => "deeper",
    };
    format!("{op} {size}, {place}, {depth}")
}

/// What is to happen in a replay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// The device asked to be woken.
    Wake(u64),
    /// A command is handed over.
    Submit(usize),
}

/// Hands each command over as long after the end of the last command that had ended before it
/// as it was recorded: an error of the law does not pile up. Times from then to the ends in
/// microseconds.
fn replay(mut device: Box<dyn Device>, by_issue: &[Command]) -> Vec<f64> {
    let mut times = vec![0.0; by_issue.len()];
    let mut events: BinaryHeap<Reverse<(Time, u64, Next)>> = BinaryHeap::new();
    let (mut wakes, mut done, mut pushed) = (Vec::new(), Vec::new(), 0_u64);
    let mut push = |events: &mut BinaryHeap<_>, time: Time, next: Next| {
        events.push(Reverse((time, pushed, next)));
        pushed += 1;
    };
    // The commands that follow each, with the pause between.
    let mut followers: Vec<Vec<(usize, u64)>> = vec![Vec::new(); by_issue.len()];
    let mut by_end: Vec<usize> = (0..by_issue.len()).collect();
    by_end.sort_by_key(|i| by_issue[*i].complete);
    let mut ended = 0;
    for (i, c) in by_issue.iter().enumerate() {
        while ended < by_end.len() && by_issue[by_end[ended]].complete <= c.issue {
            ended += 1;
        }
        // What ended when it was issued may be issued later in the list, or be itself.
        let before = by_end[..ended].iter().rev().find(|j| **j < i);
        match before {
            Some(j) => followers[*j].push((i, c.issue.since(by_issue[*j].complete).ns())),
            None => push(&mut events, c.issue, Next::Submit(i)),
        }
    }
    // The device's names are reused: it may have tables by them.
    let mut in_flight: Slab<CmdId, (usize, Time)> = Slab::default();
    while let Some(Reverse((now, _, next))) = events.pop() {
        let mut cx = DeviceCx {
            now,
            wakes: &mut wakes,
            done: &mut done,
        };
        match next {
            Next::Wake(token) => device.wake(&mut cx, token),
            Next::Submit(i) => {
                let c = &by_issue[i];
                let cmd = blklab_device::Command {
                    id: in_flight.insert((i, now)),
                    op: c.op,
                    flags: BioFlags::NONE,
                    sector: c.sector,
                    nr_sectors: c.nr_sectors,
                };
                device.submit(&mut cx, &cmd);
            }
        }
        for (time, token) in wakes.drain(..) {
            push(&mut events, time, Next::Wake(token));
        }
        for d in done.drain(..) {
            let (i, sent) = *in_flight.remove(d.id);
            times[i] = now.since(sent).ns() as f64 / 1e3;
            for (follower, pause) in &followers[i] {
                let time = Time(now.0 + pause);
                push(&mut events, time, Next::Submit(*follower));
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_is_found_and_judged_by_what_it_did_not_see() {
        // One at a time: 100 us and 1 us for each sector; now and then one waits.
        let mut free = 0;
        let commands: Vec<Command> = (0..400_u64)
            .map(|i| {
                let issue = i * 150_000 - (i % 3) * 40_000;
                let nr_sectors = 8 << (i % 2);
                free = free.max(issue) + 100_000 + 1_000 * nr_sectors;
                Command {
                    issue: Time(issue),
                    complete: Time(free),
                    sector: i * 100_003 % 1_000_000,
                    nr_sectors: nr_sectors as u32,
                    op: Op::Read,
                }
            })
            .collect();
        let fit = fit_recording(&commands).expect("a law");
        assert_eq!(fit.device.channels, 1);
        assert!(!fit.kinds.is_empty());
        for kind in &fit.kinds {
            for [recorded, ours] in [kind.p50_us, kind.p99_us] {
                assert!((ours / recorded - 1.0).abs() < 0.02, "{kind:?}");
            }
        }
    }
}
