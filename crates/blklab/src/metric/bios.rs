// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of some bios of a trace and of their requests.

use super::{Aim, Metric, Pooling, Source, Unit};
use blklab_analysis::watch::BioFigures;

/// Of the bios that a filter lets through. None has a value if there are no such bios,
/// but for their number.
pub static BIOS: &[Metric] = &[
    row("bios", Unit::One, Aim::None, Pooling::Mean, "bios", |f| {
        Some(f.count as f64)
    }),
    row(
        "merges",
        Unit::One,
        Aim::None,
        Pooling::Mean,
        "merged bios",
        |f| unless_empty(f, f.merged as f64),
    ),
    row(
        "sleeps",
        Unit::One,
        Aim::Lower,
        Pooling::Mean,
        "bios that waited for a request",
        |f| unless_empty(f, f.slept as f64),
    ),
    row(
        "sleep_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "longest wait for a request",
        |f| unless_empty(f, f.s2g_max_ns as f64),
    ),
    row(
        "q2d_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "longest Q2D",
        |f| unless_empty(f, f.q2d_max_ns as f64),
    ),
    row(
        "q2d_p99",
        Unit::Ns,
        Aim::Lower,
        Pooling::Percentile(99.0),
        "99 % of Q2D",
        |f| f.q2d_p99_ns().map(|n| n as f64),
    ),
    row(
        "q2d_mean",
        Unit::Ms,
        Aim::Lower,
        Pooling::Mean,
        "mean Q2D",
        |f| unless_empty(f, f.q2d_sum_ns as f64 / 1e6 / f.count.max(1) as f64),
    ),
    row(
        "q2c_max",
        Unit::Ns,
        Aim::Lower,
        Pooling::Median,
        "longest Q2C",
        |f| unless_empty(f, f.q2c_max_ns as f64),
    ),
    row(
        "outstanding_max",
        Unit::One,
        Aim::None,
        Pooling::Median,
        "most bios outstanding",
        |f| unless_empty(f, f.outstanding_max() as f64),
    ),
    row(
        "stalls",
        Unit::One,
        Aim::Lower,
        Pooling::Mean,
        "stalls of 300 ms or more",
        |f| unless_empty(f, f.nr_stalls() as f64),
    ),
    row(
        "stalled_bios",
        Unit::One,
        Aim::Lower,
        Pooling::Mean,
        "most bios of a stall",
        |f| f.stalled().map(|s| s.0 as f64),
    ),
    row(
        "stall_fill",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "such a stall, from first to last Q",
        |f| f.stalled().map(|s| s.1),
    ),
    row(
        "stall",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "such a stall, longest Q2D",
        |f| f.stalled().map(|s| s.2),
    ),
    row(
        "d2c_median",
        Unit::Ns,
        Aim::Lower,
        Pooling::Mean,
        "median D2C",
        BioFigures::d2c_median_ns,
    ),
    row(
        "request_sectors_max",
        Unit::Sectors,
        Aim::None,
        Pooling::Median,
        "largest request",
        |f| unless_empty(f, f.request_sectors_max as f64),
    ),
    row(
        "missed_merges",
        Unit::One,
        Aim::Lower,
        Pooling::Mean,
        "requests behind a waiting one",
        |f| unless_empty(f, f.missed_merges() as f64),
    ),
    row(
        "missed_first_sectors",
        Unit::Sectors,
        Aim::None,
        Pooling::Mean,
        "median size of the one that waited",
        BioFigures::missed_first_sectors,
    ),
    row(
        "missed_second_sectors",
        Unit::Sectors,
        Aim::None,
        Pooling::Mean,
        "median size of the one behind it",
        BioFigures::missed_second_sectors,
    ),
    row(
        "q2q_median",
        Unit::Ns,
        Aim::None,
        Pooling::Mean,
        "median Q2Q",
        BioFigures::q2q_median_ns,
    ),
];

const fn row(
    key: &'static str,
    unit: Unit,
    aim: Aim,
    pooling: Pooling,
    title: &'static str,
    value: fn(&BioFigures) -> Option<f64>,
) -> Metric {
    Metric::new(key, unit, aim, pooling, title, Source::Bios(value))
}

/// None if there are no bios.
fn unless_empty(f: &BioFigures, value: f64) -> Option<f64> {
    (f.count > 0).then_some(value)
}
