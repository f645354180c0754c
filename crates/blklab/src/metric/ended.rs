// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of the bios of a process, in one direction, that ended in a stretch of a trace:
//! what traces are compared by.

use super::{Aim, Compared, Metric, Pooling, Source, Unit};
use blklab_fiostat::LatencyHist;

/// Of such bios: from Q to C, and its parts. None of a latency has a value if there are none.
pub static ENDED: &[Metric] = &[
    row(
        "bandwidth",
        Unit::BytesPerS,
        Aim::Higher,
        Pooling::Mean,
        "bandwidth",
        |b| Some(b.bytes as f64 / b.seconds),
    ),
    row(
        "iops",
        Unit::PerS,
        Aim::Higher,
        Pooling::Mean,
        "IOPS",
        |b| Some(b.bios as f64 / b.seconds),
    ),
    row(
        "q2c_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "Q2C mean",
        |b| b.mean(b.q2c_ns),
    ),
    percentile("q2c_p50", 50.0, "Q2C p50", |b| b.percentile(50.0)),
    percentile("q2c_p99", 99.0, "Q2C p99", |b| b.percentile(99.0)),
    percentile("q2c_p999", 99.9, "Q2C p99.9", |b| b.percentile(99.9)),
    row(
        "q2c_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "Q2C max",
        |b| (b.bios > 0).then_some(b.max_ns as f64),
    ),
    row(
        "q2d_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "Q2D mean",
        |b| b.mean(b.q2d_ns),
    ),
    row(
        "d2c_mean",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "D2C mean",
        |b| b.mean(b.d2c_ns),
    ),
];

const fn row(
    key: &'static str,
    unit: Unit,
    aim: Aim,
    pooling: Pooling,
    title: &'static str,
    value: fn(&EndedBios) -> Option<f64>,
) -> Metric {
    Metric::new(key, unit, aim, pooling, title, Source::Ended(value)).compared(Compared::Always)
}

const fn percentile(
    key: &'static str,
    of: f64,
    title: &'static str,
    value: fn(&EndedBios) -> Option<f64>,
) -> Metric {
    let pooling = Pooling::Percentile(of);
    row(key, Unit::Ns, Aim::Lower, pooling, title, value)
}

/// The bios of a process in one direction that ended in a stretch of a trace.
#[derive(Clone, Debug, Default)]
pub struct EndedBios {
    /// How many.
    pub bios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their Q2C.
    pub q2c_ns: u64,
    /// Sum of their Q2D.
    pub q2d_ns: u64,
    /// Sum of their D2C.
    pub d2c_ns: u64,
    /// The longest Q2C.
    pub max_ns: u64,
    /// Q2C of each.
    pub latencies: LatencyHist,
    /// How long the stretch is.
    pub seconds: f64,
}

impl EndedBios {
    /// Adds those of another stretch.
    pub(crate) fn add(&mut self, other: &EndedBios) {
        self.bios += other.bios;
        self.bytes += other.bytes;
        self.q2c_ns = self.q2c_ns.saturating_add(other.q2c_ns);
        self.q2d_ns = self.q2d_ns.saturating_add(other.q2d_ns);
        self.d2c_ns = self.d2c_ns.saturating_add(other.d2c_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.latencies.merge(&other.latencies);
        self.seconds += other.seconds;
    }

    fn mean(&self, sum_ns: u64) -> Option<f64> {
        (self.bios > 0).then(|| sum_ns as f64 / self.bios as f64)
    }

    fn percentile(&self, percentile: f64) -> Option<f64> {
        let found = self.latencies.percentiles(&[percentile], self.bios);
        (self.bios > 0).then(|| found[0] as f64)
    }
}
