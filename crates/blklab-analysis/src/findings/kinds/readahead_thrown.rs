// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was read ahead is read from the device again: it was thrown away before anybody
//! used it.
//!
//! Pages that are read ahead wait in the page cache until their reader comes to them. If
//! memory is needed for others first, they go, and are read once more. Which pages are used
//! is no event, but that the same sectors are read again is.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::percent;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole,
};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Time};
use std::collections::{BTreeMap, HashMap};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "readahead-thrown-away",
    what: "what was read ahead is thrown away before it is used, and read again",
    rule: Rule {
        condition: "sectors that were read ahead (RA) are read again soon, without a write to \
                    them in between",
        threshold: "within 30 s of the end of that, and before their reader is 8 MiB further; 8 \
                    reads or more, and 10 % of what is read ahead or more",
        exception: "they are read again by direct I/O (RS)",
    },
    explains: &[],
    remedies: &[LESS_AHEAD, MORE_MEMORY],
    rests_on_absence: false,
    detector: || Box::new(ReadaheadThrown::default()),
};

const LESS_AHEAD: Remedy = Remedy::set(
    "less-read-ahead",
    "queue/read_ahead_kb",
    "",
    "less is read ahead of each stream, so that it is used before it goes",
);

const MORE_MEMORY: Remedy = Remedy::outside(
    "more-memory",
    Outside::Machine,
    "more memory for the readers (memory.high of their control group), or fewer of \
     them at a time",
);

/// Later it is no wonder that a page is gone.
const SOON_NS: u64 = 30_000_000_000;

/// Reads so often.
const COUNT_MIN: u64 = 8;

/// Of the sectors that are read ahead, the part that is read again, in per cent.
const PERCENT_MIN: u64 = 10;

/// Sectors are looked up by so many together: 32 KiB.
const CHUNK_SHIFT: u32 = 6;

/// Nobody reads so far ahead: 8 MiB.
const BEYOND_CHUNKS: u64 = 256;

#[derive(Debug, Default)]
struct ReadaheadThrown {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    ahead: u64,
    again: u64,
}

/// The request that read something ahead last: its place, sectors and end.
#[derive(Clone, Copy)]
struct Ahead {
    place: usize,
    sectors: [u64; 2],
    end: Time,
}

impl Detector for ReadaheadThrown {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if disk.requests.iter().any(is_ahead) {
                self.disk(section, disk);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

fn is_ahead(r: &Request) -> bool {
    r.is_read() && r.flags.has(Rwbs::AHEAD)
}

/// The chunks of a request.
fn chunks(r: &Request) -> std::ops::RangeInclusive<u64> {
    let last = r.end().saturating_sub(1).max(r.life.sector);
    r.life.sector >> CHUNK_SHIFT..=last >> CHUNK_SHIFT
}

/// Longer requests are none of a page cache.
const SECTORS_MAX: u64 = 1 << 16;

impl ReadaheadThrown {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let sum = self.disks.entry(disk.dev).or_default();
        let mut begun: Vec<usize> = (0..disk.requests.len()).collect();
        begun.retain(|i| (1..=SECTORS_MAX).contains(&disk.requests[*i].sectors()));
        begun.sort_by_key(|i| (disk.requests[*i].start(), *i));
        let mut ahead: HashMap<u64, Ahead> = HashMap::new();
        for i in begun {
            let r = &disk.requests[i];
            let is_cached = r.is_read() && !r.flags.has(Rwbs::SYNC);
            if is_cached {
                sum.read(section, disk, r, &ahead);
            }
            let (Some(end), true) = (r.life.complete, is_ahead(r)) else {
                if !r.is_read() {
                    for chunk in chunks(r) {
                        ahead.remove(&chunk);
                    }
                }
                continue;
            };
            sum.ahead += r.sectors();
            let own = Ahead {
                place: i,
                sectors: [r.life.sector, r.end()],
                end,
            };
            ahead.extend(chunks(r).map(|c| (c, own)));
        }
    }
}

impl Sum {
    /// A read: how much of it was read ahead before.
    fn read(&mut self, section: &Section, disk: &Disk, r: &Request, ahead: &HashMap<u64, Ahead>) {
        let start = r.start().unwrap_or_default();
        let mut again = 0;
        let mut before = None;
        for chunk in chunks(r) {
            let Some(a) = ahead.get(&chunk) else { continue };
            if a.end > start || start.since(a.end).0 > SOON_NS {
                continue;
            }
            // Whoever has gone on far beyond had used it, and begins anew.
            let beyond = ahead.get(&(chunk + BEYOND_CHUNKS));
            if beyond.is_some_and(|b| a.end < b.end && b.end <= start) {
                continue;
            }
            let [begin, end] = [chunk << CHUNK_SHIFT, (chunk + 1) << CHUNK_SHIFT];
            let from = begin.max(a.sectors[0]).max(r.life.sector);
            let to = end.min(a.sectors[1]).min(r.end());
            if from < to {
                again += to - from;
                before.get_or_insert(a.place);
            }
        }
        let Some(place) = before else { return };
        self.again += again;
        let took = r.whole().unwrap_or(0);
        self.harm.add(r.pid, took, || {
            let mut evidence = section.of_request(&disk.requests[place]);
            evidence.extend(section.of_request(r));
            in_order(&mut evidence);
            Instance {
                time: start,
                delay_ns: Some(took),
                evidence,
            }
        });
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let percent = percent(self.again, self.ahead);
        if self.harm.count() < COUNT_MIN || percent < PERCENT_MIN {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "reads of what was read ahead before";
        f.what = format!(
            "{percent} % of what is read ahead is read from the device again by {}: {} of {} KiB.",
            f.victim_names(),
            self.again / 2,
            self.ahead / 2
        );
        f.how =
            "The page cache had thrown it away before its reader came to it: others needed the \
                 memory, or more is read ahead than there is room for."
                .to_owned();
        f.doubt(
            Confidence::Likely,
            "whether a user emptied the page cache (drop_caches, POSIX_FADV_DONTNEED)",
        );
        f.remedies = vec![
            LESS_AHEAD.to(whole
                .context
                .queue("read_ahead_kb")
                .map_or(128, |kb| kb.max(2) / 2)),
            MORE_MEMORY,
        ];
        f.figures = vec![
            ("read ahead", (self.ahead / 2) as f64, "KiB"),
            ("of it read again", (self.again / 2) as f64, "KiB"),
        ];
        Some(f)
    }
}
