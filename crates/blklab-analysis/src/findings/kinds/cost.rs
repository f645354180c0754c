// SPDX-License-Identifier: MIT OR Apache-2.0
//! io.cost holds bios back: a control group has used up its share of the device.
//!
//! Each bio costs what a model of the device says, and each group may spend its share by
//! weight; a bio that a group cannot pay for waits before it gets a request
//! (`ioc_rqos_throttle`, block/blk-iocost.c). Where too many requests miss the latency that
//! io.cost.qos asks for, the device is taken to be slower than its model (vrate).

use crate::findings::disk::Disk;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{Cost, CostSaid, Spell, What};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_trace::{GroupPath, GroupShare};
use blklab_types::{Dev, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "cgroup-cost",
    what: "io.cost holds bios of a control group back: its share of the device is used up",
    rule: Rule {
        condition: "a request that a process waits for waits from Q to G while the last \
                    iocost_ioc_vrate_adj of the device says that groups are short of their share \
                    or lag, or that the device is slowed down (vrate below 100 %)",
        threshold: "more than 4 times what the device takes for one, 50 us at least; 20 % of its \
                    process's waiting or more",
        exception: "",
    },
    explains: &[
        "no-request-free",
        "submit-blocked",
        "cgroup-latency",
        "cgroup-share",
    ],
    remedies: &[LARGER_WEIGHT, LOOSER_QOS, TRUE_MODEL, NO_COST],
    rests_on_absence: false,
    detector: || Box::new(Costs::default()),
};

const LARGER_WEIGHT: Remedy = Remedy::outside(
    "larger-weight",
    Outside::Groups,
    "a larger io.weight of its group",
);

pub(super) const LOOSER_QOS: Remedy = Remedy::outside(
    "looser-qos",
    Outside::Groups,
    "looser rlat and wlat, or a larger min, in io.cost.qos: it slows the device down \
     to keep its latency",
);

pub(super) const TRUE_MODEL: Remedy = Remedy::outside(
    "true-cost-model",
    Outside::Groups,
    "an io.cost.model that says what the device really does",
);

pub(super) const NO_COST: Remedy = Remedy::set(
    "no-cost-control",
    "io.cost.qos",
    "enable=0",
    "groups have no shares of the device by weight then",
);

#[derive(Debug, Default)]
struct Costs {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// The groups of those whose I/O woke them, with their shares.
    groups: BTreeMap<Pid, (GroupPath, GroupShare)>,
    short: BTreeSet<GroupPath>,
    /// The longest that tasks of a group are held back, us.
    debt: Option<(u32, GroupPath)>,
    /// The lowest rate, and the most that was missed.
    permille: Option<u32>,
    missed_ppm: [u32; 2],
    rq_wait_percent: u32,
    nr_short: u32,
}

impl Detector for Costs {
    fn section(&mut self, section: &Section, _: &Context) {
        let said = |s: &&Spell| matches!(s.what, What::Cost(_) | What::CostGroup(..));
        let said: Vec<&Spell> = section.spells.iter().filter(said).collect();
        if said.is_empty() {
            return;
        }
        let with_requests = section.disks.iter().filter(|d| d.nr_issued > 0).count();
        for disk in &section.disks {
            // Disks whose number is not fixed are not told apart by their names.
            let is_own = |s: &Spell| match s.dev {
                dev if dev == Dev::default() => with_requests == 1 && disk.nr_issued > 0,
                dev => section.disk_of(dev) == disk.dev,
            };
            let own: Vec<&Spell> = said.iter().copied().filter(|s| is_own(s)).collect();
            if !own.is_empty() {
                let sum = self.disks.entry(disk.dev).or_default();
                sum.disk(section, disk, &own);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn disk(&mut self, section: &Section, disk: &Disk, said: &[&Spell]) {
        let mut limiting: Vec<&Spell> = Vec::new();
        for spell in said {
            match spell.what {
                What::Cost(cost) => {
                    self.rate(cost);
                    if cost.holds_back() {
                        limiting.push(spell);
                    }
                }
                What::CostGroup(group, CostSaid::Share(share)) => {
                    self.groups.insert(spell.pid, (group, share));
                }
                What::CostGroup(group, CostSaid::Short) => {
                    self.short.insert(group);
                }
                What::CostGroup(group, CostSaid::Debt(us)) => {
                    let longer = |(most, _): (u32, GroupPath)| us > most;
                    if self.debt.is_none_or(longer) {
                        self.debt = Some((us, group));
                    }
                }
                _ => {}
            }
        }
        limiting.sort_by_key(|s| s.from);
        for (r, w) in disk.long_waits_for() {
            let (Some(queue), Some(get), true) = (r.queue, r.life.get, w.get.is_some()) else {
                continue;
            };
            // What is counted at the end of a period was so in it.
            let next = limiting.partition_point(|s| s.from < get);
            let near = &limiting[next.saturating_sub(1)..(next + 1).min(limiting.len())];
            let held = |s: &&&Spell| {
                s.within(queue, get) > 0 || s.from >= get && s.from.since(get).0 < PERIOD_NS
            };
            let Some(spell) = near.iter().find(held) else {
                continue;
            };
            self.harm.add(r.pid, w.get_ns, || {
                let mut evidence = section.of_request(r);
                evidence.extend(spell.evidence.iter().cloned());
                in_order(&mut evidence);
                Instance {
                    time: queue,
                    delay_ns: Some(w.get_ns),
                    evidence,
                }
            });
        }
    }

    fn rate(&mut self, cost: Cost) {
        self.permille = Some(
            self.permille
                .map_or(cost.permille, |p| p.min(cost.permille)),
        );
        for (most, now) in self.missed_ppm.iter_mut().zip(cost.missed_ppm) {
            *most = now.max(*most);
        }
        self.rq_wait_percent = self.rq_wait_percent.max(cost.rq_wait_percent);
        self.nr_short = self.nr_short.max(cost.nr_short);
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.what = format!(
            "{} wait{} {} on average for a share of the device (Q to G): io.cost holds bios back.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        let permille = self.permille.unwrap_or(1000);
        let [reads, writes] = self.missed_ppm.map(|ppm| ppm / 10_000);
        let mut how = vec![format!(
            "The device is taken to do {} % of what its model says at the least",
            permille / 10
        )];
        if reads.max(writes) > 0 {
            how.push(format!(
                "up to {reads} % of reads and {writes} % of writes missed the latency that \
                 io.cost.qos asks for"
            ));
        }
        if self.rq_wait_percent > 0 {
            how.push(format!(
                "requests were exhausted up to {} % of the time",
                self.rq_wait_percent
            ));
        }
        if self.nr_short > 0 {
            how.push(format!(
                "up to {} wanted more than their share",
                crate::findings::counted(self.nr_short.into(), "groups")
            ));
        }
        f.how = format!("{}.", how.join("; "));
        let groups = f.victims.iter().filter_map(|p| self.groups.get(&p.pid));
        let groups: Vec<String> = groups
            .map(|(group, share)| format!("{group}, which has {share} by weight"))
            .collect();
        let short: Vec<String> = self.short.iter().map(GroupPath::to_string).collect();
        f.cause = Some(match (groups.as_slice(), short.as_slice()) {
            ([], []) => "io.cost".to_owned(),
            ([], short) => format!("io.cost: the share of {}", short.join(", ")),
            (groups, _) => format!("io.cost: the share of {}", groups.join(", ")),
        });
        if groups.is_empty() {
            f.doubt(
                Confidence::Likely,
                "iocost_iocg_activate of its control group: which one, and its share",
            );
        }
        if let Some((us, group)) = self.debt {
            let ns = u64::from(us) * 1000;
            f.how += &format!(
                " {group} owes for I/O that could not wait; its tasks are held back for {}.",
                time_text(ns)
            );
        }
        f.remedies = vec![LARGER_WEIGHT];
        f.remedies.push(if permille < 1000 {
            LOOSER_QOS
        } else {
            TRUE_MODEL
        });
        f.remedies.push(NO_COST);
        Some(f)
    }
}

/// io.cost looks at its groups at least so often (`MAX_PERIOD`, block/blk-iocost.c).
const PERIOD_NS: u64 = 1_000_000_000;
