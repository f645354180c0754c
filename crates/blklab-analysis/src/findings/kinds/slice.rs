// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process waits for the time slice of another (CFQ, BFQ) or for its batch.

use super::behind_other::{Sum, each};
use crate::findings::harm::of_disks;
use crate::findings::remedy::Act;
use crate::findings::section::Section;
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "slice",
    what: "a process waits while another is served alone, for its slice (CFQ, BFQ)",
    rule: Rule {
        condition: "as behind-other, under cfq or bfq, and the other process has most of those \
                    served meanwhile, none of them the waiting process's",
        threshold: "as behind-other; 9 of 10 of those served, for 10 ms or more",
        exception: "",
    },
    explains: &["behind-other"],
    remedies: &[SHORTER_TIMEOUT, LOW_LATENCY, SHORTER_SLICES, PRIORITY],
    rests_on_absence: false,
    detector: || Box::new(Slice::default()),
};

const SHORTER_TIMEOUT: Remedy = Remedy::set(
    "shorter-bfq-slices",
    "queue/iosched/timeout_sync",
    "32",
    "shorter slices",
);

const LOW_LATENCY: Remedy = Remedy::set(
    "low-latency",
    "queue/iosched/low_latency",
    "1",
    "if the one that waits is interactive or starts short bursts",
);

const SHORTER_SLICES: Remedy = Remedy::set(
    "shorter-cfq-slices",
    "queue/iosched/slice_sync",
    "40",
    "shorter slices",
);

const PRIORITY: Remedy = Remedy::act(
    "higher-priority",
    Act::RaisePriority,
    "a higher priority (ionice) for the one that waits",
);

/// Of those served meanwhile, the part that is one process's.
const ALONE_PERCENT: u64 = 90;

/// Shorter is no slice.
const SLICE_NS: u64 = 10_000_000;

#[derive(Debug, Default)]
struct Slice {
    disks: BTreeMap<Dev, Sum>,
}

impl Detector for Slice {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            if !matches!(disk.scheduler(context), Some("cfq" | "bfq")) {
                continue;
            }
            each(disk, |r, pid, ns, ahead, in_device| {
                let top = ahead.top().map_or(0, |(_, n)| n);
                let alone = ahead.own == 0 && top * 100 >= ahead.all * ALONE_PERCENT;
                if alone && !in_device && ns >= SLICE_NS {
                    let sum = self.disks.entry(disk.dev).or_default();
                    sum.add(section, r, pid, ns, ahead, in_device);
                }
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut sum, dev| {
            let mut f = sum.harm.finding(&KIND, dev, whole)?;
            let victims = f.victim_names();
            let causes = f.cause_names();
            let scheduler = whole.scheduler(dev).unwrap_or_default();
            f.what = format!(
                "{victims} wait{} for the slices of {causes}: {} of {} on average.",
                f.verb_end(),
                sum.harm.count(),
                time_text(sum.harm.total_ns() / sum.harm.count().max(1))
            );
            f.how = format!(
                "{scheduler} serves one process at a time for its slice or budget; the others \
                 wait."
            );
            f.remedies = match scheduler {
                "bfq" => vec![SHORTER_TIMEOUT, LOW_LATENCY],
                _ => vec![SHORTER_SLICES],
            };
            f.remedies.push(PRIORITY);
            Some(f)
        })
    }
}
