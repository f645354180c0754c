// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the text for people: rates of the groups, use of the disks.

use std::fmt::{self, Write as _};

use crate::result::GroupDir;
use crate::{DiskUtil, GroupStats, Units};

/// The rates of a group, by direction.
pub(crate) fn write_group(out: &mut String, group: &GroupStats) -> fmt::Result {
    writeln!(out, "\nRun status group {} (all jobs):", group.id)?;
    // With entries of both kinds fio prints neither.
    let names = match group.mixed && !group.both {
        true => ["MIXED"; 3],
        false => ["READ", "WRITE", "TRIM"],
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
        write!(out, "  {}: ios={}/{}, ", d.name, d.read_ios, d.write_ios)?;
        write!(out, "merge={}/{}, ", d.read_merges, d.write_merges)?;
        write!(out, "ticks={}/{}, ", d.read_ticks_ms, d.write_ticks_ms)?;
        write!(
            out,
            "in_queue={}, util={:3.2}%",
            d.in_queue_ms, d.util_percent
        )?;
        if let Some(a) = &d.aggregate {
            write!(out, ", aggrios={}/{}, ", a.read_ios, a.write_ios)?;
            write!(out, "aggrmerge={}/{}, ", a.read_merges, a.write_merges)?;
            write!(out, "aggrticks={}/{}, ", a.read_ticks_ms, a.write_ticks_ms)?;
            write!(
                out,
                "aggrin_queue={}, aggrutil={:3.2}%",
                a.in_queue_ms, a.util_percent
            )?;
        }
        out.write_char('\n')?;
    }
    Ok(())
}
