// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody waits from Q to G: for a request or tag, since all are in use, or for what lets
//! bios through before they get one (`rq_qos_throttle`, block/blk-rq-qos.h): write-back
//! throttling, and the control groups' io.latency and io.cost.

use super::groups::{InUse, Members, Policy};
use crate::findings::disk::Request;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::sums::is_most;
use crate::findings::waits::Ahead;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Weight, Whole, counted, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "no-request-free",
    what: "reads or sync writes wait for a request or tag (Q to G): all are in use",
    rule: Rule {
        condition: "a request that a process waits for waits from Q to G; those that have most \
                    requests in use themselves are told apart",
        threshold: "more than 4 times what the device takes for one, 200 us at least; 20 % of its \
                    process's waiting or more",
        exception: "it is write-back, for which waiting is back-pressure",
    },
    explains: &[],
    remedies: &[NO_THROTTLING, LOOK_AT_GROUP, MORE_REQUESTS],
    rests_on_absence: false,
    detector: || Box::new(NoRequestFree::new(For::Request)),
};

/// The row of [`super::ALL`].
pub const WBT: Kind = Kind {
    name: "wbt-likely",
    what: "writes wait though requests are free: write-back throttling (wbt) is on",
    rule: Rule {
        condition: "as no-request-free, and all of them are writes",
        threshold: "as no-request-free; fewer than half of nr_requests are in use meanwhile, or \
                    nothing is known of the queue and none is",
        exception: "wbt_lat_usec is 0, or wbt's own events tell whether the limit is scaled down \
                    (wbt)",
    },
    explains: &["no-request-free", "submit-blocked"],
    remedies: &[NO_THROTTLING],
    rests_on_absence: false,
    detector: || Box::new(NoRequestFree::new(For::Wbt)),
};

const NO_THROTTLING: Remedy = Remedy::set(
    "no-write-back-throttling",
    "queue/wbt_lat_usec",
    "0",
    "no write-back throttling; reads wait behind writes then",
);

const LOOK_AT_GROUP: Remedy = Remedy::outside(
    "look-at-group",
    Outside::Nowhere,
    "look at the control group's io.max, io.latency and io.weight",
);

const MORE_REQUESTS: Remedy = Remedy::act(
    "more-requests",
    Act::MoreRequests,
    "a larger nr_requests, or fewer requests at a time in the process that fills it",
);

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// A request or tag.
    Request,
    /// Write-back throttling.
    Wbt,
}

impl For {
    fn whom(r: &Request, ahead: &Ahead, context: &Context) -> For {
        let nr = context.queue("nr_requests");
        let are_free = nr.is_some_and(|nr| ahead.all + 1 < nr / 2);
        let wbt = context.queue("wbt_lat_usec").is_some_and(|us| us > 0);
        if are_free && wbt && r.is_write() {
            For::Wbt
        } else {
            For::Request
        }
    }
}

#[derive(Debug)]
struct NoRequestFree {
    what: For,
    members: Members,
    /// Those that others leave nothing, and those that have most themselves.
    disks: [BTreeMap<Dev, Sum>; 2],
}

impl NoRequestFree {
    fn new(what: For) -> NoRequestFree {
        NoRequestFree {
            what,
            members: Members::default(),
            disks: Default::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    held: u64,
    reads: u64,
    /// Waited while fewer were in use than at other times, and the context does not say how many
    /// there are.
    nr_free: u64,
}

impl Detector for NoRequestFree {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.members.named(pid, comm);
    }

    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            if disk.long_waits_for().all(|(_, w)| w.get.is_none()) {
                continue;
            }
            let in_use = InUse::new(disk);
            for (r, w) in disk.long_waits_for() {
                let Some(ahead) = w.get.as_deref() else {
                    continue;
                };
                let whom = For::whom(r, ahead, context);
                if whom != self.what {
                    continue;
                }
                let are_free = in_use.are_free(r, context);
                // That is told by the kinds of control groups.
                let group = self.members.group_of(r.pid, context);
                let is_held = Policy::of_group(group, context).next().is_some();
                if whom == For::Request && is_held && are_free {
                    continue;
                }
                // Where it is not known how many there are.
                let were_free = are_free && context.queue("nr_requests").is_none();
                let is_own =
                    self.what == For::Request && !were_free && is_most(ahead.own, ahead.all);
                let sum = self.disks[usize::from(is_own)].entry(disk.dev).or_default();
                sum.harm
                    .add(r.pid, w.get_ns, || section.instance(r, Some(w.get_ns)));
                for (pid, n) in ahead.others() {
                    sum.harm.blame(pid, n);
                }
                sum.nr_free += u64::from(were_free);
                sum.held += ahead.all;
                sum.reads += u64::from(r.is_read());
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let [others, own] = &mut self.disks;
        match self.what {
            For::Request => {}
            For::Wbt => return of_disks(others, |sum, dev| sum.wbt(dev, whole)),
        }
        let mut all = of_disks(others, |sum, dev| sum.finding(dev, whole));
        all.extend(of_disks(own, |sum, dev| {
            let mut f = sum.finding(dev, whole)?;
            f.causes.clear();
            f.cause = Some("its own requests: more than the queue has room for".to_owned());
            f.weight = Weight::OwnChoice;
            Some(f)
        }));
        all
    }
}

impl Sum {
    /// Who waits how long, behind how many.
    fn waits(&mut self, kind: &Kind, dev: Dev, whole: &Whole<'_>, what: &str) -> Option<Finding> {
        let held = self.held / self.harm.count().max(1);
        let mut f = self.harm.finding(kind, dev, whole)?;
        f.what = format!(
            "{} wait{} {} on average {what} (Q to G), with about {} queued or at the \
             device.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count()),
            counted(held, "others"),
        );
        Some(f)
    }

    fn wbt(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.waits(&WBT, dev, whole, "for write-back throttling")?;
        f.how =
            "Requests are free: write-back throttling (wbt) limits how many writes there are at \
                 a time, so that reads stay below wbt_lat_usec."
                .to_owned();
        f.confidence = Confidence::Likely;
        f.cause = Some("write-back throttling (wbt)".to_owned());
        f.missing
            .push("the events of wbt, which say its limits (wbt_step)".to_owned());
        f.remedies = vec![NO_THROTTLING];
        Some(f)
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        let nothing_held = self.held < count || is_most(self.nr_free, count);
        if nothing_held && self.reads == 0 && whole.context.queue("wbt_lat_usec").is_none() {
            let mut f = self.wbt(dev, whole)?;
            f.doubt(
                Confidence::Possible,
                "queue/wbt_lat_usec (0: no throttling); limits of control groups hold bios here too",
            );
            return Some(f);
        }
        let mut f = self.waits(&KIND, dev, whole, "for a request")?;
        let nr = whole.context.queue("nr_requests");
        f.how = match nr {
            Some(nr) => format!("The queue has {nr} requests (nr_requests)."),
            None => String::new(),
        };
        if nothing_held {
            let few = if self.held < count {
                "Hardly any are in use"
            } else {
                "Fewer are in use then than at other times"
            };
            f.how = format!(
                "{few}: something holds bios back before they get one, such as a limit, latency \
                 target or share of control groups."
            );
            f.doubt(
                Confidence::Possible,
                "io.max, io.latency and io.cost of its control group, wbt_lat_usec",
            );
        } else if nr.is_none() {
            f.doubt(
                Confidence::Likely,
                "nr_requests: that all were in use; io.latency, io.cost and wbt hold bios here too",
            );
        }
        f.remedies = vec![if nothing_held {
            LOOK_AT_GROUP
        } else {
            MORE_REQUESTS
        }];
        Some(f)
    }
}
