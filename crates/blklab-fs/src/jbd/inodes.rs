// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data that a commit waits for (fs/jbd2/commit.c, 2.6.28, 3.0;
//! fs/ext4/inode.c, 4.19): files whose new blocks the transaction names.
//!
//! Up to 4.6 commit itself writes what is dirty of them and has a place, page by
//! page, from 2.6.39 on under a plug for each file (`generic_writepages`); it never
//! allocates. From then on it only waits: what was allocated is
//! on its way before its handle is closed. It waits for these data after it has
//! submitted its metadata, and before the commit block.

use super::Journalled;
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, Host, PageRun};
use blklab_types::Op;

/// What commit does with the next dirty page of a file.
enum Next {
    /// There is none with a place.
    End,
    /// Somebody holds it.
    Locked(u64),
    /// It is on its way, and dirty again.
    InFlight(u64),
    Write(PageRun),
}

impl<V: Journalled> View<'_, V> {
    fn next_ordered(&mut self, id: FileId, from: u64) -> Next {
        let file = &self.files[id.idx()];
        let mut at = from;
        loop {
            let Some(page) = file.dirty.next_set(at, u64::MAX) else {
                return Next::End;
            };
            let Some((sector, _)) = file.extents.map(page) else {
                // Delayed: not for this commit.
                match file.extents.next_place(page) {
                    Some(next) => at = next,
                    None => return Next::End,
                }
                continue;
            };
            if file.locked.test(page) {
                return Next::Locked(page);
            }
            if file.writeback.test(page) {
                return Next::InFlight(page);
            }
            self.start_writeback(id, page..page + 1);
            return Next::Write(PageRun {
                start: page,
                pages: 1,
                sector,
            });
        }
    }
}

impl<H: Host, V: Journalled> Mount<'_, H, V> {
    /// Waits for the data of a transaction's files that are on their way, when its
    /// metadata are on theirs (`journal_finish_inode_data_buffers`).
    pub(crate) async fn wait_ordered_inodes(&self, inodes: &[FileId]) {
        for id in inodes {
            self.wait_writeback_run(*id, 0..u64::MAX).await;
        }
    }

    /// Writes the data of a transaction's files, where commit does so
    /// (`journal_submit_data_buffers`).
    pub(crate) async fn write_ordered_inodes(&self, inodes: &[FileId]) {
        if inodes.is_empty() {
            return;
        }
        let writes = self.with(|s| s.journal().rules.writes_inodes);
        for id in inodes.iter().filter(|_| writes) {
            self.host.start_plug();
            self.write_ordered_inode(*id).await;
            self.host.finish_plug();
        }
    }

    /// Writes what is dirty of a file and has a place
    /// (`journal_submit_inode_data_buffers`).
    async fn write_ordered_inode(&self, id: FileId) {
        let flags = self.config.features.integrity_flags;
        let mut page = 0;
        loop {
            match self.with(|s| s.next_ordered(id, page)) {
                Next::End => return,
                Next::Locked(at) => {
                    self.wait_unlocked(id, at).await;
                    page = at;
                }
                Next::InFlight(at) => {
                    self.wait_writeback(id, at).await;
                    page = at;
                }
                Next::Write(run) => {
                    page = run.start + 1;
                    self.submit(Op::Write, flags, id, run).await;
                }
            }
        }
    }
}
