// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured fio jobs on a real kernel in virtual time: does the target do what the
//! measured machine did?
//!
//! The job runs as it stands; nothing drives the kernel but fio. Where a trace was
//! recorded, the dispatch orders of both are compared.

use super::{FioReport, Variation, decisions, figures, measured, results_of};
use crate::conform::measured_on::LINUX_6_1;
use blklab::run::{Collect, RunOptions, run};
use blklab::scheduler::Schedulers;
use blklab::targets;
use blklab_sim::replay::Dispatched;
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs a case on a kernel that was built. One that the target refuses is a skip, not an
/// error.
///
/// # Errors
/// If the case or its measurements cannot be read or make no sense, or the target fails.
pub fn run_fio_case_on_kernel(
    case: &Path,
    results: Option<&Path>,
    stop: &Arc<AtomicBool>,
) -> Result<FioReport, Error> {
    let results = results_of(case, results);
    let beside = results.parent().unwrap_or(Path::new("")).to_path_buf();
    let planner = targets::planner(Schedulers::default());
    let mut e = blklab_experiment::load(case, planner.catalogue())?;
    let mut report = FioReport::begun(&e);
    let measured = measured::jobs(&results.join(format!("{}.json", e.id)))?;
    let variation = Variation::read(&beside)?;
    "kernel".clone_into(&mut e.target);
    let jobs = planner.jobs(&e)?;
    let jobs = jobs.as_ref().map_or(&[][..], |text| &text.jobs.jobs);
    LINUX_6_1.give_kernel(&mut e, jobs);
    let plan = match planner.plan(&e) {
        Ok(plan) => plan,
        Err(err) => {
            report.skipped = Some(err.what);
            return Ok(report);
        }
    };
    let options = RunOptions {
        stop: Arc::clone(stop),
        collect: Collect::Watches,
        kept_events_max: usize::MAX,
        ..RunOptions::default()
    };
    let output = run(&plan, &options)?;
    if output.interrupted {
        return Err(Error::interrupted());
    }
    if let Some(trace) = decisions::trace_of(&beside.join("traces"), &e.id) {
        let dispatched: Vec<Dispatched> = output.events.iter().filter_map(dispatch).collect();
        let with_scheduler = e.scheduler != "none";
        report.decisions = Some(decisions::beside(&trace, with_scheduler, dispatched)?);
    }
    figures(&e, &output, &measured, &variation, &mut report)?;
    Ok(report)
}

/// What the driver got, if the event says so.
fn dispatch(e: &Event) -> Option<Dispatched> {
    let is_own = e.action == Action::Issue && !e.rwbs.has(Rwbs::PC);
    let op = e.rwbs.op().filter(|_| is_own)?;
    Some(Dispatched {
        time: e.time,
        op,
        sector: e.sector,
        nr_sectors: u32::try_from(e.nr_sectors()).unwrap_or(u32::MAX),
    })
}
