// SPDX-License-Identifier: MIT OR Apache-2.0
//! io.latency holds a group's bios back for the sake of another group.
//!
//! While a group misses its target, its siblings with looser targets, or none, may have ever
//! fewer bios under way; their tasks sleep until it is their turn (block/blk-iolatency.c;
//! docs/cgroups/iolatency.md).

use super::policy::{Protected, protected, protected_from};
use super::waits::{Held, Story, Waits};
use super::{Members, Policy};
use crate::findings::context::is_in;
use crate::findings::disk::Request;
use crate::findings::harm::parties;
use crate::findings::remedy::Outside;
use crate::findings::sums::percent;
use crate::findings::{
    Confidence, Context, Finding, Kind, Remedy, Rule, Whole, counted, time_text,
};
use blklab_types::{Dev, Pid};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::super::ALL`].
pub const KIND: Kind = Kind {
    name: "cgroup-latency",
    what: "io.latency of another control group holds bios back though requests are free",
    rule: Rule {
        condition: "a request that a process waits for waits from Q to G while requests are free, \
                    and the context has an io.latency with a target of a group beside the \
                    process's own, which has a looser one or none; possible only where none of \
                    that group's requests misses its target",
        threshold: "50 us or more; 20 % of its process's waiting, or of the time from its first \
                    bio to its last; fewer than half of nr_requests are in use meanwhile",
        exception: "it is wbt, or io.cost can hold the group, too (cgroup-share)",
    },
    explains: &["no-request-free", "submit-blocked"],
    remedies: &[LARGER_TARGET, OWN_TARGET, NO_TARGET],
    rests_on_absence: false,
    detector: || Box::new(Waits::<Targets>::default()),
};

const LARGER_TARGET: Remedy = Remedy::set(
    "larger-target",
    "cgroup.{}.io.latency",
    "",
    "twice as long as now: others are held back less for it",
);

const OWN_TARGET: Remedy = Remedy::outside(
    "own-target",
    Outside::Groups,
    "an io.latency as small for the group that is held: neither yields to the other then",
);

const NO_TARGET: Remedy = Remedy::set(
    "no-latency-target",
    "cgroup.{}.io.latency",
    "target=0",
    "{} has no latency guaranteed then: others may delay it",
);

/// What groups with a target got.
#[derive(Debug, Default)]
struct Targets {
    got: BTreeMap<String, Got>,
    /// The groups with a target that a group is in, with their targets in us: looked up once
    /// for each.
    above: BTreeMap<String, Vec<(String, u64)>>,
}

/// What one of them got.
#[derive(Debug, Default)]
struct Got {
    nr: u64,
    nr_missed: u64,
    /// Its processes, with their requests.
    pids: BTreeMap<Pid, (u64, u64)>,
}

impl Story for Targets {
    const POLICY: Policy = Policy::Latency;

    fn request(&mut self, r: &Request, group: Option<&str>, context: &Context) {
        let (Some(group), Some(ns)) = (group, r.whole()) else {
            return;
        };
        let looked_up = || {
            let above = protected(context).filter(|p| is_in(group, p.group));
            above.map(|p| (p.group.to_owned(), p.target_us)).collect()
        };
        let above = self.above.entry(group.to_owned()).or_insert_with(looked_up);
        for (group, target_us) in above.iter() {
            let got = self.got.entry(group.clone()).or_default();
            got.nr += 1;
            got.nr_missed += u64::from(ns >= target_us.saturating_mul(1000));
            got.pids.entry(r.pid).or_default().0 += 1;
        }
    }

    fn finding(
        self,
        held: Held,
        dev: Dev,
        whole: &Whole<'_>,
        members: &mut Members,
    ) -> Option<Finding> {
        let context = whole.context;
        let mut f = Finding::new(KIND.name, dev, "");
        held.harm.fill(&mut f, whole);
        let groups = Held::groups_of(&f, members, context);
        let by: Vec<Protected<'_>> = protected(context)
            .filter(|p| {
                let holds = |group: &Option<String>| {
                    let mut all = protected_from(group.as_deref(), context);
                    all.any(|by| by == *p)
                };
                groups.iter().any(holds)
            })
            .collect();
        let own: BTreeSet<&str> = groups.iter().flatten().map(String::as_str).collect();
        let own: Vec<&str> = own.into_iter().collect();
        f.what = format!(
            "{} wait{} {} on average before {} (Q to G) though requests are free: io.latency of \
             another group lets {} have few bios under way.",
            f.victim_names(),
            f.verb_end(),
            time_text(held.harm.total_ns() / held.harm.count().max(1)),
            if held.harm.count() == 1 {
                "a request"
            } else {
                "each of these requests"
            },
            match own.as_slice() {
                [] => "its group".to_owned(),
                own => own.join(", "),
            }
        );
        let shown: Vec<String> = by
            .iter()
            .map(|p| format!("io.latency of {} ({})", p.group, p.said))
            .collect();
        f.cause = Some(shown.join(", "));
        let mut how = vec![format!(
            "Its tasks sleep for {} % of the time",
            held.asleep_percent()
        )];
        let mut protected_pids: BTreeMap<Pid, (u64, u64)> = BTreeMap::new();
        let mut nr_missed = 0;
        for p in &by {
            let Some(got) = self.got.get(p.group) else {
                continue;
            };
            nr_missed += got.nr_missed;
            protected_pids.extend(&got.pids);
            how.push(format!(
                "of {} of {} {} % took {} or more, which is its target",
                counted(got.nr, "requests"),
                p.group,
                percent(got.nr_missed, got.nr),
                time_text(p.target_us.saturating_mul(1000))
            ));
        }
        f.how = format!("{}.", how.join("; "));
        f.causes = parties(&protected_pids, whole);
        f.confidence = Confidence::Likely;
        if groups.iter().any(Option::is_none) {
            f.missing
                .push("which group the process is in (cgroup.NAME.processes)".to_owned());
        }
        if protected_pids.is_empty() {
            f.missing
                .push("who is in the group with the target, and whether it misses it".to_owned());
        } else if nr_missed == 0 {
            f.doubt(
                Confidence::Possible,
                "that the group with the target misses it: no request of the trace does",
            );
        }
        if held.is_shared {
            f.doubt(Confidence::Possible, "whether it is io.cost that holds it");
        }
        for p in &by {
            let twice = p.target_us.saturating_mul(2);
            let remedy = LARGER_TARGET.filled_with(p.group);
            f.remedies.push(remedy.to(format!("target={twice}")));
        }
        f.remedies.push(OWN_TARGET);
        for p in &by {
            f.remedies.push(NO_TARGET.filled_with(p.group));
        }
        Some(f)
    }
}
