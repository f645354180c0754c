// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of the jobs, put on the disk before anything runs.

use super::flow::Share;
use super::offload::Overlaps;
use super::program::Prepared;
use super::refused::check_engine;
use crate::Machine;
use blklab_fio::job::Job;
use blklab_fio::range::{Layout, Ranges};
use blklab_fio::release::Features;
use blklab_fio::run::JobRun;
use blklab_fiostat::SteadyState;
use blklab_pagecache::{FileId, PageCache};
use blklab_target::files::{Files, Found, is_device};
use blklab_types::Error;
use blklab_types::SECTOR_BYTES;
use std::collections::BTreeMap;
use std::rc::Rc;

/// One job with its files.
pub(crate) struct Plan {
    pub(crate) job: Rc<Job>,
    pub(crate) run: JobRun,
    /// The part of each of its files that it works on.
    pub(crate) ranges: Ranges,
    /// None with engines that move no data.
    pub(crate) files: Vec<Option<FileId>>,
    /// What is written before any job starts; nothing if files count as
    /// written long before.
    pub(crate) layouts: Vec<Layout>,
    /// What runs in place of the job.
    pub(crate) program: Option<Prepared>,
    /// Number of its control group.
    pub(crate) cgroup: u16,
    /// Its part in a flow.
    pub(crate) share: Option<Share>,
    /// The judgement on its steady state, if it is made at this job.
    pub(crate) steady: Option<SteadyState>,
    /// What its workers have in flight, together with those of other jobs.
    pub(crate) overlaps: Overlaps,
}

/// What will be known by one name.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// Size when they have run.
    final_bytes: u64,
    device: bool,
    /// Whether it is written when the run has begun.
    written_first: bool,
    id: Option<FileId>,
    /// The job, by its place among all, that makes it so large.
    job: usize,
}

/// Said of files that no filesystem holds.
const EXTENTS: &str = "no filesystem is chosen: a simple extent layout is used";

/// A disk without an end counts as so large: offsets have room for sums.
const DISK_BYTES_MAX: u64 = 1 << 62;

/// Bytes of a disk that ends at this sector.
pub(crate) fn disk_bytes(end_sector: u64) -> u64 {
    end_sector.saturating_mul(SECTOR_BYTES).min(DISK_BYTES_MAX)
}

/// Sets the files of all jobs up in thread order: first those that are there
/// from the start, then the space of those that the jobs will write.
pub(crate) fn set_up(
    cache: &PageCache<Machine>,
    jobs: Vec<Job>,
    disk_sectors: u64,
    are_parts: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Box<Plan>>, Error> {
    let disk_bytes = disk_bytes(disk_sectors);
    let mut files = Files::new(disk_bytes);
    let mut named: BTreeMap<String, Named> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    let mut plans = Vec::with_capacity(jobs.len());
    let mut laid_out = 0_u64;
    for job in jobs {
        check_engine(&job)?;
        let Found { ranges, layouts } = files.find(&job)?;
        let write_first = Features::of(job.release).writes_files_first;
        let mut to_write = Vec::new();
        if !job.is_diskless() {
            for (name, range) in job.files.iter().zip(&ranges.files) {
                let n = named.entry(name.clone()).or_insert_with(|| {
                    order.push(name.clone());
                    Named {
                        final_bytes: 0,
                        device: is_device(name),
                        written_first: false,
                        id: None,
                        job: plans.len(),
                    }
                });
                if range.real_size != u64::MAX && range.real_size > n.final_bytes {
                    n.final_bytes = range.real_size;
                    n.job = plans.len();
                }
            }
            for (layout, growth) in layouts {
                if !write_first {
                    laid_out += growth;
                    continue;
                }
                if let Some(n) = named.get_mut(&job.files[layout.file as usize]) {
                    n.written_first = true;
                }
                to_write.push(layout);
            }
        }
        let run = JobRun::new(job.clone(), &ranges)
            .map_err(|e| Error::new(format!("job '{}': {e}", job.name)).at(&job.place))?;
        plans.push(Box::new(Plan {
            job: Rc::new(job),
            run,
            ranges,
            files: Vec::new(),
            layouts: to_write,
            program: None,
            cgroup: 0,
            share: None,
            steady: None,
            overlaps: Overlaps::default(),
        }));
    }
    create(cache, &mut named, &order, &files, disk_bytes, &plans)?;
    if are_parts {
        let parts = named.values().filter(|n| !n.device);
        parts
            .filter_map(|n| n.id)
            .for_each(|id| cache.make_part(id));
    }
    if !cache.traits().sets_space_aside {
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
             ({EXTENTS})",
            laid_out >> 20
        ));
    } else if named.values().any(|n| !n.device) {
        notes.push(EXTENTS.to_owned());
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

fn create(
    cache: &PageCache<Machine>,
    named: &mut BTreeMap<String, Named>,
    order: &[String],
    files: &Files,
    disk_bytes: u64,
    plans: &[Box<Plan>],
) -> Result<(), Error> {
    // On a filesystem with inodes fio's order counts. Space that is set aside
    // for files to come lies behind the files that are there.
    let passes: &[Option<bool>] = if cache.traits().sets_space_aside {
        &[Some(true), Some(false)]
    } else {
        &[None]
    };
    for there_from_the_start in passes {
        for name in order {
            let Some(n) = named.get_mut(name) else {
                continue;
            };
            let size_bytes = files.size_bytes(name);
            let there = size_bytes > 0 || n.device;
            if there_from_the_start.is_some_and(|wanted| wanted != there) {
                continue;
            }
            let made = if n.device {
                Ok(cache.create_raw(0, disk_bytes))
            } else if size_bytes > 0 && !n.written_first {
                cache.create_laid_out(size_bytes.max(n.final_bytes))
            } else {
                let final_bytes = n.final_bytes.max(size_bytes);
                cache.create_empty((final_bytes > 0).then_some(final_bytes))
            };
            n.id = Some(made.map_err(|e| {
                Error::new(format!(
                    "file '{name}' of {} MiB does not fit the disk of {} MiB: {e}",
                    n.final_bytes >> 20,
                    disk_bytes >> 20
                ))
                .at(plans[n.job].job.place_of(&["size", "filesize"]))
            })?);
        }
    }
    Ok(())
}

/// Writes what jobs find when they start, one file after another, as fio's main
/// process does: pages stay in the cache, on the disk if an fsync follows.
pub(crate) async fn write_first(cache: &PageCache<Machine>, plans: &[Box<Plan>]) {
    for plan in plans {
        for layout in plan.layouts.iter().filter(|l| l.written) {
            let Some(id) = plan.files[layout.file as usize] else {
                continue;
            };
            let Ok(fd) = cache.open(id, false) else {
                continue;
            };
            let mut at = 0;
            while at < layout.to_bytes {
                let bytes = layout.block_bytes.max(1).min(layout.to_bytes - at);
                // The space was set aside, so the write cannot fail.
                let _ = cache.write(fd, at, bytes).await;
                at += bytes;
            }
            if layout.fsync {
                let _ = cache.fsync(fd).await;
            }
        }
    }
}
