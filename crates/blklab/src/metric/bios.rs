// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of some bios of a trace and of their requests.

use super::{Metric, Source, Unit};
use blklab_analysis::watch::BioFigures;

/// Of the bios that a filter lets through. None has a value if there are no such bios,
/// but for their number.
pub static BIOS: &[Metric] = &[
    row("bios", Unit::One, "bios", |f| Some(f.count as f64)),
    row("merges", Unit::One, "merged bios", |f| {
        unless_empty(f, f.merged as f64)
    }),
    row("sleeps", Unit::One, "bios that waited for a request", |f| {
        unless_empty(f, f.slept as f64)
    }),
    row("sleep_max", Unit::Ns, "longest wait for a request", |f| {
        unless_empty(f, f.s2g_max_ns as f64)
    }),
    row("q2d_max", Unit::Ns, "longest Q2D", |f| {
        unless_empty(f, f.q2d_max_ns as f64)
    }),
    row("q2d_p99", Unit::Ns, "99 % of Q2D", |f| {
        f.q2d_p99_ns().map(|n| n as f64)
    }),
    row("q2d_mean", Unit::Ms, "mean Q2D", |f| {
        unless_empty(f, f.q2d_sum_ns as f64 / 1e6 / f.count.max(1) as f64)
    }),
    row("q2c_max", Unit::Ns, "longest Q2C", |f| {
        unless_empty(f, f.q2c_max_ns as f64)
    }),
    row("outstanding_max", Unit::One, "most bios outstanding", |f| {
        unless_empty(f, f.outstanding_max() as f64)
    }),
    row("stalls", Unit::One, "stalls of 300 ms or more", |f| {
        unless_empty(f, f.nr_stalls() as f64)
    }),
    row("stalled_bios", Unit::One, "most bios of a stall", |f| {
        f.stalled().map(|s| s.0 as f64)
    }),
    row(
        "stall_fill",
        Unit::Ns,
        "such a stall, from first to last Q",
        |f| f.stalled().map(|s| s.1),
    ),
    row("stall", Unit::Ns, "such a stall, longest Q2D", |f| {
        f.stalled().map(|s| s.2)
    }),
    row(
        "d2c_median",
        Unit::Ns,
        "median D2C",
        BioFigures::d2c_median_ns,
    ),
    row(
        "request_sectors_max",
        Unit::Sectors,
        "largest request",
        |f| unless_empty(f, f.request_sectors_max as f64),
    ),
    row(
        "missed_merges",
        Unit::One,
        "requests behind a waiting one",
        |f| unless_empty(f, f.missed_merges() as f64),
    ),
    row(
        "missed_first_sectors",
        Unit::Sectors,
        "median size of the one that waited",
        BioFigures::missed_first_sectors,
    ),
    row(
        "missed_second_sectors",
        Unit::Sectors,
        "median size of the one behind it",
        BioFigures::missed_second_sectors,
    ),
    row(
        "q2q_median",
        Unit::Ns,
        "median Q2Q",
        BioFigures::q2q_median_ns,
    ),
];

const fn row(
    key: &'static str,
    unit: Unit,
    title: &'static str,
    value: fn(&BioFigures) -> Option<f64>,
) -> Metric {
    Metric {
        key,
        unit,
        title,
        source: Source::Bios(value),
    }
}

/// None if there are no bios.
fn unless_empty(f: &BioFigures, value: f64) -> Option<f64> {
    (f.count > 0).then_some(value)
}
