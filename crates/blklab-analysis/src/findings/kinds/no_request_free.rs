// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody waits for a request or tag (Q to G): all are in use, or write-back
//! throttling lets no more writes through.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::section::Section;
use crate::findings::sums::is_most;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Weight, Whole, time_text,
};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "no-request-free",
    what: "reads or sync writes wait for a request or tag (Q to G): all are in use",
    rule: "a request that somebody waits for waits from Q to G for more than 4 times what the \
           device takes for one, 200 us at least; 20 % of its process's waiting or more. Who has \
           most of those in use itself is told apart. Write-back that waits is back-pressure and \
           no finding",
    explains: &[],
    rests_on_absence: false,
    detector: || Box::new(NoRequestFree::default()),
};

#[derive(Debug, Default)]
struct NoRequestFree {
    /// Those that others leave nothing, and those that have most themselves.
    disks: [BTreeMap<Dev, Sum>; 2],
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    held: u64,
    writes: u64,
}

impl Detector for NoRequestFree {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            for (r, w) in disk.waited_for() {
                let Some(ahead) = w.get else { continue };
                let is_own = is_most(ahead.own, ahead.all);
                let sum = self.disks[usize::from(is_own)].entry(disk.dev).or_default();
                sum.harm
                    .add(r.pid, w.get_ns, || section.instance(r, Some(w.get_ns)));
                for (pid, n) in ahead.others() {
                    sum.harm.blame(pid, n);
                }
                sum.held += ahead.all;
                sum.writes += u64::from(r.is_write());
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let [others, own] = &mut self.disks;
        let mut all = of_disks(others, |sum, dev| sum.finding(dev, whole));
        all.extend(of_disks(own, |sum, dev| {
            let mut f = sum.finding(dev, whole)?;
            f.causes.clear();
            let own = "its own requests: more than the queue has room for";
            f.cause.get_or_insert_with(|| own.to_owned());
            f.weight = Weight::OwnChoice;
            Some(f)
        }));
        all
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let n = self.harm.count().max(1);
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let who = f.victim_names();
        f.what = format!(
            "{who} wait{} {} on average for a request (Q to G), with about {} others queued or at \
             the device.",
            if f.victims.len() == 1 { "s" } else { "" },
            time_text(self.harm.total_ns() / self.harm.count()),
            self.held / n
        );
        let context = whole.context;
        let held = self.held / n;
        let nr = context.queue("nr_requests");
        let wbt = context.queue("wbt_lat_usec").is_some_and(|us| us > 0);
        if wbt && self.writes == n && nr.is_some_and(|nr| held + 1 < nr / 2) {
            f.how = "Requests are free: write-back throttling (wbt) limits how many writes there \
                     are at a time, so that reads stay below wbt_lat_usec."
                .to_owned();
            f.confidence = Confidence::Likely;
            f.cause = Some("write-back throttling (wbt)".to_owned());
            f.remedies = vec![Remedy::set(
                "queue/wbt_lat_usec",
                0,
                "no write-back throttling; reads wait behind writes then",
            )];
            return Some(f);
        }
        f.how = match nr {
            Some(nr) => format!("The queue has {nr} requests (nr_requests)."),
            None => String::new(),
        };
        if nr.is_none() {
            f.doubt(
                Confidence::Likely,
                "nr_requests: that all were in use; io.latency, io.cost and wbt hold bios here too",
            );
        }
        f.remedies = vec![Remedy::act(
            "a larger nr_requests, or fewer requests at a time in whoever fills it",
        )];
        Some(f)
    }
}
