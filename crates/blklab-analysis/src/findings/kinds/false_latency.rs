// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that never end in the trace, and completions of other requests at their
//! sector that a tool may take for theirs.

use super::writes_starved::names;
use crate::findings::disk::{Disk, Request};
use crate::findings::harm::Harm;
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Weight, Whole, time_text,
};
use blklab_trace::Action;
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const FALSE_LATENCY: Kind = Kind {
    name: "false-latency",
    what: "a completion fits a request's sector and not the request: no latency is made of it",
    rule: "a request has a D and no C, and later comes a C at its sector with another direction \
           that fits no request",
    explains: &["never-completed"],
    rests_on_absence: false,
    detector: || Box::new(FalseLatency::default()),
};

/// The row of [`super::ALL`].
pub const NEVER_COMPLETED: Kind = Kind {
    name: "never-completed",
    what: "a request went to the device and did not come back",
    rule: "a request whose Q or G is shown has a D and no C, while 100 requests that went there later have ended, the \
           last of them 1 s or more after its D",
    explains: &[],
    rests_on_absence: true,
    detector: || Box::new(NeverCompleted::default()),
};

/// So many that went to the device later have ended.
const LATER_MIN: usize = 100;

/// The last of them so long after.
const AFTER_NS: u64 = 1_000_000_000;

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
            for r in without_end(disk) {
                let other = disk.unknown_completions.iter().find(|place| {
                    let e = &section.events()[**place];
                    e.sector == r.life.sector
                        && e.rwbs.op() != r.op()
                        && Some(e.time) > r.life.issue
                });
                let Some(place) = other else { continue };
                let gap = section.events()[*place]
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
        let all = std::mem::take(&mut self.disks);
        let finding = |(dev, harm): (Dev, Harm)| {
            let mut f = Finding::new(FALSE_LATENCY.name, dev, "");
            harm.fill(&mut f, whole);
            (f.total_ns, f.worst_ns) = (None, None);
            for p in &mut f.victims {
                p.delay_ns = 0;
            }
            f.weight = Weight::Fault;
            f.what = format!(
                "No latency can be made of {} of {}: the completion at its sector, {} later, has \
                 another direction and is another request's.",
                match harm.count() {
                    1 => "a request".to_owned(),
                    n => format!("{n} requests"),
                },
                names(f.victims.iter().map(|p| p.pid), whole),
                time_text(harm.worst_ns())
            );
            f.how = "The request has no end in the trace, and the completion no beginning: the \
                     events between them were lost."
                .to_owned();
            f.missing
                .push("how many events the recorder lost (overruns of its buffer)".to_owned());
            f.remedies = vec![Remedy::act(
                "record with larger buffers (blktrace -b, buffer_size_kb)",
            )];
            f
        };
        all.into_iter().map(finding).collect()
    }
}

#[derive(Debug, Default)]
struct NeverCompleted {
    disks: BTreeMap<Dev, Harm>,
}

impl Detector for NeverCompleted {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let issued = disk.issued();
            for (i, r) in issued.iter().enumerate() {
                let (None, Some(issue), true) = (r.life.complete, r.life.issue, r.is_owner_known)
                else {
                    continue;
                };
                let later = issued[i + 1..].iter().filter_map(|l| l.life.complete);
                let ends: Vec<_> = later.take(4 * LATER_MIN).collect();
                let long = ends.iter().any(|c| c.since(issue).0 >= AFTER_NS);
                let long =
                    long || disk.span[1].since(issue).0 >= AFTER_NS && disk.has(Action::Complete);
                if ends.len() >= LATER_MIN && long {
                    let harm = self.disks.entry(disk.dev).or_default();
                    let gap = disk.span[1].since(issue).0;
                    harm.add(r.pid, gap, || section.instance(r, None));
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let all = std::mem::take(&mut self.disks);
        let finding = |(dev, harm): (Dev, Harm)| {
            let mut f = Finding::new(NEVER_COMPLETED.name, dev, "");
            harm.fill(&mut f, whole);
            (f.total_ns, f.worst_ns) = (None, None);
            for p in &mut f.victims {
                p.delay_ns = 0;
            }
            f.weight = Weight::Fault;
            f.what = format!(
                "{} of {} went to the device and did not come back while the trace lasted, though \
                 later ones did.",
                match harm.count() {
                    1 => "A request".to_owned(),
                    n => format!("{n} requests"),
                },
                names(f.victims.iter().map(|p| p.pid), whole)
            );
            f.doubt(
                Confidence::Possible,
                "whether the recorder lost the completion",
            );
            f.remedies = vec![Remedy::act(
                "the kernel's log: timeouts, resets, lost interrupts",
            )];
            f
        };
        all.into_iter().map(finding).collect()
    }
}
