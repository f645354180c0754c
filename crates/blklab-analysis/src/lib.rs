// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says about waiting, from its events alone.

pub mod distribution;
pub mod lifecycle;
