// SPDX-License-Identifier: MIT OR Apache-2.0
//! The block layer: everything between `submit_bio` and the driver.
//!
//! There are two paths, as in Linux: [`sq`] with one queue, 2.6.16 to 4.20, and
//! [`mq`] with software and hardware queues, from 5.0 on. Each is a state machine
//! with a trait that its schedulers implement: callers enter with a [`Cx`] (the
//! present, the running task, timers, sinks) and carry out the [`Effect`]s it
//! leaves behind.
//! What changed between kernel versions is a value of features
//! ([`sq::Features`], [`mq::Features`]), resolved in one place for each path. An [`md::Array`] makes one device of several.
//!
//! Left out: bouncing, integrity data, passthrough requests, error handling
//! of partial completions, switching the scheduler of a live queue.

mod cx;
mod events;
mod hash;
mod limits;
mod list;
pub mod md;
pub mod mq;
mod pending;
mod qos;
mod queue;
mod queue_no;
mod request;
pub mod sq;
mod submit;
mod throttle;
mod tree;

pub use blklab_types::IoMax;
pub use cx::{CpuPolicy, Cx, Effect, IoContext, IoGroup, Running, TaskTable};
pub use events::MESSAGE_MAX;
pub use limits::QueueLimits;
pub use list::List;
pub use pending::Pending;
pub use queue::Queue;
pub use queue_no::QueueNo;
pub use request::{Merge, Request, Requests, RqId, RqState};
pub use submit::{SleepsFor, Submit};
pub use throttle::{Counting, Gate, HoldStats, Throttle};
pub use tree::{SectorTree, TreeNodes};
