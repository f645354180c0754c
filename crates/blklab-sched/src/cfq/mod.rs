// SPDX-License-Identifier: MIT OR Apache-2.0
//! CFQ, completely fair queueing: a queue of requests per process and a slice
//! of time for each.
//!
//! Three schedulers of one name, after the structure that holds the busy
//! queues: lists by priority (2.6.16 to 2.6.21), one service tree (2.6.22 to
//! 2.6.32), and groups with a tree per workload (2.6.33 to 4.20).

pub(crate) mod choose;
mod prio;
mod tunables;
