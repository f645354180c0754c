// SPDX-License-Identifier: MIT OR Apache-2.0
//! What io.cost says: how fast it takes a device to be, and which control groups are short of
//! their share.

use super::{Begun, Spell, What, evidence, open};
use blklab_trace::{GroupPath, GroupShare, KernelEvent, Tracepoint};
use blklab_types::{Dev, Time};
use std::collections::BTreeMap;

/// How fast a device is taken to be, and how its groups fare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// In thousandths of what its model says.
    pub permille: u32,
    /// Reads and writes that missed the latency that is asked for, in millionths.
    pub missed_ppm: [u32; 2],
    /// Part of the time in which requests were exhausted.
    pub rq_wait_percent: u32,
    /// Groups that want more than they get, or whose I/O takes long.
    pub nr_short: u32,
}

impl Cost {
    /// Whether somebody may be held back: groups are short, or the device is slowed down.
    pub fn holds_back(&self) -> bool {
        self.nr_short > 0 || self.permille < 1000
    }

    pub(super) fn words(&self) -> String {
        format!(
            "io.cost at {} % of its model, {} short of their share",
            self.permille / 10,
            super::super::counted(self.nr_short.into(), "groups")
        )
    }
}

/// What io.cost says of a control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostSaid {
    /// It has I/O again, with this share of the device.
    Share(GroupShare),
    /// It had given away a part of its share, and needs it again.
    Short,
    /// It owes for I/O that could not wait; its tasks are held back for so long, us.
    Debt(u32),
}

impl CostSaid {
    pub(super) fn words(self, group: &str) -> String {
        match self {
            CostSaid::Share(share) => {
                format!("{group} has {share} of the device")
            }
            CostSaid::Short => format!("{group} is short of its share"),
            CostSaid::Debt(us) => format!("{group} owes for I/O: its tasks wait {us} us"),
        }
    }
}

/// All devices.
#[derive(Debug, Default)]
pub(super) struct Costs(BTreeMap<Dev, (Cost, Begun)>);

impl Costs {
    pub(super) fn event(&mut self, number: u64, e: &KernelEvent) -> Option<Spell> {
        let of_group = |group: GroupPath, said| {
            Some(Spell {
                from: e.time,
                to: e.time,
                dev: e.dev,
                pid: e.pid,
                what: What::CostGroup(group, said),
                evidence: vec![evidence(number, e)],
            })
        };
        match e.point {
            Tracepoint::CostActivate { group, share } => of_group(group, CostSaid::Share(share)),
            Tracepoint::CostShortage { group, .. } => of_group(group, CostSaid::Short),
            Tracepoint::CostDebt { group, delay_us } => of_group(group, CostSaid::Debt(delay_us)),
            Tracepoint::CostRate {
                permille: [_, permille],
                missed_ppm,
                rq_wait_percent,
                nr_lagging,
                nr_shortages,
            } => {
                let cost = Cost {
                    permille,
                    missed_ppm,
                    rq_wait_percent,
                    nr_short: nr_shortages.max(nr_lagging),
                };
                let begun = Begun {
                    at: e.time,
                    dev: e.dev,
                    evidence: evidence(number, e),
                };
                let before = self.0.remove(&e.dev);
                open(&mut self.0, e.dev, (cost, begun));
                before.map(|(cost, b)| spell(cost, b, e.time))
            }
            _ => None,
        }
    }

    /// A section ends: what lasts until the next event is told as far as it went.
    pub(super) fn cut(&mut self, now: Time) -> Vec<Spell> {
        let lasting = self.0.values_mut().filter(|(_, b)| b.at < now);
        let told = lasting.map(|(cost, b)| {
            let told = spell(*cost, b.clone(), now);
            b.at = now;
            told
        });
        told.collect()
    }
}

fn spell(cost: Cost, b: Begun, to: Time) -> Spell {
    Spell {
        from: b.at,
        to: to.max(b.at),
        dev: b.dev,
        pid: 0,
        what: What::Cost(cost),
        evidence: vec![b.evidence],
    }
}
