// SPDX-License-Identifier: MIT OR Apache-2.0
//! The specifications' hand-worked test vectors, and properties that hold for
//! every scheduler on every kernel.

mod anticipatory;
mod arrival;
mod bfq;
mod block;
mod cfq_groups;
mod cfq_lists;
mod cfq_tree;
mod cfq_tree_patches;
mod cfq_tree_releases;
mod cfq_tree_tunables;
mod contract;
mod deadline;
mod flush;
mod kyber;
mod load;
mod merge_limit;
mod mq_bench;
mod mq_block;
mod mq_deadline;
mod mq_load;
mod mq_random;
mod mq_replay;
mod mq_rig;
mod mq_table;
mod mq_waits;
mod noop;
mod pool;
mod properties;
mod rig;
mod starvation;
mod timetable;
mod waits;
