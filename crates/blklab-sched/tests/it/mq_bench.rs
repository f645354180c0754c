// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios that are submitted one by one to a multi-queue device that serves
//! requests one after another, and the events that come of it.
//!
//! kblockd works at the instant at which it is asked to, behind the code that
//! asked.

use crate::mq_rig::{MqRig, MqSetup};
use crate::mq_table::{ms, shown_ms};
use crate::rig;
use blklab_block::Request;
use blklab_types::{Bio, Span, TaskId, Time};

pub(crate) struct Bench {
    pub(crate) rig: MqRig,
    /// The submitter.
    pub(crate) task: TaskId,
    /// Its CPU.
    pub(crate) cpu: u16,
    /// What the device takes for a request.
    pub(crate) service: fn(&Request) -> Span,
    /// When the oldest request at the device is done.
    busy_until: Option<Time>,
    now: Time,
    events: Vec<(Time, String)>,
}

impl Bench {
    /// Merging is on.
    pub(crate) fn new(mut setup: MqSetup, service: fn(&Request) -> Span) -> Bench {
        setup.limits.queue.nomerges = 0;
        Bench::with_nomerges(&setup, service)
    }

    /// Merging is as the setup has it.
    pub(crate) fn with_nomerges(setup: &MqSetup, service: fn(&Request) -> Span) -> Bench {
        let mut rig = setup.rig();
        let task = rig.task();
        Bench {
            rig,
            task,
            cpu: 0,
            service,
            busy_until: None,
            now: Time::ZERO,
            events: Vec::new(),
        }
    }

    fn bio(&self, text: &str) -> Bio {
        rig::bio(self.task, text)
    }

    /// The device works until `at` ms, and what is due then is done.
    pub(crate) fn at(&mut self, at: &str) -> &mut Bench {
        let at = ms(at);
        while let Some(done) = self.busy_until.filter(|done| *done <= at) {
            self.rig.until(Time(done.0 - 1));
            self.look();
            self.rig.before_timers_of(done);
            self.rig.complete_first();
            self.now = done;
            self.busy_until = None;
            self.rig.clock_to(done);
            self.settle();
        }
        self.rig.until(at);
        self.now = at;
        self.look();
        self
    }

    /// kblockd works.
    pub(crate) fn settle(&mut self) -> &mut Bench {
        self.rig.settle();
        self.look();
        self
    }

    fn look(&mut self) {
        self.events.extend(self.rig.events());
        if self.busy_until.is_none()
            && let Some(&first) = self.rig.at_device.first()
        {
            self.busy_until = Some(self.now + (self.service)(&self.rig.core().rqs[first]));
        }
    }

    /// The task submits bios, `R 100+8`, separated by commas; kblockd does not
    /// work yet. False if the task sleeps.
    pub(crate) fn submits(&mut self, bios: &str) -> bool {
        let mut done = true;
        for text in bios.split(", ") {
            let bio = self.bio(text);
            done &= self.rig.submit(self.cpu, &bio);
        }
        done
    }

    /// The same, and kblockd works.
    pub(crate) fn submit(&mut self, bios: &str) -> &mut Bench {
        assert!(self.submits(bios), "the task sleeps");
        self.settle()
    }

    pub(crate) fn plug(&mut self) -> &mut Bench {
        let task = self.task;
        self.rig.enter_as(task, self.cpu, |q, _| q.start_plug(task));
        self
    }

    pub(crate) fn unplug(&mut self) -> &mut Bench {
        let task = self.task;
        self.rig
            .enter_as(task, self.cpu, |q, cx| q.finish_plug(cx, task));
        self.settle()
    }

    /// The task sleeps with its plug; kblockd does not work yet.
    pub(crate) fn sleep(&mut self) -> &mut Bench {
        let task = self.task;
        self.rig
            .enter_as(task, self.cpu, |q, cx| q.flush_plug_to_sleep(cx, task));
        self
    }

    /// A request goes straight to insertion.
    pub(crate) fn insert(&mut self, bio: &str) -> &mut Bench {
        let bio = self.bio(bio);
        self.rig.insert_bare(self.cpu, &bio);
        self
    }

    /// The task goes on if it was woken. True if it does not sleep any more.
    pub(crate) fn goes_on(&mut self) -> bool {
        let woken = std::mem::take(&mut self.rig.woken);
        woken.contains(&self.task) && self.rig.resume(self.task, self.cpu)
    }

    /// Events since last asked, with their times.
    pub(crate) fn timed_events(&mut self) -> Vec<(Time, String)> {
        self.look();
        std::mem::take(&mut self.events)
    }

    /// Events since last asked.
    pub(crate) fn events(&mut self) -> Vec<String> {
        self.timed_events().into_iter().map(|(_, e)| e).collect()
    }

    /// Compares the events since last asked, those of plugs left out, with a
    /// list.
    pub(crate) fn check_but_plugs(&mut self, expected: &str) {
        let mut got = self.events();
        got.retain(|e| !e.starts_with('U') && e != "P");
        assert_eq!(got.join(", "), expected);
    }

    /// Compares the events since last asked with a list.
    pub(crate) fn check(&mut self, expected: &str) {
        assert_eq!(self.events().join(", "), expected);
    }

    /// Compares what was issued from now on until all is done with a list of
    /// `sector@ms`.
    pub(crate) fn drains(&mut self, expected: &str) {
        self.at("100000");
        assert!(self.rig.queue.is_idle(), "does not drain");
        let issued = |(at, e): (Time, String)| {
            let range = e.strip_prefix("D ")?;
            let sector = range.split_once('+')?.0;
            Some(format!("{sector}@{}", shown_ms(at)))
        };
        let got: Vec<String> = self.events.drain(..).filter_map(issued).collect();
        assert_eq!(got.join(" "), expected);
    }
}
