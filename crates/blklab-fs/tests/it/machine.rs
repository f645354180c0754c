// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small machine for the page cache to run on: an executor in virtual time
//! and a device.
//!
//! The device serves one request at a time in order of arrival, each for a
//! fixed time plus its transfer. It has pools of 128 requests per direction
//! with the kernel's congestion levels, and plugs while it is idle: a first
//! bio waits for `unplug`, a fourth bio, or 3 ms. Nothing is merged.

use blklab_pagecache::{Host, PageCache, Runtime, TaskBody};
use blklab_types::{Bio, BioFlags, Completion, Hz, Op, Span, TaskId, Time};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Where the first laid-out file begins.
pub(crate) const SECTOR0: u64 = 2048;

const POOL: usize = 128;
const CONGESTED_ON: usize = 113;
const CONGESTED_OFF: usize = 103;
const UNPLUG_DELAY: Span = Span::from_ms(3);
const UNPLUG_BIOS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) per_request: Span,
    pub(crate) bytes_per_s: u64,
    /// Bios that begin at one of these sectors fail.
    pub(crate) bad_sector: Option<u64>,
}

/// One line of the device's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) op: Op,
    pub(crate) sector: u64,
    pub(crate) nr_sectors: u32,
    pub(crate) segments: u16,
    pub(crate) sync: bool,
    pub(crate) flags: BioFlags,
    pub(crate) task: TaskId,
    pub(crate) submitted: Time,
    pub(crate) done: Time,
}

enum Event {
    Wake(TaskId),
    CongestionTimeout(TaskId),
    Unplug(u64),
    Done(Bio, Time),
}

struct Inner {
    now: Time,
    seq: u64,
    events: BTreeMap<(Time, u64), Event>,
    bodies: Vec<Option<TaskBody>>,
    names: Vec<&'static str>,
    background: Vec<bool>,
    ready: VecDeque<TaskId>,
    suspended: Vec<bool>,
    current: TaskId,
    disk: Disk,
    queue: VecDeque<(Bio, Time)>,
    busy: bool,
    plugged: bool,
    plug_no: u64,
    used: [usize; 2],
    congested: [bool; 2],
    pool_waiters: [VecDeque<TaskId>; 2],
    congestion_waiters: Vec<TaskId>,
    log: Vec<Served>,
    /// Tasks that are in a write for integrity.
    sync_writers: Vec<TaskId>,
    /// Bios that such tasks submitted.
    marked: u64,
    /// Sleeps that the dirty throttle announced.
    dirty_sleeps: u64,
    events_handled: u64,
}

/// The machine; clones are handles.
#[derive(Clone)]
pub(crate) struct Machine(Rc<RefCell<Inner>>);

/// Suspends the running task once.
struct Once(bool);

impl Future for Once {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Machine {
    pub(crate) fn new(disk: Disk) -> Machine {
        Machine(Rc::new(RefCell::new(Inner {
            now: Time::ZERO,
            seq: 0,
            events: BTreeMap::new(),
            bodies: Vec::new(),
            names: Vec::new(),
            background: Vec::new(),
            ready: VecDeque::new(),
            suspended: Vec::new(),
            current: TaskId(0),
            disk,
            queue: VecDeque::new(),
            busy: false,
            plugged: false,
            plug_no: 0,
            used: [0; 2],
            congested: [false; 2],
            pool_waiters: [VecDeque::new(), VecDeque::new()],
            congestion_waiters: Vec::new(),
            log: Vec::new(),
            sync_writers: Vec::new(),
            marked: 0,
            dirty_sleeps: 0,
            events_handled: 0,
        })))
    }

    fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.0.borrow_mut())
    }

    fn add(&self, name: &'static str, body: TaskBody, background: bool) -> TaskId {
        self.with(|m| {
            let task = TaskId(m.bodies.len() as u32);
            m.bodies.push(Some(body));
            m.names.push(name);
            m.background.push(background);
            m.suspended.push(false);
            m.ready.push_back(task);
            task
        })
    }

    /// Starts a foreground task.
    pub(crate) fn task(
        &self,
        name: &'static str,
        body: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        self.add(name, Box::pin(body), false)
    }

    /// Runs until all foreground tasks have ended. Panics if none can go on,
    /// or if it takes them longer than an hour.
    pub(crate) fn run(&self, cache: &PageCache<Machine>) {
        while self.step(cache) {
            assert!(self.now() < Time(3_600_000_000_000), "an hour has passed");
        }
        let stuck: Vec<_> = self.with(|m| {
            (0..m.bodies.len())
                .filter(|i| m.bodies[*i].is_some() && !m.background[*i])
                .map(|i| m.names[i])
                .collect()
        });
        assert!(stuck.is_empty(), "stuck for ever: {stuck:?}");
    }

    /// Runs until the given time.
    pub(crate) fn run_until(&self, cache: &PageCache<Machine>, end: Time) {
        while self.with(|m| {
            !m.ready.is_empty() || m.events.first_key_value().is_some_and(|(k, _)| k.0 <= end)
        }) {
            self.advance(cache);
        }
        self.with(|m| m.now = m.now.max(end));
    }

    fn step(&self, cache: &PageCache<Machine>) -> bool {
        let alive =
            self.with(|m| (0..m.bodies.len()).any(|i| m.bodies[i].is_some() && !m.background[i]));
        alive && self.advance(cache)
    }

    fn advance(&self, cache: &PageCache<Machine>) -> bool {
        if let Some(task) = self.with(|m| m.ready.pop_front()) {
            self.poll(task);
            return true;
        }
        let Some(((at, _), event)) = self.with(|m| m.events.pop_first()) else {
            return false;
        };
        self.with(|m| {
            m.now = at;
            m.events_handled += 1;
        });
        match event {
            Event::Wake(task) => self.with(|m| m.ready.push_back(task)),
            Event::CongestionTimeout(task) => {
                let waits = self.with(|m| {
                    let before = m.congestion_waiters.len();
                    m.congestion_waiters.retain(|t| *t != task);
                    before > m.congestion_waiters.len()
                });
                if waits {
                    self.wake(task);
                }
            }
            Event::Unplug(no) => {
                if self.with(|m| m.plugged && m.plug_no == no) {
                    self.start();
                }
            }
            Event::Done(bio, submitted) => self.done(cache, bio, submitted),
        }
        true
    }

    fn poll(&self, task: TaskId) {
        let Some(mut body) = self.with(|m| {
            m.current = task;
            m.bodies[task.idx()].take()
        }) else {
            return;
        };
        let mut cx = Context::from_waker(Waker::noop());
        if body.as_mut().poll(&mut cx).is_pending() {
            self.with(|m| m.bodies[task.idx()] = Some(body));
        }
    }

    fn at(&self, when: Time, event: Event) {
        self.with(|m| {
            m.seq += 1;
            let key = (when, m.seq);
            m.events.insert(key, event);
        });
    }

    /// Unplugs and serves the next bio if the device is free.
    fn start(&self) {
        let next = self.with(|m| {
            m.plugged = false;
            if m.busy {
                return None;
            }
            let (bio, submitted) = m.queue.pop_front()?;
            m.busy = true;
            let transfer = u64::from(bio.nr_sectors) * 512 * 1_000_000_000 / m.disk.bytes_per_s;
            Some((bio, submitted, m.now + m.disk.per_request + Span(transfer)))
        });
        if let Some((bio, submitted, end)) = next {
            self.at(end, Event::Done(bio, submitted));
        }
    }

    fn done(&self, cache: &PageCache<Machine>, bio: Bio, submitted: Time) {
        let d = bio.op.data_dir();
        let (failed, waiter, relieved) = self.with(|m| {
            m.busy = false;
            m.used[d] -= 1;
            let sync = bio.is_sync();
            let Bio {
                op,
                sector,
                nr_sectors,
                segments,
                task,
                ..
            } = bio;
            m.log.push(Served {
                op,
                sector,
                nr_sectors,
                segments,
                sync,
                flags: bio.flags,
                task,
                submitted,
                done: m.now,
            });
            let relieved = m.congested[d] && m.used[d] < CONGESTED_OFF;
            m.congested[d] &= !relieved;
            let relieved = if relieved && d == 1 {
                std::mem::take(&mut m.congestion_waiters)
            } else {
                Vec::new()
            };
            (
                m.disk.bad_sector == Some(sector),
                m.pool_waiters[d].pop_front(),
                relieved,
            )
        });
        let Completion::Submitter(key) = bio.completion else {
            panic!("a bio of the page cache");
        };
        cache.end_bio(key, failed).expect("every bio is known");
        relieved
            .into_iter()
            .chain(waiter)
            .for_each(|t| self.wake(t));
        self.start();
    }

    pub(crate) fn log(&self) -> Vec<Served> {
        self.with(|m| m.log.clone())
    }

    /// What was served without the flushes of the disk's cache.
    pub(crate) fn data(&self) -> Vec<Served> {
        let mut log = self.log();
        log.retain(|b| b.nr_sectors > 0);
        log
    }

    /// Most bios in flight, looked at when every `step`-th one is submitted.
    pub(crate) fn most_in_flight(&self, step: usize) -> Option<usize> {
        let log = self.log();
        let flying = |t: Time| {
            log.iter()
                .filter(|b| b.submitted <= t && t < b.done)
                .count()
        };
        let seen = log.iter().step_by(step).map(|b| flying(b.submitted));
        seen.max()
    }

    /// Pages on the disk that each bio was about: the first, and how many.
    pub(crate) fn served(&self) -> Vec<(u64, u64)> {
        let pages = |b: &Served| ((b.sector - SECTOR0) / 8, u64::from(b.nr_sectors) / 8);
        self.data().iter().map(pages).collect()
    }

    /// Bios that tasks in a write for integrity submitted.
    pub(crate) fn marked(&self) -> u64 {
        self.with(|m| m.marked)
    }

    /// Sleeps that the dirty throttle announced.
    pub(crate) fn dirty_sleeps(&self) -> u64 {
        self.with(|m| m.dirty_sleeps)
    }

    pub(crate) fn events_handled(&self) -> u64 {
        self.with(|m| m.events_handled)
    }
}

impl Host for Machine {}

impl Runtime for Machine {
    type Filesystem = blklab_fs::Mounted;

    fn now(&self) -> Time {
        self.with(|m| m.now)
    }

    fn hz(&self) -> Hz {
        Hz(250)
    }

    fn current(&self) -> TaskId {
        self.with(|m| m.current)
    }

    type Pending = Bio;

    fn begin_bio(&self, bio: Bio) -> Option<Bio> {
        Some(bio)
    }

    async fn finish_bio(&self, bio: Bio) {
        let d = bio.op.data_dir();
        let me = self.current();
        while self.with(|m| {
            let full = m.used[d] >= POOL;
            if full {
                m.pool_waiters[d].push_back(me);
            }
            full
        }) {
            self.unplug();
            self.suspend().await;
        }
        let (plug, start) = self.with(|m| {
            m.used[d] += 1;
            m.marked += u64::from(m.sync_writers.contains(&me));
            m.congested[d] |= m.used[d] >= CONGESTED_ON;
            let idle = !m.busy && m.queue.is_empty();
            let now = m.now;
            m.queue.push_back((bio, now));
            let plug = idle && !m.plugged;
            if plug {
                m.plugged = true;
                m.plug_no += 1;
            }
            (
                plug.then_some(m.plug_no),
                m.plugged && m.queue.len() >= UNPLUG_BIOS,
            )
        });
        if let Some(no) = plug {
            self.at(self.now() + UNPLUG_DELAY, Event::Unplug(no));
        }
        if start {
            self.start();
        }
    }

    fn start_plug(&self) {}

    fn finish_plug(&self) {}

    fn unplug(&self) {
        if self.with(|m| m.plugged) {
            self.start();
        }
    }

    fn set_sync_writes(&self, on: bool) {
        self.with(|m| {
            m.sync_writers.retain(|&t| t != m.current);
            if on {
                m.sync_writers.push(m.current);
            }
        });
    }

    fn note_dirty_sleep(&self) {
        self.with(|m| m.dirty_sleeps += 1);
    }

    fn write_congested(&self) -> bool {
        self.with(|m| m.congested[1])
    }

    fn read_congested(&self) -> bool {
        self.with(|m| m.congested[0])
    }

    async fn congestion_wait(&self, timeout: Span) {
        let me = self.current();
        self.with(|m| m.congestion_waiters.push(me));
        self.at(self.now() + timeout, Event::CongestionTimeout(me));
        self.suspend().await;
    }

    async fn suspend(&self) {
        self.with(|m| m.suspended[m.current.idx()] = true);
        Once(false).await;
    }

    fn wake(&self, task: TaskId) {
        self.with(|m| {
            if std::mem::replace(&mut m.suspended[task.idx()], false) {
                m.ready.push_back(task);
            }
        });
    }

    fn spawn(&self, name: &'static str, body: TaskBody) -> TaskId {
        self.add(name, body, true)
    }

    async fn sleep(&self, span: Span) {
        self.at(self.now() + span, Event::Wake(self.current()));
        Once(false).await;
    }
}
