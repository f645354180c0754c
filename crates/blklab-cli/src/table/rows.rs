// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of jobs, of explicit processes and of the disk.

use super::{Pairs, WIDTH, label};
use crate::histogram;
use crate::output::{bytes, count, cut, fold, per_second, time};
use blklab::experiment::Published;
use blklab::metric::Numbers;
use blklab::summary::{DiskRow, Row, Spread, Table};
use std::collections::BTreeMap;
use std::io::Write;

/// Some jobs in one direction.
pub(super) fn show_table(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    let sync = t.direction == "sync";
    writeln!(out)?;
    for line in fold(&heading(t), WIDTH) {
        writeln!(out, "{line}")?;
    }
    let clat = if sync { "lat50" } else { "clat50" };
    writeln!(
        out,
        "{:<width$} {:>8} {:>8}  {clat:>6} {:>6} {:>6} {:>6} {:>9} {:>6}",
        "",
        "runt-min",
        "runt-max",
        "99 %",
        "99.9 %",
        "max",
        if sync { "" } else { "bandwidth" },
        if sync { "per s" } else { "IOPS" },
    )?;
    for row in &t.rows {
        show_row(out, row, width, sync)?;
    }
    show_histograms(out, t, width)?;
    show_ratios(out, t, width)
}

/// I/Os below which a histogram has little to say.
const HISTOGRAM_IOS_MIN: u64 = 50;

/// How the latencies of each row are spread: two humps, or a far tail, are in none of the
/// percentiles.
fn show_histograms(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    let line = |row: &'_ Row| -> Vec<(u64, u64)> {
        let bins = row.numbers.iter().flat_map(Numbers::clat_bins);
        let mut sum = BTreeMap::new();
        bins.for_each(|(ns, count)| *sum.entry(*ns).or_default() += count);
        sum.into_iter().collect()
    };
    let lines = t.rows.iter().map(|r| (r.label.as_str(), line(r)));
    let lines: Vec<(&str, Vec<(u64, u64)>)> = lines.collect();
    let ios = |bins: &[(u64, u64)]| bins.iter().map(|(_, count)| count).sum::<u64>();
    if lines.iter().all(|(_, bins)| ios(bins) < HISTOGRAM_IOS_MIN) {
        return Ok(());
    }
    let place = histogram::Place {
        indent: 0,
        names: width,
    };
    histogram::show(out, &place, &lines)
}

/// What a table is about: `read, 2 jobs (a, b): 1.00MiB in 256 I/Os`.
fn heading(t: &Table) -> String {
    let group = t.group.map_or(String::new(), |g| format!("group {g}, "));
    let plural = if t.ios.max == 1.0 { "" } else { "s" };
    let ios = match t.ios {
        ios if ios.min == ios.max => format!("{:.0}", ios.min),
        ios => format!("{} to {}", count(ios.min), count(ios.max)),
    };
    let amount = match t.bytes {
        _ if t.direction == "sync" => format!("{ios} call{plural} of fsync or its kin"),
        n if n.min == n.max => format!("{} in {ios} I/O{plural}", bytes(n.min)),
        n => format!("{} to {}", bytes(n.min), bytes(n.max)),
    };
    format!("{group}{}, {}: {amount}", t.direction, t.who)
}

/// Bandwidths over that of the first row, beside the published ones.
fn show_ratios(out: &mut impl Write, t: &Table, width: usize) -> std::io::Result<()> {
    let rows: Vec<(&Row, f64)> = t
        .rows
        .iter()
        .filter_map(|r| Some((r, r.published.as_ref()?.bandwidth_mb_s?)))
        .collect();
    let [(first, first_published), _, ..] = rows[..] else {
        return Ok(());
    };
    writeln!(out, "\nbandwidth over that of {}", first.label)?;
    writeln!(out, "{:<width$} {:>9} {:>9}", "", "here", "published")?;
    let bandwidth = |r: &Row| r.spread("bandwidth").median;
    for (r, published) in &rows {
        label(out, &r.label, width)?;
        let ours = bandwidth(r) / bandwidth(first).max(1.0);
        writeln!(out, " {ours:>9.2} {:>9.2}", published / first_published)?;
    }
    Ok(())
}

fn show_row(out: &mut impl Write, r: &Row, width: usize, sync: bool) -> std::io::Result<()> {
    label(out, &r.label, width)?;
    let median = |key| r.spread(key).median;
    writeln!(
        out,
        " {:>8} {:>8}  {:>6} {:>6} {:>6} {:>6} {:>9} {:>6}",
        runt(median("runt_min")),
        runt(median("runt_max")),
        time(median("clat_p50")),
        time(median("clat_p99")),
        time(median("clat_p999")),
        time(median("clat_max")),
        if sync {
            String::new()
        } else {
            per_second(median("bandwidth"))
        },
        count(median("iops")),
    )?;
    if r.runs > 1 {
        show_spread(out, r, width)?;
    }
    match &r.published {
        Some(p) => show_published(out, p, width),
        None => Ok(()),
    }
}

/// What was published for a row, in the same columns, and where.
fn show_published(out: &mut impl Write, p: &Published, width: usize) -> std::io::Result<()> {
    let ms = |v: Option<u64>| v.map_or("-".to_owned(), |v| runt(v as f64));
    let source = fold(&p.source, WIDTH - width - 20);
    let (min, max) = (ms(p.runt_min_ms), ms(p.runt_max_ms));
    let name = cut("  published", width);
    let mut lines = source.iter();
    if let Some(mb_s) = p.bandwidth_mb_s {
        let text = per_second(mb_s * 1e6);
        writeln!(
            out,
            "{name:<width$} {min:>8} {max:>8}  {:>27} {text:>9}",
            ""
        )?;
    } else {
        let first = lines.next().map_or("", String::as_str);
        writeln!(out, "{name:<width$} {min:>8} {max:>8}  {first}")?;
    }
    for line in lines.filter(|l| !l.is_empty()) {
        writeln!(out, "{:<width$} {:>8} {:>8}  {line}", "", "", "")?;
    }
    Ok(())
}

/// A run time in milliseconds, as fio and what was published have it; in
/// seconds if it is longer than its column.
fn runt(ms: f64) -> String {
    if ms < 999_999.5 {
        format!("{ms:.0}ms")
    } else {
        format!("{:.0}s", ms / 1000.0)
    }
}

/// Lowest and highest of several runs, in the same columns, unless they are
/// all the same.
fn show_spread(out: &mut impl Write, r: &Row, width: usize) -> std::io::Result<()> {
    let [runt_min, runt_max, p50, p99, p999, max, bandwidth, iops] = [
        "runt_min",
        "runt_max",
        "clat_p50",
        "clat_p99",
        "clat_p999",
        "clat_max",
        "bandwidth",
        "iops",
    ]
    .map(|key| r.spread(key));
    let spreads = [runt_min, runt_max, p50, p99, p999, max, bandwidth];
    if spreads.iter().all(|s| s.min == s.max) {
        return Ok(());
    }
    for name in ["lowest", "highest"] {
        let end = |s: &Spread| if name == "lowest" { s.min } else { s.max };
        writeln!(
            out,
            "{:<width$} {:>8} {:>8}  {:>6} {:>6} {:>6} {:>6} {:>9} {:>6}",
            cut(&format!("  {name}"), width),
            runt(end(&runt_min)),
            runt(end(&runt_max)),
            time(end(&p50)),
            time(end(&p99)),
            time(end(&p999)),
            time(end(&max)),
            if bandwidth.max > 0.0 {
                per_second(end(&bandwidth))
            } else {
                String::new()
            },
            count(end(&iops)),
        )?;
    }
    Ok(())
}

/// Explicit processes have no fio statistics: what the trace says of them.
pub(super) fn show_processes(out: &mut impl Write, pairs: &Pairs<'_>) -> std::io::Result<()> {
    for (cell, run) in pairs {
        for line in fold(&format!("{}: {} s", cell.name_in_file(), run.end), WIDTH) {
            writeln!(out, "\n{line}")?;
        }
        writeln!(
            out,
            "{:<22} {:>6} {:>8}  {:>7} {:>7} {:>7} {:>10}",
            "process", "bios", "bytes", "Q2C 50", "Q2C 99", "max", "bandwidth"
        )?;
        let seconds = run.end.0 as f64 / 1e9;
        for p in &run.stats.processes {
            let total = p.completed.total();
            let q2c = &p.phases.q2c;
            let name = format!("{} ({})", p.comm.as_deref().unwrap_or("?"), p.pid);
            writeln!(
                out,
                "{:<22} {:>6} {:>8}  {:>7} {:>7} {:>7} {:>10}",
                cut(&name, 22),
                count(total.count as f64),
                bytes(total.bytes as f64),
                time(q2c.percentile(50.0) as f64),
                time(q2c.percentile(99.0) as f64),
                time(q2c.max() as f64),
                per_second(total.bytes as f64 / seconds.max(1e-9)),
            )?;
        }
    }
    Ok(())
}

/// How the disk was used, and where bios spent their time on the mean.
pub(super) fn show_disk(
    out: &mut impl Write,
    rows: &[DiskRow],
    width: usize,
) -> std::io::Result<()> {
    writeln!(
        out,
        "\ndisk: bios wait on the mean Q2D in the kernel, then D2C at the device"
    )?;
    writeln!(
        out,
        "{:<width$} {:>9} {:>9}  {:>6} {:>6} {:>6} {:>9}",
        "", "requests", "merged", "Q2D", "D2C", "%util", "in flight"
    )?;
    for r in rows {
        label(out, &r.label, width)?;
        let median = |key| r.spread(key).median;
        writeln!(
            out,
            " {:>9} {:>8.1}%  {:>6} {:>6} {:>6.1} {:>9.1}",
            count(median("disk_requests")),
            median("disk_merged"),
            time(median("disk_q2d_mean")),
            time(median("disk_d2c_mean")),
            median("disk_util"),
            median("disk_in_flight_mean"),
        )?;
    }
    Ok(())
}

/// The digests of several runs: a row for each experiment.
pub(super) fn show_digests(
    out: &mut impl Write,
    pairs: &Pairs<'_>,
    width: usize,
) -> std::io::Result<()> {
    writeln!(out, "\ndigest of all events")?;
    for same in pairs.chunk_by(|a, b| a.0.label == b.0.label) {
        let digests = same.iter().map(|(_, run)| run.digest.value());
        let digests: Vec<String> = digests.map(|d| format!("{d:016x}")).collect();
        let text = digests.join(" ");
        let mut lines = fold(&text, WIDTH - width - 1).into_iter();
        label(out, &same[0].0.name_in_file(), width)?;
        writeln!(out, " {}", lines.next().unwrap_or_default())?;
        for line in lines {
            writeln!(out, "{:<width$} {line}", "")?;
        }
    }
    Ok(())
}
