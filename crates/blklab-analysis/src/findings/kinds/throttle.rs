// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups' limits (`io.max`, blk-throttle) hold bios back.
//!
//! blk-throttle lets a group's bios through until its budget of a slice is used up,
//! then holds them until the next; a worker of the kernel submits what was held
//! (`block/blk-throttle.c`). On kernels where Q comes behind it the wait is not in the
//! life of the bio: what the trace shows is that bios of the group are queued by a
//! kworker, after a pause, at the beginning of a burst.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Whole, time_text,
};
use blklab_trace::{Action, Event};
use blklab_types::{Dev, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "cgroup-limit",
    what: "a control group's limit (io.max, blk-throttle) holds bios back",
    rule: "blk-throttle says in a message that it holds a bio ('throtl ... bio.'), and after 1 ms \
           or more without a bio of the process it held one of, a worker submits it; or the \
           context has an io.max and a process's bios come in bursts that a kworker begins, 3 \
           times or more, 20 ms to 1 s apart",
    explains: &["held-back"],
    rests_on_absence: false,
    detector: || Box::new(Throttle::default()),
};

/// A bio that is held for less did not wait.
const HELD_NS: u64 = 1_000_000;

/// After the worker submitted what was held, its process goes on within this time of
/// its end.
const RESUMES_NS: u64 = 2_000_000;

/// Who goes on after less than this part of what was held, was not held.
const VICTIM_SHARE: f64 = 0.1;

/// A burst is over for so long before the next begins.
const PAUSE_NS: std::ops::RangeInclusive<u64> = 20_000_000..=1_000_000_000;

/// Bursts so often.
const BURSTS_MIN: u64 = 3;

#[derive(Debug, Default)]
struct Throttle {
    /// By device: when a bio was held, and the event.
    held: BTreeMap<Dev, Vec<(Time, Evidence)>>,
    /// When what was held is let through.
    let_go: BTreeMap<Dev, Vec<Time>>,
    messages: BTreeMap<Dev, u64>,
    kworkers: BTreeSet<Pid>,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    bursts: u64,
    by_message: bool,
}

impl Detector for Throttle {
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        let Some(said) = text.strip_prefix("throtl") else {
            return;
        };
        *self.messages.entry(event.dev).or_default() += 1;
        if said.contains(" bio. ") {
            let evidence = Evidence {
                number: number + 1,
                event: *event,
                text: Some(text.to_owned()),
            };
            self.held
                .entry(event.dev)
                .or_default()
                .push((event.time, evidence));
        } else if said.contains("bios disp=") {
            self.let_go.entry(event.dev).or_default().push(event.time);
        }
    }

    fn process(&mut self, pid: Pid, comm: &str) {
        // The workqueue of blk-throttle has a thread of its own name for emergencies.
        if comm.starts_with("kworker") || comm == "kthrotld" {
            self.kworkers.insert(pid)
        } else {
            self.kworkers.remove(&pid)
        };
    }

    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            self.by_messages(section, disk.dev);
            if !self.messages.contains_key(&disk.dev) && context.io_max().next().is_some() {
                self.by_bursts(section, disk.dev);
            }
        }
        self.held.clear();
        self.let_go.clear();
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// Q of a device, in order of time.
fn queued(section: &Section, dev: Dev) -> Vec<usize> {
    let events = section.events();
    let is_queue = |i: &usize| events[*i].dev == dev && events[*i].action == Action::Queue;
    (0..events.len()).filter(is_queue).collect()
}

impl Throttle {
    /// Held at a message, queued when the worker lets it go: who went on after it?
    fn by_messages(&mut self, section: &Section, dev: Dev) {
        let Some(held) = self.held.get(&dev) else {
            return;
        };
        let events = section.events();
        let queued = queued(section, dev);
        let sum = self.disks.entry(dev).or_default();
        sum.by_message = true;
        for (time, message) in held {
            // Before Q of it, the message; after it, the process that goes on.
            let first = queued.partition_point(|i| events[*i].time <= *time);
            let before = queued[..first].last().map(|i| events[*i].pid);
            let Some(let_go) = self
                .let_go
                .get(&dev)
                .and_then(|all| all.get(all.partition_point(|t| t < time)).copied())
            else {
                continue;
            };
            let worker = queued.partition_point(|i| events[*i].time < let_go);
            // The worker, if names tell who it is; it may not be the first to queue.
            let soon = queued[worker..]
                .iter()
                .map(|i| &events[*i])
                .take_while(|e| e.time.since(let_go).0 <= RESUMES_NS);
            let is_worker = |e: &&Event| self.kworkers.contains(&e.pid);
            let Some(own) = soon.clone().find(is_worker).or(soon.clone().next()) else {
                continue;
            };
            let ns = own.time.since(*time).0;
            let resumed = soon
                .filter(|e| e.time > own.time && e.pid != own.pid)
                .find(|e| !is_worker(e) && quiet(events, &queued[first..worker], e.pid));
            let before = before.filter(|pid| !self.kworkers.contains(pid));
            let victim = resumed.map(|e| e.pid).or(before);
            let (Some(victim), true) = (victim, ns >= HELD_NS) else {
                continue;
            };
            sum.bursts += 1;
            sum.harm.add(victim, ns, || {
                let sectors = [own.sector, own.end_sector()];
                let queue = section.find(Action::Queue, dev, own.time, sectors);
                Instance {
                    time: *time,
                    delay_ns: Some(ns),
                    evidence: std::iter::once(message.clone()).chain(queue).collect(),
                }
            });
        }
    }

    /// A kworker queues one bio, and a process that was quiet goes on.
    fn by_bursts(&mut self, section: &Section, dev: Dev) {
        let events = section.events();
        let queued = queued(section, dev);
        let of_worker = |pid: Pid| self.kworkers.contains(&pid);
        let mut last: BTreeMap<Pid, Time> = BTreeMap::new();
        for (n, i) in queued.iter().enumerate() {
            let e = &events[*i];
            if of_worker(e.pid) {
                let then = queued[n + 1..].iter().map(|i| &events[*i]).take(16);
                // Others, whom nothing holds back, may queue something in between.
                let resumed = then
                    .take_while(|next| next.time.since(e.time).0 <= RESUMES_NS)
                    .filter(|next| !of_worker(next.pid))
                    .filter_map(|next| Some((next.pid, *last.get(&next.pid)?)))
                    .find(|(_, before)| PAUSE_NS.contains(&e.time.since(*before).0));
                if let Some((pid, before)) = resumed {
                    let ns = e.time.since(before).0;
                    let sum = self.disks.entry(dev).or_default();
                    sum.bursts += 1;
                    sum.harm.add(pid, ns, || Instance {
                        time: before,
                        delay_ns: Some(ns),
                        evidence: vec![section.evidence(*i)],
                    });
                }
            } else {
                last.insert(e.pid, e.time);
            }
        }
    }
}

/// Whether a process queues nothing among these.
fn quiet(events: &[Event], queued: &[usize], pid: Pid) -> bool {
    queued.iter().all(|i| events[*i].pid != pid)
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        self.harm.keep_most(VICTIM_SHARE);
        if self.harm.is_empty() || (!self.by_message && self.bursts < BURSTS_MIN) {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        f.of = "bios held back";
        let who = f.victim_names();
        f.what = format!(
            "A limit of its control group holds I/O of {who} back: {} times, {} on average.",
            self.harm.count(),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        f.how = "blk-throttle lets a burst through, then holds the next bio until the group has \
                 budget again; a worker submits it. The wait lies before Q: from Q to C the bios \
                 are quick."
            .to_owned();
        let limits: Vec<(&str, &str)> = whole.context.io_max().collect();
        match limits.as_slice() {
            [] => {
                f.cause = Some("its control group's own limit".to_owned());
                f.missing
                    .push("the group and its io.max (or blkio.throttle)".to_owned());
                f.remedies
                    .push(Remedy::act("raise or remove io.max of its control group"));
            }
            limits => {
                let shown = |(group, limit): &(&str, &str)| format!("io.max of {group}: {limit}");
                let shown: Vec<String> = limits.iter().map(shown).collect();
                f.cause = Some(format!(
                    "its control group's own limit ({})",
                    shown.join("; ")
                ));
                for (group, _) in limits {
                    f.remedies.push(Remedy::Set {
                        key: format!("cgroup.{group}.io.max"),
                        value: "max".to_owned(),
                        note: format!("raise or remove the limit of {group}"),
                    });
                }
            }
        }
        if !self.by_message {
            f.doubt(Confidence::Likely, "blk-throttle's messages");
        }
        Some(f)
    }
}
