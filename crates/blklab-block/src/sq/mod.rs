// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single-queue path.
//!
//! ```text
//! submit ── merge ──┬─ merged
//!                   └─ get a request ── plug ── insert ─► scheduler
//!                        (may sleep)                         │ dispatch
//!                                                            ▼
//! complete ◄── device ◄── driver loop ◄── peek ◄──── dispatch list
//! ```

mod barrier;
mod complete;
mod core;
mod dispatch;
mod driver;
mod elevator;
mod features;
mod flush;
mod insert;
mod limits;
mod merge;
mod plug;
mod pool;
mod release;
mod submit;
mod task_plug;

pub use self::core::Core;
pub use self::elevator::{Elevator, Kick, MayQueue};
pub use self::features::{
    AsyncTags, CHANGES, Features, FlushCommand, FlushSort, Ordered, PlugPolicy,
};
pub use self::limits::Limits;
pub use blklab_types::Fetch;

use crate::sq::barrier::BarrierSeq;
use crate::sq::flush::FlushSeq;
use crate::sq::pool::Pools;
use crate::sq::task_plug::TaskPlug;
use crate::{Cx, Gate};
use blklab_engine::{TimerId, Timers};
use blklab_types::{Dev, IdVec, TaskId};

/// A block device's queue with its scheduler and driver.
pub struct Queue {
    pub(crate) core: Core,
    pub(crate) elv: Box<dyn Elevator>,
    pub(crate) pools: Pools,
    plugged: bool,
    unplug_timer: TimerId,
    device_busy: u32,
    ever_deep: bool,
    barrier: BarrierSeq,
    flush: FlushSeq,
    plugs: IdVec<TaskId, TaskPlug>,
    tags: Vec<Option<driver::Tagged>>,
    /// Limits of groups, and what waits for them.
    gate: Gate,
}

impl Queue {
    /// A queue for `dev` with a scheduler. Registers its timers.
    pub fn new(
        dev: Dev,
        feat: Features,
        mut limits: Limits,
        elv: Box<dyn Elevator>,
        timers: &mut Timers,
    ) -> Queue {
        limits.batch_requests = elv.batch_requests().unwrap_or(limits.batch_requests);
        let tags = if limits.tagged {
            limits.queue_depth as usize
        } else {
            0
        };
        Queue {
            core: Core::new(dev, feat, limits, timers.hz()),
            elv,
            pools: Pools::default(),
            plugged: false,
            unplug_timer: timers.register("unplug_timer"),
            device_busy: 0,
            ever_deep: false,
            barrier: BarrierSeq::default(),
            flush: FlushSeq::default(),
            plugs: IdVec::default(),
            tags: vec![None; tags],
            gate: Gate::default(),
        }
    }

    /// What schedulers see of the queue.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The scheduler.
    pub fn elevator(&self) -> &dyn Elevator {
        &*self.elv
    }

    /// Commands at the device.
    pub fn device_busy(&self) -> u32 {
        self.device_busy
    }

    /// Requests in use, per pool.
    pub fn pool_counts(&self) -> [u32; 2] {
        self.pools.count
    }

    /// Whether the pool that reads use is nearly used up.
    pub fn read_congested(&self) -> bool {
        self.pools.congested[usize::from(self.core.feat.pools_by_sync)]
    }

    /// Whether the pool that asynchronous writes use is nearly used up.
    pub fn write_congested(&self) -> bool {
        self.pools.congested[usize::from(!self.core.feat.pools_by_sync)]
    }

    /// A task ended: its io context goes.
    pub fn exit_task(&mut self, cx: &mut Cx<'_>, task: TaskId) {
        self.elv.exit_task(&mut self.core, cx, task);
        self.run_if_requested(cx);
    }

    /// One of the scheduler's timers fired, or that of the groups' limits; false if it is neither.
    pub fn elevator_timer(&mut self, cx: &mut Cx<'_>, timer: TimerId) -> bool {
        if self.gate.timer(cx, timer) {
            return true;
        }
        let known = self.elv.timer(&mut self.core, cx, timer);
        self.run_if_requested(cx);
        known
    }

    /// The timer that removes the queue plug.
    pub fn unplug_timer_id(&self) -> TimerId {
        self.unplug_timer
    }

    /// Whether nothing waits and nothing is at the device.
    ///
    /// # Panics
    /// If a request is gone that is still counted somewhere.
    pub fn is_idle(&self) -> bool {
        let idle = self.core.rqs.nr_alive() == 0 && !self.gate.holds_bios();
        if idle {
            self.check_conservation();
        }
        idle
    }

    /// Without requests nothing is counted any more.
    fn check_conservation(&self) {
        let core = &self.core;
        assert_eq!(core.nr_held(), 0, "requests that nobody has wait");
        assert_eq!(
            (core.in_flight, self.device_busy),
            (0, 0),
            "the device has requests that nobody has"
        );
        assert_eq!(self.pools.count, [0; 2], "requests are missing in a pool");
        assert!(self.tags.iter().all(Option::is_none), "a tag is lost");
        assert_eq!(core.last_merge, None, "bios join a request that is gone");
        self.elv.check_conservation();
    }

    fn run_if_requested(&mut self, cx: &mut Cx<'_>) {
        if std::mem::take(&mut self.core.run_requested) {
            self.start_queueing(cx);
        }
    }
}
