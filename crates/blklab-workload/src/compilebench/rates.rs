// SPDX-License-Identifier: MIT OR Apache-2.0
//! What compilebench prints: per kind of operation the mean of the rates.

/// The operations of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Bytes and nanoseconds of each.
    operations: Vec<(u64, u64)>,
}

/// compilebench's clock ticks 100 times a second.
const TICK_NS: u64 = 10_000_000;

impl Rates {
    /// Adds an operation.
    pub fn add(&mut self, bytes: u64, elapsed_ns: u64) {
        self.operations.push((bytes, elapsed_ns));
    }

    /// Number of operations.
    pub fn count(&self) -> usize {
        self.operations.len()
    }

    /// Mean of the rates (not total over time), in MiB per second, each by a
    /// clock that counts hundredths of a second.
    pub fn mean_mib_s(&self) -> f64 {
        self.mean(|bytes, seconds| bytes as f64 / f64::from(1 << 20) / seconds)
    }

    /// Mean duration in seconds.
    pub fn mean_s(&self) -> f64 {
        self.mean(|_, seconds| seconds)
    }

    fn mean(&self, f: impl Fn(u64, f64) -> f64) -> f64 {
        let seconds = |ns: u64| (ns / TICK_NS).max(1) as f64 / 100.0;
        let sum: f64 = self
            .operations
            .iter()
            .map(|&(b, ns)| f(b, seconds(ns)))
            .sum();
        sum / self.operations.len().max(1) as f64
    }
}
