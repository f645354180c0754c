// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kernels are not asked to do: nothing of an experiment is left out in silence.

use super::drivers;
use super::kind::Kind;
use super::replayed;
use super::script::PRICES;
use crate::build::{Engine, check_replay};
use crate::qemu::PROCESSORS_MAX;
use blklab_experiment::settings::{Home, Place};
use blklab_experiment::{Catalogue, Experiment, FilesystemSpec, Workload};
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

/// Refuses on behalf of a target.
struct Refusal(Kind);

impl Refusal {
    fn not_yet(&self, what: &str, key: &str) -> Error {
        let name = self.0.name;
        Error::not_modelled(format!("the target {name} does not take {what} yet")).about(key)
    }
}

/// Refuses an experiment that would run otherwise than it says.
///
/// # Errors
/// The first thing that is refused.
pub(super) fn check(kind: Kind, e: &Experiment, catalogue: &Catalogue) -> Result<(), Error> {
    let not_yet = |what: &str, key: &str| Refusal(kind).not_yet(what, key);
    match &e.workload {
        Workload::Fio { .. } => {}
        Workload::Processes(processes) => {
            replayed::check(processes, &e.cgroups)?;
            check_replay()?;
        }
        Workload::Scenario(s) => {
            if let Err(why) = s.job_text_without_programs() {
                let (name, target) = (s.spec().name, kind.name);
                let what = format!("the target {target} runs fio jobs, not {name}: {why}");
                return Err(Error::not_modelled(what).about("scenario"));
            }
        }
        Workload::Trace(_) => check_replay()?,
    }
    match kind.engine {
        Engine::Uml => {
            super::source::wanted(e)?;
            super::filesystem::check_release(e)?;
        }
        Engine::Qemu => super::image::check_name(e)?,
    }
    check_has_files(e)?;
    if kind.engine == Engine::Qemu {
        check_machine(kind, e)?;
    }
    check_inside(e)?;
    super::filesystem::volume(e)?;
    super::groups::check(&e.cgroups)?;
    e.check_groups_of_kernel()?;
    if !e.without.is_empty() {
        let what = "a kernel is run as it is: what it changed can be left out of the models alone";
        return Err(Error::not_modelled(what).about("without"));
    }
    if let Some(patch) = e.patches.first() {
        return Err(not_yet(&format!("the patch {patch}"), "patches"));
    }
    e.scheduler(catalogue)?;
    let built_with = e.kernel.hz();
    if kind.engine == Engine::Qemu && e.hz != built_with {
        let what = format!(
            "ticks other than {} a second, with which its image was built,",
            built_with.0
        );
        return Err(not_yet(&what, "hz"));
    }
    for setting in e.settings(catalogue) {
        setting.check(e)?;
        // Run directories spell every default out.
        let default = setting.row_in(e.kernel).map(|row| row.default);
        let given = setting.stored(e);
        let is_set = given.is_some() && given != default;
        let name = setting.name();
        let is_followed = match setting.place() {
            Place::Boot("nr_cpus") => kind.engine == Engine::Qemu || given == Some(1),
            Place::Folder(_)
            | Place::Driver { .. }
            | Place::Boot("mem")
            | Place::Device
            | Place::Mount => true,
            _ => {
                setting.home == Home::Top
                    || name == "inside"
                    || kind.engine == Engine::Uml && is_charged(name)
            }
        };
        if is_set && !is_followed {
            return Err(not_yet(name, name));
        }
    }
    Ok(())
}

/// Refuses a filesystem that nobody has a file on.
fn check_has_files(e: &Experiment) -> Result<(), Error> {
    let has_none = matches!(e.workload, Workload::Processes(_) | Workload::Trace(_));
    if !has_none || e.filesystem.name == FilesystemSpec::default().name {
        return Ok(());
    }
    let what = format!(
        "the filesystem {}: explicit processes and traces submit bios to the device and have no \
         files",
        e.filesystem.name
    );
    Err(Error::new(what).about("filesystem"))
}

/// Whether a setting of the machine is followed where blklab keeps the clock.
fn is_charged(name: &str) -> bool {
    FOLLOWED.contains(&name) || PRICES.iter().any(|p| p.settings.contains(&name))
}

/// Refuses a device that is to be the kernel's own and is none.
fn check_inside(e: &Experiment) -> Result<(), Error> {
    let device = e.device.name.as_str();
    if e.queue.inside == Some(true) && !drivers::ALL.contains(&device) {
        let what = format!(
            "inside=1: the kernel has no {device} of its own; it has {}",
            drivers::ALL.join(" and ")
        );
        return Err(Error::new(what).about("device"));
    }
    Ok(())
}

/// Refuses devices and machines that QEMU does not have.
fn check_machine(kind: Kind, e: &Experiment) -> Result<(), Error> {
    if !e.kernel_source.is_empty() {
        let what = "kernel_source, but an image: blklab kernel add FILE keeps one";
        return Err(
            Error::not_modelled(format!("the target {} does not take {what}", kind.name))
                .about("kernel_source"),
        );
    }
    let device = e.device.name.as_str();
    if !drivers::OF_IMAGES.contains(&device) {
        let what = format!(
            "the target {} has the kernel's own devices, {}, not the model {device}, which the \
             target kernel has",
            kind.name,
            drivers::OF_IMAGES.join(", ")
        );
        return Err(Error::not_modelled(what).about("device"));
    }
    if e.dm.fast_device().is_some() {
        let what = "a cache on a fast device, which is a model,";
        return Err(Refusal(kind).not_yet(what, "dm"));
    }
    if e.nr_cpus() > PROCESSORS_MAX {
        let what = format!(
            "QEMU has {PROCESSORS_MAX} processors at most, not {}",
            e.nr_cpus()
        );
        return Err(Error::not_modelled(what).about("cpus"));
    }
    Ok(())
}

/// Refuses jobs whose options would come to nothing.
///
/// # Errors
/// The first of them.
pub(super) fn check_jobs(kind: Kind, jobs: &JobFile) -> Result<(), Error> {
    for job in &jobs.jobs {
        if job.replay.is_some() && job.settings.replay.merge_file.is_some() {
            const OPTION: &str = "merge_blktrace_file";
            let what = format!(
                "the target {} does not take {OPTION}: what fio merges is empty",
                kind.name
            );
            return Err(Error::not_modelled(what).at(job.place_of(&[OPTION])));
        }
    }
    Ok(())
}
