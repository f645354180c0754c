// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-back throttling (block/blk-wbt.c of 5.10, 6.1 and 6.12): how many
//! buffered writes may be on their way to the device at once, scaled by the
//! latency of reads.
//!
//! A write that finds its class full sleeps before it gets a request. Who is
//! woken has been counted already.
//!
//! Left out: writes of a task that swaps, which have a class and a limit of
//! their own.

mod depth;
#[cfg(test)]
mod tests;
mod window;

pub use self::window::WbtStatus;

use self::depth::{Depth, shares};
use self::window::Samples;
use crate::RqId;
use crate::mq::Limits;
use crate::qos::WbtClass;
use blklab_engine::{TimerId, Timers};
use blklab_types::{Bio, BioFlags, Hz, Jiffies, Op, Span, TaskId, Time};
use std::collections::VecDeque;

/// Windows without a verdict after which a scaled depth goes back by a step
/// (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_WINDOWS: u32 = 5;

/// What throttling of a device starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtSettings {
    /// Read latency aimed at; 0 turns throttling off (`min_lat_nsec`).
    pub min_latency: Span,
    /// Requests that the device takes at once.
    pub queue_depth: u32,
    /// The device has a volatile write cache.
    pub write_cache: bool,
    /// Ticks per second.
    pub hz: Hz,
}

impl WbtSettings {
    /// Settings of a device with `nr_requests`; none if it is not throttled:
    /// switched off, or by default if the scheduler does that job itself
    /// (`replaced`: [`Elevator::replaces_wbt`](crate::mq::Elevator::replaces_wbt)).
    pub fn new(limits: &Limits, nr_requests: u32, replaced: bool, hz: Hz) -> Option<WbtSettings> {
        let min_latency = match limits.wbt_lat_us {
            Some(0) => return None,
            Some(us) => Span::from_us(us),
            None if replaced => return None,
            None if limits.queue.rotational => Span::from_ms(75),
            None => Span::from_ms(2),
        };
        Some(WbtSettings {
            min_latency,
            queue_depth: limits.budget.unwrap_or(nr_requests),
            write_cache: limits.queue.has_flush,
            hz,
        })
    }
}

/// What becomes of a bio before it gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtAdmit {
    /// It is not counted.
    Untracked,
    /// It is counted.
    Tracked(WbtClass),
    /// Its task sleeps at the end of the class's wait queue. When it is woken,
    /// the bio is counted.
    Sleeps(WbtClass),
}

/// What decides about the limit of a write, beside the state of the device
/// (`get_limit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    /// Somebody waits for it.
    High,
    Usual,
    Background,
    Discard,
}

impl Urgency {
    fn of_bio(bio: &Bio) -> Urgency {
        const HIGH: BioFlags = BioFlags(BioFlags::SYNC.0 | BioFlags::META.0 | BioFlags::PRIO.0);
        if bio.op == Op::Discard {
            Urgency::Discard
        } else if bio.flags.any(HIGH) {
            Urgency::High
        } else if bio.flags.has(BioFlags::BACKGROUND) {
            Urgency::Background
        } else {
            Urgency::Usual
        }
    }
}

/// What is counted of a class (`rq_wait`).
#[derive(Debug, Default)]
struct Counted {
    /// Admitted and not freed yet.
    inflight: u32,
    sleepers: VecDeque<(TaskId, Urgency)>,
}

/// A window that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtWindow {
    /// What it showed.
    pub status: WbtStatus,
    /// The step from now on: above 0 fewer writes than at first, below 0 more.
    pub step: i32,
    /// Writes on their way at its end.
    pub inflight: u32,
}

/// Write-back throttling of one device (`rq_wb`).
#[derive(Debug)]
pub struct Wbt {
    min_latency: Span,
    write_cache: bool,
    hz: Hz,
    depth: Depth,
    /// Limits of ordinary and of background writes (`wb_normal`, `wb_background`).
    normal: u32,
    background: u32,
    classes: [Counted; 2],
    /// When a read was submitted and when one was freed last. The device is up
    /// for long when the run begins.
    last_issue: Option<Jiffies>,
    last_comp: Option<Jiffies>,
    /// When a task slept in `balance_dirty_pages` last (`last_bdp_sleep`).
    dirty_sleep: Option<Jiffies>,
    /// The read that is watched, and since when the device has it (`sync_cookie`,
    /// `sync_issue`).
    watched: Option<(RqId, Time)>,
    samples: Samples,
    timer: TimerId,
    /// A window is under way (`blk_stat_is_active`).
    measures: bool,
    /// Windows without a verdict since the last step (`unknown_cnt`).
    unknown: u32,
}

impl Wbt {
    /// At step 0, with nothing on its way.
    pub fn new(settings: WbtSettings, timers: &mut Timers) -> Wbt {
        let mut wbt = Wbt {
            min_latency: settings.min_latency,
            write_cache: settings.write_cache,
            hz: settings.hz,
            depth: Depth::new(settings.queue_depth),
            normal: 0,
            background: 0,
            classes: Default::default(),
            last_issue: None,
            last_comp: None,
            dirty_sleep: None,
            watched: None,
            samples: Samples::default(),
            timer: timers.register("wbt window"),
            measures: false,
            unknown: 0,
        };
        wbt.share();
        wbt
    }

    /// The timer at which [`Wbt::timer`] is to be called.
    pub fn timer_id(&self) -> TimerId {
        self.timer
    }

    /// Whether it throttles (`rwb_enabled`).
    pub fn is_enabled(&self) -> bool {
        self.min_latency != Span::ZERO
    }

    /// Admits a bio or puts its task to sleep (`wbt_wait`). A task sleeps, too,
    /// if others of its class do.
    pub fn try_admit(&mut self, timers: &mut Timers, bio: &Bio) -> WbtAdmit {
        if !self.is_enabled() {
            return WbtAdmit::Untracked;
        }
        let jiffies = timers.jiffies();
        let Some(class) = WbtClass::of_bio(bio) else {
            if bio.op == Op::Read {
                self.last_issue = Some(jiffies);
            }
            return WbtAdmit::Untracked;
        };
        let urgency = Urgency::of_bio(bio);
        let limit = self.limit(urgency, jiffies);
        let counted = &mut self.classes[class as usize];
        if !counted.sleepers.is_empty() || counted.inflight >= limit {
            counted.sleepers.push_back((bio.task, urgency));
            return WbtAdmit::Sleeps(class);
        }
        counted.inflight += 1;
        self.measure(timers);
        WbtAdmit::Tracked(class)
    }

    /// The request of an admitted bio was freed (`wbt_rqw_done`), or it got none
    /// (`wbt_cleanup`). Appends the tasks that may go on.
    pub fn freed(&mut self, timers: &mut Timers, class: WbtClass, wakes: &mut Vec<TaskId>) {
        let dirty = self.recently_dirtied(timers.jiffies());
        let counted = &mut self.classes[class as usize];
        counted.inflight -= 1;
        let inflight = counted.inflight;
        if counted.sleepers.is_empty() {
            return;
        }
        let wanted = match class {
            WbtClass::Discard => self.background,
            WbtClass::Background if self.write_cache && !dirty => 0,
            WbtClass::Background => self.normal,
        };
        let room = wanted.saturating_sub(inflight);
        if inflight == 0 || (room > 0 && room >= self.background / 2) {
            self.wake(timers, class, wakes);
        }
    }

    /// A request was handed to the driver (`wbt_issue`): a read is watched if none
    /// is.
    pub fn issued(&mut self, now: Time, op: Op, rq: RqId) {
        if self.is_enabled() && op == Op::Read && self.watched.is_none() {
            self.watched = Some((rq, now));
        }
    }

    /// A request was given back by the driver (`wbt_requeue`).
    pub fn requeued(&mut self, rq: RqId) {
        self.watched = self.watched.filter(|w| w.0 != rq);
    }

    /// A request of any kind is complete, `latency` after it was issued
    /// (`blk_stat_add`).
    pub fn completed(&mut self, op: Op, latency: Span) {
        if self.measures {
            self.samples.add(op, latency);
        }
    }

    /// The request of a read was freed (`wbt_done`).
    pub fn read_freed(&mut self, jiffies: Jiffies, rq: RqId) {
        self.requeued(rq);
        if self.is_enabled() {
            self.last_comp = Some(jiffies);
        }
    }

    /// A task slept in `balance_dirty_pages`, for pages of this device.
    pub fn dirty_wait(&mut self, jiffies: Jiffies) {
        self.dirty_sleep = Some(jiffies);
    }

    /// A window ends (`wb_timer_fn`): judges it, scales, and appends the tasks that
    /// may go on. The next one begins if there is a reason. None if throttling was
    /// switched off meanwhile.
    pub fn timer(
        &mut self,
        now: Time,
        timers: &mut Timers,
        wakes: &mut Vec<TaskId>,
    ) -> Option<WbtWindow> {
        self.measures = false;
        let samples = std::mem::take(&mut self.samples);
        if !self.is_enabled() {
            return None;
        }
        let inflight = self.inflight();
        let status = samples.judge(
            self.min_latency,
            self.depth.window(),
            self.watched.map_or(Span::ZERO, |w| now.since(w.1)),
            inflight > 0 || self.recently_dirtied(timers.jiffies()),
        );
        match status {
            WbtStatus::Exceeded => self.scale_down(true),
            WbtStatus::Ok | WbtStatus::UnknownWrites => self.scale_up(timers, wakes),
            WbtStatus::Unknown => {
                self.unknown += 1;
                if self.unknown >= UNKNOWN_WINDOWS {
                    match self.depth.step() {
                        1.. => self.scale_up(timers, wakes),
                        0 => {}
                        ..0 => self.scale_down(false),
                    }
                }
            }
        }
        if self.depth.step() != 0 || inflight > 0 {
            self.measure(timers);
        }
        Some(WbtWindow {
            status,
            step: self.depth.step(),
            inflight,
        })
    }

    /// Writes and discards on their way (`wbt_inflight`).
    pub fn inflight(&self) -> u32 {
        self.classes.iter().map(|c| c.inflight).sum()
    }

    /// Tasks that sleep.
    pub fn sleepers(&self) -> usize {
        self.classes.iter().map(|c| c.sleepers.len()).sum()
    }

    /// What sysfs (`wbt_lat_usec`) and debugfs show at this moment: file and
    /// content.
    pub fn shows(&self) -> Vec<(&'static str, String)> {
        let window = self.depth.window().ns();
        vec![
            ("wbt_lat_usec", (self.min_latency.ns() / 1000).to_string()),
            ("curr_win_nsec", window.to_string()),
            ("inflight", self.inflight().to_string()),
            ("unknown_cnt", self.unknown.to_string()),
            ("wb_normal", self.normal.to_string()),
            ("wb_background", self.background.to_string()),
        ]
    }

    /// Most writes of a kind on their way at this moment (`get_limit`).
    fn limit(&self, urgency: Urgency, jiffies: Jiffies) -> u32 {
        if !self.is_enabled() {
            return u32::MAX;
        }
        match urgency {
            Urgency::Discard => self.background,
            Urgency::High => self.depth.max(),
            _ if self.recently_dirtied(jiffies) => self.depth.max(),
            Urgency::Usual if !self.recently_read(jiffies) => self.normal,
            Urgency::Usual | Urgency::Background => self.background,
        }
    }

    /// A read was submitted or freed less than 100 ms ago (`close_io`).
    fn recently_read(&self, jiffies: Jiffies) -> bool {
        let tenth = u64::from(self.hz.0 / 10);
        let close = |at: Option<Jiffies>| at.is_some_and(|at| jiffies < at.plus(tenth));
        close(self.last_issue) || close(self.last_comp)
    }

    /// A task slept for dirty pages less than a second ago (`wb_recent_wait`).
    fn recently_dirtied(&self, jiffies: Jiffies) -> bool {
        let second = u64::from(self.hz.0);
        self.dirty_sleep.is_some_and(|at| jiffies < at.plus(second))
    }

    /// Begins a window, unless one is under way (`rwb_arm_timer`).
    fn measure(&mut self, timers: &mut Timers) {
        if !self.measures {
            self.measures = true;
            let window = u128::from(self.depth.window().ns());
            let ticks = window * u128::from(self.hz.0) / 1_000_000_000;
            timers.arm(self.timer, timers.jiffies().plus(ticks as u64));
        }
    }

    fn scale_up(&mut self, timers: &mut Timers, wakes: &mut Vec<TaskId>) {
        if self.depth.scale_up() {
            self.unknown = 0;
            self.share();
            self.wake_all(timers, wakes);
        }
    }

    fn scale_down(&mut self, hard: bool) {
        if self.depth.scale_down(hard) {
            self.unknown = 0;
            self.share();
        }
    }

    /// `calc_wb_limits`.
    fn share(&mut self) {
        (self.normal, self.background) = if self.is_enabled() {
            shares(self.depth.max())
        } else {
            (0, 0)
        };
    }

    /// `rwb_wake_all`.
    fn wake_all(&mut self, timers: &mut Timers, wakes: &mut Vec<TaskId>) {
        self.wake(timers, WbtClass::Background, wakes);
        self.wake(timers, WbtClass::Discard, wakes);
    }

    /// Admits sleepers in their order, each by its own limit, up to the first that
    /// has to sleep on (`wbt_inflight_cb`).
    fn wake(&mut self, timers: &mut Timers, class: WbtClass, wakes: &mut Vec<TaskId>) {
        let jiffies = timers.jiffies();
        while let Some(&(task, urgency)) = self.classes[class as usize].sleepers.front() {
            let limit = self.limit(urgency, jiffies);
            let counted = &mut self.classes[class as usize];
            if counted.inflight >= limit {
                return;
            }
            counted.inflight += 1;
            counted.sleepers.pop_front();
            wakes.push(task);
            if self.is_enabled() {
                self.measure(timers);
            }
        }
    }
}
