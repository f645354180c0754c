// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab trace slow` and `blklab trace life`.

use crate::args::PlainFormat;
use crate::progress::Watcher;
use anyhow::{Result, bail};
use blklab::findings::slow::{Life, Which};
use blklab::findings::{Report, time_text};
use std::io::Write;
use std::path::Path;

/// What is asked for: a sector, or `#N`.
pub(crate) fn which(text: &str, count: usize) -> Result<Which> {
    let number = |text: &str| text.parse::<u64>().ok();
    let which = match text.strip_prefix('#') {
        Some(event) => number(event).filter(|n| *n > 0).map(Which::OfEvent),
        None => number(text).map(|sector| Which::At(sector, count)),
    };
    match which {
        Some(which) => Ok(which),
        None => bail!(
            "{}: expected a sector, as in 18541088, or the number of an event, as in #12",
            blklab::shown(text)
        ),
    }
}

pub(crate) fn lives(file: &Path, which: Which, format: PlainFormat) -> Result<()> {
    let mut input = crate::source::open(file)?;
    let shown = Watcher::reading(input.progress());
    let (lives, report) = blklab::why::lives(&mut input, which)?;
    drop(shown);
    crate::source::report_damage(file, input.counts());
    if lives.is_empty() {
        match which {
            Which::Slowest(_) => bail!("{}: no I/O that ended in it", file.display()),
            Which::At(sector, _) => bail!("{}: no request at sector {sector}", file.display()),
            Which::OfEvent(n) => bail!("{}: event {n} belongs to no request", file.display()),
        }
    }
    let mut out = std::io::stdout().lock();
    match format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &lives).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => {
            for (i, life) in lives.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                show(&mut out, life, &report, input.format().has_printed_times)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

fn show(out: &mut impl Write, life: &Life, report: &Report, times_as_given: bool) -> Result<()> {
    let who = match report.names.get(&life.pid) {
        Some(comm) => format!("{comm} ({})", life.pid),
        None => format!("process {}", life.pid),
    };
    writeln!(
        out,
        "{} {} + {} of {who}: {}",
        life.rwbs,
        life.sector,
        life.sectors,
        life.whole_ns
            .map_or("no end in the trace".to_owned(), time_text)
    )?;
    for (ns, what) in [
        (life.get_ns, "for a request or tag (Q-G)"),
        (life.plug_ns, "on a plug (G-I)"),
        (life.idle_ns, "in the scheduler (I-D), the device idle"),
        (life.ahead_ns, "in the scheduler (I-D), the device busy"),
        (
            life.alone_ns,
            "at the device (D-C), as long as one takes alone",
        ),
        (life.behind_ns, "at the device (D-C), beyond that"),
        (life.flush_ns, "while the device emptied its cache"),
    ] {
        if ns > 0 {
            writeln!(out, "  {:>9}  {what}", time_text(ns))?;
        }
    }
    let [reads, writes] = life.issued_before;
    let depth = match life.depth_at_issue {
        Some(n) => format!("; the device had {n} when it came there"),
        None => String::new(),
    };
    writeln!(
        out,
        "  meanwhile to the device: {reads} reads, {writes} writes{depth}"
    )?;
    for e in &life.events {
        writeln!(out, "  {}", blklab::why::line(e, report, times_as_given))?;
    }
    Ok(())
}
