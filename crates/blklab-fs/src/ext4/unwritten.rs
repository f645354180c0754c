// SPDX-License-Identifier: MIT OR Apache-2.0
//! New blocks that count as unwritten until their data are on the disk (mount option
//! `dioread_nolock`; fs/ext4/{inode,page-io,extents}.c, 6.1).
//!
//! Write-out gives a range of dirty pages blocks that are marked as unwritten. When
//! all bios of the range have ended, a worker (`ext4-rsv-conversion`) takes the mark
//! away under a handle of its own, and with that the pages are written. Nobody reads
//! what was in the blocks before, so a commit need not wait for the data.

use super::{Ext4, HAS_INODE};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host};
use std::ops::Range;

/// Credits of a handle that takes the mark away: the inode and an extent leaf.
const CONVERSION_CREDITS: u64 = 2;

/// Pages that got their blocks together, and are written when all of them are on the
/// disk (`ext4_io_end`).
#[derive(Debug)]
pub(super) struct Conversion {
    file: FileId,
    run: Range<u64>,
    /// What is on the disk, and whether it failed.
    ended: Vec<(Range<u64>, bool)>,
}

impl View<'_, Ext4> {
    /// Dirty pages have got blocks, which are marked as unwritten.
    pub(super) fn ext4_mark_unwritten(&mut self, id: FileId, run: Range<u64>) {
        let dirty = &self.state.files[id.idx()].dirty;
        let ext4 = &mut *self.volume;
        let inode = ext4.nodes[id].as_deref_mut().expect(HAS_INODE);
        let mut at = run.start;
        while let Some(first) = dirty.next_set(at, run.end) {
            at = dirty.next_clear(first, run.end);
            inode.unwritten.set(first..at);
        }
        if at > run.start {
            inode.conversions.push(ext4.conversions.insert(Conversion {
                file: id,
                run,
                ended: Vec::new(),
            }));
        }
    }

    /// A bio of pages has ended (`ext4_end_bio`). True: their blocks are marked as
    /// unwritten, and the write-back of the pages ends with the conversion.
    pub(super) fn ext4_data_ended(&mut self, id: FileId, run: &Range<u64>, failed: bool) -> bool {
        let ext4 = &mut *self.volume;
        let inode = ext4.nodes[id].as_deref_mut().expect(HAS_INODE);
        if inode.unwritten.clear(run.clone()) == 0 {
            return false;
        }
        // A bio may have pages of several, and written ones beside them, which wait for one.
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for key in &inode.conversions {
            let conversion = ext4.conversions.get_mut(*key);
            let own = &conversion.expect("an inode's conversion is there").run;
            if own.start < run.end && run.start < own.end {
                parts.push((own.end.min(run.end), *key));
            }
        }
        parts.sort_unstable();
        let last = parts.last_mut();
        last.expect("unwritten pages are to be converted").0 = run.end;
        let mut start = run.start;
        for (end, key) in parts {
            let conversion = ext4.conversions.get_mut(key);
            let conversion = conversion.expect("it was found");
            if start < end {
                conversion.ended.push((start..end, failed));
                start = end;
            }
        }
        self.ext4_end_conversions(id);
        true
    }

    /// Of these pages, those that are not on their way will not be written with the
    /// others that got blocks when they did.
    pub(super) fn ext4_leave_unwritten(&mut self, id: FileId, run: &Range<u64>) {
        let writeback = &self.state.files[id.idx()].writeback;
        let inode = self.volume.nodes[id].as_deref_mut().expect(HAS_INODE);
        let mut at = run.start;
        while let Some(page) = inode.unwritten.next_set(at, run.end) {
            at = page + 1;
            if !writeback.test(page) {
                inode.unwritten.clear(page..at);
            }
        }
        self.ext4_end_conversions(id);
    }

    /// Leaves those conversions to a worker of which nothing is on its way any more
    /// (`ext4_put_io_end_defer`, `ext4_add_complete_io`).
    fn ext4_end_conversions(&mut self, id: FileId) {
        let ext4 = &mut *self.volume;
        let inode = ext4.nodes[id].as_deref_mut().expect(HAS_INODE);
        let (unwritten, state) = (&inode.unwritten, &mut *self.state);
        inode.conversions.retain(|key| {
            let conversion = ext4.conversions.get_mut(*key);
            let conversion = conversion.expect("an inode's conversion is there");
            let is_under_way = unwritten.count_in(conversion.run.clone()) > 0;
            if !is_under_way && conversion.ended.is_empty() {
                ext4.conversions.remove(*key);
            } else if !is_under_way {
                state.add_filesystem_work(*key);
            }
            is_under_way
        });
    }

    /// The blocks that say where a page is: the inode's, and the leaf's if there is
    /// one.
    fn ext4_mapping_blocks(&self, id: FileId, page: u64) -> (u64, Option<u64>) {
        let inode = self.volume.nodes[id].as_deref().expect(HAS_INODE);
        let leaf = inode.leaf(&self.files[id.idx()].extents, page);
        (inode.block, leaf)
    }
}

impl<H: Host> Mount<'_, H, Ext4> {
    /// The worker's part (`ext4_end_io_rsv_work`, `ext4_end_io_end`,
    /// `ext4_convert_unwritten_io_end_vec`).
    pub(super) async fn ext4_convert(&self, key: u64) {
        let conversion = self.with(|s| s.volume.conversions.remove(key));
        let Conversion { file, run, ended } = conversion.expect("it is converted once");
        if ended.iter().any(|(_, failed)| !failed) {
            let handle = self.journal_start(CONVERSION_CREDITS).await;
            let (own, leaf) = self.with(|s| s.ext4_mapping_blocks(file, run.start));
            self.ext4_change(leaf.into_iter().chain([own])).await;
            self.with(|s| s.ext4_stamp(file, true));
            self.journal_stop(handle);
        }
        self.waking(|s, wake| {
            for (run, failed) in &ended {
                s.end_writeback(file, run, *failed, wake);
            }
        });
    }
}
