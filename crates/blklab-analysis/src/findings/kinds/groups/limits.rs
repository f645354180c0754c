// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of control groups as a context names them (`io.max`, `blkio.throttle.*`), and who goes
//! just as fast as they allow.
//!
//! A group that reaches its limit has its bios submitted by a worker, at the limit's rate; where
//! it has one at a time, they come evenly, and no burst shows that they were held.

use super::Members;
use crate::findings::context::is_in;
use crate::findings::harm::Harm;
use crate::findings::section::Section;
use crate::findings::sums::add;
use crate::findings::{Context, Instance};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, Pid, Time};
use std::collections::BTreeMap;

/// Files of the first version, each with what it limits.
static OF_VERSION_1: [(&str, Side, Unit); 4] = [
    ("blkio.throttle.read_bps_device", Side::Reads, Unit::Bytes),
    ("blkio.throttle.write_bps_device", Side::Writes, Unit::Bytes),
    ("blkio.throttle.read_iops_device", Side::Reads, Unit::Ios),
    ("blkio.throttle.write_iops_device", Side::Writes, Unit::Ios),
];

/// Words of `io.max`.
static OF_VERSION_2: [(&str, Side, Unit); 4] = [
    ("rbps=", Side::Reads, Unit::Bytes),
    ("wbps=", Side::Writes, Unit::Bytes),
    ("riops=", Side::Reads, Unit::Ios),
    ("wiops=", Side::Writes, Unit::Ios),
];

/// Who goes at this part of the limit, in per cent, goes as fast as it allows.
const AT_LIMIT_PERCENT: std::ops::RangeInclusive<u64> = 90..=105;

/// So many bios for so long, so that it is no chance.
const BIOS_MIN: u64 = 20;
const SPAN_MIN_NS: u64 = 1_000_000_000;

/// A worker submits so many of ten of what is held where bios come evenly.
const HELD_OF_TEN: u64 = 5;

/// A group without a bio for less was not held.
const PAUSE_MIN_NS: u64 = 1_000_000;

/// More of a group's bios are not under way at a time; what a trace shows no end of is forgotten.
const UNDER_WAY_MAX: usize = 4096;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
}

/// In what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Bytes per second.
    Bytes,
    /// I/Os per second.
    Ios,
}

/// A limit of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit<'a> {
    /// The group.
    pub group: &'a str,
    /// Its file.
    pub file: &'a str,
    /// What that says.
    pub said: &'a str,
    /// What is limited.
    pub side: Side,
    /// In what.
    pub unit: Unit,
    /// How much of it.
    pub per_s: u64,
}

/// All files of limits, with what they say: group, file, value.
pub fn files(context: &Context) -> impl Iterator<Item = (&str, &'static str, &str)> {
    let v2 = context
        .io_max()
        .map(|(group, said)| (group, "io.max", said));
    let v1 = OF_VERSION_1.iter().flat_map(move |(file, ..)| {
        let of_file = context.of_groups(file);
        of_file.map(move |(group, said)| (group, *file, said))
    });
    v2.chain(v1)
}

/// All limits that are numbers.
pub fn limits(context: &Context) -> impl Iterator<Item = Limit<'_>> {
    files(context).flat_map(|(group, file, said)| {
        let limit = move |side, unit, per_s: Option<u64>| {
            let per_s = per_s.filter(|n| *n > 0)?;
            Some(Limit {
                group,
                file,
                said,
                side,
                unit,
                per_s,
            })
        };
        let of_version_1 = OF_VERSION_1.iter().filter(move |(own, ..)| *own == file);
        let v1 = of_version_1.filter_map(move |(_, side, unit)| {
            let number = said.split_whitespace().next_back()?.parse().ok();
            limit(*side, *unit, number)
        });
        let of_version_2 = OF_VERSION_2.iter().filter(move |_| file == "io.max");
        let v2 = of_version_2.filter_map(move |(key, side, unit)| {
            let mut words = said.split_whitespace();
            let number = words.find_map(|w| w.strip_prefix(key)?.parse().ok());
            limit(*side, *unit, number)
        });
        v1.chain(v2)
    })
}

/// Whether a limit governs a group.
pub fn governs(group: &str, context: &Context) -> bool {
    files(context).any(|(limited, ..)| is_in(group, limited))
}

/// What a limited group had.
#[derive(Debug, Default)]
struct Flow {
    bios: u64,
    /// Those of them that a worker submitted.
    of_worker: u64,
    bytes: u64,
    span_ns: u64,
    harm: Harm,
}

/// Who goes as fast as a limit allows, by device, group and direction.
#[derive(Debug, Default)]
pub struct AtLimit {
    flows: BTreeMap<(Dev, String, Side), Flow>,
}

/// A group's bios under way on a device, while a section is looked at.
#[derive(Debug, Default)]
struct Walk {
    first: Option<Time>,
    last: Time,
    /// Where those under way end.
    ends: Vec<u64>,
    idle_since: Option<Time>,
    /// The process of the group that queued last.
    pid: Option<Pid>,
}

impl AtLimit {
    /// Adds a device in a section up. A worker's bios are those of the one group that is limited;
    /// of several it is not known whose they are.
    pub fn section(
        &mut self,
        section: &Section,
        dev: Dev,
        members: &mut Members,
        is_worker: impl Fn(Pid) -> bool,
        context: &Context,
    ) {
        for side in [Side::Reads, Side::Writes] {
            let mut groups: Vec<&str> = limits(context)
                .filter(|l| l.side == side)
                .map(|l| l.group)
                .collect();
            groups.sort_unstable();
            groups.dedup();
            if let [group] = groups.as_slice() {
                let key = (dev, (*group).to_owned(), side);
                let flow = self.flows.entry(key).or_default();
                let mut own = |e: &Event| {
                    let of_worker = is_worker(e.pid);
                    let is_waited_for = side == Side::Reads || e.rwbs.has(Rwbs::SYNC);
                    let member = members.group_of(e.pid, context);
                    if member.is_some_and(|own| is_in(own, group)) {
                        Some(false)
                    } else {
                        (of_worker && is_waited_for).then_some(true)
                    }
                };
                flow.section(section, dev, side, &mut own);
            }
        }
    }

    /// Groups of a device that go as fast as a limit allows, with how long they had nothing under
    /// way.
    pub fn found<'a>(
        &mut self,
        dev: Dev,
        context: &'a Context,
    ) -> impl Iterator<Item = (Limit<'a>, Harm)> {
        let flows = &mut self.flows;
        limits(context).filter_map(move |limit| {
            let key = (dev, limit.group.to_owned(), limit.side);
            let flow = flows.get_mut(&key)?;
            let is_it = flow.is_at(&limit) && !flow.harm.is_empty();
            is_it.then(|| (limit, std::mem::take(&mut flow.harm)))
        })
    }
}

impl Flow {
    /// `own` says of a Q whether it is the group's, and whether a worker submits it for it.
    fn section(
        &mut self,
        section: &Section,
        dev: Dev,
        side: Side,
        own: &mut impl FnMut(&Event) -> Option<bool>,
    ) {
        let op = match side {
            Side::Reads => Op::Read,
            Side::Writes => Op::Write,
        };
        let is_its = |e: &Event| e.dev == dev && e.rwbs.op() == Some(op) && e.bytes > 0;
        let mut walk = Walk::default();
        for (place, e) in section
            .events()
            .iter()
            .enumerate()
            .filter(|(_, e)| is_its(e))
        {
            match e.action {
                Action::Queue => {
                    let Some(of_worker) = own(e) else { continue };
                    if !of_worker {
                        walk.pid = Some(e.pid);
                    }
                    self.bios += 1;
                    self.of_worker += u64::from(of_worker);
                    add(&mut self.bytes, e.bytes.into());
                    walk.first.get_or_insert(e.time);
                    walk.last = e.time;
                    if let Some(since) = walk.idle_since.take() {
                        let ns = e.time.since(since).0;
                        if of_worker && ns >= PAUSE_MIN_NS {
                            self.harm.add(walk.pid.unwrap_or(e.pid), ns, || Instance {
                                time: since,
                                delay_ns: Some(ns),
                                evidence: vec![section.evidence(place)],
                            });
                        }
                    }
                    if walk.ends.len() >= UNDER_WAY_MAX {
                        walk.ends.clear();
                    }
                    walk.ends.push(e.end_sector());
                }
                Action::Complete => {
                    let nr_before = walk.ends.len();
                    walk.ends
                        .retain(|end| *end <= e.sector || *end > e.end_sector());
                    if nr_before > 0 && walk.ends.is_empty() {
                        walk.idle_since = Some(e.time);
                    }
                }
                _ => {}
            }
        }
        if let Some(first) = walk.first {
            add(&mut self.span_ns, walk.last.since(first).0);
        }
    }

    /// Whether it went as fast as a limit allows, and a worker let it go.
    fn is_at(&self, limit: &Limit<'_>) -> bool {
        if self.bios < BIOS_MIN
            || self.span_ns < SPAN_MIN_NS
            || self.of_worker * 10 < self.bios * HELD_OF_TEN
        {
            return false;
        }
        let amount = match limit.unit {
            Unit::Bytes => self.bytes,
            Unit::Ios => self.bios,
        };
        let per_s = u128::from(amount) * 1_000_000_000 / u128::from(self.span_ns);
        let percent = per_s * 100 / u128::from(limit.per_s);
        u64::try_from(percent).is_ok_and(|percent| AT_LIMIT_PERCENT.contains(&percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_both_versions_are_read() {
        let text = "cgroup.a.io.max=8:0 rbps=max wbps=1048576 riops=100 wiops=max\n\
                    cgroup.b.blkio.throttle.read_bps_device=8:0 4096\n\
                    cgroup.c.blkio.throttle.write_iops_device=70\n\
                    cgroup.d.blkio.throttle.read_iops_device=0";
        let context = Context::parse(text).expect("a context");
        let said: Vec<(&str, Side, Unit, u64)> = limits(&context)
            .map(|l| (l.group, l.side, l.unit, l.per_s))
            .collect();
        assert_eq!(
            said,
            [
                ("a", Side::Writes, Unit::Bytes, 1_048_576),
                ("a", Side::Reads, Unit::Ios, 100),
                ("b", Side::Reads, Unit::Bytes, 4096),
                ("c", Side::Writes, Unit::Ios, 70),
            ]
        );
        assert!(governs("c/d", &context) && governs("c", &context));
        assert!(!governs("cd", &context) && !governs("/", &context));
    }
}
