// SPDX-License-Identifier: MIT OR Apache-2.0
//! Statistics of recorded and made-up traces against real btt; arbitrary events.

mod answers;
mod arbitrary;
mod beside;
mod btt;
mod excerpts;
mod findings;
mod groups;
mod handed_on;
mod kinds;
mod legacy;
mod limits;
mod mailed;
mod metrics;
mod ordered;
mod stacks;
mod verdicts;
mod volumes;
