// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kernels are not asked to do: nothing of an experiment is left out in silence.

use super::script::PRICES;
use blklab_experiment::settings::{Home, Place};
use blklab_experiment::{Catalogue, Experiment, Workload};
use blklab_fio::parse::JobFile;
use blklab_types::Error;

/// Settings of the machine that are followed although no file of the kernel takes them,
/// beside the prices of processor time.
const FOLLOWED: &[&str] = &[
    "memory",
    "processor_time",
    "interrupt_latency_ns",
    "cpu_cost_percent",
];

/// Options of jobs that say where results go, which do not come back.
const LOGS: &[&str] = &[
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "write_hist_log",
];

fn not_yet(what: &str, key: &str) -> Error {
    Error::not_modelled(format!("the target kernel does not take {what} yet")).about(key)
}

/// Refuses an experiment that would run otherwise than it says.
///
/// # Errors
/// The first thing that is refused.
pub(super) fn check(e: &Experiment, catalogue: &Catalogue) -> Result<(), Error> {
    match &e.workload {
        Workload::Fio { .. } => {}
        Workload::Processes(_) => return Err(not_yet("explicit processes", "processes")),
        Workload::Scenario(s) => {
            if let Some((section, _)) = s.programs().first() {
                let name = s.spec().name;
                let what = format!("{section} of {name}, which is a program and no fio job,");
                return Err(not_yet(&what, "scenario"));
            }
        }
        Workload::Trace(_) => return Err(not_yet("recorded traces", "replay")),
    }
    super::filesystem::volume(e)?;
    super::groups::check(&e.cgroups)?;
    e.check_groups_of_kernel()?;
    if let Some(patch) = e.patches.first() {
        return Err(not_yet(&format!("the patch {patch}"), "patches"));
    }
    e.scheduler(catalogue)?;
    if e.hz.0 != 250 {
        return Err(not_yet("ticks other than 250 a second", "hz"));
    }
    for setting in e.settings(catalogue) {
        setting.check(e)?;
        // Run directories spell every default out.
        let default = setting.row_in(e.kernel).map(|row| row.default);
        let given = setting.stored(e);
        let is_set = given.is_some() && given != default;
        let name = setting.name();
        let is_followed = match setting.place() {
            Place::Boot("nr_cpus") => setting.stored(e) == Some(1),
            Place::Folder(_)
            | Place::Driver { .. }
            | Place::Boot("mem")
            | Place::Device
            | Place::Mount => true,
            _ => {
                setting.home == Home::Top
                    || FOLLOWED.contains(&name)
                    || PRICES.iter().any(|p| p.settings.contains(&name))
            }
        };
        if is_set && !is_followed {
            return Err(not_yet(name, name));
        }
    }
    Ok(())
}

/// Refuses jobs whose options would come to nothing.
///
/// # Errors
/// The first of them.
pub(super) fn check_jobs(jobs: &JobFile) -> Result<(), Error> {
    for job in &jobs.jobs {
        let log = LOGS
            .iter()
            .find(|o| job.settings.reporting.contains_key(**o));
        let iolog = job.settings.write_iolog.as_ref().map(|_| &"write_iolog");
        let replay = job.replay.as_ref().map(|_| &"read_iolog");
        if let Some(option) = log.or(iolog).or(replay) {
            let error = not_yet(&format!("jobs with {option}"), option);
            return Err(error.at(job.place_of(&[option])));
        }
    }
    Ok(())
}
