// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes wait for a tag though tags are free: the scheduler keeps most of them for reads.
//!
//! mq-deadline, Kyber and BFQ let everything but reads that somebody waits for have
//! `async_depth` tags at most (`limit_depth` of an elevator, block/mq-deadline.c from 5.14 on).

use super::held::{asked, spans};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::section::Section;
use crate::findings::sums::{add, percent};
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "async-depth",
    what: "writes wait for a tag though tags are free: the scheduler leaves them few (async_depth)",
    rule: Rule {
        condition: "a write waits from Q to G, and the scheduler's async_depth is known and less \
                    than half of nr_requests",
        threshold: "20 us or more; fewer than nr_requests are in use when it begins, and as many \
                    writes as async_depth or more; 20 % of the time of their process in all",
        exception: "",
    },
    explains: &[
        "no-request-free",
        "wbt-likely",
        "cgroup-latency",
        "submit-blocked",
    ],
    remedies: &[LARGER],
    rests_on_absence: false,
    detector: || Box::new(AsyncDepth::default()),
};

const LARGER: Remedy = Remedy::set(
    "larger-async-depth",
    "queue/iosched/async_depth",
    "",
    "more tags for writes; reads may have to wait for one then",
);

/// Of the time of a process, in per cent.
const PERCENT_MIN: u64 = 20;

#[derive(Debug, Default)]
struct AsyncDepth {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    held: u64,
    /// From the first Q of each process to its last, of all sections.
    spans_ns: BTreeMap<Pid, u64>,
}

/// The tags that writes may have, and all there are, if the first are few.
fn limits(context: &Context) -> Option<[u64; 2]> {
    let of_queue = context.queue("async_depth");
    let of_scheduler = || u64::try_from(context.tunable("async_depth")?).ok();
    let depth = of_queue.or_else(of_scheduler).filter(|n| *n > 0)?;
    let all = context.queue("nr_requests")?;
    (depth.saturating_mul(2) < all).then_some([depth, all])
}

impl Detector for AsyncDepth {
    fn section(&mut self, section: &Section, context: &Context) {
        let Some([depth, all]) = limits(context) else {
            return;
        };
        for disk in &section.disks {
            let writes = asked(disk).into_iter().filter(|a| a.request.is_write());
            for a in writes.filter(|a| a.all < all && a.writes >= depth) {
                let sum = self.disks.entry(disk.dev).or_default();
                sum.harm.add(a.request.pid, a.get_ns, || {
                    section.instance(a.request, Some(a.get_ns))
                });
                sum.held += a.all;
            }
            if let Some(sum) = self.disks.get_mut(&disk.dev) {
                for (pid, ns) in spans(disk) {
                    add(sum.spans_ns.entry(pid).or_default(), ns);
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn finding(self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let [depth, all] = limits(whole.context)?;
        let held = self.held / self.harm.count().max(1);
        // Requests overlap: what counts is the time of the process that asks for them.
        let mut victims = self.harm.victims().iter();
        let is_held = |(pid, (_, ns)): (&Pid, &(u64, u64))| {
            percent(*ns, self.spans_ns.get(pid).copied().unwrap_or(0)) >= PERCENT_MIN
        };
        if !victims.any(is_held) {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        let name = whole.scheduler(dev).unwrap_or("the scheduler");
        f.what = format!(
            "Writes of {} wait {} on average for a tag (Q to G), with about {} queued or at the \
             device: {name} leaves them {depth} of {all}.",
            f.victim_names(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            counted(held, "others"),
        );
        f.how =
            "Tags are free: async_depth keeps them for reads that somebody waits for.".to_owned();
        f.confidence = Confidence::Likely;
        f.cause = Some(format!("async_depth = {depth}"));
        f.missing
            .push("limits of control groups and wbt, which hold bios here too".to_owned());
        f.remedies = vec![LARGER.to(all * 3 / 4)];
        Some(f)
    }
}
