// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which processes wait for each other's bios.
//!
//! A journal's thread writes when whoever calls fsync has written its data, and that one
//! goes on when the journal has: each begins promptly when a bio of the other has ended,
//! time and again, long after its own last bio has. Processes that have nothing to do with
//! each other begin anywhere between the ends of each other's bios.

use crate::recorded::{Bio, Link, Recorded, Waiting};
use blklab_types::Span;

/// Starts behind bios of one other process that it takes to tell waiting from a
/// coincidence.
const STARTS_MIN: usize = 8;
/// The share of a process's starts that they have to be.
const SHARE: f64 = 0.3;
/// Mean place of the starts between the end of a bio of the other process and that of its
/// next, below which they follow from the first. Without a relation it is 0.5.
const PROMPT: f64 = 0.25;
/// A start that comes later is none that a completion caused.
const PAUSE_MAX: Span = Span(1_000_000);

/// When a bio has ended.
fn done(b: &Bio) -> Option<Span> {
    b.latency().map(|l| b.at + l)
}

/// The ends of a process's bios in order, with their places.
fn ends(bios: &[Bio]) -> Vec<(Span, usize)> {
    let ended = bios.iter().enumerate();
    let mut ends: Vec<(Span, usize)> = ended.filter_map(|(i, b)| Some((done(b)?, i))).collect();
    ends.sort_unstable();
    ends
}

/// Bios that begin when none of their process is under way, but for the first: place, and
/// when the last one before had ended.
fn starts(bios: &[Bio]) -> Vec<(usize, Span)> {
    let mut starts = Vec::new();
    let mut last = Span::ZERO;
    for (i, b) in bios.iter().enumerate() {
        if i > 0 && last <= b.at {
            starts.push((i, last));
        }
        last = last.max(done(b).unwrap_or(Span(u64::MAX)));
    }
    starts
}

/// Finds out who waits for whom: fills [`crate::Process::links`], and lets those who wait pause
/// from the end of what they wait for.
pub fn link(recorded: &mut Recorded) {
    let ends: Vec<Vec<(Span, usize)>> = recorded.processes.iter().map(|p| ends(&p.bios)).collect();
    let mut links: Vec<Vec<Link>> = Vec::new();
    for (place, p) in recorded.processes.iter().enumerate() {
        let starts = match p.waiting {
            Waiting::Until | Waiting::Paced => starts(&p.bios),
            Waiting::Free | Waiting::Depth(_) => Vec::new(),
        };
        let others = (0..ends.len()).filter(|other| *other != place);
        let mut found: Vec<Link> = Vec::new();
        for other in others {
            let these = behind(&p.bios, &starts, other, &ends[other]);
            let is_share = these.len() as f64 >= SHARE * starts.len() as f64;
            if these.len() >= STARTS_MIN && is_share {
                found.extend(these);
            }
        }
        found.sort_by_key(|l| (l.bio, l.think));
        found.dedup_by_key(|l| l.bio);
        links.push(found);
    }
    for (p, links) in recorded.processes.iter_mut().zip(links) {
        p.links = links;
    }
}

/// The starts of a process that come promptly behind ends of another's bios; none if they do
/// so by chance.
fn behind(
    bios: &[Bio],
    starts: &[(usize, Span)],
    other: usize,
    ends: &[(Span, usize)],
) -> Vec<Link> {
    let mut links = Vec::new();
    let mut places = 0.0;
    for &(bio, own_end) in starts {
        let at = bios[bio].at;
        let next = ends.partition_point(|(end, _)| *end <= at);
        let Some(&(end, of)) = next.checked_sub(1).and_then(|i| ends.get(i)) else {
            continue;
        };
        let think = Span(at.ns() - end.ns());
        if end <= own_end || think > PAUSE_MAX {
            continue;
        }
        let gap = ends.get(next).map_or(u64::MAX, |(n, _)| n.ns() - end.ns());
        places += think.ns() as f64 / gap.max(1) as f64;
        links.push(Link {
            bio,
            process: other,
            of,
            think,
        });
    }
    if places > PROMPT * links.len() as f64 {
        links.clear();
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Marks, Process};
    use blklab_types::{BioFlags, IoPrio, Op};

    /// A process with bios from one time to another, in us.
    fn process(pid: u32, times: &[(u64, u64)]) -> Process {
        let bio = |&(from, to): &(u64, u64)| Bio {
            at: Span::from_us(from),
            think: Span::ZERO,
            sector: 0,
            latency: Span::from_us(to - from),
            room: 1,
            nr_sectors: 8,
            op: Op::Write,
            flags: BioFlags::SYNC,
            marks: Marks::AWAITED,
        };
        Process {
            pid,
            name: None,
            waiting: Waiting::Until,
            bios: times.iter().map(bio).collect(),
            links: Vec::new(),
            prio: IoPrio::default(),
            group: String::new(),
        }
    }

    #[test]
    fn a_journal_and_whoever_calls_fsync_wait_for_each_other() {
        let (mut writer, mut journal, mut other) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..20 {
            let at = i * 20_000;
            writer.push((at, at + 160));
            journal.push((at + 190, at + 350));
            journal.push((at + 360, at + 17_000 + crate::tests::noise(i, 2900)));
            // Whoever reads beside them has nothing to do with them.
            let read = at + crate::tests::noise(i + 50, 15_000);
            other.push((read, read + 300));
        }
        for i in 1..20 {
            writer[i].0 = journal[2 * i - 1].1 + 40;
        }
        let mut recorded = Recorded {
            processes: vec![
                process(1, &writer),
                process(2, &journal),
                process(3, &other),
            ],
            ..Recorded::default()
        };
        link(&mut recorded);
        let [writer, journal, other] = &recorded.processes[..] else {
            panic!();
        };
        assert_eq!(writer.links.len(), 19, "{:?}", writer.links);
        assert!(
            writer
                .links
                .iter()
                .all(|l| l.process == 1 && l.of == 2 * l.bio - 1)
        );
        let of_writer = journal.links.iter().filter(|l| l.process == 0);
        assert!(of_writer.count() >= 18, "{:?}", journal.links);
        assert_eq!(other.links, []);
    }
}
