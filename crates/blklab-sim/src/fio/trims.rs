// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said beforehand of jobs whose trims do not reach the device.

use blklab_experiment::Experiment;
use blklab_fio::job::Job;
use blklab_pagecache::Config;
use blklab_target::files::is_device;

/// A line for each reason why trims of some job come to nothing.
pub(super) fn notes(e: &Experiment, jobs: &[Job], cache: &Config) -> Vec<String> {
    let trimming = jobs.iter();
    let trimming = trimming.filter(|job| job.settings.rw.trims && !job.is_diskless());
    let (by_write, by_ioctl): (Vec<&Job>, Vec<&Job>) =
        trimming.partition(|job| job.settings.ioengine == "vsync");
    let mut notes = Vec::new();
    if !by_write.is_empty() {
        notes.push("trims: vsync writes what it should trim, as in fio 3.33".to_owned());
    }
    if by_ioctl.is_empty() {
        return notes;
    }
    let of_file = |job: &&Job| job.files.iter().any(|name| !is_device(name));
    if !cache.features.has_discard {
        notes.push(format!(
            "trims: kernel {} has no BLKDISCARD, which came with 2.6.28",
            e.kernel
        ));
    } else if let Some(job) = by_ioctl.into_iter().find(of_file) {
        notes.push(format!(
            "trims: those of job '{}' fail, since only block devices (filename=/dev/...) can be \
             trimmed",
            job.name
        ));
    } else if cache.discard.is_none() {
        let what = match e.md {
            Some(_) => "the array".to_owned(),
            None => format!("device {}", e.device.name),
        };
        notes.push(format!(
            "trims: {what} has no discards on kernel {}",
            e.kernel
        ));
    }
    notes
}
