// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing pages that the journal may have to know of (fs/ext3/inode.c,
//! fs/jbd/transaction.c, 2.6.28).

use super::Ext;
use super::operations::WRITE_CREDITS;
use crate::mount::Mount;
use blklab_pagecache::{FileId, Host};
use blklab_types::BioFlags;

impl<H: Host> Mount<'_, H, Ext> {
    /// A page whose old data the committing transaction still has to write: whoever
    /// changes it writes it first (`journal_dirty_data`).
    pub(super) async fn write_committing_page(&self, id: FileId, page: u64) {
        loop {
            let dirty = self
                .with(|s| s.journal().awaits((id, page)) && s.file(id).buffers.dirty.test(page));
            if !dirty {
                return;
            }
            self.wait_buffer(id, page).await;
            let taken = self.with(|s| {
                let buffers = &mut s.file(id).buffers;
                let run = page..page + 1;
                let taken = !buffers.locked.test(page) && buffers.dirty.clear(run.clone()) > 0;
                if taken {
                    buffers.locked.set(run);
                }
                taken
            });
            if taken {
                let features = self.with(|s| s.volume.options.features);
                let flags = if features.sync_commit_block {
                    features.sync_flags | BioFlags::UNPLUG
                } else {
                    BioFlags::NONE
                };
                self.submit_buffers(&mut vec![(id, page)], flags).await;
                self.wait_buffer(id, page).await;
            }
        }
    }

    /// Writes one page through its buffer, under a handle if the journal must know
    /// of it (`ext3_ordered_writepage`, `ext3_journalled_writepage`). Returns
    /// whether it had to be put back.
    pub(super) async fn ext_write_page(
        &self,
        id: FileId,
        page: u64,
        flags: BioFlags,
        nonblocking: bool,
    ) -> bool {
        let (handled, ordered, at_once) = self.with(|s| {
            s.lock_for_write(id, page);
            let (options, inode) = (&s.volume.options, &s.volume.nodes[id]);
            let ordered = inode.ordered && options.features.handle_per_page;
            let handled = (ordered || inode.data_journal) && options.journal;
            let at_once = handled.then(|| s.open_at_once(WRITE_CREDITS)).flatten();
            (handled, ordered, at_once)
        });
        let handle = match at_once {
            None if handled => self.begin(WRITE_CREDITS).await,
            at_once => at_once,
        };
        let put_back = self.write_full_page(id, page, flags, nonblocking).await;
        if let Some(handle) = handle {
            self.journal_stop_after(handle, |s| {
                if ordered && !put_back {
                    s.attach_data(id, page..page + 1);
                }
            });
        }
        put_back
    }
}
