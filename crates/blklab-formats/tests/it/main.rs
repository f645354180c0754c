// SPDX-License-Identifier: MIT OR Apache-2.0
//! The writers and readers against the real tools, golden files, recorded
//! traces, and arbitrary input.

mod arbitrary;
mod compact;
mod ctf;
mod documented;
mod ftrace;
mod mailed;
mod oracle;
mod readers;
mod sources;
mod synthetic;
mod tracedat;
mod wide;
