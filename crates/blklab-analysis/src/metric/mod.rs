// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is true of a number beside its value: its unit, which way it is better, what several
//! runs make of it. Tables of numbers have these in each row.

mod unit;

pub use unit::Unit;

use serde::Serialize;

/// Which way a number is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// A latency.
    Lower,
    /// A rate.
    Higher,
    /// Neither: a count, a share.
    None,
}

/// How the values of several runs make one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pooling {
    /// Their mean, for rates and means.
    Mean,
    /// Their median, for extremes.
    Median,
    /// This percentile of the latencies of all runs together, where these are at hand.
    Percentile(f64),
}
