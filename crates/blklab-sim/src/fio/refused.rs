// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the simulation refuses of jobs: engines without a model, and numbers for which it
//! would take too much memory or time.

use blklab_fio::job::Job;
use blklab_fio::option::{ENGINES, EngineSpec};
use blklab_types::{Error, no_such};

/// Refuses jobs that cannot be simulated.
pub(crate) fn check_jobs(jobs: &[Job]) -> Result<(), Error> {
    for job in jobs {
        check_engine(job)?;
        check_ranges(job)?;
    }
    Ok(())
}

/// Refuses a job whose engine is not simulated.
pub(super) fn check_engine(job: &Job) -> Result<(), Error> {
    let name = job.settings.ioengine.as_str();
    let simulated = |e: &&EngineSpec| e.is_simulated();
    let valid: Vec<&str> = ENGINES.iter().filter(simulated).map(|e| e.name).collect();
    let refused = match job.engine() {
        Some(e) if simulated(&e) => return Ok(()),
        Some(_) => Error::not_modelled(format!(
            "job '{}': ioengine={name} is not simulated; those that are: {}",
            job.name,
            valid.join(", ")
        )),
        None => Error::new(format!(
            "job '{}': ioengine: {}",
            job.name,
            no_such("engine", name, &valid)
        )),
    };
    Err(refused.at(job.place_of(&["ioengine"])))
}

/// Largest `iodepth`: a request record is kept for each.
const IODEPTH_MAX: u32 = 1 << 20;
/// Most threads of a job with `io_submit_mode=offload`.
const WORKERS_MAX: u32 = 4096;
/// Longest time of an option: 100 years, well within 64 bits of nanoseconds.
const TIME_MAX_US: u64 = 100 * 365 * 86_400 * 1_000_000;

fn check_ranges(job: &Job) -> Result<(), Error> {
    let s = &job.settings;
    let refuse = |option: &str, what: String| {
        let what = format!("job '{}': {option}{what}", job.name);
        Err(Error::new(what).at(job.place_of(&[option])))
    };
    if s.iodepth > IODEPTH_MAX {
        return refuse("iodepth", format!("={}: at most {IODEPTH_MAX}", s.iodepth));
    }
    if s.offload && s.iodepth > WORKERS_MAX {
        let what = format!(
            "={}: at most {WORKERS_MAX} with io_submit_mode=offload, which has a thread for each",
            s.iodepth
        );
        return refuse("iodepth", what);
    }
    let times = [
        ("startdelay", job.start_delay_us),
        ("runtime", s.runtime_us),
        ("ramp_time", s.ramp_time_us),
        ("latency_target", s.latency_target_us),
        ("latency_window", s.latency_window_us),
        (
            "max_latency",
            s.max_latency_us.iter().copied().max().unwrap_or(0),
        ),
    ];
    match times.iter().find(|(_, us)| *us > TIME_MAX_US) {
        None => Ok(()),
        Some((option, us)) => {
            let (s, max) = (us / 1_000_000, TIME_MAX_US / 1_000_000);
            refuse(option, format!(" of {s} s: at most {max} s, 100 years"))
        }
    }
}
