// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of fsync that end without what makes data safe: a commit of the journal, or a flush of
//! the device's cache.

use super::disk::Disk;
use super::section::Section;
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
    let commits = joined(commits.map(|s| [s.from, s.to]).collect());
    let mut safe: BTreeMap<Dev, Option<Safe>> = BTreeMap::new();
    for fsync in fsyncs {
        let dev = section.disk_of(fsync.dev);
        let of_disk = safe.entry(dev).or_insert_with(|| {
            let disk = section.disks.iter().find(|d| d.dev == dev);
            disk.map(Safe::new)
        });
        let during = |spans: &[[Time; 2]]| meets(spans, fsync.from, fsync.to);
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
    flushes: Vec<[Time; 2]>,
    first_write: Option<Time>,
}

impl Safe {
    fn new(disk: &Disk) -> Safe {
        let flushes = disk.requests.iter().filter(|r| r.flags.has(Rwbs::FLUSH));
        let spans = flushes.filter_map(|r| Some([r.start()?, r.life.complete?]));
        let writes = disk.requests.iter().filter(|r| r.is_write());
        let plain = writes.filter(|r| !r.flags.has(Rwbs::FUA));
        Safe {
            flushes: joined(spans.collect()),
            first_write: plain.filter_map(|r| r.life.complete).min(),
        }
    }
}

/// In order of time, with those that overlap made one.
fn joined(mut spans: Vec<[Time; 2]>) -> Vec<[Time; 2]> {
    spans.sort_unstable();
    spans.dedup_by(|next, last| {
        let overlaps = next[0] <= last[1];
        if overlaps {
            last[1] = last[1].max(next[1]);
        }
        overlaps
    });
    spans
}

/// Whether one of these has something of a time.
fn meets(spans: &[[Time; 2]], from: Time, to: Time) -> bool {
    let first = spans.partition_point(|[_, end]| *end < from);
    spans.get(first).is_some_and(|[begin, _]| *begin <= to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_joined_and_met() {
        let spans = [[5, 9], [1, 3], [8, 12], [20, 21]].map(|s| s.map(Time));
        let spans = joined(spans.to_vec());
        assert_eq!(spans, [[1, 3], [5, 12], [20, 21]].map(|s| s.map(Time)));
        let meets = |from, to| meets(&spans, Time(from), Time(to));
        assert!(meets(3, 4) && meets(10, 11) && meets(0, 100));
        assert!(!meets(4, 4) && !meets(13, 19) && !meets(22, 30));
    }
}
