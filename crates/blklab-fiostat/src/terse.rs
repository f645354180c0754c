// SPDX-License-Identifier: MIT OR Apache-2.0
//! The line for scripts: semicolon-separated fields, versions 2 to 5.
//!
//! fio 3.33 takes `csv` as another name of this format: semicolons too.

use std::fmt::{self, Write as _};

use crate::dist::percent_of;
use crate::result::GroupDir;
use crate::thread_stat::DirStat;
use crate::{Ddir, DiskCounters, DiskUtil, Entry, FioResult, IoStat, UnifiedRw};

/// What `--terse-version` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerseVersion {
    /// No version text and no disks; trims included.
    V2,
    /// No trims.
    #[default]
    V3,
    /// All directions.
    V4,
    /// All directions, with samples.
    V5,
}

impl TerseVersion {
    /// The version of a number, if there is one.
    pub fn from_number(number: u32) -> Option<TerseVersion> {
        match number {
            2 => Some(TerseVersion::V2),
            3 => Some(TerseVersion::V3),
            4 => Some(TerseVersion::V4),
            5 => Some(TerseVersion::V5),
            _ => None,
        }
    }

    /// The number.
    pub fn number(self) -> u32 {
        match self {
            TerseVersion::V2 => 2,
            TerseVersion::V3 => 3,
            TerseVersion::V4 => 4,
            TerseVersion::V5 => 5,
        }
    }
}

/// Percentile fields there are, whether used or not.
const PERCENTILE_FIELDS: usize = 20;

/// Appends one line per entry.
pub(crate) fn write(out: &mut String, result: &FioResult, version: TerseVersion) -> fmt::Result {
    for entry in &result.entries {
        write_entry(out, result, entry, version)?;
    }
    Ok(())
}

fn write_entry(
    out: &mut String,
    result: &FioResult,
    entry: &Entry,
    version: TerseVersion,
) -> fmt::Result {
    let (info, stat) = (&entry.info, &entry.stat);
    let group = result.group_of(entry);
    write!(out, "{}", version.number())?;
    if version != TerseVersion::V2 {
        write!(out, ";{}", result.version)?;
    }
    write!(out, ";{};{};{}", info.name, info.group_id, info.error)?;
    let shown: &[Ddir] = match (info.unified, version) {
        (UnifiedRw::Mixed, _) => &[Ddir::Read],
        (_, TerseVersion::V3) => &[Ddir::Read, Ddir::Write],
        _ => &Ddir::ALL,
    };
    for dir in shown {
        write_direction(out, entry, stat.dir(*dir), group.dirs[dir.idx()], version)?;
    }
    if info.unified == UnifiedRw::Both {
        let mixed = stat.mixed();
        write_direction(out, entry, mixed.dir(Ddir::Read), group.dirs[0], version)?;
    }
    write_shares(out, entry)?;
    if version != TerseVersion::V2 {
        result
            .disk_util
            .iter()
            .try_for_each(|disk| write_disk(out, disk))?;
    }
    if info.continue_on_error {
        write!(out, ";{};{}", info.errors, info.first_error)?;
    }
    if !info.description.is_empty() {
        let line_feed = if version == TerseVersion::V2 {
            "\n"
        } else {
            ""
        };
        write!(out, "{line_feed};{}", info.description)?;
    }
    out.write_char('\n')
}

fn write_direction(
    out: &mut String,
    entry: &Entry,
    dir: &DirStat,
    group: Option<GroupDir>,
    version: TerseVersion,
) -> fmt::Result {
    let (io, bw) = (dir.io_bytes >> 10, dir.bw_bytes() / 1024);
    write!(out, ";{io};{bw};{};{}", dir.iops_whole(), dir.runtime_ms)?;
    write_latency(out, &dir.slat.stat)?;
    write_latency(out, &dir.clat.stat)?;
    write_percentiles(out, entry, dir)?;
    write_latency(out, &dir.lat.stat)?;
    let bw = &dir.bw;
    let share = match (bw.samples, group.map_or(0, |g| g.agg)) {
        (0, _) => 0.0,
        (_, 0) => 100.0,
        (_, agg) => (bw.mean * 100.0 / (agg / 1024) as f64).min(100.0),
    };
    let (mean, dev) = (bw.mean, bw.stddev());
    write!(
        out,
        ";{};{};{share:.6}%;{mean:.6};{dev:.6}",
        bw.min_or_zero(),
        bw.max
    )?;
    if version == TerseVersion::V5 {
        let iops = &dir.iops;
        write!(out, ";{};{};{}", bw.samples, iops.min_or_zero(), iops.max)?;
        write!(
            out,
            ";{:.6};{:.6};{}",
            iops.mean,
            iops.stddev(),
            iops.samples
        )?;
    }
    Ok(())
}

/// A latency in microseconds.
fn write_latency(out: &mut String, stat: &IoStat) -> fmt::Result {
    let (min, max) = (stat.min_or_zero() / 1000, stat.max / 1000);
    let (mean, dev) = (stat.mean / 1000.0, stat.stddev() / 1000.0);
    write!(out, ";{min};{max};{mean:.6};{dev:.6}")
}

fn write_percentiles(out: &mut String, entry: &Entry, dir: &DirStat) -> fmt::Result {
    let options = &entry.info.percentiles;
    let latency = match (options.lat, options.clat) {
        (true, _) => Some(&dir.lat),
        (false, true) => Some(&dir.clat),
        (false, false) => None,
    };
    let mut unused = PERCENTILE_FIELDS;
    if let Some(latency) = latency {
        let list = options.sorted();
        let values = latency.hist.percentiles(&list, latency.stat.samples);
        for (p, value) in list.iter().zip(values).take(PERCENTILE_FIELDS) {
            write!(out, ";{p:.6}%={}", value / 1000)?;
            unused -= 1;
        }
    }
    out.extend(std::iter::repeat_n(";0%=0", unused));
    Ok(())
}

/// CPU use, queue depths and latency ranges.
fn write_shares(out: &mut String, entry: &Entry) -> fmt::Result {
    let stat = &entry.stat;
    let (usr, sys) = stat.cpu_percent();
    write!(
        out,
        ";{usr:.6}%;{sys:.6}%;{};{};{}",
        stat.ctx, stat.majf, stat.minf
    )?;
    let total = stat.total_ios();
    let depths = stat.depth.percent(total);
    depths
        .iter()
        .try_for_each(|share| write!(out, ";{share:3.1}%"))?;
    // The format is older than nanoseconds: they count as the first range of µs.
    let below_us: u64 = stat.lat_dist.ns.iter().sum();
    let mut us = percent_of(&stat.lat_dist.us, total, 0.01);
    us[0] += match total {
        0 => 0.0,
        _ => 100.0 * below_us as f64 / total as f64,
    };
    let ms = percent_of(&stat.lat_dist.ms, total, 0.01);
    let mut ranges = us.iter().chain(&ms);
    ranges.try_for_each(|share| write!(out, ";{share:3.2}%"))
}

fn write_disk(out: &mut String, d: &DiskUtil) -> fmt::Result {
    write_counters(out, &d.name, &d.own)?;
    match &d.aggregate {
        Some(aggregate) => write_counters(out, "slaves", aggregate),
        None => Ok(()),
    }
}

fn write_counters(out: &mut String, name: &str, c: &DiskCounters) -> fmt::Result {
    write!(out, ";{name};{};{}", c.read_ios, c.write_ios)?;
    write!(out, ";{};{}", c.read_merges, c.write_merges)?;
    write!(out, ";{};{}", c.read_ticks_ms, c.write_ticks_ms)?;
    write!(out, ";{};{:3.2}%", c.in_queue_ms, c.util_percent)
}
