// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device has nothing to do while requests wait.
//!
//! Three things keep requests from an idle device: a scheduler that waits for the next
//! request of the process it serves (CFQ and BFQ `slice_idle`, anticipatory
//! `antic_expire`), the plug of queues before 2.6.39 that only a timer opens, and what
//! a trace does not name: a queue that nobody runs, a driver that refuses, a processor
//! that is busy.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside, Serving};
use crate::findings::section::{Section, in_order};
use crate::findings::sums::{add, is_longer};
use crate::findings::{
    Confidence, Context, Detector, Evidence, Finding, Instance, Kind, Remedy, Rule, Weight, Whole,
    time_text,
};
use blklab_trace::Action;
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const IDLING: Kind = Kind {
    name: "idling",
    what: "the scheduler keeps the device idle for a process's next request, others wait",
    rule: Rule {
        condition: "a request waits from I to D while the device has nothing to do, the device \
                    was idle since a request of a process ended, and its next request comes \
                    first, or the scheduler is one that idles (cfq, bfq, anticipatory)",
        threshold: "1 ms or more",
        exception: "",
    },
    explains: &["held-back", "slice", "behind-other"],
    remedies: &[NO_IDLING, DEEPER_READS, NO_ANTICIPATION],
    rests_on_absence: true,
    detector: || Box::new(Idle::new(Why::Idling)),
};

/// The row of [`super::ALL`].
pub const PLUG_TIMER: Kind = Kind {
    name: "plug-timer",
    what: "requests wait on an idle device until a timer unplugs the queue",
    rule: Rule {
        condition: "a request waits from I to D while the device has nothing to do, and an unplug \
                    by the timer (UT) ends it",
        threshold: "1 ms or more",
        exception: "",
    },
    explains: &[],
    remedies: &[SYNC, NEWER_KERNEL],
    rests_on_absence: true,
    detector: || Box::new(Idle::new(Why::PlugTimer)),
};

/// The row of [`super::ALL`].
pub const HELD_BACK: Kind = Kind {
    name: "held-back",
    what: "requests wait while the device has nothing to do, and the trace does not say why",
    rule: Rule {
        condition: "a request waits from I to D while the device has nothing to do; of one from \
                    which no C or D comes at the beginning of a trace the same is assumed",
        threshold: "1 ms or more; at the beginning of a trace 20 ms",
        exception: "the scheduler is known as one that idles, or the first D behind the pause is of \
                    a request that the trace does not show before it: what the device had in \
                    between may not be shown either",
    },
    explains: &[],
    remedies: &[NO_IDLING_SCHEDULER],
    rests_on_absence: true,
    detector: || Box::new(Idle::new(Why::Unknown)),
};

const NO_IDLING: Remedy = Remedy::set(
    "no-idling",
    "queue/iosched/slice_idle",
    "0",
    "no idling; less throughput of sequential readers on a disk that rotates",
);

const DEEPER_READS: Remedy = Remedy::outside(
    "deeper-reads",
    Outside::Applications,
    "deeper or larger reads in the process that thinks between its requests",
);

const SYNC: Remedy = Remedy::act(
    "sync-flag",
    Act::Sync,
    "submit with the sync flag, which unplugs, or several at a time",
);

const NEWER_KERNEL: Remedy = Remedy::kernel(
    "newer-kernel",
    Act::Outside(Outside::Kernel),
    "2.6.39 and later plug per task and have no timer",
);

const NO_IDLING_SCHEDULER: Remedy = Remedy::act(
    "scheduler-without-idling",
    Act::Scheduler(Serving::AtOnce),
    "try a scheduler that does not idle (deadline, mq-deadline, none), or slice_idle=0 \
     with CFQ and BFQ",
);

const NO_ANTICIPATION: Remedy = Remedy::set(
    "no-anticipation",
    "queue/iosched/antic_expire",
    "0",
    "no idling; less throughput of sequential readers on a disk that rotates",
);

/// Less on an idle device is what it takes to run a queue.
pub const IDLE_NS: u64 = 1_000_000;

/// Write-back alone is held back if the device is idle for so small a part of the trace.
const BACKGROUND_PART: u64 = 100;

/// An unplug this short before a D is the reason for it.
const UNPLUG_NS: u64 = 200_000;

/// Of idle times, the part that ends with a request of the process for which the
/// scheduler may have idled, so that a scheduler that is not known is one that idles.
const IDLING_SHARE: f64 = 0.5;

/// Idle times so many at least, for the same.
const IDLING_TIMES: usize = 3;

/// Schedulers that idle.
const IDLERS: [&str; 3] = ["cfq", "bfq", "anticipatory"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Idling,
    PlugTimer,
    Unknown,
}

/// A time in which the device had nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pause {
    begin: Time,
    end: Time,
    /// Whose request ended last before it.
    before: Option<Pid>,
    /// Whose request ends it.
    after: Option<Pid>,
    /// Whether that one came during it.
    came: bool,
    by_timer: bool,
}

#[derive(Debug)]
struct Idle {
    why: Why,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// Those that nobody waits for.
    background: Harm,
    pauses: u64,
    idle_ns: u64,
    longest_ns: u64,
    /// Pauses that the process got which they were for.
    fulfilled: u64,
}

impl Idle {
    fn new(why: Why) -> Idle {
        Idle {
            why,
            disks: BTreeMap::new(),
        }
    }
}

impl Detector for Idle {
    fn section(&mut self, section: &Section, context: &Context) {
        for disk in &section.disks {
            let victims: Vec<(&Request, u64)> = waiting(disk);
            if victims.is_empty() {
                continue;
            }
            let pauses = pauses(section, disk, &victims);
            let idles = idles(&pauses, disk.scheduler(context));
            let own: Vec<Pause> = pauses
                .into_iter()
                .filter(|p| why(p, idles) == self.why)
                .collect();
            self.disk(section, disk, &own, &victims);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| {
            sum.finding(dev, self.why, whole)
        })
    }
}

/// Requests that wait long while the device has nothing to do.
fn waiting(disk: &Disk) -> Vec<(&Request, u64)> {
    let long = disk
        .divided()
        .filter(|(r, w)| w.idle_ns >= IDLE_NS && !r.is_flush());
    long.map(|(r, w)| (r, w.idle_ns)).collect()
}

/// The pauses in which one of these waits.
fn pauses(section: &Section, disk: &Disk, victims: &[(&Request, u64)]) -> Vec<Pause> {
    let mut timers: Vec<Time> = section
        .events()
        .iter()
        .filter(|e| e.action == Action::UnplugTimer && e.dev == disk.dev)
        .map(|e| e.time)
        .collect();
    timers.sort_unstable();
    let mut ends: Vec<(Time, Pid)> = disk
        .issued()
        .iter()
        .filter_map(|r| Some((r.life.complete?, r.pid)))
        .collect();
    ends.sort_unstable();
    let in_one = |[begin, end]: &[Time; 2]| {
        end.since(*begin).0 >= IDLE_NS && victims.iter().any(|(r, _)| overlap(r, *begin, *end) > 0)
    };
    let pause = |[begin, end]: &[Time; 2]| {
        let before = ends.partition_point(|(t, _)| t <= begin).checked_sub(1);
        let next = disk.issued().partition_point(|r| r.life.issue < Some(*end));
        let next = disk.issued().get(next);
        let timer = timers.partition_point(|t| t <= end).checked_sub(1);
        Pause {
            begin: *begin,
            end: *end,
            before: before.map(|i| ends[i].1),
            after: next.map(|r| r.pid),
            came: next.and_then(Request::handed_over) > Some(*begin),
            by_timer: timer.is_some_and(|i| end.since(timers[i]).0 <= UNPLUG_NS),
        }
    };
    // Few wait at a time: pauses outside of their times are left out first.
    let first = victims.iter().filter_map(|(r, _)| r.handed_over()).min();
    let skip = disk.idle.partition_point(|[_, end]| Some(*end) <= first);
    disk.idle[skip..]
        .iter()
        .filter(|p| in_one(p))
        .map(pause)
        .collect()
}

/// How much of a pause a request waits.
fn overlap(r: &Request, begin: Time, end: Time) -> u64 {
    match (r.handed_over(), r.life.issue) {
        (Some(from), Some(to)) => to.min(end).0.saturating_sub(from.max(begin).0),
        _ => 0,
    }
}

/// Whether the scheduler idles: it is known to, or looks like it.
fn idles(pauses: &[Pause], scheduler: Option<&str>) -> bool {
    if let Some(name) = scheduler {
        return IDLERS.contains(&name);
    }
    let of_one = pauses
        .iter()
        .filter(|p| p.came && p.before == p.after)
        .count();
    of_one >= IDLING_TIMES && of_one as f64 >= IDLING_SHARE * pauses.len() as f64
}

fn why(pause: &Pause, idles: bool) -> Why {
    match (pause.by_timer, idles) {
        (true, _) => Why::PlugTimer,
        (false, true) if pause.before.is_some() => Why::Idling,
        _ => Why::Unknown,
    }
}

impl Idle {
    fn disk(&mut self, section: &Section, disk: &Disk, own: &[Pause], all: &[(&Request, u64)]) {
        let sum = self.disks.entry(disk.dev).or_default();
        let mut used = vec![false; own.len()];
        for (r, _) in all {
            let harm = if r.is_sync {
                &mut sum.harm
            } else {
                &mut sum.background
            };
            let first = own.partition_point(|p| Some(p.end) <= r.handed_over());
            let mut total = 0;
            let mut worst: Option<(u64, &Pause)> = None;
            for (i, pause) in own.iter().enumerate().skip(first) {
                if Some(pause.begin) >= r.life.issue {
                    break;
                }
                let ns = overlap(r, pause.begin, pause.end);
                // Whoever the scheduler idles for does not wait for it.
                let is_for_it = self.why == Why::Idling && Some(r.pid) == pause.before;
                if ns < IDLE_NS || is_for_it {
                    continue;
                }
                used[i] = true;
                add(&mut total, ns);
                worst = worst.max(Some((ns, pause)));
            }
            if let Some((_, pause)) = worst {
                harm.add(r.pid, total, || instance(section, disk, r, pause, total));
            }
        }
        for pause in own
            .iter()
            .zip(used)
            .filter_map(|(p, used)| used.then_some(p))
        {
            let long_ns = pause.end.since(pause.begin).0;
            sum.pauses += 1;
            add(&mut sum.idle_ns, long_ns);
            sum.longest_ns = sum.longest_ns.max(long_ns);
            if self.why == Why::Idling {
                sum.fulfilled += u64::from(pause.came && pause.before == pause.after);
                if let Some(pid) = pause.before {
                    sum.harm.blame(pid, 1);
                    sum.background.blame(pid, 1);
                }
            }
        }
    }
}

/// The request that waits, the C before the pause, and the D that ends it.
fn instance(section: &Section, disk: &Disk, r: &Request, pause: &Pause, ns: u64) -> Instance {
    let mut instance = section.instance(r, Some(ns));
    let everywhere = [0, u64::MAX];
    let find = |action, time| section.find(action, disk.dev, time, everywhere);
    let around: [Option<Evidence>; 2] = [
        find(Action::Complete, pause.begin),
        find(Action::Issue, pause.end),
    ];
    instance.evidence.extend(around.into_iter().flatten());
    in_order(&mut instance.evidence);
    instance.time = pause.begin;
    instance
}

impl Sum {
    fn finding(mut self, dev: Dev, why: Why, whole: &Whole<'_>) -> Option<Finding> {
        self.harm.keep_who_suffers(dev, whole);
        let only_background = self.harm.is_empty();
        if only_background {
            let span_ns = whole.disk(dev).span_ns;
            let is_short = is_longer(span_ns, BACKGROUND_PART, self.idle_ns);
            if self.background.is_empty() || is_short {
                return None;
            }
            self.harm = std::mem::take(&mut self.background);
        }
        let kind = match why {
            Why::Idling => IDLING,
            Why::PlugTimer => PLUG_TIMER,
            Why::Unknown => HELD_BACK,
        };
        let mut f = Finding::new(kind.name, dev, "");
        self.harm.fill(&mut f, whole);
        if only_background {
            f.weight = Weight::Background;
        }
        let victims = f.victim_names();
        f.what = format!(
            "The device has nothing to do for {} while requests of {victims} wait, in {} \
             pause{} of up to {}.",
            time_text(self.idle_ns),
            self.pauses,
            if self.pauses == 1 { "" } else { "s" },
            time_text(self.longest_ns)
        );
        f.figures = vec![
            ("idle with requests queued", self.idle_ns as f64, "ns"),
            ("pauses", self.pauses as f64, ""),
            ("longest pause", self.longest_ns as f64, "ns"),
        ];
        match why {
            Why::Idling => self.idling(&mut f, whole),
            Why::PlugTimer => plug_timer(&mut f),
            Why::Unknown => unknown(&mut f, whole),
        }
        Some(f)
    }

    fn idling(&self, f: &mut Finding, whole: &Whole<'_>) {
        let causes = f.cause_names();
        let scheduler = whole.scheduler(f.dev);
        let name = scheduler.unwrap_or("The scheduler");
        f.how = format!(
            "{name} idles for the next request of {causes} instead of serving the others; it came \
             in {} of {} pauses.",
            self.fulfilled, self.pauses
        );
        f.remedies.push(match scheduler {
            Some("anticipatory") => NO_ANTICIPATION,
            _ => NO_IDLING,
        });
        if scheduler.is_none() {
            f.doubt(
                Confidence::Likely,
                "which scheduler it is; it behaves as CFQ or BFQ do",
            );
        }
        f.remedies.push(DEEPER_READS);
    }
}

fn plug_timer(f: &mut Finding) {
    f.how = "No task unplugged the queue: the timer did, 3 ms after it was plugged.".to_owned();
    f.remedies = vec![SYNC, NEWER_KERNEL];
}

fn unknown(f: &mut Finding, whole: &Whole<'_>) {
    f.confidence = Confidence::Likely;
    let (how, missing) = match whole.scheduler(f.dev) {
        Some(name) => (
            format!("{name} does not idle: something else keeps the queue from running."),
            "what the driver and the processors did: requeues, a stopped queue, CPU load",
        ),
        None => (
            "They were in the scheduler's hands: it idled for another process, or nothing ran \
             the queue."
                .to_owned(),
            "which scheduler it is: CFQ, BFQ and anticipatory hold requests back for another \
             process; the others do not",
        ),
    };
    f.how = how;
    f.missing.push(missing.to_owned());
    if whole.scheduler(f.dev).is_none() {
        f.remedies.push(NO_IDLING_SCHEDULER);
    }
    if whole.disk(f.dev).nr(Action::Complete) == 0 {
        f.doubt(
            Confidence::Likely,
            "completions: that the device was idle follows from there being no D before",
        );
    }
}
