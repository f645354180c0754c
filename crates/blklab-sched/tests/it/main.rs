// SPDX-License-Identifier: MIT OR Apache-2.0
//! The specifications' hand-worked test vectors, and properties that hold for
//! every scheduler on every kernel.

mod anticipatory;
mod block;
mod deadline;
mod flush;
mod noop;
mod pool;
mod properties;
mod rig;
mod timetable;
