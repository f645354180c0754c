// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that submits without waiting (io_submit, io_uring) waits in submission all the same:
//! it asks for more requests than there are, one after the other.
//!
//! Each of its waits from Q to G is short, as long as one of its requests takes to end; the
//! process does nothing else meanwhile.

use super::held::{asked, spans};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::Section;
use crate::findings::sums::{add, is_most, percent};
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "submit-blocked",
    what: "a process that submits without waiting waits in submission, for a request or tag",
    rule: Rule {
        condition: "a process waits from Q to G most of its time, and most of the requests in use \
                    meanwhile are its own",
        threshold: "waits of 20 us or more, 16 at least, that add up to half of the time from its \
                    first Q to its last",
        exception: "the device empties its cache meanwhile (flush)",
    },
    explains: &["no-request-free", "deep-queue"],
    remedies: &[MORE_REQUESTS, NO_THROTTLING],
    rests_on_absence: false,
    detector: || Box::new(SubmitBlocked::default()),
};

const MORE_REQUESTS: Remedy = Remedy::act(
    "more-requests",
    Act::MoreRequests,
    "a larger nr_requests, or fewer requests at a time in the process that fills it",
);

const NO_THROTTLING: Remedy = Remedy::set(
    "no-write-back-throttling",
    "queue/wbt_lat_usec",
    "0",
    "no write-back throttling; reads wait behind writes then",
);

/// Waits, so that it is no chance.
const TIMES_MIN: u64 = 16;

/// Of the time of a process, in per cent.
const PERCENT_MIN: u64 = 50;

#[derive(Debug, Default)]
struct SubmitBlocked {
    disks: BTreeMap<Dev, BTreeMap<Pid, Submitter>>,
}

#[derive(Debug, Default)]
struct Submitter {
    harm: Harm,
    held: u64,
    /// Waits of writes.
    writes: u64,
    /// From its first Q to its last, of all sections.
    span_ns: u64,
}

impl Detector for SubmitBlocked {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let waits = asked(disk);
            if (waits.len() as u64) < TIMES_MIN {
                continue;
            }
            let submitters = self.disks.entry(disk.dev).or_default();
            for wait in waits.iter().filter(|w| w.own > 0 && w.own * 2 >= w.all) {
                let pid = wait.request.pid;
                let submitter = submitters.entry(pid).or_default();
                submitter.held += wait.all;
                submitter.writes += u64::from(wait.request.is_write());
                submitter.harm.add(pid, wait.get_ns, || {
                    section.instance(wait.request, Some(wait.get_ns))
                });
            }
            let spans = spans(disk);
            for (pid, submitter) in submitters.iter_mut() {
                add(&mut submitter.span_ns, spans.get(pid).copied().unwrap_or(0));
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |submitters, dev| {
            finding(submitters, dev, whole)
        })
    }
}

impl Submitter {
    fn is_blocked(&self) -> bool {
        let times = self.harm.count();
        times >= TIMES_MIN && percent(self.harm.total_ns(), self.span_ns) >= PERCENT_MIN
    }
}

impl Submitter {
    /// What it waits for, as far as the context tells it.
    fn explain(&self, f: &mut Finding, held: u64, whole: &Whole<'_>) {
        let context = whole.context;
        let nr = context.queue("nr_requests");
        let are_free = nr.is_some_and(|nr| held < nr / 2);
        let is_wbt = context.queue("wbt_lat_usec").is_some_and(|us| us > 0);
        f.weight = Weight::OwnChoice;
        if are_free && is_wbt && is_most(self.writes, self.harm.count()) {
            f.weight = Weight::Harm;
            f.cause = Some("write-back throttling (wbt)".to_owned());
            f.how = "Requests are free: write-back throttling (wbt) limits how many writes there \
                     are at a time, so that reads stay below wbt_lat_usec."
                .to_owned();
            f.doubt(
                Confidence::Likely,
                "the events of wbt, which say its limits (wbt_step)",
            );
            f.remedies = vec![NO_THROTTLING];
            return;
        }
        f.cause = Some("its own requests: more than the queue has room for".to_owned());
        f.how = match nr {
            Some(nr) => format!(
                "The queue has {nr} requests (nr_requests); who asks for one more sleeps until \
                 one ends, in io_submit, too."
            ),
            None => "Who asks for one more than there are sleeps until one ends, in io_submit, \
                     too."
                .to_owned(),
        };
        if are_free || nr.is_none() {
            f.doubt(
                Confidence::Likely,
                "what limits it: nr_requests, the device's tags, async_depth, or its control group",
            );
        }
        f.remedies = vec![MORE_REQUESTS];
    }
}

/// The one that waits longest in submission.
fn finding(submitters: BTreeMap<Pid, Submitter>, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
    let blocked = submitters.into_values().filter(Submitter::is_blocked);
    let worst = blocked.max_by_key(|s| s.harm.total_ns())?;
    let held = worst.held / worst.harm.count().max(1);
    let part = percent(worst.harm.total_ns(), worst.span_ns);
    let mut f = Finding::new(KIND.name, dev, "");
    worst.harm.fill(&mut f, whole);
    f.what = format!(
        "{} is {part} % of its time in submission and waits for a request or tag (Q to G): {} \
         each time, with {held} in use.",
        f.victim_names(),
        time_text(worst.harm.total_ns() / worst.harm.count().max(1)),
    );
    worst.explain(&mut f, held, whole);
    f.figures = vec![("in use when one is asked for", held as f64, "")];
    Some(f)
}
