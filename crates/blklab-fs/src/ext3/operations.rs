// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reading, writing and syncing a file cost in metadata
//! (fs/ext3/{inode,balloc,fsync}.c, fs/inode.c, 2.6.28).
//!
//! Appending a page changes the inode's block, the group's bitmap and
//! descriptor, and the block of pointers; overwriting one changes nothing but,
//! once a second, the inode's time. ext2 makes the same blocks dirty without a
//! journal.
//!
//! Left out: the orphan list around direct writes that extend a file.

use super::options::Atime;
use crate::cache::{FsError, PageCache};
use crate::file::{FileId, WaitFor};
use crate::host::Host;
use crate::state::{BioWork, State};
use blklab_types::{BioFlags, Jiffies, Op, PAGE_SECTORS};
use std::ops::Range;

/// Credits of a handle that may allocate a page's blocks.
const WRITE_CREDITS: u64 = 10;
/// Credits of a handle that changes an inode's times.
const INODE_CREDITS: u64 = 2;
/// Seconds of a day: how long `relatime` trusts an access time.
pub(crate) const DAY_S: u64 = 86_400;

/// What the next block of a growing file touches.
struct Growth {
    /// The bitmap that is searched first.
    bitmap: u64,
    descriptor: u64,
    /// The block of pointers that the page's goes into, if there is one yet.
    leaf: Option<u64>,
    inode: u64,
    device: FileId,
    pid: u32,
}

impl State {
    /// Whether a file is that of the volume's metadata.
    pub(crate) fn is_metadata(&self, id: FileId) -> bool {
        self.device == Some(id)
    }

    /// A metadata block is dirty in the device's pages.
    pub(crate) fn ext_dirty_block(&mut self, block: u64, now: Jiffies) {
        let Some(device) = self.device else {
            return;
        };
        let run = block..block + 1;
        self.files[device.idx()].ext.buffer_dirty.set(run.clone());
        self.dirty(device, run, now);
    }

    fn growth(&self, id: FileId, pid: u32) -> Option<Growth> {
        let (ext, file) = (self.ext.as_ref()?, &self.files[id.idx()]);
        let group = ext.space.group_of(ext.goal(&file.ext, pid));
        Some(Growth {
            bitmap: ext.geometry.block_bitmap(group),
            descriptor: ext.geometry.descriptor(group),
            leaf: ext.leaf(file, file.extents.pages()),
            inode: file.ext.block,
            device: ext.device,
            pid,
        })
    }

    /// Takes the next block of a file. Returns the metadata blocks that this
    /// changed beside those of the goal's group.
    fn grow(&mut self, id: FileId, pid: u32) -> Option<[Option<u64>; 4]> {
        let (ext, file) = (self.ext.as_mut()?, &mut self.files[id.idx()]);
        let (block, pointers) = ext.grow(id, file, pid)?;
        let group = ext.space.group_of(block);
        let new = file.ext.leaves.last().copied().filter(|_| pointers > 0);
        file.ext.changed = true;
        Some([
            Some(ext.geometry.block_bitmap(group)),
            Some(ext.geometry.descriptor(group)),
            new,
            file.ext.upper.filter(|_| pointers > 0),
        ])
    }

    /// Makes a page dirty, its buffer with it, and known to the journal.
    fn ext_dirty_page(&mut self, id: FileId, page: u64, now: Jiffies) -> u64 {
        let inode = &mut self.files[id.idx()].ext;
        if inode.buffers {
            inode.buffer_dirty.set(page..page + 1);
            if inode.journalled {
                self.attach_data(id, page);
            }
        }
        self.dirty(id, page..page + 1, now)
    }

    /// Whether an access changes the inode, by the mount's rule; notes it.
    fn accessed(&mut self, id: FileId, second: u64) -> bool {
        let rule = self.ext.as_ref().map(|e| e.options.atime);
        let inode = &mut self.files[id.idx()].ext;
        let stale = match rule {
            Some(Atime::Strict) => inode.atime_s != second,
            Some(Atime::Relative) => {
                inode.atime_s <= inode.mtime_s || second >= inode.atime_s + DAY_S
            }
            Some(Atime::Never) | None => false,
        };
        if stale {
            inode.atime_s = second;
        }
        stale
    }
}

impl<H: Host> PageCache<H> {
    /// The second that inodes are stamped with; those from before the run have
    /// 0.
    fn second(&self) -> u64 {
        self.host.now().0 / 1_000_000_000 + 1
    }

    pub(crate) fn has_journal(&self) -> bool {
        self.with(|s| s.ext4.is_some() || s.ext.as_ref().is_some_and(|e| e.options.journal))
    }

    /// Changes a metadata block: in the running transaction, or in place.
    async fn change_block(&self, block: u64) {
        if self.has_journal() {
            self.journal_access(block).await;
        } else {
            let now = self.host.jiffies();
            self.with(|s| s.ext_dirty_block(block, now));
        }
    }

    /// Changes an inode under a handle of its own.
    async fn change_inode(&self, id: FileId) {
        let block = self.with(|s| s.file(id).ext.block);
        if self.has_journal() {
            let handle = self.journal_start(INODE_CREDITS).await;
            self.change_block(block).await;
            self.journal_stop(handle);
        } else {
            self.change_block(block).await;
        }
    }

    /// The end of a read: the access time.
    pub(crate) async fn ext_accessed(&self, id: FileId) {
        let second = self.second();
        if self.with(|s| s.accessed(id, second)) {
            self.change_inode(id).await;
        }
    }

    /// The beginning of a write: the times of change.
    pub(crate) async fn ext_modified(&self, id: FileId) {
        let second = self.second();
        if self.with(|s| std::mem::replace(&mut s.file(id).ext.mtime_s, second) != second) {
            self.change_inode(id).await;
        }
    }

    /// Makes pages dirty one by one, each under a handle, and gives those
    /// behind the end their blocks. Returns how many were clean.
    pub(crate) async fn ext_dirty_pages(
        &self,
        id: FileId,
        run: Range<u64>,
    ) -> Result<u64, FsError> {
        let mut clean = 0;
        let journal = self.has_journal();
        for page in run {
            self.wait_unlocked(id, page).await;
            let handle = if journal {
                Some(self.journal_start(WRITE_CREDITS).await)
            } else {
                None
            };
            let placed = self.ext_place(id, page).await;
            if placed.is_ok() {
                self.write_committing_page(id, page).await;
                let (task, now) = (self.host.current(), self.host.jiffies());
                clean += self.with(|s| {
                    let new = s.ext_dirty_page(id, page, now);
                    s.count_dirtying(&self.config, task, new, false);
                    new
                });
            }
            if let Some(handle) = handle {
                self.journal_stop(handle);
            }
            placed?;
        }
        self.start_flusher_timer();
        Ok(clean)
    }

    /// Gives a file blocks up to an end, for a direct write.
    pub(crate) async fn ext_reserve(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        let journal = self.has_journal();
        while self.with(|s| s.file(id).extents.pages()) < pages {
            let page = self.with(|s| s.file(id).extents.pages());
            let handle = if journal {
                Some(self.journal_start(WRITE_CREDITS).await)
            } else {
                None
            };
            let placed = self.ext_place(id, page).await;
            if let Some(handle) = handle {
                self.journal_stop(handle);
            }
            placed?;
        }
        Ok(())
    }

    /// Gives a file blocks up to a page.
    async fn ext_place(&self, id: FileId, page: u64) -> Result<(), FsError> {
        while self.with(|s| s.file(id).extents.pages()) <= page {
            let pid = self.host.pid();
            let Some(g) = self.with(|s| s.growth(id, pid)) else {
                return Err(FsError::NoSpace);
            };
            if !self.read_page(g.device, g.bitmap).await {
                return Err(FsError::Io);
            }
            for block in [Some(g.bitmap), Some(g.descriptor), g.leaf, Some(g.inode)]
                .into_iter()
                .flatten()
            {
                self.change_block(block).await;
            }
            let changed = self.with(|s| s.grow(id, g.pid)).ok_or(FsError::NoSpace)?;
            if changed[0] != Some(g.bitmap)
                && let Some(bitmap) = changed[0]
            {
                self.read_page(g.device, bitmap).await;
            }
            for block in changed.into_iter().flatten() {
                self.change_block(block).await;
            }
        }
        Ok(())
    }

    /// A page whose old data the committing transaction still has to write:
    /// whoever changes it writes it first.
    async fn write_committing_page(&self, id: FileId, page: u64) {
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

    /// Reads the block of pointers to a page if it is not in the cache.
    pub(crate) async fn ext_load_leaf(&self, id: FileId, page: u64) {
        if let Some((device, leaf)) = self.ext_cold_leaf(id, page) {
            self.read_page(device, leaf).await;
        }
    }

    /// The block of pointers to a page, if it has to be read.
    pub(crate) fn ext_cold_leaf(&self, id: FileId, page: u64) -> Option<(FileId, u64)> {
        self.with(|s| {
            let ext = s.ext.as_ref()?;
            let leaf = ext.leaf(&s.files[id.idx()], page)?;
            let device = ext.device;
            let cold = !s.files[device.idx()].uptodate.test(leaf);
            cold.then_some((device, leaf))
        })
    }

    /// The filesystem's step of fsync: commits, if something changed that is
    /// not committed. For data alone a change of times does not count.
    pub(crate) async fn ext_sync(&self, id: FileId, data_only: bool) {
        let wanted = self.with(|s| {
            let inode = &mut s.file(id).ext;
            let times = inode.atime_s.max(inode.mtime_s) > 0;
            std::mem::take(&mut inode.changed) || times && !data_only
        });
        if !wanted {
            return;
        }
        if self.has_journal() {
            self.force_commit().await;
            return;
        }
        let (device, blocks) = self.with(|s| {
            let device = s.ext.as_ref().map_or(FileId(0), |e| e.device);
            let inode = &s.file(id).ext;
            let mut blocks = inode.leaves.clone();
            blocks.extend(inode.upper);
            blocks.push(inode.block);
            let dirty = &s.file(device).ext.buffer_dirty;
            blocks.retain(|b| dirty.test(*b));
            (device, blocks)
        });
        for block in blocks {
            self.write_out(device, block..block + 1, true).await;
            self.wait_writeback(device, block).await;
        }
    }

    /// Sleeps until nobody writes a page's buffer.
    pub(super) async fn wait_buffer(&self, id: FileId, page: u64) {
        self.wait_page(id, page, WaitFor::Buffer).await;
    }

    /// Waits for all buffers of a run that are being written.
    pub(super) async fn wait_buffers(&self, id: FileId, run: Range<u64>) {
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
    /// must know of it (`ext3_ordered_writepage`, `block_write_full_page`).
    /// The page is dirty and nobody holds it.
    pub(crate) async fn write_buffer_page(
        &self,
        id: FileId,
        page: u64,
        flags: BioFlags,
        nonblocking: bool,
    ) {
        let run = page..page + 1;
        let journalled = self.with(|s| {
            let file = &mut s.files[id.idx()];
            file.locked.set(run.clone());
            s.nr_dirty -= file.dirty.clear(run.clone());
            file.marker.clear(run.clone());
            let per_page = s
                .ext
                .as_ref()
                .is_some_and(|e| e.options.features.handle_per_page);
            s.files[id.idx()].ext.journalled && per_page
        });
        let handle = if journalled {
            Some(self.journal_start(WRITE_CREDITS).await)
        } else {
            None
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
        if let Some(handle) = handle {
            if !put_back {
                self.with(|s| s.attach_data(id, page));
            }
            self.journal_stop(handle);
        }
    }
}
