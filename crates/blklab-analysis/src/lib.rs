// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says about waiting, from its events alone.
//!
//! ```text
//! events ─► Lifecycles ─► lives of bios and requests ─┐
//!    └──────────────────────────────────────────────► StatsCollector ─► TraceStats ─► text
//! ```
//!
//! Nothing here knows where a trace came from: a simulation, a kernel, a file.
//! All of it works in one pass with bounded memory: I/O in flight, devices and
//! processes beyond a limit are summed, and the result says so. `docs/metrics.md`
//! says what each number means.

pub mod bins;
pub mod breakdown;
pub mod collect;
pub mod common;
pub mod distribution;
pub mod divergence;
pub mod findings;
mod index;
pub mod lifecycle;
mod lives;
pub mod merges;
pub mod metric;
pub mod names;
pub mod scope;
pub mod seeks;
pub mod spread;
pub mod stalls;
pub mod stats;
mod tally;
pub mod text;
pub mod timeline;
pub mod watch;
