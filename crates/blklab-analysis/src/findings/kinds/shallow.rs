// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler gives the device fewer requests at a time than it takes.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Serving};
use crate::findings::section::Section;
use crate::findings::waits::Reason;
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text};
use crate::spread::percentile;
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "shallow-dispatch",
    what: "the scheduler gives the device fewer requests at a time than it takes, others wait",
    rule: Rule {
        condition: "requests wait from I to D behind others of their own process, while the \
                    device has fewer than it takes (device/queue_depth), works on more than one \
                    at a time, and takes hardly longer for each than alone",
        threshold: "more than 4 times what the device takes for one; 99 of 100 times no more than \
                    half of what it takes",
        exception: "",
    },
    explains: &["deep-queue", "behind-other"],
    remedies: &[QUANTUM, LAXER_TARGETS, AT_ONCE],
    rests_on_absence: false,
    detector: || Box::new(Shallow::default()),
};

const QUANTUM: Remedy = Remedy::set(
    "larger-quantum",
    "queue/iosched/quantum",
    "",
    "as many requests of a process at a time as the device takes",
);

const LAXER_TARGETS: Remedy = Remedy::set(
    "laxer-targets",
    "queue/iosched/read_lat_nsec",
    "",
    "a target that the device can meet, and write_lat_nsec likewise: Kyber takes tokens from \
     others while one is missed",
);

const AT_ONCE: Remedy = Remedy::act(
    "scheduler-without-holding",
    Act::Scheduler(Serving::AtOnce),
    "a scheduler that does not hold requests back (none, noop, deadline) on a device that \
     does several at a time",
);

/// A device that works on so many of those that it has would take more.
const WORKS_ON_MIN: f64 = 0.6;

/// A device that does less than so many at a time does one.
const PARALLEL_MIN: f64 = 1.5;

/// A target that a device with several requests can meet: so many times what one takes alone.
const TARGET_TIMES: u64 = 8;

#[derive(Debug, Default)]
struct Shallow {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Requests at the device after the D of one that waited long: what 99 of 100 do not
    /// exceed.
    depth_p99: u64,
    mean_depth: f64,
    alone_ns: Option<u64>,
    interval_ns: Option<u64>,
    busy_ns: u64,
}

impl Detector for Shallow {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let sum = self.disks.entry(disk.dev).or_default();
            if disk.busy_ns >= sum.busy_ns {
                sum.busy_ns = disk.busy_ns;
                // Where a process has the device for itself nobody waits, and it may be deep.
                let waited = disk.depth_at_issue.iter().zip(&disk.waits);
                let waited = waited.filter(|(_, w)| w.ahead.is_some());
                let depths = waited.map(|(d, _)| u64::from(*d) + 1);
                sum.depth_p99 = percentile(99, depths.collect()).unwrap_or(0);
                sum.mean_depth = disk.mean_depth;
                sum.alone_ns = disk.service.alone(None);
                sum.interval_ns = disk.service.interval_ns;
            }
            for (r, w) in disk.long_waits_for() {
                let ahead = w.ahead.as_deref();
                let Some(ahead) = ahead.filter(|a| a.reason(r) == Reason::Load) else {
                    continue;
                };
                if ahead.own > 0 {
                    sum.harm
                        .add(r.pid, w.ahead_ns, || section.instance(r, Some(w.ahead_ns)));
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let takes = whole.context.queue_depth()?;
        let (alone, interval) = (self.alone_ns?, self.interval_ns?);
        // Requests that end while one would take alone.
        let parallel = alone as f64 / interval.max(1) as f64;
        let has_room = self.depth_p99 * 2 <= takes;
        if !has_room || parallel < PARALLEL_MIN || parallel < WORKS_ON_MIN * self.mean_depth {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let name = whole.scheduler(dev).unwrap_or("the scheduler");
        f.what = format!(
            "Requests of {} wait in {name} while the device has hardly ever more than {} of the \
             {takes} that it takes at a time.",
            f.victim_names(),
            self.depth_p99
        );
        f.how = format!(
            "Alone a request takes {}; with {:.1} at the device on average one ends every {}: it \
             works on all that it has, and would on more.",
            time_text(alone),
            self.mean_depth,
            time_text(interval)
        );
        f.cause = Some(format!("{name}'s limit of requests at the device"));
        f.remedies = match name {
            "cfq" => vec![QUANTUM.to(i64::try_from(takes).unwrap_or(i64::MAX))],
            "kyber" => vec![LAXER_TARGETS.to(alone.saturating_mul(TARGET_TIMES))],
            _ => Vec::new(),
        };
        f.remedies.push(AT_ONCE);
        f.figures = vec![
            (
                "requests at the device, 99 % of D",
                self.depth_p99 as f64,
                "",
            ),
            ("requests that it takes", takes as f64, ""),
        ];
        Some(f)
    }
}
