// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process that submits without waiting (io_submit, io_uring) waits in submission all the same:
//! it asks for more requests than there are, one after the other.
//!
//! Each of its waits from Q to G is short, as long as one of its requests takes to end; the
//! process does nothing else meanwhile.

use super::held::asked;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::Section;
use crate::findings::sums::{add, percent};
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "submit-blocked",
    what: "a process that submits without waiting waits in submission, for a request or tag",
    rule: Rule {
        condition: "a process waits from Q to G most of its time, and several of its own requests \
                    are in use meanwhile",
        threshold: "waits of 20 us or more, 16 at least, that add up to half of the time from its \
                    first Q to its last; 2 requests in use or more on average",
        exception: "",
    },
    explains: &["no-request-free", "deep-queue"],
    remedies: &[MORE_REQUESTS],
    rests_on_absence: false,
    detector: || Box::new(SubmitBlocked::default()),
};

const MORE_REQUESTS: Remedy = Remedy::act(
    "more-requests",
    Act::MoreRequests,
    "a larger nr_requests, or fewer requests at a time in the process that fills it",
);

/// Waits, so that it is no chance.
const TIMES_MIN: u64 = 16;

/// Of the time of a process, in per cent.
const PERCENT_MIN: u64 = 50;

/// Requests in use when one is asked for, on average.
const HELD_MIN: u64 = 2;

#[derive(Debug, Default)]
struct SubmitBlocked {
    disks: BTreeMap<Dev, BTreeMap<Pid, Submitter>>,
}

#[derive(Debug, Default)]
struct Submitter {
    harm: Harm,
    held: u64,
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
            for wait in waits {
                let pid = wait.request.pid;
                let submitter = submitters.entry(pid).or_default();
                submitter.held += wait.all;
                submitter.harm.add(pid, wait.get_ns, || {
                    section.instance(wait.request, Some(wait.get_ns))
                });
            }
            let mut spans: BTreeMap<Pid, [Time; 2]> = BTreeMap::new();
            for r in &disk.requests {
                if let Some(queue) = r.queue {
                    let span = spans.entry(r.pid).or_insert([queue, queue]);
                    *span = [span[0].min(queue), span[1].max(queue)];
                }
            }
            for (pid, submitter) in submitters.iter_mut() {
                let span = spans.get(pid).map_or(0, |[from, to]| to.since(*from).0);
                add(&mut submitter.span_ns, span);
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
        times >= TIMES_MIN
            && self.held >= HELD_MIN.saturating_mul(times)
            && percent(self.harm.total_ns(), self.span_ns) >= PERCENT_MIN
    }
}

/// The one that waits longest in submission.
fn finding(submitters: BTreeMap<Pid, Submitter>, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
    let blocked = submitters.into_values().filter(Submitter::is_blocked);
    let mut worst = blocked.max_by_key(|s| s.harm.total_ns())?;
    let held = worst.held / worst.harm.count().max(1);
    let part = percent(worst.harm.total_ns(), worst.span_ns);
    let mut f = worst.harm.finding(&KIND, dev, whole)?;
    f.what = format!(
        "{} is {part} % of its time in submission and waits for a request or tag (Q to G): {} \
         each time, with {held} in use.",
        f.victim_names(),
        time_text(worst.harm.total_ns() / worst.harm.count().max(1)),
    );
    f.how = match whole.context.queue("nr_requests") {
        Some(nr) => format!(
            "The queue has {nr} requests (nr_requests); who asks for one more sleeps until one \
             ends, in io_submit, too."
        ),
        None => "Who asks for one more than there are sleeps until one ends, in io_submit, too."
            .to_owned(),
    };
    f.cause = Some("its own requests: more than the queue has room for".to_owned());
    f.weight = Weight::OwnChoice;
    if whole
        .context
        .queue("nr_requests")
        .is_none_or(|nr| held < nr / 2)
    {
        f.doubt(
            Confidence::Likely,
            "what limits it: nr_requests, the device's tags, async_depth, wbt, or its control group",
        );
    }
    f.remedies = vec![MORE_REQUESTS];
    f.figures = vec![("in use when one is asked for", held as f64, "")];
    Some(f)
}
