// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads that wait behind writes, in the queue or in the device.
//!
//! Somebody waits for a read; write-back can wait. A queue in order of arrival (noop,
//! none) and a device that chooses by itself do not know that.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Serving};
use crate::findings::section::Section;
use crate::findings::sums::{add, total};
use crate::findings::waits::{Ahead, Reason};
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted, time_text};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "reads-behind-writes",
    what: "reads wait behind writes of other processes, in the queue or in the device",
    rule: Rule {
        condition: "a read waits, and most of what goes to the device before it, or is there with \
                    it, are others' writes",
        threshold: "more than 4 times what the device takes for one; 20 % of its process's \
                    waiting or more",
        exception: "",
    },
    explains: &["behind-other", "deep-queue"],
    remedies: &[
        READS_FIRST,
        SHORTER_BATCHES,
        QUEUE_DEPTH,
        FEWER_COMMANDS,
        LESS_WRITE_BACK,
    ],
    rests_on_absence: false,
    detector: || Box::new(ReadsBehindWrites::default()),
};

const READS_FIRST: Remedy = Remedy::act(
    "reads-first",
    Act::Scheduler(Serving::ReadsFirst),
    "scheduler: {}",
);

const SHORTER_BATCHES: Remedy = Remedy::set(
    "shorter-batches",
    "queue/iosched/fifo_batch",
    "",
    "reads wait for the end of fewer writes; a little less throughput on a disk that seeks",
);

const QUEUE_DEPTH: Remedy = Remedy::set(
    "smaller-queue-depth",
    "device/queue_depth",
    "",
    "the device has fewer writes to prefer; less throughput of random I/O",
);

const FEWER_COMMANDS: Remedy = Remedy::act(
    "fewer-commands",
    Act::FewerCommands,
    "a smaller queue depth of the device",
);

const LESS_WRITE_BACK: Remedy = Remedy::act(
    "less-write-back",
    Act::FewerRequests,
    "less write-back at a time: vm.dirty_background_bytes, nr_requests, wbt, or a rate \
     limit for the writer",
);

#[derive(Debug, Default)]
struct ReadsBehindWrites {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    in_queue_ns: u64,
    in_device_ns: u64,
    writes: u64,
    later: u64,
}

impl Detector for ReadsBehindWrites {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            for (r, w) in disk.long_waits().filter(|(r, _)| r.is_read()) {
                let behind = w
                    .behind_others(r)
                    .filter(|(why, ..)| *why == Reason::Writes);
                let parts: Vec<_> = behind.collect();
                let ns = total(parts.iter().map(|(_, ns, _)| *ns));
                if ns == 0 {
                    continue;
                }
                let sum = self.disks.entry(disk.dev).or_default();
                sum.harm.add(r.pid, ns, || section.instance(r, Some(ns)));
                for (_, _, who) in parts {
                    sum.writes += who.writes;
                    sum.later += who.later;
                    for (pid, n) in who.writers() {
                        sum.harm.blame(pid, n);
                    }
                }
                let is_writes = |ahead: Option<&Ahead>| {
                    u64::from(ahead.is_some_and(|a| a.reason(r) == Reason::Writes))
                };
                let [ahead, behind] = [&w.ahead, &w.behind].map(|a| is_writes(a.as_deref()));
                add(&mut sum.in_queue_ns, ahead * w.ahead_ns);
                add(&mut sum.in_device_ns, behind * w.behind_ns);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let nr = self.harm.count().max(1);
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let victims = f.victim_names();
        let causes = f.cause_names();
        f.what = format!(
            "Reads of {victims} wait behind the writes of {causes}: {} each on average, {} the \
             longest.",
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            time_text(self.harm.worst_ns())
        );
        let (queue, device) = (self.in_queue_ns, self.in_device_ns);
        let mut how = Vec::new();
        if queue > 0 {
            how.push(format!(
                "{} in the queue (I-D), behind {} each",
                time_text(queue),
                counted(self.writes / nr, "writes")
            ));
        }
        if device > 0 {
            how.push(format!(
                "{} in the device (D-C), which serves writes that it also has",
                time_text(device)
            ));
        }
        f.how = format!("They wait {}.", how.join(", and "));
        self.remedies(&mut f, whole);
        f.figures = vec![
            ("in the queue", queue as f64, "ns"),
            ("in the device", device as f64, "ns"),
            ("writes ahead of each", (self.writes / nr) as f64, ""),
        ];
        Some(f)
    }

    fn remedies(&self, f: &mut Finding, whole: &Whole<'_>) {
        let context = whole.context;
        let scheduler = whole.scheduler(f.dev);
        let in_order = scheduler.map(|name| ["noop", "none"].contains(&name));
        let is_old = context
            .kernel()
            .is_some_and(blklab_kernel::KernelVersion::has_single_queue);
        if in_order == Some(true) {
            f.how += if is_old {
                " noop serves in order of arrival: reads have no precedence."
            } else {
                " Without a scheduler reads have no precedence."
            };
        }
        if in_order != Some(false) {
            let better = match (is_old, in_order) {
                (true, _) => "cfq, deadline or anticipatory",
                (false, Some(true)) => "mq-deadline, kyber or bfq",
                _ => "one that prefers reads, as deadline, mq-deadline or bfq do",
            };
            f.remedies.push(READS_FIRST.filled_with(better));
        }
        let batch = context.tunable("fifo_batch").filter(|n| *n > 1);
        if let Some(batch) = batch.filter(|_| self.in_queue_ns > self.in_device_ns) {
            f.how += &format!(
                " A batch of writes that has begun goes on for up to {batch} (fifo_batch) before \
                 reads have their turn."
            );
            f.remedies.push(SHORTER_BATCHES.to((batch / 8).max(1)));
        }
        if in_order.is_none() && self.in_queue_ns > 0 {
            f.missing.push("which scheduler it is".to_owned());
        }
        if self.in_device_ns > 0 {
            let depth = context.queue_depth().filter(|d| *d > 1);
            f.remedies.push(match depth {
                Some(d) => QUEUE_DEPTH.to((d / 8).max(1)),
                None => FEWER_COMMANDS,
            });
        }
        f.remedies.push(LESS_WRITE_BACK);
    }
}
