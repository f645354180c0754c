// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that an I/O scheduler outside this repository is written with.
//!
//! `docs/write-a-scheduler.md` builds one step by step. A multi-queue scheduler
//! implements [`Elevator`], a constant [`Scheduler`] describes it, and
//! [`Schedulers::with`] adds it to those that experiments can name.

pub use blklab_block::mq::{Core, Elevator};
pub use blklab_block::sq;
pub use blklab_block::{
    Cx, IoContext, List, Merge, Request, Requests, RqId, RqState, SectorTree, TreeNodes,
};
pub use blklab_engine::{TimerId, Timers};
pub use blklab_kernel::{Change, KernelVersion, Patches, Tunable, Tunables, Unit};
pub use blklab_sched::sources;
pub use blklab_sched::{Build, Built, LockOf, Make, ProcessorTime, Scheduler, Schedulers};
pub use blklab_types::{Bio, BioFlags, Hz, IoPrio, Jiffies, Op, PrioClass, Span, TaskId, Time};
