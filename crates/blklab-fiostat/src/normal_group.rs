// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the text for people: rates of the groups, use of the disks.

use std::fmt::{self, Write as _};

use crate::result::GroupDir;
use crate::{DiskCounters, DiskUtil, GroupStats, Units};

/// The rates of a group, by direction.
pub(crate) fn write_group(out: &mut String, group: &GroupStats) -> fmt::Result {
    writeln!(out, "\nRun status group {} (all jobs):", group.id)?;
    // With entries of both kinds fio prints neither.
    let names = if group.mixed && !group.both {
        ["MIXED"; 3]
    } else {
        ["READ", "WRITE", "TRIM"]
    };
    for (name, dir) in names.iter().zip(group.dirs) {
        if let Some(dir) = dir {
            write_group_dir(out, name, &group.units, &dir)?;
        }
    }
    let mixed = group.dirs.iter().flatten().copied().reduce(GroupDir::mix);
    match mixed {
        Some(mixed) if group.both && !group.mixed => {
            write_group_dir(out, "MIXED", &group.units, &mixed)
        }
        _ => Ok(()),
    }
}

fn write_group_dir(out: &mut String, name: &str, units: &Units, dir: &GroupDir) -> fmt::Result {
    let (agg, agg_alt) = units.rate(dir.agg);
    let (min, min_alt) = units.rate(dir.min_bw);
    let (max, max_alt) = units.rate(dir.max_bw);
    let (io, io_alt) = units.amount(dir.io_bytes);
    write!(
        out,
        "{name:>7}: bw={agg} ({agg_alt}), {min}-{max} ({min_alt}-{max_alt}), "
    )?;
    writeln!(
        out,
        "io={io} ({io_alt}), run={}-{}msec",
        dir.min_run_ms, dir.max_run_ms
    )
}

/// A line for each disk.
pub(crate) fn write_disks(out: &mut String, disks: &[DiskUtil]) -> fmt::Result {
    if disks.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nDisk stats (read/write):")?;
    for d in disks {
        if d.aggregate.is_some() {
            out.write_str("  ")?;
        }
        write!(out, "  {}: ", d.name)?;
        write_counters(out, "", &d.own)?;
        if let Some(aggregate) = &d.aggregate {
            out.write_str(", ")?;
            write_counters(out, "aggr", aggregate)?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}

/// The counters, each word with `prefix`.
fn write_counters(out: &mut String, prefix: &str, c: &DiskCounters) -> fmt::Result {
    write!(out, "{prefix}ios={}/{}, ", c.read_ios, c.write_ios)?;
    write!(out, "{prefix}merge={}/{}, ", c.read_merges, c.write_merges)?;
    write!(
        out,
        "{prefix}ticks={}/{}, ",
        c.read_ticks_ms, c.write_ticks_ms
    )?;
    write!(out, "{prefix}in_queue={}, ", c.in_queue_ms)?;
    write!(out, "{prefix}util={:3.2}%", c.util_percent)
}
