// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text for people: what fio 3.33 prints by default.

use std::fmt::{self, Write as _};

use crate::dist::percent_of;
use crate::json_report::percent_of_group;
use crate::normal_group::{write_disks, write_group};
use crate::result::GroupDir;
use crate::scaled::{Unit, scaled};
use crate::thread_stat::DirStat;
use crate::utc::utc_time_text;
use crate::{Ddir, Entry, FioResult, IoStat, Latency, SteadyRate, ThreadStat, UnifiedRw};

/// Appends the report of a result.
pub(crate) fn write(out: &mut String, result: &FioResult) -> fmt::Result {
    out.write_char('\n')?;
    for entry in &result.entries {
        write_entry(out, result, entry)?;
    }
    for group in &result.groups {
        write_group(out, group)?;
    }
    write_disks(out, &result.disk_util)
}

fn write_entry(out: &mut String, result: &FioResult, entry: &Entry) -> fmt::Result {
    let (info, stat) = (&entry.info, &entry.stat);
    if stat.io_bytes() == 0 && stat.total_ios() == 0 {
        return Ok(());
    }
    let group = result.group_of(entry);
    write!(
        out,
        "{}: (groupid={}, jobs={}): ",
        info.name, info.group_id, entry.members
    )?;
    write!(out, "err={:2}", info.error)?;
    if info.error != 0 {
        write!(out, " ({})", info.error_text)?;
    }
    let time = utc_time_text(result.timestamp_ms / 1000);
    writeln!(out, ": pid={}: {time}", info.pid)?;
    if !info.description.is_empty() {
        writeln!(out, "  Description  : [{}]", info.description)?;
    }
    let text = EntryText {
        entry,
        list: info.percentiles.sorted(),
    };
    for dir in Ddir::ALL {
        let name = if info.unified == UnifiedRw::Mixed {
            "mixed"
        } else {
            dir.name()
        };
        let resets = (dir == Ddir::Write).then_some(stat.zone_resets);
        text.write_direction(out, name, stat.dir(dir), group.dirs[dir.idx()], resets)?;
    }
    if info.unified == UnifiedRw::Both {
        let mixed = stat.mixed();
        text.write_direction(out, "mixed", mixed.dir(Ddir::Read), group.dirs[0], None)?;
    }
    write_lat_dist(out, stat)?;
    text.write_sync(out)?;
    write_usage(out, stat)?;
    text.write_totals(out)
}

/// Prints the parts that depend on the options of an entry.
struct EntryText<'a> {
    entry: &'a Entry,
    list: Vec<f64>,
}

impl EntryText<'_> {
    fn write_direction(
        &self,
        out: &mut String,
        name: &str,
        dir: &DirStat,
        group: Option<GroupDir>,
        zone_resets: Option<u64>,
    ) -> fmt::Result {
        if dir.io_bytes == 0 || dir.runtime_ms == 0 {
            return Ok(());
        }
        let units = &self.entry.info.units;
        let iops = scaled(
            dir.iops_whole(),
            units.significant_figures,
            false,
            Unit::None,
        );
        let (bw, bw_alt) = units.rate(dir.bw_bytes());
        let (io, _) = units.amount(dir.io_bytes);
        write!(
            out,
            "  {name}: IOPS={iops}, BW={bw} ({bw_alt})({io}/{}msec)",
            dir.runtime_ms
        )?;
        if let Some(n) = zone_resets {
            write!(out, "; {n} zone resets")?;
        }
        out.write_char('\n')?;
        write_latency(out, "slat", &dir.slat.stat)?;
        write_latency(out, "clat", &dir.clat.stat)?;
        write_latency(out, " lat", &dir.lat.stat)?;
        self.write_prios(out, dir)?;
        self.write_all_percentiles(out, dir)?;
        self.write_bw(out, dir, group)?;
        if dir.iops.samples > 0 {
            let iops = &dir.iops;
            write!(
                out,
                "   iops        : min={:5}, max={:5}, ",
                iops.min, iops.max
            )?;
            let (mean, dev) = (iops.mean, iops.stddev());
            writeln!(
                out,
                "avg={mean:5.2}, stdev={dev:5.2}, samples={}",
                iops.samples
            )?;
        }
        Ok(())
    }

    fn write_prios(&self, out: &mut String, dir: &DirStat) -> fmt::Result {
        let kind = self.entry.info.percentiles.prio_latency();
        let prios = dir.prios_in_use();
        if prios.len() < 2 {
            return Ok(());
        }
        for prio in prios {
            let name = format!("{kind} prio {}/{}", prio.class(), prio.level());
            write_latency(out, &name, &prio.latency.stat)?;
        }
        Ok(())
    }

    fn write_all_percentiles(&self, out: &mut String, dir: &DirStat) -> fmt::Result {
        let options = &self.entry.info.percentiles;
        let kinds = [
            (options.slat, "slat", &dir.slat),
            (options.clat, "clat", &dir.clat),
            (options.lat, "lat", &dir.lat),
        ];
        for (_, name, latency) in kinds.iter().filter(|(on, ..)| *on) {
            self.write_percentiles(out, name, latency)?;
        }
        let prios = dir.prios_in_use();
        if prios.len() < 2 || !(options.clat || options.lat) {
            return Ok(());
        }
        let kind = options.prio_latency();
        let all = if options.lat { &dir.lat } else { &dir.clat };
        for prio in prios {
            let share = 100.0 * prio.latency.stat.samples as f64 / all.stat.samples as f64;
            let (class, level) = (prio.class(), prio.level());
            let name = format!("{kind} prio {class}/{level} ({share:.2}% of IOs)");
            self.write_percentiles(out, &name, &prio.latency)?;
        }
        Ok(())
    }

    /// Rows of percentiles, as many to a row as fit 80 columns.
    fn write_percentiles(&self, out: &mut String, name: &str, latency: &Latency) -> fmt::Result {
        let values = latency.hist.percentiles(&self.list, latency.stat.samples);
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
            return Ok(());
        };
        if latency.stat.samples == 0 {
            return Ok(());
        }
        // Each step to a larger unit rounds up.
        let (unit, divisor, steps) = match () {
            () if first > 2_000_000 && last > 99_999_999 => ("msec", 1_000_000, 2),
            () if first > 2_000 && last > 99_999 => ("usec", 1_000, 1),
            () => ("nsec", 1, 0),
        };
        let digits = (last / divisor).checked_ilog10().unwrap_or(0) as usize + 1;
        let width = digits.max(5);
        let precision = self.entry.info.percentiles.precision;
        let per_row = ((80 - 7) / (precision + 10 + width)).max(1);
        writeln!(out, "    {name} percentiles ({unit}):")?;
        let last_of_all = values.len() - 1;
        for (i, (p, value)) in self.list.iter().zip(&values).enumerate() {
            if i % per_row == 0 {
                out.write_str("     |")?;
            }
            let value = (0..steps).fold(*value, |v, _| v.div_ceil(1000));
            write!(out, " {p:0$.precision$}th=[{value:width$}]", precision + 3)?;
            if i < last_of_all {
                out.write_char(',')?;
            }
            if i == last_of_all || i % per_row == per_row - 1 {
                out.write_char('\n')?;
            }
        }
        Ok(())
    }

    fn write_bw(&self, out: &mut String, dir: &DirStat, group: Option<GroupDir>) -> fmt::Result {
        let bw = &dir.bw;
        if bw.samples == 0 {
            return Ok(());
        }
        let units = &self.entry.info.units;
        let base = units.kb_base as f64;
        // Bytes even where rates are in bits; samples count in 1024 always.
        let (divisor, name) = if bw.mean > base * base {
            (base, "MiB")
        } else if units.binary() {
            (1.0, "KiB")
        } else {
            (1.0, "kB")
        };
        let whole = |rate: u64| (rate as f64 / divisor) as u64;
        let (mean, dev) = (bw.mean / divisor, bw.stddev() / divisor);
        let share = percent_of_group(bw, group);
        write!(
            out,
            "   bw ({name:>5}/s): min={:5}, max={:5}, ",
            whole(bw.min),
            whole(bw.max)
        )?;
        write!(out, "per={share:3.2}%, avg={mean:5.2}, stdev={dev:5.2}, ")?;
        writeln!(out, "samples={}", bw.samples)
    }

    fn write_sync(&self, out: &mut String) -> fmt::Result {
        let sync = &self.entry.stat.sync;
        if sync.stat.samples == 0 {
            return Ok(());
        }
        writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
        write_latency(out, "sync", &sync.stat)?;
        self.write_percentiles(out, "sync", sync)
    }

    fn write_totals(&self, out: &mut String) -> fmt::Result {
        let (info, stat) = (&self.entry.info, &self.entry.stat);
        let [r, w, t] = &stat.dirs;
        write!(
            out,
            "     issued rwts: total={},{},{}",
            r.total_ios, w.total_ios, t.total_ios
        )?;
        write!(
            out,
            ",{} short={},{},{},0",
            stat.sync_ios, r.short_ios, w.short_ios, t.short_ios
        )?;
        writeln!(
            out,
            " dropped={},{},{},0",
            r.drop_ios, w.drop_ios, t.drop_ios
        )?;
        if info.continue_on_error {
            write!(out, "     errors    : total={}, first_error=", info.errors)?;
            writeln!(out, "{}/<{}>", info.first_error, info.first_error_text)?;
        }
        let latency = &info.latency;
        if latency.depth > 0 {
            write!(out, "     latency   : target={}, ", latency.target_ns)?;
            write!(
                out,
                "window={}, percentile={:.2}%, ",
                latency.window_us, latency.percentile
            )?;
            writeln!(out, "depth={}", latency.depth)?;
        }
        self.write_steady(out)
    }

    fn write_steady(&self, out: &mut String) -> fmt::Result {
        let Some(state) = &self.entry.stat.steady else {
            return Ok(());
        };
        let (units, criterion, mean) = (&self.entry.info.units, state.criterion(), state.mean());
        let (bw, bw_alt) = units.rate_of_units(mean.bw / units.kb_base);
        let iops = scaled(mean.iops, units.significant_figures, false, Unit::None);
        let attained = if state.attained() { "yes" } else { "no" };
        write!(
            out,
            "  steadystate  : attained={attained}, bw={bw} ({bw_alt}), iops={iops}, "
        )?;
        let rate = match criterion.rate {
            SteadyRate::Iops => "iops",
            SteadyRate::Bandwidth => "bw",
        };
        let kind = if criterion.is_slope {
            "slope"
        } else {
            "mean dev"
        };
        writeln!(
            out,
            "{rate} {kind}={:.3}{}",
            state.value(),
            criterion.sign()
        )
    }
}

/// Minimum, maximum, mean and deviation in a unit that suits them.
fn write_latency(out: &mut String, name: &str, stat: &IoStat) -> fmt::Result {
    if stat.samples == 0 {
        return Ok(());
    }
    let dev = stat.stddev();
    let (unit, divisor) = match () {
        () if stat.min > 2_000_000 && stat.max > 99_999_999 && dev > 1_000_000.0 => {
            ("msec", 1_000_000)
        }
        () if stat.min > 2_000 && stat.max > 99_999 && dev > 1_000.0 => ("usec", 1_000),
        () => ("nsec", 1),
    };
    let whole = |value_ns| scaled(value_ns / divisor, 6, false, Unit::None);
    let (mean, dev) = (stat.mean / divisor as f64, dev / divisor as f64);
    write!(
        out,
        "    {name} ({unit}): min={}, max={}, ",
        whole(stat.min),
        whole(stat.max)
    )?;
    writeln!(out, "avg={mean:5.2}, stdev={dev:5.2}")
}

fn write_lat_dist(out: &mut String, stat: &ThreadStat) -> fmt::Result {
    let total = stat.total_ios();
    let dist = &stat.lat_dist;
    write_lat_ranges(out, "nsec", &percent_of(&dist.ns, total, 0.01))?;
    write_lat_ranges(out, "usec", &percent_of(&dist.us, total, 0.01))?;
    write_lat_ranges(out, "msec", &percent_of(&dist.ms, total, 0.01))
}

/// The ranges that are not empty, five to a line.
fn write_lat_ranges(out: &mut String, unit: &str, percent: &[f64]) -> fmt::Result {
    const RANGES: [&str; 12] = [
        "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
    ];
    let used = RANGES.iter().zip(percent).filter(|(_, p)| **p > 0.0);
    for (i, (range, p)) in used.enumerate() {
        match i % 5 {
            0 if i > 0 => write!(out, "\n  lat ({unit})   : ")?,
            0 => write!(out, "  lat ({unit})   : ")?,
            _ => out.write_str(", ")?,
        }
        write!(out, "{range}={p:3.2}%")?;
    }
    if percent.iter().any(|p| *p > 0.0) {
        out.write_char('\n')
    } else {
        Ok(())
    }
}

fn write_usage(out: &mut String, stat: &ThreadStat) -> fmt::Result {
    let (usr, sys) = stat.cpu_percent();
    write!(out, "  cpu          : usr={usr:3.2}%, sys={sys:3.2}%, ")?;
    writeln!(
        out,
        "ctx={}, majf={}, minf={}",
        stat.ctx, stat.majf, stat.minf
    )?;
    let [a, b, c, d, e, f, g] = stat.depth.percent(stat.total_ios());
    write!(
        out,
        "  IO depths    : 1={a:3.1}%, 2={b:3.1}%, 4={c:3.1}%, 8={d:3.1}%,"
    )?;
    writeln!(out, " 16={e:3.1}%, 32={f:3.1}%, >=64={g:3.1}%")?;
    write_batches(out, "submit   ", stat.submit.percent(stat.total_submit))?;
    write_batches(out, "complete ", stat.complete.percent(stat.total_complete))
}

fn write_batches(out: &mut String, name: &str, percent: [f64; 7]) -> fmt::Result {
    let [a, b, c, d, e, f, g] = percent;
    write!(
        out,
        "     {name} : 0={a:3.1}%, 4={b:3.1}%, 8={c:3.1}%, 16={d:3.1}%,"
    )?;
    writeln!(out, " 32={e:3.1}%, 64={f:3.1}%, >=64={g:3.1}%")
}
