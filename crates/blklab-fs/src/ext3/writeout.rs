// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing pages through their buffers, and waiting for who does
//! (fs/ext3/inode.c, fs/buffer.c, fs/jbd/transaction.c, 2.6.28).
//!
//! A page and its buffer are dirty separately: the journal writes buffers
//! behind the page's back. Write-out that must not wait puts a page back whose
//! buffer somebody else is writing.

use super::operations::WRITE_CREDITS;
use crate::cache::PageCache;
use crate::file::{FileId, WaitFor};
use crate::host::Host;
use crate::state::BioWork;
use blklab_types::{BioFlags, Op, PAGE_SECTORS};
use std::ops::Range;

impl<H: Host> PageCache<H> {
    /// A page whose old data the committing transaction still has to write:
    /// whoever changes it writes it first.
    pub(super) async fn write_committing_page(&self, id: FileId, page: u64) {
        loop {
            let dirty = self.with(|s| {
                let inode = &s.file(id).ext;
                inode.ordered_committing.test(page) && inode.buffer_dirty.test(page)
            });
            if !dirty {
                return;
            }
            self.wait_buffer(id, page).await;
            let taken = self.with(|s| {
                let inode = &mut s.file(id).ext;
                let run = page..page + 1;
                let taken =
                    !inode.buffer_locked.test(page) && inode.buffer_dirty.clear(run.clone()) > 0;
                if taken {
                    inode.buffer_locked.set(run);
                }
                taken
            });
            if taken {
                let flags = self.with(|s| match &s.ext {
                    Some(e) if e.options.features.sync_commit_block => {
                        BioFlags::SYNC | BioFlags::UNPLUG
                    }
                    _ => BioFlags::NONE,
                });
                self.submit_buffers(&mut vec![(id, page)], flags).await;
                self.wait_buffer(id, page).await;
            }
        }
    }

    /// Sleeps until nobody writes a page's buffer.
    pub(crate) async fn wait_buffer(&self, id: FileId, page: u64) {
        self.wait_page(id, page, WaitFor::Buffer).await;
    }

    /// Waits for all buffers of a run that are being written.
    pub(crate) async fn wait_buffers(&self, id: FileId, run: Range<u64>) {
        while let Some(page) = self.with(|s| {
            let file = s.file(id);
            [&file.ext.buffer_locked, &file.writeback]
                .into_iter()
                .filter_map(|bits| bits.next_set(run.start, run.end))
                .min()
        }) {
            self.wait_buffer(id, page).await;
        }
    }

    /// Writes one page, a bio for its buffer, under a handle if the journal
    /// must know of it (`ext3_ordered_writepage`, `ext3_journalled_writepage`,
    /// `block_write_full_page`). The page is dirty and nobody holds it. Returns
    /// whether it had to be put back: somebody else has its buffer.
    pub(crate) async fn write_buffer_page(
        &self,
        id: FileId,
        page: u64,
        flags: BioFlags,
        nonblocking: bool,
    ) -> bool {
        let run = page..page + 1;
        let (handled, ordered) = self.with(|s| {
            let file = &mut s.files[id.idx()];
            file.locked.set(run.clone());
            s.nr_dirty -= file.dirty.clear(run.clone());
            file.marker.clear(run.clone());
            let per_page = s
                .ext
                .as_ref()
                .is_some_and(|e| e.options.features.handle_per_page);
            let inode = &s.files[id.idx()].ext;
            let ordered = inode.ordered && per_page;
            (ordered || inode.data_journal, ordered)
        });
        let handle = match handled {
            true => self.begin(WRITE_CREDITS).await,
            false => None,
        };
        let mut put_back = false;
        while self.with(|s| s.file(id).ext.buffer_locked.test(page)) {
            if nonblocking {
                put_back = true;
                break;
            }
            self.wait_buffer(id, page).await;
        }
        let place = self.with(|s| {
            let file = &mut s.files[id.idx()];
            if put_back {
                s.nr_dirty += file.dirty.set(run.clone());
                file.inode_dirty = true;
                return None;
            }
            if file.ext.buffer_dirty.clear(run.clone()) == 0 {
                // The journal has written it already.
                s.count_completions(1);
                return None;
            }
            s.nr_writeback += file.writeback.set(run.clone());
            s.stats.pages_written += 1;
            s.stats.write_bios += 1;
            let sector = file.extents.map(page).map_or(0, |(sector, _)| sector);
            let work = BioWork::Pages {
                op: Op::Write,
                file: id,
                run: run.clone(),
            };
            Some((sector, s.bios.insert(work)))
        });
        self.unlock_page(id, page);
        if let Some((sector, cookie)) = place {
            self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, cookie)
                .await;
        }
        if ordered && !put_back {
            self.with(|s| s.attach_data(id, page));
        }
        self.end(handle);
        put_back
    }
}
