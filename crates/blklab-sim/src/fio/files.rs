// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the jobs, put on the disk before anything runs.

use crate::Machine;
use blklab_experiment::ExperimentError;
use blklab_fio::job::Job;
use blklab_fio::option::{ENGINES, Queueing};
use blklab_fio::range::{FileState, find_ranges, layouts};
use blklab_fio::run::JobRun;
use blklab_fs::{FileId, Filesystem, PageCache};
use blklab_types::SECTOR_BYTES;
use std::collections::BTreeMap;

/// One job with its files.
pub(crate) struct Plan {
    pub(crate) job: Job,
    pub(crate) run: JobRun,
    /// None with engines that move no data.
    pub(crate) files: Vec<Option<FileId>>,
}

/// What will be known by one name.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// Size before the jobs run.
    size_bytes: u64,
    /// Size when they have run.
    final_bytes: u64,
    device: bool,
    id: Option<FileId>,
}

fn is_device(name: &str) -> bool {
    name.starts_with("/dev/")
}

/// Sets the files of all jobs up in thread order: first those that are there
/// from the start, then the space of those that the jobs will write.
pub(crate) fn set_up(
    cache: &PageCache<Machine>,
    jobs: Vec<Job>,
    disk_sectors: u64,
    notes: &mut Vec<String>,
) -> Result<Vec<Plan>, ExperimentError> {
    let disk_bytes = disk_sectors.saturating_mul(SECTOR_BYTES);
    let mut named: BTreeMap<String, Named> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut plans = Vec::with_capacity(jobs.len());
    let mut laid_out = 0_u64;
    for job in jobs {
        check_engine(&job)?;
        let state = |name: &str| match named.get(name) {
            _ if is_device(name) => FileState::Device(disk_bytes),
            _ if job.is_diskless() => FileState::Unknown,
            Some(n) => FileState::Regular(n.size_bytes),
            None => FileState::Missing,
        };
        let ranges = find_ranges(&job, state).map_err(|e| {
            let e = e.trim_start_matches(&format!("{}: ", job.name));
            ExperimentError::new(format!("job '{}': {e}", job.name))
        })?;
        if !job.is_diskless() {
            for (name, range) in job.files.iter().zip(&ranges.files) {
                let n = named.entry(name.clone()).or_insert_with(|| {
                    order.push(name.clone());
                    Named {
                        size_bytes: 0,
                        final_bytes: 0,
                        device: is_device(name),
                        id: None,
                    }
                });
                if range.real_size != u64::MAX {
                    n.final_bytes = n.final_bytes.max(range.real_size);
                }
            }
            for layout in layouts(&job, &ranges) {
                let name = &job.files[layout.file as usize];
                if let Some(n) = named.get_mut(name) {
                    laid_out += layout.size_bytes().saturating_sub(n.size_bytes);
                    n.size_bytes = layout.size_bytes();
                }
            }
        }
        let run = JobRun::new(job.clone(), &ranges)
            .map_err(|e| ExperimentError::new(format!("job '{}': {e}", job.name)))?;
        plans.push(Plan {
            job,
            run,
            files: Vec::new(),
        });
    }
    create(cache, &mut named, &order, disk_bytes)?;
    if cache.config().filesystem != Filesystem::Extents {
        if laid_out > 0 {
            notes.push(format!(
                "{} MiB of files were laid out before the start, in no time; their data are not \
                 in the cache, their metadata are",
                laid_out >> 20
            ));
        }
    } else if laid_out > 0 {
        notes.push(format!(
            "{} MiB of files were laid out before the start, contiguously, in no time \
             (a simple extent layout stands in for a filesystem)",
            laid_out >> 20
        ));
    } else if named.values().any(|n| !n.device) {
        notes.push("a simple extent layout stands in for a filesystem".to_owned());
    }
    for plan in &mut plans {
        plan.files = plan
            .job
            .files
            .iter()
            .map(|name| named.get(name).and_then(|n| n.id))
            .collect();
    }
    Ok(plans)
}

fn check_engine(job: &Job) -> Result<(), ExperimentError> {
    let simulated = job
        .engine()
        .is_some_and(|e| e.queueing != Queueing::NotModelled);
    if simulated {
        return Ok(());
    }
    let valid: Vec<&str> = ENGINES
        .iter()
        .filter(|e| e.queueing != Queueing::NotModelled)
        .map(|e| e.name)
        .collect();
    Err(ExperimentError::new(format!(
        "job '{}': engine '{}' is not simulated; those that are: {}",
        job.name,
        job.settings.ioengine,
        valid.join(", ")
    )))
}

fn create(
    cache: &PageCache<Machine>,
    named: &mut BTreeMap<String, Named>,
    order: &[String],
    disk_bytes: u64,
) -> Result<(), ExperimentError> {
    // On a filesystem with inodes fio's order counts. Space that is set aside
    // for files to come lies behind the files that are there.
    let passes: &[Option<bool>] = match cache.config().filesystem {
        Filesystem::Extents => &[Some(true), Some(false)],
        Filesystem::Ext(_) => &[None],
    };
    for there_from_the_start in passes {
        for name in order {
            let Some(n) = named.get_mut(name) else {
                continue;
            };
            let there = n.size_bytes > 0 || n.device;
            if there_from_the_start.is_some_and(|wanted| wanted != there) {
                continue;
            }
            let made = if n.device {
                Ok(cache.create_raw(0, disk_bytes))
            } else if n.size_bytes > 0 {
                cache.create_laid_out(n.size_bytes.max(n.final_bytes))
            } else {
                cache.create_empty((n.final_bytes > 0).then_some(n.final_bytes))
            };
            n.id = Some(made.map_err(|e| {
                ExperimentError::new(format!(
                    "file '{name}' of {} MiB does not fit the disk of {} MiB: {e}",
                    n.final_bytes >> 20,
                    disk_bytes >> 20
                ))
            })?);
        }
    }
    Ok(())
}
