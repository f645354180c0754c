// SPDX-License-Identifier: MIT OR Apache-2.0
//! BFQ's limit of the depth, applied to commands that bypass it.

use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Weight, Whole,
};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "limited-passthrough",
    what: "a scheduler limits the depth of commands passed through, which bypass it",
    rule: "a message of BFQ says how deep it lets a request be allocated (bfq_limit_depth), and \
           the next event of the device within 1 ms is the D of a command passed through",
    explains: &[],
    rests_on_absence: false,
    detector: || Box::new(Passthrough::default()),
};

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
            let evidence = Evidence {
                number: number + 1,
                event: *event,
                text: Some(text.to_owned()),
            };
            self.said.extend(depth.map(|depth| (evidence, depth)));
        }
    }

    fn section(&mut self, section: &Section, _: &Context) {
        for (evidence, depth) in std::mem::take(&mut self.said) {
            let time = evidence.event.time;
            let dev = evidence.event.dev;
            let next = section
                .events()
                .iter()
                .position(|e| e.dev == dev && e.time >= time);
            let Some(place) = next else { continue };
            let e = &section.events()[place];
            let is_command = e.rwbs.has(Rwbs::PC) && e.action == Action::Issue;
            if !is_command || e.time.since(time).0 > NEAR_NS {
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
        let all = std::mem::take(&mut self.disks);
        let finding = |(dev, (count, depth, first)): (Dev, (u64, u64, Option<Instance>))| {
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
                "nobody is shown to wait: the harm is inferred",
            );
            f.remedies = vec![Remedy::kernel(
                "do not ask the scheduler for the depth of requests that bypass it",
            )];
            f
        };
        all.into_iter().map(finding).collect()
    }
}
