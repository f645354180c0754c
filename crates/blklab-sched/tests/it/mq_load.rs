// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random multi-queue devices, tunables and loads, for properties that always
//! hold.

use crate::load::{Values, patches, pick, random_prio, tunables, version};
use crate::mq_rig::{MqRig, MqSetup};
use blklab_block::CpuPolicy;
use blklab_block::QueueLimits;
use blklab_block::mq::Limits;
use blklab_engine::Stream;
use blklab_sched::{Make, Scheduler};
use blklab_types::{Bio, BioFlags, BioKey, Completion, Op, Span, TaskId};

/// Releases before and after every change.
pub(crate) const KERNELS: [&str; 16] = [
    "5.0", "5.10", "5.13", "5.14", "5.15", "5.16", "5.17", "6.0", "6.1", "6.4", "6.5", "6.11",
    "6.12", "6.18", "7.1", "7.3",
];

/// While BFQ idles the queue asks it again and again: long idling is slow.
const MOST_IDLE_MS: i64 = 2000;

/// Every scheduler of the path, and none, with every release.
pub(crate) fn pairs() -> impl Iterator<Item = (&'static Scheduler, &'static str)> {
    let multi = |s: &&Scheduler| matches!(s.make, Make::Mq(_) | Make::None);
    blklab_sched::ALL.iter().filter(multi).flat_map(|s| {
        let has_it = |k: &&str| blklab_sched::find(s.name, version(k)).is_some();
        KERNELS.into_iter().filter(has_it).map(move |k| (s, k))
    })
}

/// A device to be tried.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) setup: MqSetup,
    /// Some bios carry flushes.
    pub(crate) ordered: bool,
    /// The driver gives some requests back.
    pub(crate) requeues: bool,
}

impl Config {
    pub(crate) fn random(
        s: &mut Stream,
        sched: &'static Scheduler,
        kernel: &'static str,
        values: Values,
    ) -> Config {
        let queue_depth = *pick(s, &[1, 1, 2, 3, 4, 8, 31, 32]);
        let ordered = s.below(3) == 0;
        let mut tunables = tunables(s, sched.tunables, version(kernel), values);
        if ordered {
            // A request that waits for a flush keeps lower classes waiting; if the
            // flush waits for data of a lower class, only age helps.
            tunables.retain(|(name, _)| *name != "prio_aging_expire");
        }
        for (name, value) in &mut tunables {
            match *name {
                "slice_idle" => *value = (*value).min(MOST_IDLE_MS),
                "slice_idle_us" => *value = (*value).min(MOST_IDLE_MS * 1000),
                _ => {}
            }
        }
        let budgets = [None, None, Some(queue_depth), Some(1 + s.below(4) as u32)];
        let mut setup = MqSetup {
            kernel,
            sched: sched.name,
            hz: *pick(s, &[100, 250, 1000]),
            tunables,
            patches: Vec::new(),
            limits: Limits {
                queue_depth,
                budget: *pick(s, &budgets),
                refuses_above: (s.below(4) == 0).then(|| 1 + s.below(4) as u32),
                nr_requests: (s.below(2) == 0).then(|| 4 + s.below(80) as u32),
                nr_hw_queues: *pick(s, &[1, 1, 2]),
                nr_cpus: *pick(s, &[1, 2, 4]),
                chunk_sectors: *pick(s, &[0, 0, 128]),
                queue: QueueLimits {
                    max_sectors: 512,
                    rotational: s.below(2) == 0,
                    nomerges: *pick(s, &[0, 0, 0, 1, 2]),
                    has_flush: s.below(2) == 0,
                    has_fua: s.below(2) == 0,
                    ..Limits::default().queue
                },
                ..Limits::default()
            },
        };
        let has_shared = version(kernel) >= version("5.16");
        setup.limits.shared_tags = has_shared && s.below(3) == 0;
        let requeues = s.below(4) == 0;
        setup.patches = patches(s, sched.name, version(kernel));
        Config {
            setup,
            ordered,
            requeues,
        }
    }
}

/// A process that takes part.
#[derive(Clone, Copy, Debug)]
struct Process {
    task: TaskId,
    cpu: u16,
    asleep: bool,
    plugged: bool,
    /// Where it goes on, if it reads or writes on and on.
    sector: u64,
}

/// A random load on a device.
pub(crate) struct Load {
    pub(crate) config: Config,
    pub(crate) rig: MqRig,
    s: Stream,
    processes: Vec<Process>,
    /// Groups beside the root.
    groups: u16,
    /// Bios submitted; their keys count from 0.
    pub(crate) submitted: u64,
    /// Sectors submitted: reads, everything else.
    pub(crate) sectors: [u64; 2],
}

impl Load {
    pub(crate) fn new(config: Config, seed: u64) -> Load {
        let mut load = Load {
            rig: config.setup.rig(),
            config,
            processes: Vec::new(),
            groups: 0,
            submitted: 0,
            sectors: [0; 2],
            s: Stream::named(seed, "multi-queue load"),
        };
        for _ in 0..load.s.below(4) {
            let parent = load.s.below(u64::from(load.groups) + 1) as u16;
            let weight = 1 + load.s.below(1000) as u32;
            load.groups = load.rig.group(parent, weight);
        }
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
            cpu: self.cpu(),
            asleep: false,
            plugged: false,
            sector: self.place(),
        }
    }

    /// Maybe another priority, nice value and policy, maybe another group.
    fn change_habits(&mut self, task: TaskId) {
        let s = &mut self.s;
        let ioc = self.rig.io_context(task);
        if s.below(2) == 0 {
            ioc.ioprio = random_prio(s);
            ioc.nice = s.below(40) as i8 - 20;
            let policies = [CpuPolicy::Other, CpuPolicy::Idle, CpuPolicy::RealTime];
            ioc.policy = *pick(s, &policies);
        }
        if s.below(3) == 0 {
            ioc.group = s.below(u64::from(self.groups) + 1) as u16;
        }
    }

    /// Near others or far away.
    fn place(&mut self) -> u64 {
        let most = *pick(&mut self.s, &[400, 4000]);
        self.s.below(most) * 8
    }

    /// A process goes on behind its last bio, or elsewhere.
    fn bio(&mut self, i: usize) -> Bio {
        if self.s.below(4) == 0 {
            self.processes[i].sector = self.place();
        }
        let s = &mut self.s;
        let longest = *pick(s, &[16, 80]);
        let nr_sectors = (1 + s.below(longest) as u32) * 8;
        let op = *pick(s, &[Op::Read, Op::Read, Op::Write, Op::Write, Op::Discard]);
        let mut flags = BioFlags::NONE;
        let mut chance = |one_in: u64, flag: BioFlags| {
            if s.below(one_in) == 0 {
                flags |= flag;
            }
        };
        chance(3, BioFlags::SYNC);
        chance(8, BioFlags::META);
        if op == Op::Write {
            chance(8, BioFlags::META | BioFlags::PRIO);
            if self.config.ordered {
                chance(8, BioFlags::FLUSH);
                chance(8, BioFlags::FUA);
            }
        }
        let p = &mut self.processes[i];
        let sector = p.sector;
        p.sector += u64::from(nr_sectors);
        Bio {
            op,
            flags,
            sector,
            nr_sectors,
            segments: Bio::segments_of_pages(nr_sectors),
            task: p.task,
            ..Bio::default()
        }
    }

    /// Any CPU.
    fn cpu(&mut self) -> u16 {
        let cpus = u64::from(self.config.setup.limits.nr_cpus);
        self.s.below(cpus) as u16
    }

    /// One random step.
    pub(crate) fn step(&mut self) {
        let i = self.s.below(self.processes.len() as u64) as usize;
        match self.s.below(32) {
            0..14 => self.submit(i),
            14..18 => {
                let lengths = [100_000, 5_000_000, 50_000_000, 3_000_000_000];
                let most = *pick(&mut self.s, &lengths);
                let time = Span(1 + self.s.below(most));
                self.pass(time);
            }
            18 => {
                let task = self.processes[i].task;
                self.change_habits(task);
            }
            19 => self.exit(i),
            20..22 => self.toggle_plug(i),
            22 if self.config.requeues => self.requeue_any(),
            _ => self.complete_any(),
        }
        self.settle();
    }

    fn submit(&mut self, i: usize) {
        let p = self.processes[i];
        if p.asleep {
            return;
        }
        let mut bio = self.bio(i);
        bio.completion = Completion::Submitter(BioKey::new(self.submitted));
        self.submitted += 1;
        self.sectors[bio.op.data_dir()] += u64::from(bio.nr_sectors);
        let asleep = !self.rig.submit(p.cpu, &bio);
        self.sleeps(i, asleep);
    }

    /// The process sleeps, or not; if so its plug is flushed.
    fn sleeps(&mut self, i: usize, asleep: bool) {
        self.processes[i].asleep = asleep;
        let Process { task, cpu, .. } = self.processes[i];
        if asleep {
            self.rig
                .enter_as(task, cpu, |q, cx| q.flush_plug_to_sleep(cx, task));
        }
    }

    fn toggle_plug(&mut self, i: usize) {
        let p = self.processes[i];
        if p.asleep {
            return;
        }
        self.rig.enter_as(p.task, p.cpu, |q, cx| {
            if p.plugged {
                q.finish_plug(cx, p.task);
            } else {
                q.start_plug_for(p.task, 1 + cx.jiffies.0 as u32 % 3);
            }
        });
        self.processes[i].plugged = !p.plugged;
    }

    /// The process ends, and another one takes its place.
    fn exit(&mut self, i: usize) {
        if self.processes[i].asleep {
            return;
        }
        if self.processes[i].plugged {
            self.toggle_plug(i);
        }
        let p = self.processes[i];
        self.rig
            .enter_as(p.task, p.cpu, |q, cx| q.exit_task(cx, p.task));
        self.processes[i] = self.born();
    }

    /// All processes end, once everything is done.
    pub(crate) fn exit_all(&mut self) {
        for p in std::mem::take(&mut self.processes) {
            self.rig
                .enter_as(p.task, p.cpu, |q, cx| q.exit_task(cx, p.task));
        }
    }

    fn take_any(&mut self) -> Option<blklab_block::RqId> {
        let nr = self.rig.at_device.len() as u64;
        (nr > 0).then(|| self.rig.at_device.remove(self.s.below(nr) as usize))
    }

    fn complete_any(&mut self) {
        if let Some(rq) = self.take_any() {
            self.rig.enter(|q, cx| q.complete(cx, rq, 0));
        }
    }

    fn requeue_any(&mut self) {
        if let Some(rq) = self.take_any() {
            self.rig.enter(|q, cx| q.requeue(cx, rq));
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
            // It may run elsewhere now.
            if self.s.below(4) == 0 {
                self.processes[i].cpu = self.cpu();
            }
            let cpu = self.processes[i].cpu;
            let asleep = !self.rig.resume(task, cpu);
            self.sleeps(i, asleep);
            self.rig.settle();
        }
    }

    /// Lets everything finish: nobody submits any more. False if that does
    /// not come to an end.
    pub(crate) fn drain(&mut self) -> bool {
        let mut patience = Span::from_ms(20);
        for _ in 0..4000 {
            if self.rig.queue.is_idle() {
                return true;
            }
            // A task that slept has its plug still when it goes on.
            for i in 0..self.processes.len() {
                if self.processes[i].plugged {
                    self.toggle_plug(i);
                    self.settle();
                }
            }
            if self.rig.at_device.is_empty() {
                self.pass(patience);
                patience = Span(2 * patience.0).min(Span::from_s(4));
            } else {
                self.rig.complete_first();
            }
            self.settle();
        }
        self.rig.queue.is_idle()
    }
}
