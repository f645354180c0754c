// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes that somebody waits for, held back while reads that came later are served.
//!
//! deadline and mq-deadline serve `fifo_batch` reads a batch, and `writes_starved`
//! batches of them before one of writes, as long as there are reads.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Serving};
use crate::findings::section::Section;
use crate::findings::waits::Reason;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted, time_text,
};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "writes-starved",
    what: "sync writes wait while reads that came later are served",
    rule: Rule {
        condition: "a sync write waits from I to D, most of what goes to the device meanwhile are \
                    reads, and most of those came later",
        threshold: "more than 4 times what the device takes for a request; 20 % of its process's \
                    waiting or more",
        exception: "",
    },
    explains: &["behind-other"],
    remedies: &[
        ONE_BATCH,
        SHORTER_BATCHES,
        BOUNDED,
        ONE_BATCH_IF,
        LAXER_TARGETS,
        FEWER_READS,
    ],
    rests_on_absence: false,
    detector: || Box::new(WritesStarved::default()),
};

const ONE_BATCH: Remedy = Remedy::set(
    "one-batch-of-reads",
    "queue/iosched/writes_starved",
    "1",
    "a batch of writes after each batch of reads",
);

const SHORTER_BATCHES: Remedy = Remedy::set(
    "shorter-batches",
    "queue/iosched/fifo_batch",
    "",
    "shorter batches; more seeks on a disk that rotates",
);

const LAXER_TARGETS: Remedy = Remedy::set(
    "laxer-targets",
    "queue/iosched/read_lat_nsec",
    "",
    "a target that the device can meet",
);

/// Kyber's target for reads by default (`block/kyber-iosched.c`).
const READ_TARGET_NS: u64 = 2_000_000;

const BOUNDED: Remedy = Remedy::act(
    "scheduler-that-bounds",
    Act::Scheduler(Serving::WritesInTime),
    "a scheduler that bounds how long writes wait",
);

const ONE_BATCH_IF: Remedy = Remedy::set(
    "one-batch-if-deadline",
    "queue/iosched/writes_starved",
    "1",
    "if the scheduler is deadline or mq-deadline",
);

const FEWER_READS: Remedy = Remedy::act(
    "fewer-at-a-time",
    Act::Fewer,
    "fewer reads queued at a time",
);

#[derive(Debug, Default)]
struct WritesStarved {
    disks: BTreeMap<Dev, (Harm, u64)>,
}

impl Detector for WritesStarved {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            for (r, w) in disk.long_waits_for() {
                // What the device itself serves first is no scheduler's choice.
                let ahead = w.ahead.as_deref();
                let Some(who) = ahead.filter(|a| a.reason(r) == Reason::LaterReads) else {
                    continue;
                };
                let ns = w.ahead_ns;
                let (harm, reads) = self.disks.entry(disk.dev).or_default();
                harm.add(r.pid, ns, || section.instance(r, Some(ns)));
                *reads += who.reads;
                for (pid, n) in who.others() {
                    harm.blame(pid, n);
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |(mut harm, reads), dev| {
            let reads_each = reads / harm.count().max(1);
            let mut f = harm.finding(&KIND, dev, whole)?;
            let victims = f.victim_names();
            f.what = format!(
                "Sync writes of {victims} wait {} each on average while {} {} \
                 served before them, most of which came later.",
                time_text(harm.total_ns() / harm.count().max(1)),
                counted(reads_each, "reads"),
                if reads_each == 1 { "is" } else { "are" }
            );
            explain(&mut f, whole);
            f.figures = vec![("reads served before each", reads_each as f64, "")];
            Some(f)
        })
    }
}

/// The mechanism and its remedies, by scheduler.
fn explain(f: &mut Finding, whole: &Whole<'_>) {
    let context = whole.context;
    let starved = context.tunable("writes_starved").unwrap_or(2);
    let batch = context.tunable("fifo_batch").unwrap_or(16);
    match whole.scheduler(f.dev) {
        Some(name @ ("deadline" | "mq-deadline")) => {
            f.how = format!(
                "{name} serves batches of up to {batch} requests (fifo_batch), and as long as \
                 reads are queued {starved} batches of them before one of writes \
                 (writes_starved)."
            );
            if starved > 1 {
                f.remedies.push(ONE_BATCH);
            }
            if batch > 1 {
                f.remedies.push(SHORTER_BATCHES.to((batch / 4).max(1)));
            }
        }
        Some("kyber") => {
            f.how = "Kyber takes tokens from writes while reads take longer than read_lat_nsec."
                .to_owned();
            f.confidence = f.confidence.min(Confidence::Likely);
            f.remedies.push(LAXER_TARGETS.to(READ_TARGET_NS));
        }
        Some(name) => {
            f.how = format!("{name} prefers the reads that are queued.");
            f.confidence = f.confidence.min(Confidence::Likely);
            f.remedies.push(BOUNDED);
        }
        None => {
            f.how = "The scheduler prefers reads, as deadline and mq-deadline do.".to_owned();
            f.doubt(
                Confidence::Likely,
                "which scheduler it is, and its tunables",
            );
            f.remedies.push(ONE_BATCH_IF);
        }
    }
    f.remedies.push(FEWER_READS);
}
