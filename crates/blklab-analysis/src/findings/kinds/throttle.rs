// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups' limits (`io.max`, blk-throttle) hold bios back.
//!
//! blk-throttle lets a group's bios through until its budget of a slice is used up,
//! then holds them until the next; a worker of the kernel submits what was held
//! (`block/blk-throttle.c`). On kernels where Q comes behind it the wait is not in the
//! life of the bio: what the trace shows is that bios of the group are queued by a
//! kworker, after a pause, at the beginning of a burst.

use super::groups::Members;
use super::groups::limits::{self, AtLimit, Limit};
use crate::findings::context::is_in;
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::Section;
use crate::findings::tasks::Tasks;
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Party, Remedy, Rule, Whole,
    counted, time_text,
};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Op, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "cgroup-limit",
    what: "a control group's limit (io.max, blk-throttle) holds bios back",
    rule: Rule {
        condition: "blk-throttle says in a message that it holds a bio ('throtl ... bio.'), and \
                    after a while without a bio of the process it held one of, a worker submits \
                    it, or one of its length and direction where no message says when it is let \
                    go; or the context has an io.max or blkio.throttle and a process's bios come in \
                    bursts that a kworker begins, or submits whole (reads and sync writes), or its \
                    group has just as many as that limit allows, of which a kworker submits most",
        threshold: "1 ms or more without a bio; 3 bursts or more, 20 ms to 1 s apart; 90 to 105 % \
                    of the limit, for 1 s and 20 bios or more",
        exception: "",
    },
    explains: &["held-back"],
    remedies: &[
        LOOSER_LIMIT,
        NO_LIMIT,
        NO_READ_BPS,
        NO_WRITE_BPS,
        NO_READ_IOPS,
        NO_WRITE_IOPS,
    ],
    rests_on_absence: false,
    detector: || Box::new(Throttle::default()),
};

const LOOSER_LIMIT: Remedy = Remedy::act(
    "looser-limit",
    Act::LooserLimit,
    "raise or remove io.max of its control group",
);

const NO_LIMIT: Remedy = Remedy::set(
    "no-limit",
    "cgroup.{}.io.max",
    "max",
    "raise or remove the limit of {}",
);

/// Those of the first version, by their files.
static OF_VERSION_1: [(&str, Remedy); 4] = [
    ("blkio.throttle.read_bps_device", NO_READ_BPS),
    ("blkio.throttle.write_bps_device", NO_WRITE_BPS),
    ("blkio.throttle.read_iops_device", NO_READ_IOPS),
    ("blkio.throttle.write_iops_device", NO_WRITE_IOPS),
];

const NO_READ_BPS: Remedy = Remedy::set(
    "no-read-bps",
    "cgroup.{}.blkio.throttle.read_bps_device",
    "0",
    "raise or remove the limit of {}",
);

const NO_WRITE_BPS: Remedy = Remedy::set(
    "no-write-bps",
    "cgroup.{}.blkio.throttle.write_bps_device",
    "0",
    "raise or remove the limit of {}",
);

const NO_READ_IOPS: Remedy = Remedy::set(
    "no-read-iops",
    "cgroup.{}.blkio.throttle.read_iops_device",
    "0",
    "raise or remove the limit of {}",
);

const NO_WRITE_IOPS: Remedy = Remedy::set(
    "no-write-iops",
    "cgroup.{}.blkio.throttle.write_iops_device",
    "0",
    "raise or remove the limit of {}",
);

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

/// Control groups by process.
type Groups<'a> = BTreeMap<Pid, &'a str>;

#[derive(Debug, Default)]
struct Throttle {
    /// By device: the messages that a bio is held.
    held: BTreeMap<Dev, Vec<Held>>,
    /// When what was held is let through.
    let_go: BTreeMap<Dev, Vec<Time>>,
    messages: BTreeMap<Dev, u64>,
    kworkers: Tasks,
    comms: BTreeMap<Pid, String>,
    members: Members,
    at_limit: AtLimit,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    bursts: u64,
    by_message: bool,
    /// Limits that messages name, with their groups.
    limits: BTreeSet<String>,
}

/// A bio is held, as blk-throttle says it (`throtl_log` in `blk_throtl_bio`,
/// block/blk-throttle.c): `throtl /group [R] bio. bdisp=8192 sz=4096 bps=1048576 iodisp=2
/// iops=4294967295 queued=0/0`.
#[derive(Debug)]
struct Held {
    time: Time,
    message: Evidence,
    /// The group as the message names it, without the slash in front; empty where it names
    /// none.
    group: String,
    is_read: bool,
    bytes: Option<u32>,
    limit: Option<String>,
}

impl Held {
    fn read(said: &str, message: Evidence) -> Held {
        let (group, rest) = said.split_once('[').unwrap_or(("", said));
        let value = |key: &str| {
            let of_key = |word: &str| word.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
            rest.split_whitespace().find_map(of_key)
        };
        // No limit is the largest number of its width.
        let endless = [u64::MAX, u64::from(u32::MAX)];
        let limited = |key: &str| {
            let limit: u64 = value(key)?.parse().ok()?;
            (!endless.contains(&limit)).then(|| format!("{key}={limit}"))
        };
        let limits: Vec<String> = ["bps", "iops"].into_iter().filter_map(limited).collect();
        let group = group.trim();
        let of = match group {
            "" => String::new(),
            group => format!(" of {group}"),
        };
        Held {
            group: group.trim_start_matches('/').to_owned(),
            time: message.event.time,
            message,
            is_read: rest.starts_with('R'),
            bytes: value("sz").and_then(|n| n.parse().ok()),
            limit: (!limits.is_empty()).then(|| limits.join(" ") + &of),
        }
    }

    /// Whether a bio of a process of this group can be the one: it is in the group that the
    /// message names, or in one below it.
    fn can_be_of(&self, group: Option<&str>) -> bool {
        let group = group.filter(|_| !self.group.is_empty());
        group.is_none_or(|group| is_in(group, &self.group))
    }

    /// Whether this is the Q of the bio that was held, by its length and direction.
    fn is_of(&self, e: &Event) -> bool {
        Some(e.bytes) == self.bytes && self.is_read == (e.rwbs.op() == Some(Op::Read))
    }
}

impl Detector for Throttle {
    fn message(&mut self, number: u64, event: &Event, text: &str) {
        let Some(said) = text.strip_prefix("throtl") else {
            return;
        };
        *self.messages.entry(event.dev).or_default() += 1;
        if said.contains(" bio. ") {
            let evidence = Evidence::message(number, event, text);
            let held = Held::read(said, evidence);
            self.held.entry(event.dev).or_default().push(held);
        } else if said.contains("bios disp=") {
            self.let_go.entry(event.dev).or_default().push(event.time);
        }
    }

    fn process(&mut self, pid: Pid, comm: &str) {
        self.kworkers.named(pid, is_worker(comm));
        self.comms.insert(pid, comm.to_owned());
        self.members.named(pid, comm);
    }

    fn section(&mut self, section: &Section, context: &Context) {
        let groups = self.groups_in(section, context);
        let is_free = |(_, group): &(&Pid, &&str)| !limits::governs(group, context);
        let free: BTreeSet<Pid> = groups.iter().filter(is_free).map(|(pid, _)| *pid).collect();
        for disk in &section.disks {
            self.by_messages(section, disk.dev, &groups);
            if !self.messages.contains_key(&disk.dev) && limits::files(context).next().is_some() {
                self.by_bursts(section, disk.dev, &free);
                let is_worker = |pid| self.kworkers.has(pid);
                let (members, at_limit) = (&mut self.members, &mut self.at_limit);
                at_limit.section(section, disk.dev, members, is_worker, context);
            }
        }
        self.held.clear();
        self.let_go.clear();
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        let devs: Vec<Dev> = whole.sums.disks.keys().copied().collect();
        let mut all = of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole));
        for dev in devs {
            if all.iter().any(|f| f.dev == dev) {
                continue;
            }
            let found = self.at_limit.found(dev, whole.context);
            all.extend(found.map(|(limit, harm)| at_limit(&limit, &harm, dev, whole)));
        }
        all
    }
}

/// Whether a thread by its name submits what blk-throttle held. Its workqueue has a thread
/// of its own name for emergencies.
fn is_worker(comm: &str) -> bool {
    comm.starts_with("kworker") || comm == "kthrotld"
}

/// Q of a device, in order of time.
fn queued(section: &Section, dev: Dev) -> Vec<usize> {
    let events = section.events();
    let is_queue = |i: &usize| events[*i].dev == dev && events[*i].action == Action::Queue;
    (0..events.len()).filter(is_queue).collect()
}

impl Throttle {
    /// Held at a message, queued when the worker lets it go: who went on after it?
    fn by_messages(&mut self, section: &Section, dev: Dev, groups: &Groups<'_>) {
        let Some(held) = self.held.get(&dev) else {
            return;
        };
        let events = section.events();
        let queued = queued(section, dev);
        let sum = self.disks.entry(dev).or_default();
        sum.by_message = true;
        for held in held {
            let (time, message) = (&held.time, &held.message);
            sum.limits.extend(held.limit.clone());
            // Before Q of it, the message; after it, the process that goes on.
            let first = queued.partition_point(|i| events[*i].time <= *time);
            let can_be =
                |pid: Pid| !self.kworkers.has(pid) && held.can_be_of(groups.get(&pid).copied());
            let before = queued[..first].last().map(|i| events[*i].pid);
            // When it was let go, or else when a worker submits one like it.
            let of_worker = |i: &&usize| {
                let e = &events[**i];
                self.kworkers.has(e.pid) && held.is_of(e)
            };
            let told = self
                .let_go
                .get(&dev)
                .map(|all| all.get(all.partition_point(|t| t < time)).copied());
            let let_go = match told {
                Some(told) => told,
                None => queued[first..]
                    .iter()
                    .find(of_worker)
                    .map(|i| events[*i].time),
            };
            let Some(let_go) = let_go else {
                continue;
            };
            let worker = queued.partition_point(|i| events[*i].time < let_go);
            // The worker, if names tell who it is; it may not be the first to queue.
            let soon = queued[worker..]
                .iter()
                .map(|i| &events[*i])
                .take_while(|e| e.time.since(let_go).0 <= RESUMES_NS);
            let is_worker = |e: &&Event| self.kworkers.has(e.pid);
            let Some(own) = soon.clone().find(is_worker).or(soon.clone().next()) else {
                continue;
            };
            let ns = own.time.since(*time).0;
            let resumed = soon
                .filter(|e| e.time > own.time && e.pid != own.pid)
                .find(|e| can_be(e.pid) && quiet(events, &queued[first..worker], e.pid));
            let before = before.filter(|pid| can_be(*pid));
            let victim = resumed.map(|e| e.pid).or(before);
            // Whose bio it was may not be shown.
            let victim = victim.or(Some(own.pid).filter(|_| held.is_of(own)));
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

    /// The groups of those who queue something, as far as they are known: looked up once for
    /// each process, not for each event.
    fn groups_in<'a>(&self, section: &Section, context: &'a Context) -> Groups<'a> {
        if context.of_groups("processes").next().is_none() {
            return Groups::new();
        }
        let queues = |e: &&Event| e.action == Action::Queue;
        let pids: BTreeSet<Pid> = section
            .events()
            .iter()
            .filter(queues)
            .map(|e| e.pid)
            .collect();
        let group_of = |pid: Pid| {
            let comm = self.comms.get(&pid).map(String::as_str);
            Some((pid, context.group_of(pid, comm)?))
        };
        pids.into_iter().filter_map(group_of).collect()
    }

    /// The one process that stops queueing before others do, and when. No limit holds those
    /// who are `free`.
    fn silent(
        &self,
        events: &[Event],
        queued: &[usize],
        free: &BTreeSet<Pid>,
    ) -> Option<(Pid, Time)> {
        let mut last: BTreeMap<Pid, Time> = BTreeMap::new();
        for e in queued.iter().map(|i| &events[*i]) {
            if !self.kworkers.has(e.pid) && !free.contains(&e.pid) {
                last.insert(e.pid, e.time);
            }
        }
        let end = queued.last().map(|i| events[*i].time)?;
        let mut all = last
            .into_iter()
            .filter(|(_, t)| end.since(*t).0 > *PAUSE_NS.end() / 2);
        all.next().filter(|_| all.next().is_none())
    }

    /// A kworker queues one bio, and a process that was quiet goes on.
    fn by_bursts(&mut self, section: &Section, dev: Dev, free: &BTreeSet<Pid>) {
        let events = section.events();
        let queued = queued(section, dev);
        let of_worker = |pid: Pid| self.kworkers.has(pid);
        let mut last: BTreeMap<Pid, Time> = BTreeMap::new();
        let mut last_of_worker: BTreeMap<Pid, Time> = BTreeMap::new();
        let silent = self.silent(events, &queued, free);
        for (n, i) in queued.iter().enumerate() {
            let e = &events[*i];
            if of_worker(e.pid) {
                let then = queued[n + 1..].iter().map(|i| &events[*i]).take(16);
                // Others, whom nothing holds back, may queue something in between.
                let resumed = then
                    .take_while(|next| next.time.since(e.time).0 <= RESUMES_NS)
                    .filter(|next| !of_worker(next.pid) && !free.contains(&next.pid))
                    .filter_map(|next| Some((next.pid, *last.get(&next.pid)?)))
                    .find(|(_, before)| PAUSE_NS.contains(&e.time.since(*before).0));
                // Who always has more under way than the limit lets through queues nothing
                // itself: the worker submits all of it.
                let pause = last_of_worker.insert(e.pid, e.time);
                let pause = pause.filter(|t| PAUSE_NS.contains(&e.time.since(*t).0));
                let is_waited_for = e.rwbs.op() == Some(Op::Read) || e.rwbs.has(Rwbs::SYNC);
                let all_held = pause.filter(|_| is_waited_for).map(|before| {
                    let whose = silent.filter(|(_, t)| *t < e.time).map(|(pid, _)| pid);
                    (whose.unwrap_or(e.pid), before)
                });
                if let Some((pid, before)) = resumed.or(all_held) {
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
        // What a worker submits for one that is held back is that one's.
        let is_handed_on = |pid: Pid| whole.comm(pid).is_some_and(|comm| is_worker(&comm));
        if self.harm.victims().keys().any(|pid| !is_handed_on(*pid)) {
            self.harm.keep(|pid, _| !is_handed_on(pid));
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        f.of = "bios held back";
        let who = f.victim_names();
        let is_worker = |p: &Party| {
            let comm = p.comm.as_deref().unwrap_or_default();
            is_worker(comm)
        };
        let whose = if f.victims.iter().all(is_worker) {
            f.missing.push("whose bios they are".to_owned());
            format!("A limit of a control group holds bios back that {who} then submits")
        } else {
            format!("A limit of its control group holds I/O of {who} back")
        };
        f.what = format!(
            "{whose}: {}, {} on average.",
            counted(self.harm.count(), "times"),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        f.how = "blk-throttle lets a burst through, then holds the next bio until the group has \
                 budget again; a worker submits it. The wait lies before Q: from Q to C the bios \
                 are quick."
            .to_owned();
        let limits = limits_of(&f.victims, whole.context);
        if limits.is_empty() {
            let own = "its control group's own limit";
            if self.limits.is_empty() {
                f.cause = Some(own.to_owned());
                f.missing
                    .push("the group and its io.max (or blkio.throttle)".to_owned());
            } else {
                let limits: Vec<&str> = self.limits.iter().map(String::as_str).collect();
                f.cause = Some(format!("{own} ({})", limits.join("; ")));
            }
            f.remedies.push(LOOSER_LIMIT);
        } else {
            name_limits(&mut f, &limits);
        }
        if !self.by_message {
            f.doubt(Confidence::Likely, "blk-throttle's messages");
        }
        Some(f)
    }
}

/// A group, its file with a limit, and what that says.
type Said<'a> = (&'a str, &'static str, &'a str);

/// Names limits as the cause, and how to be rid of each.
fn name_limits(f: &mut Finding, limits: &[Said<'_>]) {
    let shown: Vec<String> = limits
        .iter()
        .map(|(group, file, said)| format!("{file} of {group}: {said}"))
        .collect();
    f.cause = Some(format!(
        "its control group's own limit ({})",
        shown.join("; ")
    ));
    for (group, file, _) in limits {
        let of_version_1 = OF_VERSION_1.iter().find(|(own, _)| own == file);
        let remedy = of_version_1.map_or(NO_LIMIT, |(_, remedy)| remedy.clone());
        f.remedies.push(remedy.filled_with(group));
    }
}

/// The limits that can be those of some processes: of all groups, where it is not known in
/// which they are.
fn limits_of<'a>(victims: &[Party], context: &'a Context) -> Vec<Said<'a>> {
    let groups = victims
        .iter()
        .map(|v| context.group_of(v.pid, v.comm.as_deref()));
    let groups: Option<Vec<&str>> = groups.collect();
    let holds = |limited: &str| {
        let Some(groups) = &groups else { return true };
        groups.iter().any(|group| is_in(group, limited))
    };
    let all = limits::files(context);
    all.filter(|(group, ..)| holds(group)).collect()
}

/// A group goes just as fast as its limit allows.
fn at_limit(limit: &Limit<'_>, harm: &Harm, dev: Dev, whole: &Whole<'_>) -> Finding {
    let mut f = Finding::new(KIND.name, dev, "");
    harm.fill(&mut f, whole);
    f.of = "pauses without a bio of the group";
    f.what = format!(
        "The limit of {} holds I/O of {} back: the group goes as fast as it allows, and a worker \
         submits its bios.",
        limit.group,
        f.victim_names()
    );
    f.how = "blk-throttle holds a bio until the group has budget again; a worker submits it. The \
             wait lies before Q: from Q to C the bios are quick. What is told is how long the \
             group had nothing under way."
        .to_owned();
    let all = limits::files(whole.context);
    let own: Vec<Said<'_>> = all
        .filter(|(group, file, _)| (*group, *file) == (limit.group, limit.file))
        .collect();
    name_limits(&mut f, &own);
    f.doubt(Confidence::Likely, "blk-throttle's messages");
    f
}
