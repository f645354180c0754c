// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random queues, tunables and loads, for properties that always hold.

use crate::rig::{Rig, Setup};
use blklab_block::CpuPolicy;
use blklab_block::sq::{Fetch, Queue};
use blklab_engine::Stream;
use blklab_kernel::{KernelVersion, PATCHES, Patches, Tunable, tunables_of};
use blklab_sched::Scheduler;
use blklab_types::{Bio, BioFlags, BioKey, Completion, IoPrio, Op, PrioClass, Span, TaskId};

/// A release of every era.
pub(crate) const KERNELS: [&str; 20] = [
    "2.6.16", "2.6.17", "2.6.18", "2.6.20", "2.6.22", "2.6.24", "2.6.26", "2.6.28", "2.6.29",
    "2.6.30", "2.6.31", "2.6.32", "2.6.33", "2.6.34", "2.6.38", "3.0", "3.7", "3.10", "4.8",
    "4.19",
];

/// Every scheduler with every release that has it.
pub(crate) fn pairs() -> impl Iterator<Item = (&'static Scheduler, &'static str)> {
    blklab_sched::ALL.iter().flat_map(|s| {
        let has_it = |k: &&str| blklab_sched::find(s.name, version(k)).is_some();
        KERNELS.into_iter().filter(has_it).map(move |k| (s, k))
    })
}

pub(crate) fn version(kernel: &str) -> KernelVersion {
    kernel.parse().expect("a kernel version")
}

/// Time passes in steps of at least this while nothing is at the device.
const PATIENCE: Span = Span::from_ms(20);

/// Steps double up to this: more than 2^32 ticks, the longest a tunable holds.
const MOST_PATIENCE: Span = Span(1 << 56);

/// Which values tunables get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Default,
    Smallest,
    Largest,
    /// Each its default, an end of its range, or something between.
    Random,
}

/// A queue to be tried.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) kernel: &'static str,
    pub(crate) sched: &'static str,
    pub(crate) hz: u32,
    pub(crate) depth: u32,
    pub(crate) nr_requests: u32,
    pub(crate) fetch: Fetch,
    pub(crate) rotational: bool,
    pub(crate) tagged: bool,
    pub(crate) tunables: Vec<(&'static str, i64)>,
    pub(crate) patches: Vec<&'static str>,
    /// Some bios are barriers or carry flushes.
    pub(crate) ordered: bool,
}

impl Config {
    pub(crate) fn random(
        s: &mut Stream,
        sched: &'static Scheduler,
        kernel: &'static str,
        values: Values,
    ) -> Config {
        let depths = [1, 1, 2, 3, 4, 8, 31, 32];
        Config {
            kernel,
            sched: sched.name,
            hz: *pick(s, &[100, 250, 1000]),
            depth: *pick(s, &depths),
            nr_requests: 4 + s.below(60) as u32,
            fetch: *pick(s, &[Fetch::PeekThenCheck, Fetch::CheckThenPeek]),
            rotational: s.below(3) > 0,
            tagged: s.below(3) == 0,
            tunables: tunables(s, sched.tunables, version(kernel), values),
            patches: patches(s, sched.name, version(kernel)),
            ordered: s.below(3) == 0,
        }
    }

    pub(crate) fn rig(&self) -> Rig {
        let setup = Setup {
            kernel: self.kernel,
            sched: self.sched,
            hz: self.hz,
            limits: |l| l.queue.max_sectors = 512,
            ..Setup::default()
        };
        setup.build(&self.tunables, &self.patches, |l| {
            l.queue_depth = self.depth;
            l.nr_requests = self.nr_requests;
            l.fetch = self.fetch;
            l.queue.rotational = self.rotational;
            l.tagged = self.tagged;
        })
    }
}

pub(crate) fn pick<'a, T>(s: &mut Stream, from: &'a [T]) -> &'a T {
    &from[s.below(from.len() as u64) as usize]
}

pub(crate) fn tunables(
    s: &mut Stream,
    table: &'static [Tunable],
    v: KernelVersion,
    values: Values,
) -> Vec<(&'static str, i64)> {
    let value = |s: &mut Stream, t: &Tunable| match values {
        Values::Default => t.default,
        Values::Smallest => t.range.0,
        Values::Largest => t.range.1,
        Values::Random => match s.below(5) {
            0 => t.range.0,
            1 => t.range.1,
            2 => t.default,
            // As many bits as chance will have it.
            3 => (s.below(1 << 32) >> s.below(32)) as i64,
            _ => s.below(2 * t.default.unsigned_abs() + 2) as i64,
        },
    };
    tunables_of(table, v)
        .map(|t| (t.name, value(s, t)))
        .collect()
}

/// Some of the patches that fit the release, the scheduler and each other.
pub(crate) fn patches(s: &mut Stream, sched: &str, v: KernelVersion) -> Vec<&'static str> {
    let mut on = Vec::new();
    for p in PATCHES {
        if p.scheduler.is_some_and(|only| only != sched) || s.below(3) > 0 {
            continue;
        }
        on.push(p.name);
        if Patches::new(&on, v).is_err() {
            on.pop();
        }
    }
    on
}

pub(crate) fn random_prio(s: &mut Stream) -> IoPrio {
    let classes = [
        PrioClass::None,
        PrioClass::None,
        PrioClass::BestEffort,
        PrioClass::BestEffort,
        PrioClass::RealTime,
        PrioClass::Idle,
    ];
    let class = *pick(s, &classes);
    let level = if class == PrioClass::None {
        0
    } else {
        s.below(8) as u8
    };
    IoPrio { class, level }
}

fn random_bio(s: &mut Stream, task: TaskId, ordered: bool) -> Bio {
    let nr_sectors = (1 + s.below(32) as u32) * 8;
    let write = s.below(2) == 1;
    let mut flags = BioFlags::NONE;
    let mut chance = |one_in: u64, flag: BioFlags| {
        if s.below(one_in) == 0 {
            flags |= flag;
        }
    };
    chance(4, BioFlags::SYNC);
    chance(8, BioFlags::META);
    chance(8, BioFlags::PRIO);
    chance(8, BioFlags::NOIDLE);
    chance(8, BioFlags::UNPLUG);
    if write && ordered {
        chance(16, BioFlags::BARRIER | BioFlags::FLUSH);
        chance(16, BioFlags::BARRIER | BioFlags::FUA);
    } else if !write {
        chance(8, BioFlags::AHEAD);
    }
    Bio {
        op: if write { Op::Write } else { Op::Read },
        flags,
        sector: s.below(400) * 8,
        nr_sectors,
        segments: Bio::segments_of_pages(nr_sectors),
        task,
        ..Bio::default()
    }
}

/// A process that takes part.
#[derive(Clone, Copy, Debug)]
struct Process {
    task: TaskId,
    asleep: bool,
    plugged: bool,
}

/// A random load on a queue.
pub(crate) struct Load {
    pub(crate) config: Config,
    pub(crate) rig: Rig,
    s: Stream,
    processes: Vec<Process>,
    /// Bios submitted; their keys count from 0.
    pub(crate) submitted: u64,
    /// Sectors submitted: reads, writes.
    pub(crate) sectors: [u64; 2],
}

impl Load {
    pub(crate) fn new(config: Config, mut s: Stream) -> Load {
        let mut load = Load {
            rig: config.rig(),
            config,
            processes: Vec::new(),
            submitted: 0,
            sectors: [0; 2],
            s: Stream::named(s.below(u64::MAX), "load"),
        };
        for _ in 0..6 {
            let p = load.born();
            load.processes.push(p);
        }
        load
    }

    fn born(&mut self) -> Process {
        let task = self.rig.task();
        self.change_habits(task);
        Process {
            task,
            asleep: false,
            plugged: false,
        }
    }

    /// Another priority, nice value, policy, and maybe a lock.
    fn change_habits(&mut self, task: TaskId) {
        let s = &mut self.s;
        let policies = [CpuPolicy::Other, CpuPolicy::Idle, CpuPolicy::RealTime];
        let ioc = self.rig.io_context(task);
        ioc.ioprio = random_prio(s);
        ioc.nice = s.below(40) as i8 - 20;
        ioc.policy = *pick(s, &policies);
        ioc.fs_exclusive = s.below(6) == 0;
    }

    /// One random step.
    pub(crate) fn step(&mut self) {
        let i = self.s.below(self.processes.len() as u64) as usize;
        match self.s.below(24) {
            0..12 => self.submit(i),
            12..14 => self.rig.enter(Queue::unplug),
            14..16 => {
                let time = Span(1 + self.s.below(5_000_000));
                self.pass(time);
            }
            16 => {
                let task = self.processes[i].task;
                self.change_habits(task);
            }
            17 => self.exit(i),
            18 => self.toggle_plug(i),
            _ => self.complete_any(),
        }
        self.settle();
    }

    fn submit(&mut self, i: usize) {
        let p = self.processes[i];
        if p.asleep {
            return;
        }
        let mut bio = random_bio(&mut self.s, p.task, self.config.ordered);
        bio.completion = Completion::Submitter(BioKey::new(self.submitted));
        self.submitted += 1;
        self.sectors[bio.op.data_dir()] += u64::from(bio.nr_sectors);
        self.processes[i].asleep = !self.rig.submit_bio(bio);
    }

    fn toggle_plug(&mut self, i: usize) {
        let Process {
            task,
            plugged,
            asleep,
        } = self.processes[i];
        if asleep {
            return;
        }
        if plugged {
            self.rig.enter_as(task, |q, cx| q.finish_plug(cx, task));
        } else {
            self.rig.queue.start_plug(task);
        }
        self.processes[i].plugged = !plugged;
    }

    /// The process ends, and another one takes its place.
    fn exit(&mut self, i: usize) {
        if self.processes[i].asleep {
            return;
        }
        if self.processes[i].plugged {
            self.toggle_plug(i);
        }
        let task = self.processes[i].task;
        self.rig.enter_as(task, |q, cx| q.exit_task(cx, task));
        self.processes[i] = self.born();
    }

    fn complete_any(&mut self) {
        let nr = self.rig.at_device.len() as u64;
        if nr > 0 {
            let at = self.s.below(nr) as usize;
            let rq = self.rig.at_device.remove(at);
            self.rig.enter(|q, cx| q.complete(cx, rq, 0));
        }
    }

    fn pass(&mut self, time: Span) {
        let now = self.rig.agenda.now();
        self.rig.until(now + time);
    }

    /// Deferred work, and tasks that wake up.
    fn settle(&mut self) {
        self.rig.settle();
        while !self.rig.woken.is_empty() {
            let task = self.rig.woken.remove(0);
            let at = self.processes.iter().position(|p| p.task == task);
            let i = at.expect("a process that lives");
            self.processes[i].asleep = !self.rig.resume(task);
            self.rig.settle();
        }
    }

    /// Lets everything finish: nobody submits any more. False if that does
    /// not come to an end.
    pub(crate) fn drain(&mut self) -> bool {
        for i in 0..self.processes.len() {
            if self.processes[i].plugged {
                self.toggle_plug(i);
                self.settle();
            }
        }
        let (mut gone, mut patience) = (false, PATIENCE);
        for _ in 0..20_000 {
            if self.rig.queue.is_idle() {
                return true;
            }
            if self.processes.iter().all(|p| !p.asleep) && !std::mem::replace(&mut gone, true) {
                // A scheduler waits longest for those who live.
                for i in 0..self.processes.len() {
                    self.exit(i);
                    self.settle();
                }
            }
            if self.rig.at_device.is_empty() {
                self.rig.enter(Queue::unplug);
                self.settle();
                if self.rig.at_device.is_empty() {
                    self.pass(patience);
                    patience = Span(2 * patience.0).min(MOST_PATIENCE);
                }
            } else {
                patience = PATIENCE;
                self.rig.complete_first();
            }
            self.settle();
        }
        self.rig.queue.is_idle()
    }
}
