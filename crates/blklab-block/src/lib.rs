// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single-queue block layer, 2.6.16 to 4.20: requests, merging, plugging,
//! request pools, dispatch list, driver loop, barriers and flushes, and the
//! trait its schedulers implement.
//!
//! Everything between `submit_bio` and the driver is one [`sq::Queue`]. It is
//! a state machine: callers enter with a [`Cx`] (the present, the running
//! task, timers, sinks) and carry out the [`Effect`]s it leaves behind.
//! What changed between kernel versions is a [`Features`] value, resolved in
//! one place. An [`md::Array`] makes one device of several.
//!
//! Left out: bouncing, integrity data, passthrough requests, error handling
//! of partial completions, switching the scheduler of a live queue.

mod cx;
mod features;
mod hash;
mod limits;
mod list;
pub mod md;
mod request;
pub mod sq;
mod tree;

pub use cx::{CpuPolicy, Cx, Effect, IoContext, IoGroup, Running, TaskTable};
pub use features::{AsyncTags, CHANGES, Features, FlushSort, Ordered, PlugPolicy};
pub use limits::{Fetch, Limits, QUEUE_TUNABLES};
pub use list::List;
pub use request::{Request, Requests, RqId, RqState};
pub use tree::{SectorTree, TreeNodes};
