// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab workload`: what a job file issues, without a device.

use crate::Outcome;
use crate::args::{WorkloadArgs, WorkloadFormat};
use anyhow::{Result, anyhow};
use blklab::workload::{Limits, Line};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

pub(crate) fn workload(a: &WorkloadArgs) -> Result<Outcome> {
    let jobs = blklab::workload::load(&a.file, &a.section, a.fio.as_deref())?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let csv = a.output_format == WorkloadFormat::Csv;
    if csv {
        writeln!(out, "job,op,offset,length,file")?;
    } else {
        writeln!(
            out,
            "{:>4}  {:<15} {:>14} {:>9}  file",
            "job", "op", "offset", "length"
        )?;
    }
    let mut failed = None;
    let limits = Limits {
        lines_per_job: a.limit,
    };
    blklab::workload::list(&jobs, limits, |line: Line<'_>| {
        match write_line(&mut out, &line, csv) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    })
    .map_err(|e| anyhow!("{}: {e}", a.file.display()))?;
    if let Some(e) = failed {
        return Err(e.into());
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn write_line(out: &mut impl Write, l: &Line<'_>, csv: bool) -> std::io::Result<()> {
    if csv {
        writeln!(
            out,
            "{},{},{},{},{}",
            l.thread,
            l.op.name(),
            l.offset,
            l.length,
            l.file
        )
    } else {
        writeln!(
            out,
            "{:>4}  {:<15} {:>14} {:>9}  {}",
            l.thread,
            l.op.name(),
            l.offset,
            l.length,
            l.file
        )
    }
}
