// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says about waiting, from its events alone.
//!
//! ```text
//! events ─► Lifecycles ─► lives of bios and requests ─┐
//!    └──────────────────────────────────────────────► StatsCollector ─► TraceStats ─► text
//! ```
//!
//! Nothing here knows where a trace came from: a simulation, a kernel, a file.
//! All of it works in one pass with bounded memory. `docs/metrics.md` says what
//! each number means.

pub mod collect;
pub mod distribution;
pub mod lifecycle;
pub mod seeks;
pub mod stats;
pub mod text;
pub mod timeline;
