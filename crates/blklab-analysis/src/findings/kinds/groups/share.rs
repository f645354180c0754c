// SPDX-License-Identifier: MIT OR Apache-2.0
//! io.cost holds bios back, as its settings and the trace's waits say: where its own events are
//! recorded, they tell it (`cgroup-cost`).
//!
//! Each I/O is billed by `io.cost.model`; a group whose bill is beyond its share sleeps. What all
//! groups are billed says whether the device's rate is used up, and so whether a larger weight can
//! help at all (docs/cgroups/iocost.md).

use super::price::Model;
use super::waits::{Held, Story, Waits};
use super::{Members, Policy};
use crate::findings::disk::Request;
use crate::findings::kinds::cost::{LOOSER_QOS, NO_COST, TRUE_MODEL};
use crate::findings::sums::{add, percent, total};
use crate::findings::{Confidence, Context, Finding, Kind, Remedy, Rule, Whole, time_text};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::super::ALL`].
pub const KIND: Kind = Kind {
    name: "cgroup-share",
    what: "io.cost holds bios of a control group back though requests are free",
    rule: Rule {
        condition: "a request that a process waits for waits from Q to G while requests are free, \
                    the context has an io.cost.qos that is enabled, and the process is not in the \
                    root group; where io.cost.model has its six numbers, what groups are billed \
                    tells whether the device's rate is used up",
        threshold: "50 us or more; 20 % of its process's waiting, or of the time from its first \
                    bio to its last; fewer than half of nr_requests are in use meanwhile",
        exception: "it is wbt, or io.cost's own events tell it (cgroup-cost)",
    },
    explains: &["no-request-free", "submit-blocked"],
    remedies: &[LARGER_WEIGHT, LARGER_MAX, LOOSER_QOS, TRUE_MODEL, NO_COST],
    rests_on_absence: false,
    detector: || Box::new(Waits::<Bills>::default()),
};

const LARGER_WEIGHT: Remedy = Remedy::set(
    "larger-io-weight",
    "cgroup.{}.io.weight",
    "",
    "it gets more of what its siblings get now",
);

const LARGER_MAX: Remedy = Remedy::set(
    "larger-vrate-max",
    "io.cost.qos",
    "",
    "the device may be used beyond what io.cost.model says",
);

/// The weight of a group that has no other, and the largest.
const WEIGHT: u64 = 100;
const WEIGHT_MAX: u64 = 10_000;

/// The rate is used up if groups are billed so much of it, in per cent.
const USED_UP_PERCENT: u64 = 90;

/// A group that is billed less than this part of all, in per cent, competes with nobody.
const COMPETES_PERCENT: u64 = 1;

/// What groups are billed.
#[derive(Debug, Default)]
struct Bills {
    /// The prices, looked up once.
    model: Option<Option<Model>>,
    /// By group: the device's time, and where its last request ended.
    groups: BTreeMap<String, (u64, Option<u64>)>,
    /// Requests of processes whose group is not known.
    nr_unknown: u64,
}

impl Story for Bills {
    const POLICY: Policy = Policy::Cost;

    fn request(&mut self, r: &Request, group: Option<&str>, context: &Context) {
        let Some(group) = group else {
            self.nr_unknown += 1;
            return;
        };
        if group == super::policy::ROOT {
            return;
        }
        let (billed_ns, last_end) = self.groups.entry(group.to_owned()).or_default();
        let model = self.model.get_or_insert_with(|| Model::known(context));
        if let Some(model) = model {
            add(billed_ns, model.price_ns(r, *last_end));
        }
        *last_end = Some(r.end());
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
        let found = Held::groups_of(&f, members, context);
        let is_known = found.iter().all(Option::is_some);
        let mut groups: Vec<String> = Vec::new();
        for group in found.into_iter().flatten() {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        f.what = format!(
            "{} wait{} {} on average for a share of the device (Q to G) though requests are free: \
             io.cost holds bios of {} back.",
            f.victim_names(),
            f.verb_end(),
            time_text(held.harm.total_ns() / held.harm.count().max(1)),
            if groups.is_empty() {
                "its group".to_owned()
            } else {
                groups.join(", ")
            }
        );
        let shares: Vec<String> = groups.iter().map(|g| self.share(g, context)).collect();
        f.cause = Some(match shares.as_slice() {
            [] => "io.cost".to_owned(),
            shares => format!("io.cost: {}", shares.join("; ")),
        });
        let mut how = vec![format!(
            "Its tasks sleep for {} % of the time",
            held.asleep_percent()
        )];
        let rate = self.rate(held.span_ns, context);
        how.extend(rate.map(|rate| rate.words(context)));
        f.how = format!("{}.", how.join("; "));
        f.confidence = Confidence::Likely;
        if !is_known {
            f.missing
                .push("which group the process is in (cgroup.NAME.processes)".to_owned());
        }
        if held.is_shared {
            f.doubt(
                Confidence::Possible,
                "whether it is io.latency of another group that holds it",
            );
        }
        if rate.is_none() {
            f.missing
                .push("iocost's events (iocost_ioc_vrate_adj), or io.cost.model".to_owned());
        }
        for group in groups
            .iter()
            .filter(|g| self.competitors(g).next().is_some())
        {
            let weight = weight(group, context);
            if weight < WEIGHT_MAX {
                let more = (weight * 2).min(WEIGHT_MAX);
                f.remedies.push(LARGER_WEIGHT.filled_with(group).to(more));
            }
        }
        match rate {
            Some(rate) if rate.is_used_up() => {
                f.remedies.extend(larger_max(context));
                f.remedies.push(TRUE_MODEL);
            }
            Some(_) => f.remedies.push(LOOSER_QOS),
            None => f.remedies.extend([LOOSER_QOS, TRUE_MODEL]),
        }
        f.remedies.push(NO_COST);
        Some(f)
    }
}

impl Bills {
    /// The groups with I/O that have the same parent as this one.
    fn competitors<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a str> {
        let all_ns = total(self.groups.values().map(|(ns, _)| *ns));
        let parent = |group: &str| group.rfind('/').map(|at| group[..at].to_owned());
        let others = self.groups.iter();
        others
            .filter(move |(other, (ns, _))| {
                let is_other = other.as_str() != group && parent(other) == parent(group);
                is_other && (all_ns == 0 || percent(*ns, all_ns) >= COMPETES_PERCENT)
            })
            .map(|(other, _)| other.as_str())
    }

    /// The share of a group, in words.
    fn share(&self, group: &str, context: &Context) -> String {
        let own = weight(group, context);
        let others: Vec<&str> = self.competitors(group).collect();
        if others.is_empty() {
            return format!("{group} has no other beside it, whatever its io.weight ({own})");
        }
        let all = total(others.iter().map(|g| weight(g, context))).saturating_add(own);
        format!(
            "the share of {group}, io.weight {own} of {all} beside {}",
            others.join(", ")
        )
    }

    /// What all groups were billed of a time; none where prices or groups are not known.
    fn rate(&self, span_ns: u64, context: &Context) -> Option<Rate> {
        Model::known(context).filter(|_| self.nr_unknown == 0)?;
        let billed_ns = total(self.groups.values().map(|(ns, _)| *ns));
        Some(Rate {
            percent: percent(billed_ns, span_ns),
            max_percent: qos_number(context, "max"),
        })
    }
}

/// How much of the device's time was billed.
#[derive(Clone, Copy, Debug)]
struct Rate {
    percent: u64,
    /// What io.cost.qos allows.
    max_percent: Option<u64>,
}

impl Rate {
    fn is_used_up(self) -> bool {
        let most = self.max_percent.unwrap_or(100);
        self.percent >= most.saturating_mul(USED_UP_PERCENT) / 100
    }

    fn words(self, context: &Context) -> String {
        let billed = format!(
            "groups are billed {} % of the time by io.cost.model",
            self.percent
        );
        let max = match self.max_percent {
            Some(max) => format!("io.cost.qos lets them have {max} % at most"),
            None => "io.cost.qos names no max".to_owned(),
        };
        let why = if self.is_used_up() {
            "all is used up"
        } else if qos_number(context, "rpct").unwrap_or(0)
            + qos_number(context, "wpct").unwrap_or(0)
            > 0
        {
            "less was given out, as it is when rlat or wlat is missed, or groups leave theirs unused"
        } else {
            "less was given out"
        };
        format!("{billed}, {max}: {why}")
    }
}

/// A number of io.cost.qos, without what is behind its point.
fn qos_number(context: &Context, key: &str) -> Option<u64> {
    let said = context.io_cost_qos()?;
    let value = |word: &str| {
        let value = word.strip_prefix(key)?.strip_prefix('=')?;
        value.split('.').next()?.parse().ok()
    };
    said.split_whitespace().find_map(value)
}

/// io.cost.qos with twice the largest rate; none where it names none.
fn larger_max(context: &Context) -> Option<Remedy> {
    let (said, max) = (context.io_cost_qos()?, qos_number(context, "max")?);
    let words = said
        .split_whitespace()
        .map(|word| match word.split_once('=') {
            Some(("max", _)) => format!("max={}", max.saturating_mul(2)),
            _ => word.to_owned(),
        });
    let words: Vec<String> = words.collect();
    Some(LARGER_MAX.to(words.join(" ")))
}

/// The weight of a group: `default 300`, or the number alone.
fn weight(group: &str, context: &Context) -> u64 {
    let mut files = context.of_groups("io.weight");
    let said = files.find(|(of, _)| *of == group);
    let said = said.map_or("", |(_, said)| said);
    let number = said.strip_prefix("default").unwrap_or(said);
    number.trim().parse().unwrap_or(WEIGHT)
}
