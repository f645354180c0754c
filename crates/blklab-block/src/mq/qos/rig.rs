// SPDX-License-Identifier: MIT OR Apache-2.0
//! A policy under tasks that always have a bio, and a device that takes any number at
//! once, for tests.

use super::{Admission, Policy};
use crate::{Cx, Pending, QueueNo, Requests, Running, TaskTable};
use blklab_engine::{Agenda, DeviceId, Due, TimerId, Timers};
use blklab_trace::{NullSink, Tracer};
use blklab_types::{Bio, Hz, IoPrio, Op, Span, TaskId, Time};
use std::collections::BTreeMap;

/// What a task does over and over.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) group: u16,
    pub(super) bio: Bio,
    /// How long the device takes for it.
    pub(super) service: Span,
    /// The next bio begins so far behind the one before, in sectors.
    pub(super) step: u64,
}

impl Load {
    /// Random reads of 4 KiB.
    pub(super) fn reads(group: u16, service_us: u64) -> Load {
        let bio = Bio {
            op: Op::Read,
            nr_sectors: 8,
            ..Bio::default()
        };
        Load {
            group,
            bio,
            service: Span::from_us(service_us),
            step: 1_000_003,
        }
    }
}

pub(super) struct Rig<P> {
    pub(super) policy: P,
    agenda: Agenda,
    tasks: TaskTable,
    loads: Vec<Load>,
    asleep: BTreeMap<TaskId, Pending>,
    served: BTreeMap<u64, Pending>,
    rqs: Requests,
    nr: u64,
    /// Bios of each group that ended, by number.
    pub(super) ended: Vec<u64>,
}

impl<P: Policy> Rig<P> {
    /// Tasks with these loads under a policy of these groups.
    pub(super) fn new(
        mut tasks: TaskTable,
        loads: &[Load],
        make: impl FnOnce(&TaskTable, &mut Timers) -> P,
    ) -> Rig<P> {
        let mut agenda = Agenda::new(Hz(1000));
        let policy = make(&tasks, &mut agenda.timers);
        for (pid, load) in (1..).zip(loads) {
            let task = tasks.add(pid, IoPrio::default());
            tasks.get_mut(task).group = load.group;
        }
        let mut rig = Rig {
            policy,
            agenda,
            ended: vec![0; tasks.nr_groups() + 1],
            tasks,
            loads: loads.to_vec(),
            asleep: BTreeMap::new(),
            served: BTreeMap::new(),
            rqs: Requests::default(),
            nr: 0,
        };
        for task in 0..loads.len() {
            rig.submit(TaskId(task as u32));
        }
        rig
    }

    fn enter<R>(&mut self, f: impl FnOnce(&mut P, &mut Cx<'_>, &mut Vec<TaskId>) -> R) -> R {
        let mut wakes = Vec::new();
        let mut cx = Cx {
            queue: QueueNo::FIRST,
            now: self.agenda.now(),
            jiffies: self.agenda.timers.jiffies(),
            running: Running::INTERRUPT,
            timers: &mut self.agenda.timers,
            tasks: &mut self.tasks,
            trace: &mut Tracer::new(Box::new(NullSink)),
            truth: None,
            effects: &mut Vec::new(),
        };
        let result = f(&mut self.policy, &mut cx, &mut wakes);
        for task in wakes {
            self.wake(task);
        }
        result
    }

    fn wake(&mut self, task: TaskId) {
        let mut pending = self.asleep.remove(&task).expect("who is woken sleeps");
        let again = self.enter(|p, cx, wakes| p.resumed(cx, &mut pending, wakes));
        self.admit(pending, again);
    }

    fn submit(&mut self, task: TaskId) {
        let load = self.loads[task.idx()];
        self.nr += 1;
        let bio = Bio {
            task,
            group: load.group,
            sector: self.nr * load.step,
            ..load.bio
        };
        let mut pending = Pending::new(bio, self.agenda.now());
        let admission = self.enter(|p, cx, wakes| p.throttle(cx, &mut pending, wakes));
        self.admit(pending, admission);
    }

    fn admit(&mut self, pending: Pending, admission: Admission) {
        if admission == Admission::Sleeps {
            self.asleep.insert(pending.bio.task, pending);
            return;
        }
        self.nr += 1;
        let end = self.agenda.now() + self.loads[pending.bio.task.idx()].service;
        self.agenda.wake_device(DeviceId(0), end, self.nr);
        self.served.insert(self.nr, pending);
    }

    fn end(&mut self, token: u64) {
        let Some(done) = self.served.remove(&token) else {
            return;
        };
        let jiffies = self.agenda.timers.jiffies();
        let id = (self.rqs).alloc(done.bio.op, done.bio.flags, done.bio.task, jiffies);
        let service = self.loads[done.bio.task.idx()].service;
        let began = Time(self.agenda.now().ns() - service.ns());
        let rq = &mut self.rqs[id];
        rq.nr_sectors = done.bio.nr_sectors;
        (rq.wanted, rq.allocated) = (began, began);
        let rq = rq.clone();
        self.rqs.free(id);
        self.enter(|p, cx, wakes| {
            p.bio_done(cx, &done, wakes);
            p.freed(cx, id, &rq, wakes);
        });
        self.ended[usize::from(done.bio.group)] += 1;
        self.submit(done.bio.task);
    }

    fn fire(&mut self, timer: TimerId) {
        let known = self.enter(|p, cx, wakes| p.timer(cx, timer, wakes));
        assert!(known, "a timer of the policy");
    }

    /// The clock goes on to so many ms; how many bios of each group ended meanwhile.
    pub(super) fn until_ms(&mut self, ms: u64) -> Vec<u64> {
        let before = self.ended.clone();
        let end = Time(ms * 1_000_000);
        self.agenda.wake_device(DeviceId(1), end, 0);
        while let Some(due) = self.agenda.next(end) {
            match due {
                Due::Timer(timer) => self.fire(timer),
                Due::Device(_, token) => self.end(token),
                _ => unreachable!("nobody else is here"),
            }
        }
        let new = self.ended.iter().zip(before);
        new.map(|(now, before)| now - before).collect()
    }
}
