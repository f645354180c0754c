// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run counted beside its events: dirty pages, requests and tags in use.

use super::{plot, titled};
use crate::model::{Device, Member};
use blklab::counters::CounterSeries;

/// A page in MiB.
const PAGE_MIB: f64 = 1.0 / 256.0;

/// Of the machine, or of the queue of a device.
fn series<'a>(m: &'a Member, device: Option<&str>, name: &str) -> Option<&'a CounterSeries> {
    let mut all = m.counters.iter();
    all.find(|c| c.counter == name && c.device.as_deref() == device)
}

/// Where its first interval begins on the axis of the events, and how long it is.
fn place(m: &Member, c: &CounterSeries) -> (f64, u64) {
    let from_ns = c.start_ns as f64 - m.start_ns as f64;
    (from_ns, c.profile.interval_ns)
}

/// The highest of each interval.
fn maxima(c: &CounterSeries, unit: f64) -> Vec<f64> {
    let all = c.profile.maxima.iter();
    all.map(|v| f64::from(*v) * unit).collect()
}

/// Pages that are to be written, beside their limits.
pub(super) fn dirty(m: &Member) -> Option<(&'static str, String)> {
    let pages = [
        ("dirty", "dirty_pages", 1),
        ("under write-back", "writeback_pages", 0),
    ];
    let own: Vec<_> = pages
        .iter()
        .filter_map(|(label, name, colour)| Some((*label, series(m, None, name)?, *colour)))
        .collect();
    let (_, first, _) = own.first()?;
    let lines: Vec<_> = own
        .iter()
        .map(|(label, c, colour)| (*label, maxima(c, PAGE_MIB), *colour))
        .collect();
    let limit = |name: &str, words: &str| {
        let c = series(m, None, name)?;
        Some((f64::from(c.profile.max) * PAGE_MIB, words.to_owned()))
    };
    let limits = [
        limit("dirty_limit_pages", "writers wait"),
        limit("background_limit_pages", "write-back begins"),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    let title = titled(m, "dirty pages, MiB, the highest of each interval");
    Some((
        "dirty",
        plot(&title, m.span_ns, place(m, first), &lines, &limits),
    ))
}

/// Requests or tags of a device in use.
pub(super) fn queue(m: &Member, device: &Device) -> Vec<(&'static str, String)> {
    let dev = device.report.dev.to_string();
    let series_of = |name: &str| series(m, Some(&dev), name);
    let picture =
        |file: &'static str, what: &str, lines: &[(&'static str, &str, usize)], all: &str| {
            let own: Vec<_> = lines
                .iter()
                .filter_map(|(label, name, colour)| Some((*label, series_of(name)?, *colour)))
                .collect();
            let (_, first, _) = own.first()?;
            let drawn: Vec<_> = own
                .iter()
                .map(|(label, c, colour)| (*label, maxima(c, 1.0), *colour))
                .collect();
            let limit = series_of(all)
                .map(|c| (f64::from(c.profile.max), format!("all {}", c.profile.max)));
            let title = titled(m, what);
            let limits: Vec<_> = limit.into_iter().collect();
            Some((
                file,
                plot(&title, m.span_ns, place(m, first), &drawn, &limits),
            ))
        };
    let pools = [
        ("reads", "read_requests", 0),
        ("writes", "write_requests", 1),
        ("sync", "sync_requests", 0),
        ("async", "async_requests", 1),
    ];
    [
        picture(
            "requests",
            "requests of each pool in use, the highest of each interval",
            &pools,
            "pool_requests",
        ),
        picture(
            "scheduler-tags",
            "scheduler tags in use, the highest of each interval",
            &[("in use", "scheduler_tags", 0)],
            "scheduler_tags_all",
        ),
        picture(
            "driver-tags",
            "driver tags in use, the highest of each interval",
            &[("in use", "driver_tags", 0)],
            "driver_tags_all",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
