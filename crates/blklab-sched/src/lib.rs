// SPDX-License-Identifier: MIT OR Apache-2.0
//! I/O schedulers, one module each, and the table that names them.
//!
//! To add one: a module that implements `sq::Elevator` or `mq::Elevator`, its table of
//! tunables, and one line in [`ALL`]. A scheduler of another crate is named in
//! [`Schedulers::with`] instead.

pub mod anticipatory;
mod async_depth;
pub mod bfq;
mod bound;
pub mod cfq;
mod choose;
pub mod deadline;
mod direction;
mod history;
pub mod kyber;
pub mod mq_deadline;
pub mod none;
pub mod noop;
mod positions;
mod processor_time;
mod queue_id;
mod rbtree;
mod registry;
pub mod sources;

pub use processor_time::{LockOf, ProcessorTime};
pub use registry::Schedulers;

use blklab_block::{mq, sq};
use blklab_engine::Timers;
use blklab_kernel::{Change, KernelVersion, Patches, Tunable, Tunables};
use blklab_types::Hz;
use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// What a scheduler is built from.
#[derive(Debug)]
pub struct Build<'a> {
    /// Kernel release.
    pub version: KernelVersion,
    /// Ticks per second.
    pub hz: Hz,
    /// Values of the scheduler's tunables.
    pub tunables: &'a Tunables,
    /// Patches that are switched on.
    pub patches: &'a Patches,
    /// Whether the device seeks (`queue/rotational` at registration).
    pub rotational: bool,
    /// Where it registers its timers.
    pub timers: &'a mut Timers,
    /// What the schedulers of all disks of a machine have in common.
    pub shared: &'a Shared,
}

/// What the schedulers of all disks of a machine have in common: what the kernel keeps
/// in the io contexts of processes. Each machine has one of its own.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    kept: Rc<RefCell<BTreeMap<TypeId, Box<dyn Any>>>>,
}

impl Shared {
    /// What one kind of scheduler keeps here, by its type; nothing yet for the first disk that
    /// asks. Clones of it are the same records.
    pub fn kept<T: Clone + Default + 'static>(&self) -> T {
        let mut all = self.kept.borrow_mut();
        let own = all.entry(TypeId::of::<T>());
        let own = own.or_insert_with(|| Box::new(T::default()));
        own.downcast_ref::<T>().cloned().unwrap_or_default()
    }
}

/// Longest time that a tunable can hold, in jiffies: `MAX_JIFFY_OFFSET`
/// (include/linux/jiffies.h), for values that the kernel takes as negative.
const MAX_JIFFY_OFFSET: u64 = (i64::MAX as u64 >> 1) - 1;

impl Build<'_> {
    /// A time that sysfs shows in ms: what was written, rounded up to jiffies,
    /// or else the default, which the kernel computes in ticks.
    pub fn jiffies(&self, name: &str, default_ticks: u32) -> u64 {
        match self.tunables.written(&[name]) {
            None => u64::from(default_ticks),
            Some((_, ms)) if ms > i64::from(i32::MAX) => MAX_JIFFY_OFFSET,
            Some((_, ms)) => self.hz.from_ms(ms.unsigned_abs()),
        }
    }
}

/// One scheduler, as data.
#[derive(Clone, Copy)]
pub struct Scheduler {
    /// Name in sysfs.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// First release that has it.
    pub since: KernelVersion,
    /// First release without it.
    pub until: KernelVersion,
    /// Tunables by their sysfs names.
    pub tunables: &'static [Tunable],
    /// What changed in it, oldest first.
    pub changes: &'static [&'static [Change]],
    /// What it takes of the processor; not looked at on the single-queue path.
    pub processor_time: ProcessorTime,
    /// Makes one.
    pub make: Make,
}

/// Makes a multi-queue scheduler, with what it knows itself.
pub type MakeMq = dyn Fn(&mut Build<'_>) -> Box<dyn mq::Elevator> + Send + Sync;

/// How a scheduler is made, and for which of the two paths.
#[derive(Clone, Copy)]
pub enum Make {
    /// A single-queue scheduler.
    Sq(fn(&mut Build<'_>) -> Box<dyn sq::Elevator>),
    /// A multi-queue scheduler.
    Mq(fn(&mut Build<'_>) -> Box<dyn mq::Elevator>),
    /// A multi-queue scheduler that is known only when the program runs: one of a language
    /// that is bound to this one.
    MqWith(&'static MakeMq),
    /// The multi-queue path without a scheduler.
    None,
}

impl fmt::Debug for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Make::Sq(_) => "Sq",
            Make::Mq(_) | Make::MqWith(_) => "Mq",
            Make::None => "None",
        })
    }
}

/// A scheduler of one of the two paths.
pub enum Built {
    /// Single-queue.
    Sq(Box<dyn sq::Elevator>),
    /// Multi-queue; none if requests go to the driver without one.
    Mq(Option<Box<dyn mq::Elevator>>),
}

impl Scheduler {
    /// Whether a release has it.
    pub fn is_in(&self, version: KernelVersion) -> bool {
        version.is_within(self.since, self.until)
    }

    /// Makes one.
    pub fn build(&self, b: &mut Build<'_>) -> Built {
        match self.make {
            Make::Sq(make) => Built::Sq(make(b)),
            Make::Mq(make) => Built::Mq(Some(make(b))),
            Make::MqWith(make) => Built::Mq(Some(make(b))),
            Make::None => Built::Mq(None),
        }
    }
}

/// Every scheduler.
pub const ALL: &[Scheduler] = &[
    noop::SCHEDULER,
    deadline::SCHEDULER,
    anticipatory::SCHEDULER,
    cfq::SCHEDULER,
    none::SCHEDULER,
    mq_deadline::SCHEDULER,
    kyber::SCHEDULER,
    bfq::SCHEDULER,
];

/// The scheduler of [`ALL`] with that name, if the release has it.
pub fn find(name: &str, version: KernelVersion) -> Option<&'static Scheduler> {
    Schedulers::default().find(name, version)
}
