// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups let a task sleep before its bio gets a request (`rq_qos_throttle`,
//! block/blk-rq-qos.h): io.latency for the sake of another group, io.cost since the group has
//! used up its share. No event shows either; what shows it is that a task sleeps while requests
//! are free, and what the context says of its group.

pub mod in_use;
pub mod latency;
pub mod limits;
pub mod members;
pub mod policy;
pub mod price;
pub mod share;
pub mod waits;

pub use in_use::InUse;
pub use members::Members;
pub use policy::Policy;
