// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O is done, and its process does not run: it waits for a CPU.
//!
//! What an application sees as latency then is not the device's: between the C of its
//! request, which wakes it, and the `sched_switch` to it others run.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{OffCpu, Spell, What};
use crate::findings::{Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text};
use blklab_trace::Action;
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "cpu-wait",
    what: "a process does not run when its I/O is done: it waits for a CPU, not for the device",
    rule: Rule {
        condition: "a task is woken (sched_wakeup) right after a C of its own, and sched_switch \
                    lets it run only later",
        threshold: "woken at most 1 ms after the C, running 1 ms later or more; 3 times or more, \
                    and for 20 % of its waiting for I/O in all",
        exception: "",
    },
    explains: &[],
    remedies: &[MORE_CPU, FEWER_TASKS],
    rests_on_absence: false,
    detector: || Box::new(CpuWait::default()),
};

const MORE_CPU: Remedy = Remedy::outside(
    "more-cpu",
    Outside::Machine,
    "a higher priority (nice, chrt) or CPUs of its own (taskset, cpuset) for the task that \
     waits",
);

const FEWER_TASKS: Remedy = Remedy::outside(
    "fewer-tasks",
    Outside::Machine,
    "fewer or nicer tasks that compute on the same CPUs",
);

/// Who runs sooner did not wait.
const SLOW_NS: u64 = 1_000_000;

/// Between the C of a request and the wake-up of who waits for it.
const NEAR_NS: u64 = 1_000_000;

/// So often, so that it is no chance.
const TIMES_MIN: u64 = 3;

#[derive(Debug, Default)]
struct CpuWait {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
}

/// When requests of a process were done: the time, the disk, its place, and that of the
/// request.
type Ends = BTreeMap<Pid, Vec<(Time, usize, usize)>>;

impl Detector for CpuWait {
    fn section(&mut self, section: &Section, _: &Context) {
        let slept = section.spells.iter().filter_map(|s| match s.what {
            What::OffCpu(o) => Some((s, o)),
            _ => None,
        });
        let slept: Vec<(&Spell, OffCpu)> = slept.collect();
        if slept.is_empty() {
            return;
        }
        let ends = ends(section);
        for (spell, off) in slept {
            let own = ends.get(&spell.pid).map_or(&[][..], Vec::as_slice);
            let next = own.partition_point(|(t, ..)| *t <= off.woken);
            let Some((end, disk, place)) = next.checked_sub(1).map(|i| own[i]) else {
                continue;
            };
            let since = off.woken;
            let is_its_io = since.since(end).0 <= NEAR_NS;
            let ns = spell.to.since(since).0;
            if !is_its_io || end < spell.from || ns < SLOW_NS {
                continue;
            }
            let disk = &section.disks[disk];
            let sum = self.disks.entry(disk.dev).or_default();
            if off.ran > 0 {
                sum.harm.blame(off.ran, ns);
            }
            sum.harm.add(spell.pid, ns, || {
                let r = &disk.requests[place];
                let sectors = [r.life.sector, r.end()];
                let done = section.find(Action::Complete, disk.dev, end, sectors);
                let mut evidence = spell.evidence.clone();
                evidence.extend(done);
                in_order(&mut evidence);
                Instance {
                    time: since,
                    delay_ns: Some(ns),
                    evidence,
                }
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

fn ends(section: &Section) -> Ends {
    let mut ends = Ends::new();
    for (disk, d) in section.disks.iter().enumerate() {
        for (place, r) in d.requests.iter().enumerate() {
            if let Some(end) = r.life.complete {
                ends.entry(r.pid).or_default().push((end, disk, place));
            }
        }
    }
    ends.values_mut().for_each(|all| all.sort_unstable());
    ends
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        if self.harm.count() < TIMES_MIN {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "waits for a CPU";
        f.what = format!(
            "{} run{} {} later on average than {} I/O is done.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            if f.victims.len() == 1 { "its" } else { "their" },
        );
        f.how =
            "This is no latency of the device or the block layer: the process is awake, and its \
                 CPU runs something else."
                .to_owned();
        f.remedies = vec![MORE_CPU, FEWER_TASKS];
        Some(f)
    }
}
