// SPDX-License-Identifier: MIT OR Apache-2.0
//! The multi-queue path (blk-mq).

mod core;
mod elevator;
mod features;
mod limits;
mod tags;

pub use self::core::Core;
pub use self::elevator::Elevator;
pub use self::features::{CHANGES, Features, PlugMerge, PlugOrder};
pub use self::limits::Limits;
pub use self::tags::{TagRules, TagWakes, Tags};
