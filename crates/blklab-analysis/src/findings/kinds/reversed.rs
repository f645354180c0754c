// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequential I/O that goes on backward: a list on its way is emptied from the end, or a mapping
//! hands its pieces to the devices below in reverse.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside, Serving};
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Rule, Whole, counted,
};
use blklab_trace::{Action, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "reversed",
    what: "sequential I/O goes to the device, or to the devices below, backward",
    rule: Rule {
        condition: "requests of a process and direction in a row go to the device, or are mapped \
                    to others (A), in steps backward of one length, each before the one before \
                    has ended, or each ends where the one before it began",
        threshold: "4 requests or more, 16 of those that wait for each other, steps of 1 MiB at \
                    most, less than 1 ms after the one before",
        exception: "the device is known as one that does not rotate, and is not zoned",
    },
    explains: &[],
    remedies: &[SORTING, IN_ORDER, FORWARD],
    rests_on_absence: false,
    detector: || Box::new(Reversed::default()),
};

const SORTING: Remedy = Remedy::act(
    "scheduler-by-place",
    Act::Scheduler(Serving::ByPlace),
    "a scheduler that sorts by place (mq-deadline, bfq) in front of a disk",
);

const FORWARD: Remedy = Remedy::outside(
    "forward-in-large-pieces",
    Outside::Applications,
    "large pieces, or from the beginning to the end: a disk waits for a revolution at each step back",
);

const IN_ORDER: Remedy = Remedy::kernel(
    "hand-on-in-order",
    Act::Outside(Outside::Kernel),
    "hand on pieces and plugged requests in the order in which they came",
);

/// So many in a row are no chance.
const ROW_MIN: u64 = 4;

/// And so many, each of which waits for the one before.
const WAITING_MIN: u64 = 16;

/// A step in sectors, at most.
const STEP_MAX: u64 = 2048;

/// From one to the next.
const NEAR_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Reversed {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    longest: u64,
    step: u64,
    is_mapped: bool,
    reads: u64,
    /// Pairs that were queued forward, and those that were queued backward.
    queued: [u64; 2],
}

/// One I/O as it goes on.
#[derive(Clone, Copy, Debug)]
struct Step {
    at: Time,
    sector: u64,
    sectors: u64,
    end: Option<Time>,
    queue: Option<Time>,
    /// Where the section has it: an event, or a request of the disk.
    place: usize,
}

impl Step {
    /// How far before `self` the next one is, if it goes on backward.
    fn back_to(&self, next: &Step) -> Option<u64> {
        let is_near = next.at.since(self.at).0 < NEAR_NS && self.end.is_none_or(|c| c > next.at);
        let step = self.sector.checked_sub(next.sector)?;
        if self.is_waited_for(next) {
            return (step == next.sectors && (1..=STEP_MAX).contains(&step)).then_some(step);
        }
        (is_near && step >= next.sectors && (1..=STEP_MAX).contains(&step)).then_some(step)
    }
}

impl Step {
    /// Whether the next one comes right after this one has ended.
    fn is_waited_for(&self, next: &Step) -> bool {
        self.end
            .is_some_and(|end| end <= next.at && next.at.since(end).0 < NEAR_NS)
    }
}

/// Whether a row is long enough: one that comes down one by one is more often chance.
fn is_long(row: &[Step]) -> bool {
    let waits = row.windows(2).any(|pair| pair[0].is_waited_for(&pair[1]));
    row.len() as u64 >= if waits { WAITING_MIN } else { ROW_MIN }
}

/// The rows of some I/Os of one process and direction.
fn rows(all: &[Step]) -> impl Iterator<Item = (&[Step], u64)> {
    let mut from = 0;
    let row = move || {
        let first = from;
        let step = all.get(first)?.back_to(all.get(first + 1)?);
        let Some(step) = step else {
            from += 1;
            return Some((&all[first..=first], 0));
        };
        let goes_on = |pair: &[Step]| pair[0].back_to(&pair[1]) == Some(step);
        let length = all[first..].windows(2).take_while(|p| goes_on(p)).count();
        from += length;
        Some((&all[first..=first + length], step))
    };
    std::iter::from_fn(row).filter(|(row, _)| is_long(row))
}

/// Whether so many requests go to the device right behind one that lies a step further.
fn goes_back(disk: &Disk) -> bool {
    let is_back = |pair: &[Request]| {
        let step = pair[0].life.sector.checked_sub(pair[1].life.sector);
        step.is_some_and(|step| (1..=STEP_MAX).contains(&step))
    };
    let pairs = disk.issued().windows(2).filter(|pair| is_back(pair));
    pairs.take(ROW_MIN as usize - 1).count() as u64 == ROW_MIN - 1
}

impl Detector for Reversed {
    fn section(&mut self, section: &Section, context: &Context) {
        if context.rotates() == Some(false) && context.is_zoned() != Some(true) {
            return;
        }
        for disk in section.disks.iter().filter(|disk| goes_back(disk)) {
            let mut all: BTreeMap<(Pid, bool), Vec<Step>> = BTreeMap::new();
            for (place, r) in disk.issued().iter().enumerate() {
                if r.life.bytes == 0 || r.flags.has(Rwbs::DISCARD) {
                    continue;
                }
                all.entry((r.pid, r.is_read())).or_default().push(Step {
                    at: r.life.issue.unwrap_or_default(),
                    sector: r.life.sector,
                    sectors: r.sectors(),
                    end: r.life.complete,
                    queue: r.queue,
                    place,
                });
            }
            for ((pid, is_read), steps) in all {
                for (row, step) in rows(&steps) {
                    let sum = self.disks.entry(disk.dev).or_default();
                    let first = row.iter().take(4);
                    let requests = first.map(|s| &disk.requests[s.place]);
                    sum.add(pid, is_read, row, step, || {
                        requests.flat_map(|r| section.of_request(r)).collect()
                    });
                }
            }
        }
        self.mapped(section);
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| Some(sum.finding(dev, whole)))
    }
}

impl Reversed {
    /// What is mapped to devices of which no D is shown.
    fn mapped(&mut self, section: &Section) {
        let is_unseen = |disk: &Disk| disk.has(Action::Remap) && !disk.has(Action::Issue);
        if !section.disks.iter().any(is_unseen) {
            return;
        }
        let mut all: BTreeMap<(Dev, Pid, bool), Vec<Step>> = BTreeMap::new();
        let shows_issue = |dev: Dev| {
            let mut disks = section.disks.iter();
            disks.any(|d| d.dev == dev && d.has(Action::Issue))
        };
        for (place, e) in section.events().iter().enumerate() {
            if e.action != Action::Remap || e.bytes == 0 || e.rwbs.has(Rwbs::DISCARD) {
                continue;
            }
            let key = (e.from_dev, e.pid, !e.rwbs.has(Rwbs::WRITE));
            all.entry(key).or_default().push(Step {
                at: e.time,
                sector: e.arg,
                sectors: e.nr_sectors(),
                end: None,
                queue: None,
                place,
            });
        }
        for ((dev, pid, is_read), steps) in all {
            for (row, step) in rows(&steps) {
                if shows_issue(section.events()[row[0].place].dev) {
                    continue;
                }
                let sum = self.disks.entry(dev).or_default();
                sum.is_mapped = true;
                let first = row.iter().take(4);
                sum.add(pid, is_read, row, step, || {
                    first.map(|s| section.evidence(s.place)).collect()
                });
            }
        }
    }
}

impl Sum {
    fn add(
        &mut self,
        pid: Pid,
        is_read: bool,
        row: &[Step],
        step: u64,
        evidence: impl FnOnce() -> Vec<Evidence>,
    ) {
        let length = row.len() as u64;
        let mut evidence = Some(evidence);
        for s in row {
            self.harm.add(pid, 0, || {
                let mut evidence = evidence.take().map_or_else(Vec::new, |e| e());
                in_order(&mut evidence);
                Instance {
                    time: s.at,
                    delay_ns: None,
                    evidence,
                }
            });
        }
        self.reads += length * u64::from(is_read);
        for pair in row.windows(2) {
            if let (Some(first), Some(then)) = (pair[0].queue, pair[1].queue) {
                self.queued[usize::from(first <= then)] += 1;
            }
        }
        if length > self.longest {
            (self.longest, self.step) = (length, step);
        }
    }

    fn finding(&self, dev: Dev, whole: &Whole<'_>) -> Finding {
        let mut f = self.harm.without_delay(&KIND, dev, whole);
        f.of = "requests backward";
        let things = match (self.reads, self.harm.count()) {
            (0, _) => "writes",
            (reads, all) if reads == all => "reads",
            _ => "requests",
        };
        f.what = format!(
            "{} of {} go to {} backward, up to {} in a row: each begins {} before the one in front \
             of it.",
            counted(self.harm.count(), things),
            f.victim_names(),
            if self.is_mapped {
                "the devices below"
            } else {
                "the device"
            },
            self.longest,
            counted(self.step, "sectors"),
        );
        let [forward, backward] = self.queued;
        let (how, confidence) = match (forward, backward, self.is_mapped) {
            (0, 0, true) => (
                "A mapping that cuts I/O hands its pieces on from the last to the first: the \
                 device seeks back for each.",
                Confidence::Likely,
            ),
            (0, 0, false) => (
                "A disk that rotates waits for nearly a revolution at each.",
                Confidence::Possible,
            ),
            (forward, backward, _) if forward >= backward => (
                "They were queued forward: a list on their way, such as a plug's, is emptied from \
                 its end.",
                Confidence::Certain,
            ),
            _ => (
                "They are queued in this order: who submits them goes backward.",
                Confidence::Likely,
            ),
        };
        f.how = how.to_owned();
        f.confidence = confidence;
        if confidence == Confidence::Possible {
            f.missing
                .push("Q: in which order they were queued".to_owned());
        }
        if whole.context.rotates().is_none() {
            f.missing
                .push("queue/rotational: on flash the order hardly matters".to_owned());
        }
        f.remedies = vec![SORTING, IN_ORDER];
        f
    }
}
