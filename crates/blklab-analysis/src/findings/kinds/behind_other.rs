// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process with few requests waits behind another that keeps many queued.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Serving};
use crate::findings::section::Section;
use crate::findings::sums::{add, is_most};
use crate::findings::waits::{Ahead, Reason};
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, counted, time_text};
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "behind-other",
    what: "a process with few requests waits behind one that keeps many queued",
    rule: Rule {
        condition: "a request that a process waits for waits, and another process has most of \
                    those ahead of it; if it is a write, most of them by the device's work (a \
                    beginning, and the transfer: 64 KiB of it are as much, or 512 KiB where a \
                    request takes 1 ms or more)",
        threshold: "more than 4 times what the device takes for one; the other has 4 times as \
                    many as its own, or 4 times as much work; 20 % of its process's waiting or \
                    more",
        exception: "",
    },
    explains: &[],
    remedies: &[FEWER, SHARE_IN_DEVICE, SHARE],
    rests_on_absence: false,
    detector: || Box::new(BehindOther::default()),
};

const FEWER: Remedy = Remedy::act(
    "fewer-at-a-time",
    Act::Fewer,
    "fewer requests at a time in the process that has many",
);

const SHARE_IN_DEVICE: Remedy = Remedy::act(
    "share-with-smaller-depth",
    Act::Scheduler(Serving::ByProcess),
    "a smaller queue depth of the device, with a scheduler that shares it (bfq)",
);

const SHARE: Remedy = Remedy::act(
    "share-by-process",
    Act::Scheduler(Serving::ByProcess),
    "a scheduler that shares the device by process (bfq), other ioprio or io.weight",
);

#[derive(Debug, Default)]
struct BehindOther {
    disks: BTreeMap<Dev, Sum>,
}

/// Waits behind another process on a device.
#[derive(Debug, Default)]
pub(super) struct Sum {
    pub(super) harm: Harm,
    pub(super) ahead: u64,
    /// Those of them that came later.
    later: u64,
    in_device_ns: u64,
}

/// Goes through what waits behind another process: how long, behind whom.
pub(super) fn each(disk: &Disk, mut then: impl FnMut(&Request, Pid, u64, &Ahead, bool)) {
    for (r, w) in disk.long_waits_for() {
        for (why, ns, ahead) in w.behind_others(r) {
            if let Reason::Other(pid) = why {
                let in_device = w.behind.as_deref() == Some(ahead) && w.behind_ns == ns;
                then(r, pid, ns, ahead, in_device);
            }
        }
    }
}

impl Sum {
    pub(super) fn add(
        &mut self,
        section: &Section,
        r: &Request,
        pid: Pid,
        ns: u64,
        ahead: &Ahead,
        in_device: bool,
    ) {
        self.harm.add(r.pid, ns, || section.instance(r, Some(ns)));
        let most = ahead.top().filter(|(top, _)| *top == pid);
        self.harm.blame(pid, most.map_or(1, |(_, n)| n));
        self.ahead += ahead.all;
        self.later += ahead.later;
        add(&mut self.in_device_ns, u64::from(in_device) * ns);
    }
}

impl Detector for BehindOther {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            each(disk, |r, pid, ns, ahead, in_device| {
                let sum = self.disks.entry(disk.dev).or_default();
                sum.add(section, r, pid, ns, ahead, in_device);
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let each = self.ahead / self.harm.count().max(1);
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let victims = f.victim_names();
        let causes = f.cause_names();
        f.what = format!(
            "{victims} wait{} behind the queue of {causes}: about {}, \
             {} on average.",
            f.verb_end(),
            counted(each, "requests ahead of each"),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        let in_device = is_most(self.in_device_ns, self.harm.total_ns());
        f.how = if in_device {
            "They wait in the device (D-C): it has them all, and no scheduler reaches \
                     them."
                .to_owned()
        } else {
            "They wait in the scheduler (I-D) while those are served; who has more \
                      queued gets more of the device."
                .to_owned()
        };
        if in_device && is_most(self.later, self.ahead) {
            f.how += " Most of them came later: the device chooses among those it has (NCQ), and \
                      passes these over.";
        }
        f.remedies.push(FEWER);
        f.remedies
            .push(if in_device { SHARE_IN_DEVICE } else { SHARE });
        f.figures = vec![("requests ahead of each", each as f64, "")];
        Some(f)
    }
}
