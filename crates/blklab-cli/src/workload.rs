// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab workload`: what a job file issues, as if the device took no time.

use crate::Outcome;
use crate::args::{WorkloadArgs, WorkloadFormat};
use crate::progress::Watcher;
use crate::stack::Stack;
use anyhow::{Result, bail};
use blklab::experiment::Experiment;
use blklab::matrix;
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab::targets::{Planner, Site};
use blklab::workload::{Limits, Line};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) fn workload(a: &WorkloadArgs, schedulers: Schedulers) -> Result<Outcome> {
    let planner = targets::planner(schedulers);
    let (e, site) = experiment(a, &planner)?;
    let jobs = blklab::workload::jobs(&planner, &e, &site)?;
    for note in blklab::workload::notes(&e, &jobs, &site)? {
        writeln!(std::io::stderr(), "note: {note}")?;
    }
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
    let lines = Arc::new(AtomicU64::new(0));
    let counted = Watcher::counting(Arc::clone(&lines));
    let mut failed = None;
    let limits = Limits {
        lines_per_job: a.limit,
    };
    blklab::workload::list(&jobs, &site, limits, |line: Line<'_>| {
        lines.fetch_add(1, Ordering::Relaxed);
        match write_line(&mut out, &line, csv) {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                failed = Some(e);
                ControlFlow::Break(())
            }
        }
    })?;
    drop(counted);
    if let Some(e) = failed {
        return Err(e.into());
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The experiment whose jobs are listed, the first that the file compares, and what
/// they find.
fn experiment(a: &WorkloadArgs, planner: &Planner) -> Result<(Experiment, Site)> {
    let stack = Stack {
        kernel: a.kernel.as_slice(),
        device: a.device.as_slice(),
        md: a.md.as_slice(),
        set: &a.set,
        memory: a.memory.as_ref(),
        fio: a.fio.as_slice(),
        seed: a.seed,
        repeat: 1,
        sections: &a.section,
        ..Stack::default()
    };
    let chosen = stack.chosen()?;
    let overrides = &chosen.overrides;
    let several = [
        (overrides.kernels.len(), "--kernel"),
        (overrides.devices.len(), "--device"),
        (overrides.arrays.len(), "--md"),
    ];
    let several = several.into_iter().filter(|(n, _)| *n > 1);
    let several = several.map(|(_, option)| option);
    if let Some(option) = several.chain(chosen.varied()).next() {
        bail!("{option}: one value; workload lists the jobs of one experiment");
    }
    let loaded = blklab::experiment::load(&a.file, planner.catalogue())?;
    let cells = matrix::expand(&[loaded], overrides, planner).map_err(|err| chosen.told(err))?;
    let first = cells.into_iter().next();
    let first = first.expect("an experiment makes at least one cell");
    let site = matrix::survey(&first, overrides, planner).map_err(|err| chosen.told(err))?;
    Ok((first.experiment, site))
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
