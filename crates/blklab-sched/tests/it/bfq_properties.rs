// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of BFQ under random queues, tunables, priorities, groups and
//! loads: nothing is lost or doubled, limits hold, every run is the same again,
//! and everything drains.

use crate::load::{Values, pick, random_prio, tunables};
use crate::mq_rig::{MqRig, MqSetup};
use blklab_block::CpuPolicy;
use blklab_block::mq::Limits;
use blklab_block::sq::{Pending, Submit};
use blklab_engine::Stream;
use blklab_sched::Scheduler;
use blklab_trace::truth::{Kind, Truth};
use blklab_types::{Bio, BioFlags, Op, Span, TaskId};

const KERNELS: [&str; 9] = [
    "5.0", "5.10", "5.13", "5.15", "5.17", "6.1", "6.5", "6.12", "6.18",
];
const STEPS: u32 = 400;
/// Time passes in steps of this while nothing else happens.
const PATIENCE: Span = Span::from_ms(20);
const MOST_STEPS: u32 = 20_000;
/// The steps double up to this: more than the longest time to idle.
const MOST_PATIENCE: Span = Span::from_s(4);
/// While BFQ idles the queue asks it again and again: long idling is slow.
const MOST_IDLE_MS: i64 = 2000;

fn setup(
    s: &mut Stream,
    sched: &'static Scheduler,
    kernel: &'static str,
    values: Values,
) -> MqSetup {
    let version = kernel.parse().expect("a kernel version");
    let mut tunables = tunables(s, sched.tunables, version, values);
    for (name, value) in &mut tunables {
        match *name {
            "slice_idle" => *value = (*value).min(MOST_IDLE_MS),
            "slice_idle_us" => *value = (*value).min(MOST_IDLE_MS * 1000),
            _ => {}
        }
    }
    let depth = *pick(s, &[1, 1, 2, 3, 4, 8, 31, 32]);
    MqSetup {
        kernel,
        sched: sched.name,
        hz: *pick(s, &[100, 250, 1000]),
        tunables,
        limits: Limits {
            queue_depth: depth,
            budget: (s.below(2) == 0).then_some(depth),
            nr_requests: (s.below(2) == 0).then(|| 4 + s.below(80) as u32),
            nr_cpus: 2,
            nr_hw_queues: 1 + s.below(2) as u16,
            max_sectors: 512,
            rotational: s.below(2) == 0,
            nomerges: *pick(s, &[0, 0, 1, 2]),
            has_flush: s.below(2) == 0,
            ..Limits::default()
        },
    }
}

struct Process {
    task: TaskId,
    sleeps: Option<Pending>,
    plugged: bool,
    /// Where it goes on, if it reads or writes on and on.
    sector: u64,
}

struct Load {
    rig: MqRig,
    s: Stream,
    processes: Vec<Process>,
    groups: u16,
    submitted: u64,
    depth: usize,
}

impl Load {
    fn new(setup: &MqSetup, s: Stream) -> Load {
        let mut load = Load {
            rig: setup.rig(),
            s,
            processes: Vec::new(),
            groups: 0,
            submitted: 0,
            depth: usize::from(setup.limits.nr_hw_queues) * setup.limits.queue_depth as usize,
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
            sleeps: None,
            plugged: false,
            sector: self.s.below(4000) * 8,
        }
    }

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

    fn bio(&mut self, i: usize) -> Bio {
        let s = &mut self.s;
        let nr_sectors = (1 + s.below(16) as u32) * 8;
        let op = *pick(
            s,
            &[
                Op::Read,
                Op::Read,
                Op::Read,
                Op::Write,
                Op::Write,
                Op::Discard,
            ],
        );
        let mut flags = BioFlags::NONE;
        if s.below(3) == 0 {
            flags |= BioFlags::SYNC;
        }
        if s.below(8) == 0 {
            flags |= BioFlags::META;
        }
        if op == Op::Write && s.below(16) == 0 {
            flags |= BioFlags::FUA;
        }
        let p = &mut self.processes[i];
        if s.below(4) == 0 {
            p.sector = s.below(4000) * 8;
        }
        let sector = p.sector;
        p.sector += u64::from(nr_sectors);
        self.submitted += 1;
        Bio {
            op,
            flags,
            sector,
            nr_sectors,
            segments: Bio::segments_of_pages(nr_sectors),
            task: p.task,
            cookie: self.submitted - 1,
            ..Bio::default()
        }
    }

    fn step(&mut self) {
        let i = self.s.below(self.processes.len() as u64) as usize;
        match self.s.below(32) {
            0..14 => self.submit(i),
            14..18 => {
                let most = *pick(
                    &mut self.s,
                    &[100_000, 5_000_000, 50_000_000, 3_000_000_000],
                );
                let time = Span(1 + self.s.below(most));
                self.pass(time);
            }
            18 => {
                let task = self.processes[i].task;
                self.change_habits(task);
            }
            19 => self.exit(i),
            20 => self.toggle_plug(i),
            21 => self.requeue_any(),
            _ => self.complete_any(),
        }
        self.settle();
    }

    fn cpu(&self, i: usize) -> u16 {
        (i % 2) as u16
    }

    fn submit(&mut self, i: usize) {
        if self.processes[i].sleeps.is_some() {
            return;
        }
        let (bio, cpu) = (self.bio(i), self.cpu(i));
        let done = self.rig.enter_as(bio.task, cpu, |q, cx| q.submit(cx, bio));
        self.note(i, done);
    }

    /// A task that sleeps hands its plug to the queue.
    fn note(&mut self, i: usize, done: Submit) {
        if let Submit::Sleeps(pending) = done {
            let (task, cpu) = (self.processes[i].task, self.cpu(i));
            self.processes[i].sleeps = Some(pending);
            self.rig
                .enter_as(task, cpu, |q, cx| q.flush_plug_to_sleep(cx, task));
        }
    }

    fn toggle_plug(&mut self, i: usize) {
        let (task, cpu) = (self.processes[i].task, self.cpu(i));
        if self.processes[i].sleeps.is_some() {
            return;
        }
        if self.processes[i].plugged {
            self.rig
                .enter_as(task, cpu, |q, cx| q.finish_plug(cx, task));
        } else {
            self.rig.queue.start_plug(task);
        }
        self.processes[i].plugged ^= true;
    }

    /// The process ends, and another one takes its place.
    fn exit(&mut self, i: usize) {
        if self.processes[i].sleeps.is_some() {
            return;
        }
        if self.processes[i].plugged {
            self.toggle_plug(i);
        }
        let (task, cpu) = (self.processes[i].task, self.cpu(i));
        self.rig.enter_as(task, cpu, |q, cx| q.exit_task(cx, task));
        self.processes[i] = self.born();
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

    /// Woken tasks go on, kblockd works.
    fn settle(&mut self) {
        self.rig.settle();
        while let Some(task) = self.rig.woken.pop() {
            let i = self.processes.iter().position(|p| p.task == task);
            let i = i.expect("a process that sleeps");
            if let Some(pending) = self.processes[i].sleeps.take() {
                let cpu = self.cpu(i);
                let done = self.rig.enter_as(task, cpu, |q, cx| q.resume(cx, pending));
                self.note(i, done);
            }
            self.rig.settle();
        }
        let r = &self.rig;
        assert!(r.at_device.len() <= self.depth, "too many at the device");
        for (i, rq) in r.at_device.iter().enumerate() {
            assert!(!r.at_device[..i].contains(rq), "handed over twice");
        }
    }

    /// Lets everything finish; false if it does not.
    fn drain(&mut self) -> bool {
        let mut patience = PATIENCE;
        for _ in 0..MOST_STEPS {
            for i in 0..self.processes.len() {
                if self.processes[i].plugged {
                    self.toggle_plug(i);
                    self.settle();
                }
            }
            let waits = self.processes.iter().any(|p| p.sleeps.is_some());
            if self.rig.queue.is_idle() && !waits {
                return true;
            }
            if self.rig.at_device.is_empty() {
                self.pass(patience);
                patience = Span(patience.0 * 2).min(MOST_PATIENCE);
            } else {
                patience = PATIENCE;
                self.complete_any();
            }
            self.settle();
        }
        false
    }
}

/// Runs one load; the truth records of all that happened.
fn run(setup: &MqSetup, s: Stream) -> Vec<Truth> {
    let mut load = Load::new(setup, s);
    for _ in 0..STEPS {
        load.step();
    }
    assert!(load.drain(), "does not drain: {setup:?}");
    let mut done = load.rig.done.clone();
    done.sort_unstable();
    let all: Vec<u64> = (0..load.submitted).collect();
    assert_eq!(done, all, "every bio once: {setup:?}");
    let tasks: Vec<TaskId> = load.processes.iter().map(|p| p.task).collect();
    for task in tasks {
        load.rig.enter_as(task, 0, |q, cx| q.exit_task(cx, task));
    }
    load.rig.truths()
}

fn run_all(values: Values, seeds: std::ops::Range<u64>) {
    let all = blklab_sched::ALL.iter();
    for sched in all.filter(|s| s.name == "bfq") {
        for kernel in KERNELS {
            for seed in seeds.clone() {
                let name = format!("{} {kernel}", sched.name);
                let mut s = Stream::named(seed, &name);
                let setup = setup(&mut s, sched, kernel, values);
                let load = Stream::named(seed, &format!("{name} load"));
                println!("{name} {seed}");
                let first = run(&setup, load);
                if seed.is_multiple_of(8) {
                    let load = Stream::named(seed, &format!("{name} load"));
                    assert!(run(&setup, load) == first, "another run differs");
                }
                assert!(first.iter().any(|r| r.kind == Kind::Insert));
            }
        }
    }
}

#[test]
fn with_default_tunables() {
    run_all(Values::Default, 0..40);
}

#[test]
fn with_random_tunables() {
    run_all(Values::Random, 100..160);
}

#[test]
fn with_tunables_at_their_smallest() {
    run_all(Values::Smallest, 200..212);
}

#[test]
fn with_tunables_at_their_largest() {
    run_all(Values::Largest, 300..312);
}
