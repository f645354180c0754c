// SPDX-License-Identifier: MIT OR Apache-2.0
//! Somebody waits from Q to G: for a request or tag, since all are in use, or for what lets
//! bios through before they get one (`rq_qos_throttle`, block/blk-rq-qos.h): write-back
//! throttling, and the control groups' io.latency and io.cost.

use crate::findings::context::is_in;
use crate::findings::disk::Request;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::sums::is_most;
use crate::findings::waits::Ahead;
use crate::findings::{
    Confidence, Context, Detector, Finding, Kind, Remedy, Rule, Weight, Whole, counted, time_text,
};
use blklab_types::Dev;
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

/// The row of [`super::ALL`].
pub const SHARED_OUT: Kind = Kind {
    name: "cgroup-latency",
    what: "io.latency or io.cost of control groups hold bios back though requests are free",
    rule: Rule {
        condition: "as no-request-free, and the context has an io.latency with a target, or an \
                    io.cost.qos that is enabled",
        threshold: "as no-request-free; fewer than half of nr_requests are in use meanwhile",
        exception: "it is wbt",
    },
    explains: &["no-request-free", "submit-blocked"],
    remedies: &[NO_TARGET, NO_COST, LARGER_WEIGHT],
    rests_on_absence: false,
    detector: || Box::new(NoRequestFree::new(For::Group)),
};

const NO_THROTTLING: Remedy = Remedy::set(
    "no-write-back-throttling",
    "queue/wbt_lat_usec",
    "0",
    "no write-back throttling; reads wait behind writes then",
);

const NO_TARGET: Remedy = Remedy::set(
    "no-latency-target",
    "cgroup.{}.io.latency",
    "target=0",
    "{} has no latency guaranteed then: others may delay it",
);

const NO_COST: Remedy = Remedy::set(
    "no-cost-control",
    "io.cost.qos",
    "enable=0",
    "groups have no shares of the device by weight then",
);

const LARGER_WEIGHT: Remedy = Remedy::outside(
    "larger-weight",
    Outside::Groups,
    "a larger io.weight of its group",
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
    /// Control groups that have a latency guaranteed, or a share.
    Group,
}

impl For {
    fn whom(r: &Request, ahead: &Ahead, context: &Context) -> For {
        let nr = context.queue("nr_requests");
        let are_free = nr.is_some_and(|nr| ahead.all + 1 < nr / 2);
        let wbt = context.queue("wbt_lat_usec").is_some_and(|us| us > 0);
        let groups = context.has_io_cost() || context.io_latency().next().is_some();
        if are_free && wbt && r.is_write() {
            For::Wbt
        } else if are_free && groups {
            For::Group
        } else {
            For::Request
        }
    }
}

#[derive(Debug)]
struct NoRequestFree {
    what: For,
    /// Those that others leave nothing, and those that have most themselves.
    disks: [BTreeMap<Dev, Sum>; 2],
}

impl NoRequestFree {
    fn new(what: For) -> NoRequestFree {
        NoRequestFree {
            what,
            disks: Default::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    held: u64,
    reads: u64,
}

impl Detector for NoRequestFree {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            for (r, w) in disk.long_waits_for() {
                let Some(ahead) = w.get.as_deref() else {
                    continue;
                };
                if For::whom(r, ahead, context) != self.what {
                    continue;
                }
                let is_own = self.what == For::Request && is_most(ahead.own, ahead.all);
                let sum = self.disks[usize::from(is_own)].entry(disk.dev).or_default();
                sum.harm
                    .add(r.pid, w.get_ns, || section.instance(r, Some(w.get_ns)));
                for (pid, n) in ahead.others() {
                    sum.harm.blame(pid, n);
                }
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
            For::Group => return of_disks(others, |sum, dev| sum.shared_out(dev, whole)),
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

    fn shared_out(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.waits(&SHARED_OUT, dev, whole, "for its control group's turn")?;
        let context = whole.context;
        let groups = f.victims.iter();
        let groups = groups.map(|v| context.group_of(v.pid, v.comm.as_deref()));
        let groups: Option<Vec<&str>> = groups.collect();
        // A group does not wait because of its own target.
        let is_anothers = |(group, _): &(&str, &str)| {
            let own = groups.as_deref().unwrap_or_default();
            own.is_empty() || own.iter().any(|own| !is_in(own, group))
        };
        let targets: Vec<(&str, &str)> = context.io_latency().filter(is_anothers).collect();
        f.confidence = Confidence::Likely;
        let mut how = Vec::new();
        for (group, said) in &targets {
            how.push(format!("io.latency of {group} ({said})"));
            f.remedies.push(NO_TARGET.filled_with(group));
        }
        if context.has_io_cost() {
            how.push("io.cost".to_owned());
            f.remedies.push(NO_COST);
            f.remedies.push(LARGER_WEIGHT);
        }
        f.cause = Some(how.join(", "));
        f.how =
            "Requests are free: io.latency gives groups with a looser target, or none, fewer of \
                 them while another misses its own, and io.cost lets each group have its share of \
                 what the device can do."
                .to_owned();
        if groups.is_none() {
            f.missing.push("which group the process is in".to_owned());
        }
        Some(f)
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let nothing_held = self.held < self.harm.count();
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
            f.how =
                "Hardly any are in use: something holds bios back before they get one, such as \
                     a limit, latency target or share of control groups."
                    .to_owned();
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
