// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ joined the queues of two processes, so that they share one by how many
//! requests each has queued.
//!
//! BFQ joins the queue of a process to another's where their requests are close to each
//! other on the disk, or where both were created within a short time of each other
//! (`bfq_setup_cooperator`, block/bfq-iosched.c); that pays for processes that read one
//! file together, and takes the fair share from a process with few requests that
//! happens to be beside one with many. The kernel says so in a message.

use super::behind_other::{Sum, each};
use crate::findings::harm::of_disks;
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_trace::Event;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "bfq-queue-merge",
    what: "BFQ joined the queues of processes; the one with few requests waits",
    rule: Rule {
        condition: "as behind-other, and BFQ says in a message that it merges queues ('merging \
                    with queue', 'scheduling merge with queue')",
        threshold: "as behind-other",
        exception: "",
    },
    explains: &["behind-other", "slice"],
    remedies: &[KEEP_APART, START_APART],
    rests_on_absence: false,
    detector: || Box::new(BfqMerge::default()),
};

const KEEP_APART: Remedy = Remedy::act(
    "other-priority",
    Act::OtherPriority,
    "keep them apart: another ioprio or another control group for one of them",
);

const START_APART: Remedy = Remedy::outside(
    "start-apart",
    Outside::Applications,
    "start them further apart than 180 ms",
);

/// What BFQ says of it.
const SAYINGS: [&str; 2] = ["merging with queue", "scheduling merge with"];

#[derive(Debug, Default)]
struct BfqMerge {
    messages: BTreeMap<Dev, Said>,
    disks: BTreeMap<Dev, Sum>,
}

/// Messages of merges on a device.
#[derive(Debug, Default)]
struct Said {
    count: u64,
    first: Vec<Evidence>,
    /// Whose queues, as far as the messages say.
    joined: Vec<[Pid; 2]>,
}

/// Pairs of processes that are kept.
const JOINED_MAX: usize = 1024;

/// The two processes that a message names: `bfq713S merging with queue 711`.
fn joined(text: &str) -> Option<[Pid; 2]> {
    let digits = |text: &str| {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
    };
    let own = digits(text.strip_prefix("bfq")?);
    let other = digits(text.rsplit(' ').next()?);
    Some([own.parse().ok()?, other.parse().ok()?])
}

impl Detector for BfqMerge {
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        if SAYINGS.iter().any(|s| text.contains(s)) {
            let said = self.messages.entry(event.dev).or_default();
            said.count += 1;
            if said.first.len() < 2 {
                said.first.push(Evidence::message(number, event, text));
            }
            let pair = joined(text).filter(|pair| !said.joined.contains(pair));
            said.joined
                .extend(pair.filter(|_| said.joined.len() < JOINED_MAX));
        }
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            each(disk, |r, pid, ns, ahead, in_device| {
                if !in_device {
                    let sum = self.disks.entry(disk.dev).or_default();
                    sum.add(section, r, pid, ns, ahead, in_device);
                }
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut sum, dev| {
            let Said {
                count,
                first: messages,
                joined,
            } = self.messages.get(&dev)?;
            let ahead = sum.ahead / sum.harm.count().max(1);
            let mut f = sum.harm.finding(&KIND, dev, whole)?;
            let victims = f.victim_names();
            let causes = f.cause_names();
            f.what = format!(
                "BFQ joined the queues of {victims} and {causes}: {victims} wait{} behind {ahead} \
                 requests, {} on average.",
                f.verb_end(),
                time_text(sum.harm.total_ns() / sum.harm.count().max(1))
            );
            f.how = "In one queue a process gets its share by the number of its requests, not \
                     half of the device."
                .to_owned();
            let concerned = |pid: &Pid| f.victims.iter().chain(&f.causes).any(|p| p.pid == *pid);
            if !joined.iter().any(|pair| pair.iter().all(concerned)) {
                f.doubt(
                    Confidence::Possible,
                    "the messages do not say that these two processes' queues were joined",
                );
            }
            for instance in [&mut f.first, &mut f.worst].into_iter().flatten() {
                instance.evidence.splice(0..0, messages.iter().cloned());
            }
            f.remedies = vec![KEEP_APART, START_APART];
            f.figures = vec![
                ("messages of merges", *count as f64, ""),
                ("requests ahead of each", ahead as f64, ""),
            ];
            Some(f)
        })
    }
}
