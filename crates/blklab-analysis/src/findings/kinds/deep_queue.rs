// SPDX-License-Identifier: MIT OR Apache-2.0
//! A deep queue that the process makes itself: latency is depth times service time.
//!
//! A device that works on several requests at a time needs a depth to do so; beyond
//! that a deeper queue gives no more throughput, but every request waits for those
//! ahead of it (Little's law).

use super::chains::Writers;
use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::Section;
use crate::findings::sums::{add, is_most};
use crate::findings::waits::Reason;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "deep-queue",
    what: "requests wait behind those of their own process: depth times service time",
    rule: Rule {
        condition: "a request that a process waits for takes longer than on an idle device, and \
                    most of those ahead of it in scheduler and device are its own process's (or \
                    as many of each of several)",
        threshold: "5 times as long or more, with 4 of them or more ahead on average; 20 % of the \
                    process's waiting or more",
        exception: "it is the thread of a journal, which writes what others have changed and chooses no \
                    depth, or what is read ahead (A), or fewer waits are shown than requests queued",
    },
    explains: &[],
    remedies: &[ENOUGH],
    rests_on_absence: false,
    detector: || Box::new(DeepQueue::default()),
};

const ENOUGH: Remedy = Remedy::act(
    "enough-at-a-time",
    Act::AtMost(0),
    "fewer requests at a time if latency counts: about {} give the same throughput \
     (iodepth, threads, or nr_requests and queue_depth of the device)",
);

/// Requests queued on average, below which a queue is not deep.
const DEPTH_MIN: u64 = 4;

/// Requests that came to an idle device, so that what one takes alone is sure.
const ALONE_SURE: usize = 3;

#[derive(Debug, Default)]
struct DeepQueue {
    writers: Writers,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Requests ahead, summed.
    ahead: u64,
    in_device_ns: u64,
    alone_ns: Option<u64>,
    nr_alone: usize,
    interval_ns: Option<u64>,
}

impl Detector for DeepQueue {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.writers.named(pid, comm);
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            self.disk(section, disk);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// Whether whose a request is may choose how many there are at a time: no journal's thread does,
/// which writes what others have changed, no reader what is read ahead for it; and of a request
/// that is only known to have been handed on nobody knows whose it is.
fn chooses(r: &Request, writers: &Writers) -> bool {
    let is_anybodys = !r.is_owner_known && writers.hands_on(r.pid);
    !writers.is_journal(r.pid) && !is_anybodys && !r.flags.has(Rwbs::AHEAD)
}

impl DeepQueue {
    fn disk(&mut self, section: &Section, disk: &Disk) {
        let sum = self.disks.entry(disk.dev).or_default();
        let chosen = disk
            .long_waits_for()
            .filter(|(r, _)| chooses(r, &self.writers));
        for (r, w) in chosen {
            let of_load = w.behind_others(r).filter(|(why, ..)| *why == Reason::Load);
            let (mut ns, mut ahead) = (0, 0);
            for (_, part, who) in of_load {
                add(&mut ns, part);
                ahead += who.all;
            }
            if ns == 0 {
                continue;
            }
            sum.harm.add(r.pid, ns, || section.instance(r, Some(ns)));
            sum.ahead += ahead;
            add(&mut sum.in_device_ns, w.behind_ns);
        }
        if !sum.harm.is_empty() {
            sum.alone_ns = disk.service.alone(None);
            sum.nr_alone = disk.service.nr_alone.iter().sum();
            sum.interval_ns = disk.service.interval_ns;
        }
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let nr_before = self.harm.count().max(1);
        let depth = self.ahead / nr_before + 1;
        // Who keeps so many queued is seen to wait as often, at least.
        if depth < DEPTH_MIN || nr_before < depth {
            return None;
        }
        let interval = self.interval_ns?;
        let alone = self.alone_ns?;
        // What the device does at a time: requests that end while one would take alone.
        let parallel = (alone as f64 / interval.max(1) as f64).max(1.0);
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.weight = Weight::OwnChoice;
        let who = match f.victims.len() {
            1 => whole.who(f.victims[0].pid),
            n => format!("{n} processes"),
        };
        f.what = format!(
            "{who} keep{} about {depth} requests queued, and the device ends one every {}: each \
             waits for those ahead of it.",
            f.verb_end(),
            time_text(interval)
        );
        let place = if is_most(self.in_device_ns, self.harm.total_ns()) {
            "in the device (D-C), where no scheduler reaches them"
        } else {
            "in the scheduler (I-D)"
        };
        f.how = format!(
            "Alone a request takes {}. The device works on about {parallel:.1} at a time; what is \
             queued beyond that adds latency and no throughput. They wait {place}.",
            time_text(alone)
        );
        f.cause = Some("their own queue depth".to_owned());
        if self.nr_alone < ALONE_SURE {
            f.doubt(
                Confidence::Likely,
                "few requests came to an idle device: what one takes alone is their shortest time",
            );
        }
        let enough = (2.0 * parallel).ceil().max(4.0) as u32;
        f.remedies = vec![Remedy {
            act: Act::AtMost(enough),
            ..ENOUGH.filled_with(enough)
        }];
        f.figures = vec![
            ("requests queued", depth as f64, ""),
            ("time between completions", interval as f64, "ns"),
            ("a request alone", alone as f64, "ns"),
        ];
        Some(f)
    }
}
