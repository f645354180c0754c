// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of fsync that end without what makes data safe: a commit of the journal, or a flush of
//! the device's cache.

use super::disk::Disk;
use super::section::Section;
use super::spans::Spans;
use super::spells::{Spell, What};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Time};
use std::collections::BTreeMap;

/// So many on each device, of ext4, of those before which a write had ended.
pub(super) fn fsyncs(section: &Section) -> BTreeMap<Dev, u64> {
    let is_fsync = |s: &&Spell| matches!(s.what, What::Fsync { .. });
    let fsyncs: Vec<&Spell> = section.spells.iter().filter(is_fsync).collect();
    let mut unflushed = BTreeMap::new();
    if fsyncs.is_empty() {
        return unflushed;
    }
    let is_commit = |s: &&Spell| matches!(s.what, What::Commit(_));
    let commits = section.spells.iter().filter(is_commit);
    let commits = Spans::new(commits.map(|s| [s.from, s.to]));
    let mut safe: BTreeMap<Dev, Option<Safe>> = BTreeMap::new();
    for fsync in fsyncs {
        let dev = section.disk_of(fsync.dev);
        let of_disk = safe.entry(dev).or_insert_with(|| {
            let disk = section.disk(dev);
            disk.map(Safe::new)
        });
        let during = |spans: &Spans| spans.meet(fsync.from, fsync.to);
        let is_unflushed = of_disk.as_ref().is_some_and(|safe| {
            let has_written = safe.first_write.is_some_and(|c| c <= fsync.from);
            has_written && !during(&safe.flushes) && !during(&commits)
        });
        if is_unflushed {
            *unflushed.entry(dev).or_default() += 1;
        }
    }
    unflushed
}

/// When a device was flushed, and when it had written something first.
struct Safe {
    flushes: Spans,
    first_write: Option<Time>,
}

impl Safe {
    fn new(disk: &Disk) -> Safe {
        let flushes = disk.requests.iter().filter(|r| r.flags.has(Rwbs::FLUSH));
        let spans = flushes.filter_map(|r| Some([r.start()?, r.life.complete?]));
        let writes = disk.requests.iter().filter(|r| r.is_write());
        let plain = writes.filter(|r| !r.flags.has(Rwbs::FUA));
        Safe {
            flushes: Spans::new(spans),
            first_write: plain.filter_map(|r| r.life.complete).min(),
        }
    }
}
