// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ's limit of the depth, applied to commands that bypass it.

use crate::findings::harm::of_disks;
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Rule, Weight, Whole,
};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "limited-passthrough",
    what: "a scheduler limits the depth of commands passed through, which bypass it",
    rule: Rule {
        condition: "a message of BFQ says how deep it lets a request be allocated \
                    (bfq_limit_depth), and the next event of the device is the D of a command \
                    passed through",
        threshold: "within 1 ms",
        exception: "",
    },
    explains: &[],
    remedies: &[ASK_NOT],
    rests_on_absence: false,
    detector: || Box::new(Passthrough::default()),
};

const ASK_NOT: Remedy = Remedy::kernel(
    "ask-no-depth",
    Act::Outside(Outside::Kernel),
    "do not ask the scheduler for the depth of requests that bypass it",
);

const NEAR_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Passthrough {
    said: Vec<(Evidence, u64)>,
    disks: BTreeMap<Dev, (u64, u64, Option<Instance>)>,
}

impl Detector for Passthrough {
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        // Only the latest of a moment can precede a command.
        if text.contains("bfq_limit_depth") && self.said.len() < 4096 {
            let depth = text.rsplit(' ').next().and_then(|n| n.parse().ok());
            let evidence = Evidence::message(number, event, text);
            self.said.extend(depth.map(|depth| (evidence, depth)));
        }
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for (evidence, depth) in std::mem::take(&mut self.said) {
            let time = evidence.event.time;
            let dev = evidence.event.dev;
            let soon = section.places_from(time);
            let mut soon = soon.take_while(|(_, e)| e.time.since(time).0 <= NEAR_NS);
            let Some((place, e)) = soon.find(|(_, e)| e.dev == dev) else {
                continue;
            };
            if !e.rwbs.has(Rwbs::PC) || e.action != Action::Issue {
                continue;
            }
            let (count, least, first) = self.disks.entry(dev).or_insert((0, depth, None));
            *count += 1;
            *least = depth.min(*least);
            first.get_or_insert_with(|| Instance {
                time,
                delay_ns: None,
                evidence: vec![evidence, section.evidence(place)],
            });
        }
    }

    fn finish(&mut self, _: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |(count, depth, first), dev| {
            let mut f = Finding::new(KIND.name, dev, "");
            f.count = count;
            f.of = "commands";
            f.first = first;
            f.weight = Weight::Note;
            f.what = format!(
                "BFQ limits commands that are passed through to the device to a depth of {depth}, \
                 though they bypass it."
            );
            f.how = "Many of them at a time would wait for tags while others are free.".to_owned();
            f.doubt(
                Confidence::Possible,
                "the trace shows no process that waits: the harm is inferred",
            );
            f.remedies = vec![ASK_NOT];
            Some(f)
        })
    }
}
