// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that sleep though requests are free, since a controller of control groups holds them.

use super::{InUse, Members, Policy};
use crate::findings::disk::Request;
use crate::findings::harm::{Harm, LONG_NS, SHARE_MIN, of_disks};
use crate::findings::section::Section;
use crate::findings::sums::{add, percent};
use crate::findings::{Context, Detector, Finding, Party, Whole};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// A request that comes within this time was not waited for.
const ASLEEP_MIN_NS: u64 = 50_000;

/// What a controller's settings and a trace say of groups beside the waits.
pub trait Story: std::fmt::Debug + Default {
    /// The controller.
    const POLICY: Policy;

    /// A request of a process in this group.
    fn request(&mut self, r: &Request, group: Option<&str>, context: &Context);

    /// What was found on a device.
    fn finding(
        self,
        held: Held,
        dev: Dev,
        whole: &Whole<'_>,
        members: &mut Members,
    ) -> Option<Finding>;
}

/// Those who are held on a device.
#[derive(Debug, Default)]
pub struct Held {
    /// Who sleeps how long.
    pub harm: Harm,
    /// From the first event to the last, ns.
    pub span_ns: u64,
    /// From its first bio to its last end, of each process, ns.
    spans: BTreeMap<Pid, u64>,
    /// Another controller can be why.
    pub is_shared: bool,
}

impl Held {
    /// Leaves out those who lose little: neither a part of the time that they wait for I/O, nor
    /// of their time, nor long at once. Whether anybody stays.
    pub fn keep_who_suffers(&mut self, dev: Dev, whole: &Whole<'_>) -> bool {
        let spans = &self.spans;
        self.harm.keep(|pid, (n, ns)| {
            let waited_ns = whole.waited(dev, pid).waited_ns;
            let span_ns = spans.get(&pid).copied().unwrap_or(0);
            let least_ns = waited_ns.min(span_ns).max(1);
            ns as f64 >= SHARE_MIN * least_ns as f64 || ns / n.max(1) >= LONG_NS
        });
        !self.harm.is_empty()
    }

    /// The groups of those who suffer; none of a process whose group nobody knows.
    pub fn groups_of(f: &Finding, members: &mut Members, context: &Context) -> Vec<Option<String>> {
        let group = |v: &Party| members.group_of(v.pid, context).map(str::to_owned);
        f.victims.iter().map(group).collect()
    }

    /// The part of their time that those who suffer sleep, in per cent.
    pub fn asleep_percent(&self) -> u64 {
        let mut all_ns = 0;
        for pid in self.harm.victims().keys() {
            add(&mut all_ns, self.spans.get(pid).copied().unwrap_or(0));
        }
        percent(self.harm.total_ns(), all_ns).min(100)
    }
}

/// Looks for them.
#[derive(Debug, Default)]
pub struct Waits<S> {
    members: Members,
    /// Which controllers can hold a group: looked up once for each.
    policies: BTreeMap<Option<String>, Vec<Policy>>,
    disks: BTreeMap<Dev, (Held, S)>,
}

impl<S: Story> Detector for Waits<S> {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.members.named(pid, comm);
    }

    fn section(&mut self, section: &Section, context: &Context) {
        let is_set = Policy::of_group(None, context).any(|p| p == S::POLICY);
        let with_requests = section.disks.iter().filter(|d| d.nr_issued > 0);
        for disk in with_requests.filter(|_| is_set) {
            let in_use = InUse::new(disk);
            let (held, story) = self.disks.entry(disk.dev).or_default();
            add(&mut held.span_ns, disk.span[1].since(disk.span[0]).0);
            let mut spans: BTreeMap<Pid, [Time; 2]> = BTreeMap::new();
            for (r, w) in disk.divided() {
                let group = self.members.group_of(r.pid, context);
                story.request(r, group, context);
                if let (Some(start), Some(end)) = (r.start(), r.life.complete) {
                    let [first, last] = spans.entry(r.pid).or_insert([start, end]);
                    (*first, *last) = (start.min(*first), end.max(*last));
                }
                let is_long = r.is_sync && w.get_ns >= ASLEEP_MIN_NS;
                if !is_long || is_throttled_write(r, context) {
                    continue;
                }
                let looked_up = || Policy::of_group(group, context).collect();
                let key = group.map(str::to_owned);
                let can = self.policies.entry(key).or_insert_with(looked_up);
                if can.first() != Some(&S::POLICY) || !in_use.are_free(r, context) {
                    continue;
                }
                held.is_shared |= can.len() > 1;
                let instance = || section.instance(r, Some(w.get_ns));
                held.harm.add(r.pid, w.get_ns, instance);
            }
            for (pid, [from, to]) in spans {
                add(held.spans.entry(pid).or_default(), to.since(from).0);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let members = &mut self.members;
        of_disks(&mut self.disks, |(mut held, story), dev| {
            if !held.keep_who_suffers(dev, whole) {
                return None;
            }
            story.finding(held, dev, whole, members)
        })
    }
}

/// Whether write-back throttling may hold a request: it is asked behind the control groups.
fn is_throttled_write(r: &Request, context: &Context) -> bool {
    r.is_write() && context.queue("wbt_lat_usec").is_some_and(|us| us > 0)
}
