// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that never end in the trace, and completions of other requests at their
//! sector that a tool may take for theirs.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_trace::Action;
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const FALSE_LATENCY: Kind = Kind {
    name: "false-latency",
    what: "a completion fits a request's sector and not the request: no latency is made of it",
    rule: Rule {
        condition: "a request has a D and no C, and later comes a C at its sector with another \
                    direction that fits no request",
        threshold: "",
        exception: "",
    },
    explains: &["never-completed"],
    remedies: &[LARGER_BUFFERS],
    rests_on_absence: false,
    detector: || Box::new(FalseLatency::default()),
};

/// The row of [`super::ALL`].
pub const NEVER_COMPLETED: Kind = Kind {
    name: "never-completed",
    what: "a request went to the device and did not come back",
    rule: Rule {
        condition: "a request whose Q or G is shown has a D and no C, while requests that went \
                    there later have ended",
        threshold: "100 of these, the last of them 1 s or more after its D; or 3, the last 30 s \
                    or more after it",
        exception: "of 3: events are known to be missing from the trace",
    },
    explains: &[],
    remedies: &[READ_LOGS],
    rests_on_absence: true,
    detector: || Box::new(NeverCompleted::default()),
};

const LARGER_BUFFERS: Remedy = Remedy::outside(
    "larger-buffers",
    Outside::Nowhere,
    "record with larger buffers (blktrace -b, buffer_size_kb)",
);

const READ_LOGS: Remedy = Remedy::outside(
    "read-logs",
    Outside::Nowhere,
    "the kernel's log: timeouts, resets, lost interrupts",
);

/// So many that went to the device later have ended.
const LATER_MIN: usize = 100;

/// The last of them so long after.
const AFTER_NS: u64 = 1_000_000_000;

/// So many are enough where a request has been there for as long as a driver gives a command
/// before it aborts it (`SD_TIMEOUT`, drivers/scsi/sd.h).
const FEW_LATER_MIN: usize = 3;
const TIMEOUT_NS: u64 = 30_000_000_000;

#[derive(Debug, Default)]
struct FalseLatency {
    disks: BTreeMap<Dev, Harm>,
}

fn without_end(disk: &Disk) -> impl Iterator<Item = &Request> {
    disk.issued()
        .iter()
        .filter(|r| r.life.complete.is_none() && r.life.bytes > 0)
}

impl Detector for FalseLatency {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let events = section.events();
            let mut unknown = disk.unknown_completions.clone();
            unknown.sort_by_key(|place| events[*place].sector);
            for r in without_end(disk) {
                let first = unknown.partition_point(|place| events[*place].sector < r.life.sector);
                let there = unknown[first..].iter();
                let mut there = there.take_while(|place| events[**place].sector == r.life.sector);
                let other = there.find(|place| {
                    let e = &events[**place];
                    e.rwbs.op() != r.op() && Some(e.time) > r.life.issue
                });
                let Some(place) = other else { continue };
                let gap = events[*place]
                    .time
                    .since(r.life.issue.unwrap_or_default())
                    .0;
                self.disks.entry(disk.dev).or_default().add(r.pid, gap, || {
                    let mut evidence = section.of_request(r);
                    evidence.push(section.evidence(*place));
                    in_order(&mut evidence);
                    Instance {
                        time: r.life.issue.unwrap_or_default(),
                        delay_ns: Some(gap),
                        evidence,
                    }
                });
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |harm, dev| {
            let mut f = harm.without_delay(&FALSE_LATENCY, dev, whole);
            f.weight = Weight::Fault;
            f.what = format!(
                "No latency can be made of {} of {}: the completion at its sector, {} later, has \
                 another direction and is another request's.",
                match harm.count() {
                    1 => "a request".to_owned(),
                    n => format!("{n} requests"),
                },
                f.victim_names(),
                time_text(harm.worst_ns())
            );
            f.how = "The request has no end in the trace, and the completion no beginning: the \
                     events between them were lost."
                .to_owned();
            f.missing
                .push("how many events the recorder lost (overruns of its buffer)".to_owned());
            f.remedies = vec![LARGER_BUFFERS];
            Some(f)
        })
    }
}

#[derive(Debug, Default)]
struct NeverCompleted {
    disks: BTreeMap<Dev, Lost>,
}

/// Requests that did not come back.
#[derive(Debug, Default)]
struct Lost {
    harm: Harm,
    /// Those of which that rests on few others.
    few: Harm,
}

impl Detector for NeverCompleted {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let issued = disk.issued();
            let ended = |i: &usize| issued[*i].life.complete.is_some();
            let ended: Vec<usize> = (0..issued.len()).filter(ended).collect();
            for (i, r) in issued.iter().enumerate() {
                let (None, Some(issue), true) = (r.life.complete, r.life.issue, r.is_owner_known)
                else {
                    continue;
                };
                let later = &ended[ended.partition_point(|e| *e <= i)..];
                let later = &later[..later.len().min(4 * LATER_MIN)];
                let ends = later.iter().filter_map(|l| issued[*l].life.complete);
                let after = ends.max().map_or(0, |c| c.since(issue).0);
                let gap = disk.span[1].since(issue).0;
                let long = after >= AFTER_NS || gap >= AFTER_NS && disk.has(Action::Complete);
                let are_many = later.len() >= LATER_MIN && long;
                if are_many || later.len() >= FEW_LATER_MIN && after >= TIMEOUT_NS {
                    let lost = self.disks.entry(disk.dev).or_default();
                    let harm = if are_many {
                        &mut lost.harm
                    } else {
                        &mut lost.few
                    };
                    harm.add(r.pid, gap, || section.instance(r, None));
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let is_whole = whole.reading.lost == 0 && whole.reading.elided == 0;
        of_disks(&mut self.disks, |lost, dev| {
            let harm = if lost.harm.is_empty() && is_whole {
                lost.few
            } else {
                lost.harm
            };
            if harm.is_empty() {
                return None;
            }
            let mut f = harm.without_delay(&NEVER_COMPLETED, dev, whole);
            f.weight = Weight::Fault;
            f.what = format!(
                "{} of {} went to the device and did not come back while the trace lasted, though \
                 later ones did.",
                match harm.count() {
                    1 => "A request".to_owned(),
                    n => format!("{n} requests"),
                },
                f.victim_names()
            );
            f.doubt(
                Confidence::Possible,
                "whether the recorder lost the completion",
            );
            f.remedies = vec![READ_LOGS];
            Some(f)
        })
    }
}
