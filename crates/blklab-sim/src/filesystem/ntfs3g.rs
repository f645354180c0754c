// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTFS-3G.

use blklab_experiment::Experiment;
use blklab_fs::{NtfsCosts, NtfsOptions};
use blklab_types::Span;

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> NtfsOptions {
    let spec = &e.filesystem;
    let mut o = NtfsOptions::default();
    o.big_writes = spec.number("big_writes") == Some(1);
    o.atime = spec.number("noatime") != Some(1);
    o.timeout = spec.number("timeout_ms").map_or(o.timeout, Span::from_ms);
    o.costs = NtfsCosts::default().map(|t| e.cpu_time(t));
    o
}
