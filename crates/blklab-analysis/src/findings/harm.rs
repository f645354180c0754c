// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instances of one kind, added up: who waited how long, who is to blame, which were
//! the first and the worst.

use super::Kind;
use super::finding::{Finding, Instance, Party};
use super::section::Section;
use super::spells::What;
use super::sums::{add, total};
use super::threads::name_writers;
use super::whole::Whole;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// What was found of a kind on a device.
#[derive(Clone, Debug, Default)]
pub struct Harm {
    count: u64,
    total_ns: u64,
    worst_ns: u64,
    first: Option<Instance>,
    worst: Option<Instance>,
    victims: BTreeMap<Pid, (u64, u64)>,
    causes: BTreeMap<Pid, u64>,
}

impl Harm {
    /// Adds a request that was delayed. `instance` is asked for only if it is the first
    /// or the worst so far.
    pub fn add(&mut self, victim: Pid, delay_ns: u64, instance: impl FnOnce() -> Instance) {
        let is_worst = self.count == 0 || delay_ns > self.worst_ns;
        self.count += 1;
        add(&mut self.total_ns, delay_ns);
        let (n, ns) = self.victims.entry(victim).or_default();
        *n += 1;
        add(ns, delay_ns);
        if is_worst {
            self.worst_ns = delay_ns;
            let instance = instance();
            match self.first {
                None => self.first = Some(instance),
                Some(_) => self.worst = Some(instance),
            }
        }
    }

    /// Blames a process, with a weight.
    pub fn blame(&mut self, pid: Pid, weight: u64) {
        add(self.causes.entry(pid).or_default(), weight);
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Instances.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All delay in ns.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest delay in ns.
    pub fn worst_ns(&self) -> u64 {
        self.worst_ns
    }

    /// Delay of each process in ns, with the number of its requests.
    pub fn victims(&self) -> &BTreeMap<Pid, (u64, u64)> {
        &self.victims
    }

    /// Leaves out those who lose little by it: less than [`SHARE_MIN`] of the time that
    /// they wait for I/O, and never long.
    ///
    /// The instances shown stay those of all.
    pub fn keep_who_suffers(&mut self, dev: Dev, whole: &Whole<'_>) {
        let suffers = |pid: Pid, ns: u64, n: u64| {
            let waited = whole.waited(dev, pid).waited_ns.max(1);
            ns as f64 >= SHARE_MIN * waited as f64 || ns / n.max(1) >= LONG_NS
        };
        self.keep(|pid, (n, ns)| suffers(pid, ns, n));
    }

    /// Leaves out those who have less than this part of all instances: they were taken
    /// for somebody else.
    pub fn keep_most(&mut self, part: f64) {
        let all = self.count as f64;
        self.keep(|_, (n, _)| n as f64 >= part * all);
    }

    /// Leaves out those who do not stay, by their number of instances and their delay in ns.
    pub fn keep(&mut self, stays: impl Fn(Pid, (u64, u64)) -> bool) {
        self.victims.retain(|pid, sums| stays(*pid, *sums));
        self.count = self.victims.values().map(|(n, _)| n).sum();
        self.total_ns = total(self.victims.values().map(|(_, ns)| *ns));
    }

    /// A finding of a kind on a device, filled in, if there is somebody who suffers.
    pub fn finding(&mut self, kind: &Kind, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        self.keep_who_suffers(dev, whole);
        if self.is_empty() {
            return None;
        }
        let mut finding = Finding::new(kind.name, dev, "");
        self.fill(&mut finding, whole);
        Some(finding)
    }

    /// A finding of a kind on a device whose instances delay nobody by a time that could
    /// be told.
    pub fn without_delay(&self, kind: &Kind, dev: Dev, whole: &Whole<'_>) -> Finding {
        let mut finding = Finding::new(kind.name, dev, "");
        self.fill(&mut finding, whole);
        (finding.total_ns, finding.worst_ns) = (None, None);
        for victim in &mut finding.victims {
            victim.delay_ns = 0;
        }
        finding
    }

    /// Fills a finding in.
    pub fn fill(&self, finding: &mut Finding, whole: &Whole<'_>) {
        finding.count = self.count;
        finding.total_ns = Some(self.total_ns);
        finding.worst_ns = Some(self.worst_ns);
        finding.first = self.first.clone();
        finding.worst = self.worst.clone();
        finding.victims = parties(&self.victims, whole);
        let causes = self.causes.iter().map(|(pid, n)| (*pid, (*n, 0)));
        finding.causes = parties(&causes.collect(), whole);
        name_writers(&mut finding.causes, whole.context);
    }
}

/// Who loses less than this part of the time that it waits for I/O does not suffer.
pub const SHARE_MIN: f64 = 0.2;

/// Who is delayed by as much as this on average suffers, whatever part it is: people
/// notice it.
pub const LONG_NS: u64 = 100_000_000;

/// Processes, most delay first, then most requests.
pub fn parties(all: &BTreeMap<Pid, (u64, u64)>, whole: &Whole<'_>) -> Vec<Party> {
    let mut parties: Vec<Party> = all
        .iter()
        .map(|(pid, (requests, delay_ns))| Party {
            pid: *pid,
            comm: whole.comm(*pid),
            requests: *requests,
            delay_ns: *delay_ns,
            writes_for: None,
        })
        .collect();
    parties.sort_by_key(|p| std::cmp::Reverse((p.delay_ns, p.requests)));
    parties
}

/// Adds the spells of a section that lasted so long, each to the harm of its disk.
pub(crate) fn add_spells(
    disks: &mut BTreeMap<Dev, Harm>,
    section: &Section,
    what: What,
    at_least_ns: u64,
) {
    let spells = section.spells.iter();
    for spell in spells.filter(|s| s.what == what && s.ns() >= at_least_ns) {
        let harm = disks.entry(section.disk_of(spell.dev)).or_default();
        harm.add(spell.pid, spell.ns(), || Instance {
            time: spell.from,
            delay_ns: Some(spell.ns()),
            evidence: spell.evidence.clone(),
        });
    }
}

/// The findings of all devices, in order.
pub fn of_disks<S>(
    disks: &mut BTreeMap<Dev, S>,
    mut finding: impl FnMut(S, Dev) -> Option<Finding>,
) -> Vec<Finding> {
    let disks = std::mem::take(disks).into_iter();
    disks.filter_map(|(dev, sum)| finding(sum, dev)).collect()
}
