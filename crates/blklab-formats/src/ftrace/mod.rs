// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints of the block layer as text: the files `trace` and `trace_pipe` of
//! tracefs, `trace-cmd report`, `perf script`, and the tracer `blk`.
//!
//! ```text
//!  fio-1234    [003] d..1.  9904.831153: block_rq_issue: 8,0 WS 4096 () 2048 + 8 be,0,4 [fio]
//!  fio  1234  [003]  9904.831153: block:block_rq_issue: 8,0 WS 4096 () 2048 + 8 [fio]
//!  fio-1234    [003] d..1.  9904.831153:   8,0    D  WS 2048 + 8 [fio]
//!  fio-1234      3d..1. 9904831us : block_rq_issue: 8,0 WS 4096 () 2048 + 8 [fio]
//!  9904.831 fio/1234 block:block_rq_issue(dev: 8388608, sector: 2048, nr_sector: 8, …)
//! ```
//!
//! Fields of the events: include/trace/events/block.h of Linux 3.0 to 6.18;
//! columns in front: kernel/trace/trace_output.c, perf-script(1).

mod frames;
mod head;
mod parse;
mod read;
mod traced;

pub(crate) use read::FORMAT;
pub use read::FtraceReader;
