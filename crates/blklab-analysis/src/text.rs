// SPDX-License-Identifier: MIT OR Apache-2.0
//! [`TraceStats`] as text of at most 80 columns, laid out like btt's, so that
//! readers of btt find their way. Numbers that btt has are formatted as there;
//! the sections after `I/O Active Period Information` are our own.

use crate::distribution::Distribution;
use crate::lifecycle::DEVICES_MAX;
use crate::stats::{DeviceStats, Directions, Phases, ProcessStats, TraceStats};
use blklab_types::visible;
use std::fmt::{self, Write};

/// What to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// Phases of every process and device too: btt's `-A`.
    pub all: bool,
}

/// The statistics as text.
pub fn render(stats: &TraceStats, options: TextOptions) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = sections(&mut text, stats, options);
    text
}

fn sections(out: &mut String, stats: &TraceStats, options: TextOptions) -> fmt::Result {
    if options.all {
        head(out, "Per Process")?;
        per_phase(out, &stats.processes, |p| &p.phases, process_name)?;
        head(out, "Per Device")?;
        per_phase(out, &stats.devices, |d| &d.phases, device_name)?;
    }
    head(out, "All Devices")?;
    phase_head(out, "ALL")?;
    for (name, phase) in stats.all.named() {
        phase_row(out, name, phase)?;
    }
    writeln!(out)?;
    services(out, stats)?;
    overhead(out, stats)?;
    merges(out, stats)?;
    head(out, "Device Q2Q Seek Information")?;
    seeks(out, stats, |d| &d.q2q_seeks)?;
    head(out, "Device D2D Seek Information")?;
    seeks(out, stats, |d| &d.d2d_seeks)?;
    plugs(out, stats)?;
    activity(out, stats)?;
    percentiles(out, &stats.all)?;
    depths(out, stats)?;
    amounts(out, stats)?;
    unmatched(out, stats)
}

pub(crate) fn head(out: &mut String, title: &str) -> fmt::Result {
    writeln!(out, "==================== {title} ====================\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

fn device_name(device: &DeviceStats) -> String {
    format!("({:3},{:3})", device.dev.major, device.dev.minor)
}

/// Fits the first column: the name, and as much of the id as it leaves room for.
fn process_name(process: &ProcessStats) -> String {
    let pid = format!("({})", process.pid);
    let Some(comm) = &process.comm else {
        return pid;
    };
    let room = 14_usize.saturating_sub(pid.len());
    let comm: String = visible(comm).chars().take(room).collect();
    format!("{comm} {pid}")
}

fn phase_head(out: &mut String, title: &str) -> fmt::Result {
    writeln!(
        out,
        "{title:>15} {:>13} {:>13} {:>13} {:>11}",
        "MIN", "AVG", "MAX", "N"
    )?;
    writeln!(
        out,
        "{:-<15} {:-<13} {:-<13} {:-<13} {:-<11}",
        "", "", "", "", ""
    )
}

fn phase_row(out: &mut String, name: &str, phase: &Distribution) -> fmt::Result {
    if phase.count() == 0 {
        return Ok(());
    }
    let (min, max) = (seconds(phase.min()), seconds(phase.max()));
    let avg = phase.mean() / 1e9;
    writeln!(
        out,
        "{name:<15} {min:13.9} {avg:13.9} {max:13.9} {:11}",
        phase.count()
    )
}

/// A table for each phase, a row for each `T`.
fn per_phase<T>(
    out: &mut String,
    rows: &[T],
    phases: fn(&T) -> &Phases,
    name: fn(&T) -> String,
) -> fmt::Result {
    for (idx, (title, _)) in Phases::default().named().into_iter().enumerate() {
        phase_head(out, title)?;
        for row in rows {
            phase_row(out, &name(row), phases(row).named()[idx].1)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Of a trace without Q no bio has a phase, and what requests take at the device is all that is
/// known.
fn services(out: &mut String, stats: &TraceStats) -> fmt::Result {
    let shown = || stats.devices.iter().filter(|d| d.service.count() > 0);
    if stats.all.d2c.count() > 0 || shown().next().is_none() {
        return Ok(());
    }
    head(out, "Requests (no bio from Q to C is shown)")?;
    phase_head(out, "D2C")?;
    for device in shown() {
        for (letter, service) in device.service_of.named() {
            phase_row(out, &format!("{} {letter}", device_name(device)), service)?;
        }
    }
    writeln!(out)?;
    phase_head(out, "D2D")?;
    for device in shown() {
        phase_row(out, &device_name(device), &device.d2d)?;
    }
    writeln!(out)
}

fn overhead(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Device Overhead")?;
    writeln!(
        out,
        "{:>10} | {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "DEV", "Q2G", "G2I", "Q2M", "I2D", "M2D", "D2C"
    )?;
    let rule = "--------- --------- --------- --------- --------- ---------";
    writeln!(out, "---------- | {rule}")?;
    let mut row = |name: &str, p: &Phases| {
        let whole = p.q2c.sum() as f64;
        write!(out, "{name:>10} |")?;
        for part in [&p.q2g, &p.g2i, &p.q2m, &p.i2d, &p.m2d, &p.d2c] {
            write!(out, " {:8.4}%", percent(part.sum() as f64, whole))?;
        }
        writeln!(out)
    };
    for device in stats.devices.iter().filter(|d| d.phases.q2c.count() > 0) {
        row(&device_name(device), &device.phases)?;
    }
    if stats.devices.len() > 1 {
        row("Overall", &stats.all)?;
    }
    writeln!(out)
}

fn merges(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Device Merge Information")?;
    writeln!(
        out,
        "{:>10} | {:>8} {:>8} {:>7} | {:>8} {:>8} {:>8} {:>8}",
        "DEV", "#Q", "#D", "Ratio", "BLKmin", "BLKavg", "BLKmax", "Total"
    )?;
    writeln!(
        out,
        "---------- | -------- -------- ------- | -------- -------- -------- --------"
    )?;
    for device in stats.devices.iter().filter(|d| d.nr_issued > 0) {
        let blocks = &device.completed_sectors;
        writeln!(
            out,
            "{:>10} | {:8} {:8} {:7.1} | {:8} {:8} {:8} {:8}",
            device_name(device),
            device.queued.total().count + device.nr_splits,
            device.nr_issued,
            device.merge_ratio(),
            blocks.min(),
            blocks.sum() / u128::from(device.nr_issued),
            blocks.max(),
            blocks.sum(),
        )?;
    }
    writeln!(out)
}

fn seeks(
    out: &mut String,
    stats: &TraceStats,
    seeks_of: fn(&DeviceStats) -> &crate::seeks::Seeks,
) -> fmt::Result {
    writeln!(
        out,
        "{:>10} | {:>15} {:>15} {:>15} | SEQUENTIAL",
        "DEV", "NSEEKS", "MEAN", "MEDIAN"
    )?;
    let rule = "---------------";
    writeln!(out, "---------- | {rule} {rule} {rule} | ----------")?;
    for device in &stats.devices {
        let seeks = seeks_of(device);
        let (n, distances) = (seeks.distances.count(), &seeks.distances);
        if n > 0 {
            writeln!(
                out,
                "{:>10} | {n:15} {:15.1} {:15} | {:.1}%",
                device_name(device),
                distances.mean(),
                distances.percentile(50.0),
                percent(seeks.nr_sequential as f64, n as f64),
            )?;
        }
    }
    writeln!(out)
}

fn plugs(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Plug Information")?;
    writeln!(
        out,
        "{:>10} | {:>10} {:>10}  | % Time Q Plugged",
        "DEV", "# Plugs", "# Timer Us"
    )?;
    writeln!(
        out,
        "---------- | ---------- ----------  | ----------------"
    )?;
    let span = stats.end_ns.saturating_sub(stats.start_ns) as f64;
    let plugged = |d: &&DeviceStats| d.plugs.nr_unplugs + d.plugs.nr_timer_unplugs > 0;
    for device in stats.devices.iter().filter(plugged) {
        let plugs = &device.plugs;
        writeln!(
            out,
            "{:>10} | {:10}({:10}) | {:13.9}%",
            device_name(device),
            plugs.nr_unplugs,
            plugs.nr_timer_unplugs,
            percent(plugs.plugged_ns as f64, span),
        )?;
    }
    writeln!(
        out,
        "\n{:>10} | {:>10}   {:>10}",
        "DEV", "IOs/Unp", "IOs/Unp(to)"
    )?;
    writeln!(out, "---------- | ----------   ----------")?;
    let ratio = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
    for device in stats.devices.iter().filter(plugged) {
        let plugs = &device.plugs;
        writeln!(
            out,
            "{:>10} | {:10.1}   {:10.1}",
            device_name(device),
            ratio(plugs.nr_requests, plugs.nr_unplugs),
            ratio(plugs.nr_timer_requests, plugs.nr_timer_unplugs),
        )?;
    }
    writeln!(out)
}

fn activity(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Active Requests At Q Information")?;
    writeln!(out, "{:>10} | {:>13}", "DEV", "Avg Reqs @ Q")?;
    writeln!(out, "---------- | -------------")?;
    for device in stats.devices.iter().filter(|d| d.queued.total().count > 0) {
        writeln!(
            out,
            "{:>10} | {:13.1}",
            device_name(device),
            device.waiting_at_q
        )?;
    }
    writeln!(out)?;
    head(out, "I/O Active Period Information")?;
    writeln!(
        out,
        "{:>10} | {:>10} {:>13} {:>13} {:>6}",
        "DEV", "# Live", "Avg. Act", "Avg. !Act", "% Live"
    )?;
    writeln!(
        out,
        "---------- | ---------- ------------- ------------- ------"
    )?;
    for device in stats.devices.iter().filter(|d| d.activity.nr_periods > 0) {
        let a = &device.activity;
        let (n, active) = (a.nr_periods as f64, seconds(a.active_ns));
        let idle = (seconds(a.until_ns) - active).max(0.0);
        writeln!(
            out,
            "{:>10} | {:10} {:13.9} {:13.9} {:6.2}",
            device_name(device),
            a.nr_periods,
            active / n,
            if a.nr_periods > 1 {
                idle / (n - 1.0)
            } else {
                0.0
            },
            percent(active, seconds(a.until_ns)),
        )?;
    }
    writeln!(out)
}

/// Percentiles in µs with a digit after the point.
fn percentiles(out: &mut String, phases: &Phases) -> fmt::Result {
    head(out, "Percentiles (usec)")?;
    writeln!(
        out,
        "{:>15} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "ALL", "50%", "90%", "99%", "99.9%", "MAX"
    )?;
    let rule = "------------";
    writeln!(out, "--------------- {rule} {rule} {rule} {rule} {rule}")?;
    for (name, phase) in phases.named().into_iter().filter(|(_, p)| p.count() > 0) {
        write!(out, "{name:<15}")?;
        for value in [50.0, 90.0, 99.0, 99.9].map(|p| phase.percentile(p)) {
            write!(out, " {:12.1}", value as f64 / 1e3)?;
        }
        writeln!(out, " {:12.1}", phase.max() as f64 / 1e3)?;
    }
    writeln!(out)
}

fn depths(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Queue Depth")?;
    writeln!(
        out,
        "{:>10} | {:>10} {:>10} | {:>10} {:>10}",
        "DEV", "Q..C mean", "Q..C max", "D..C mean", "D..C max"
    )?;
    writeln!(
        out,
        "---------- | ---------- ---------- | ---------- ----------"
    )?;
    for device in &stats.devices {
        let (all, inner) = (&device.depth, &device.device_depth);
        writeln!(
            out,
            "{:>10} | {:10.2} {:10} | {:10.2} {:10}",
            device_name(device),
            all.mean,
            all.max,
            inner.mean,
            inner.max
        )?;
    }
    writeln!(out)
}

fn amounts(out: &mut String, stats: &TraceStats) -> fmt::Result {
    head(out, "Completed By Process (KiB)")?;
    writeln!(
        out,
        "{:>15} | {:>12} {:>8} | {:>12} {:>8} | {:>8}",
        "PROCESS", "READ", "#", "WRITTEN", "#", "MERGES"
    )?;
    writeln!(
        out,
        "--------------- | ------------ -------- | ------------ -------- | --------"
    )?;
    let others = stats.other_processes.as_deref();
    for process in stats.processes.iter().chain(others) {
        let is_others = others.is_some_and(|o| std::ptr::eq(o, process));
        let Directions { read, write, .. } = process.completed;
        writeln!(
            out,
            "{:<15} | {:12} {:8} | {:12} {:8} | {:8}",
            if is_others {
                "all others".to_owned()
            } else {
                process_name(process)
            },
            read.bytes / 1024,
            read.count,
            write.bytes / 1024,
            write.count,
            process.nr_merges
        )?;
    }
    writeln!(out)
}

fn unmatched(out: &mut String, stats: &TraceStats) -> fmt::Result {
    let u = &stats.unmatched;
    head(out, "Unmatched")?;
    let mut any = limits(out, stats)?;
    for (letters, n) in &u.events {
        writeln!(out, "{n:10} {letters} events that fit no request")?;
        any = true;
    }
    for (n, what) in [
        (u.unfinished_bios, "bios without completion"),
        (u.unfinished_requests, "requests without completion"),
        (u.passed_through, "events of commands passed through"),
    ] {
        if n > 0 {
            writeln!(out, "{n:10} {what}")?;
            any = true;
        }
    }
    if !any {
        writeln!(out, "none")?;
    }
    Ok(())
}

/// What was left out because there is too much of it; whether there was any.
fn limits(out: &mut String, stats: &TraceStats) -> Result<bool, fmt::Error> {
    if let Some(others) = &stats.other_devices {
        writeln!(
            out,
            "{:10} events of devices beyond the first {DEVICES_MAX}, which are in no table:\n\
             {:10} bios queued, {} requests issued, {} completed",
            others.nr_events,
            others.queued.total().count,
            others.nr_issued,
            others.nr_completed,
        )?;
    }
    if stats.other_processes.is_some() {
        writeln!(
            out,
            "{:10} processes have a row; further ones are one, 'all others'",
            stats.processes.len()
        )?;
    }
    if stats.nr_overflows > 0 {
        writeln!(
            out,
            "{:10} additions went beyond 64 bits: sums of plugging, activity or depth\n\
             {:10} are lower bounds",
            stats.nr_overflows, ""
        )?;
    }
    Ok(stats.other_devices.is_some() || stats.other_processes.is_some() || stats.nr_overflows > 0)
}
