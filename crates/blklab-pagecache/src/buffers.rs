// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers of pages, and writing pages through them (fs/buffer.c, 2.6.28).
//!
//! Pages of some files have one buffer each. A page and its buffer are dirty
//! separately: a journal writes buffers behind the page's back. Write-out that
//! must not wait puts a page back whose buffer somebody else is writing.

use crate::cache::PageCache;
use crate::file::{FileId, WaitFor};
use crate::ops::Host;
use crate::state::{BioWork, State};
use blklab_types::{Bio, BioFlags, BioKey, Jiffies, Op, PAGE_SECTORS, TaskId};
use std::ops::Range;

/// A page whose one buffer is meant.
pub type Place = (FileId, u64);

/// What becomes of a buffer that somebody wants to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Nothing: it is clean.
    Clean,
    /// Somebody writes it already.
    InFlight,
    /// It is dirty, and somebody writes an older state of it.
    Busy,
    /// It is locked, to be written.
    Write,
}

/// What becomes of a locked page that is to be written through its buffer.
enum FullPage {
    /// Somebody writes its buffer: it waits.
    Busy,
    /// It stays dirty, for the same reason.
    PutBack,
    /// Nothing: its buffer is clean.
    Clean,
    /// It is written by this bio.
    Write {
        sector: u64,
        bio: BioKey,
        group: u16,
    },
}

/// How the end of many writes is waited for, from the last on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOrder {
    /// Run by run of pages, in each from the first on.
    Runs,
    /// Page by page.
    Pages,
}

impl WaitOrder {
    fn note(self, waits: &mut Vec<(FileId, Range<u64>)>, (id, page): Place) {
        match waits.last_mut() {
            Some((file, run)) if self == WaitOrder::Runs && *file == id && run.end == page => {
                run.end = page + 1;
            }
            _ => waits.push((id, page..page + 1)),
        }
    }
}

impl State {
    /// Takes a buffer for writing if it is dirty and nobody writes it.
    pub fn take_buffer(&mut self, (id, page): Place) -> Taken {
        let file = &mut self.files[id.idx()];
        let locked = file.buffers.locked.test(page) || file.writeback.test(page);
        match (file.buffers.dirty.test(page), locked) {
            (false, false) => Taken::Clean,
            (false, true) => Taken::InFlight,
            (true, true) => Taken::Busy,
            (true, false) => {
                file.buffers.dirty.clear(page..page + 1);
                file.buffers.locked.set(page..page + 1);
                Taken::Write
            }
        }
    }

    /// A buffer is dirty, and its page (`mark_buffer_dirty`).
    pub fn dirty_buffer(&mut self, (id, page): Place, now: Jiffies) {
        let run = page..page + 1;
        self.files[id.idx()].buffers.dirty.set(run.clone());
        self.dirty(id, run, now);
    }

    /// Makes pages and their buffers clean without writing them.
    pub fn clean_page(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        file.buffers.dirty.clear(run.clone());
        file.towrite.clear(run.clone());
        self.nr_dirty -= file.dirty.clear(run);
    }

    /// Puts a page that was filled in memory into the cache.
    pub fn cache_block(&mut self, (id, page): Place) {
        let run = page..page + 1;
        let file = &mut self.files[id.idx()];
        if !file.cached.test(page) {
            self.nr_cached += file.cached.set(run.clone());
            file.uptodate.set(run.clone());
            self.lru.add(id, run);
        }
    }

    /// Locks a dirty page that is about to be written through its buffer, and makes
    /// it clean (`clear_page_dirty_for_io`).
    pub fn lock_for_write(&mut self, id: FileId, page: u64) {
        let run = page..page + 1;
        let file = &mut self.files[id.idx()];
        file.locked.set(run.clone());
        self.nr_dirty -= file.dirty.clear(run.clone());
        file.marker.clear(run);
    }

    /// Gives up the lock of a page.
    pub(crate) fn unlock_page(&mut self, id: FileId, page: u64, wake: &mut Vec<TaskId>) {
        let file = &mut self.files[id.idx()];
        file.locked.clear(page..page + 1);
        file.take_waiters(&(page..page + 1), WaitFor::Unlock, wake);
    }

    /// Takes a locked page to write it through its buffer, and unlocks it unless it
    /// has to wait.
    fn take_full_page(
        &mut self,
        id: FileId,
        page: u64,
        nonblocking: bool,
        wake: &mut Vec<TaskId>,
    ) -> FullPage {
        let run = page..page + 1;
        let file = &mut self.files[id.idx()];
        let next = if file.buffers.locked.test(page) {
            if !nonblocking {
                return FullPage::Busy;
            }
            self.nr_dirty += file.dirty.set(run);
            file.inode_dirty = true;
            FullPage::PutBack
        } else if file.buffers.dirty.clear(run.clone()) == 0 {
            // The journal has written it already.
            self.count_completions(1);
            FullPage::Clean
        } else {
            let started = file.writeback.set(run.clone());
            assert!(
                started == 1,
                "page {page} of {id:?} is written twice at a time"
            );
            let group = file.charged_to();
            self.nr_writeback += 1;
            self.stats.pages_written += 1;
            self.stats.write_bios += 1;
            let work = BioWork::Pages {
                op: Op::Write,
                file: id,
                run,
            };
            FullPage::Write {
                sector: self.sector_of((id, page)),
                bio: self.bios.insert(work),
                group,
            }
        };
        self.unlock_page(id, page, wake);
        next
    }

    /// The sector of a page that has its place.
    pub(crate) fn sector_of(&self, (id, page): Place) -> u64 {
        let place = self.files[id.idx()].extents.map(page);
        let (sector, _) = place.unwrap_or_else(|| panic!("page {page} of {id:?} has no place"));
        sector
    }
}

impl<H: Host> PageCache<H> {
    /// Sleeps until nobody writes a page's buffer (`wait_on_buffer`).
    pub async fn wait_buffer(&self, id: FileId, page: u64) {
        self.wait_page(id, page, WaitFor::Buffer).await;
    }

    /// WaitOrder for all buffers of a run that are being written.
    pub async fn wait_buffers(&self, id: FileId, run: Range<u64>) {
        while let Some(page) = self.with(|s| {
            let file = s.file(id);
            [&file.buffers.locked, &file.writeback]
                .into_iter()
                .filter_map(|bits| bits.next_set(run.start, run.end))
                .min()
        }) {
            self.wait_buffer(id, page).await;
        }
    }

    /// Writes pages through their buffers, in order, and waits for all that are on
    /// their way then. `take` says what to do with each; so many are submitted at
    /// a time.
    pub async fn write_ordered(
        &self,
        data: Vec<(FileId, Range<u64>)>,
        chunk: usize,
        how: WaitOrder,
        flags: BioFlags,
        take: impl Fn(Place) -> Taken,
    ) {
        let mut batch: Vec<Place> = Vec::with_capacity(chunk);
        let mut waits: Vec<(FileId, Range<u64>)> = Vec::new();
        self.host.start_plug();
        for (id, run) in data {
            let mut page = run.start;
            while page < run.end {
                match take((id, page)) {
                    Taken::Clean => {}
                    Taken::InFlight => how.note(&mut waits, (id, page)),
                    Taken::Busy => {
                        self.submit_buffers(&mut batch, flags).await;
                        self.wait_buffer(id, page).await;
                        continue;
                    }
                    Taken::Write => {
                        batch.push((id, page));
                        how.note(&mut waits, (id, page));
                        if batch.len() == chunk {
                            self.submit_buffers(&mut batch, flags).await;
                        }
                    }
                }
                page += 1;
            }
        }
        self.submit_buffers(&mut batch, flags).await;
        self.host.finish_plug();
        for (id, run) in waits.into_iter().rev() {
            self.wait_buffers(id, run).await;
        }
    }

    /// Submits buffers that are locked for it, one bio each (`submit_bh`).
    pub async fn submit_buffers(&self, batch: &mut Vec<Place>, flags: BioFlags) {
        for (file, page) in batch.drain(..) {
            let (sector, bio) = self.with(|s| {
                s.stats.pages_written += 1;
                s.stats.write_bios += 1;
                let sector = s.sector_of((file, page));
                (sector, s.bios.insert(BioWork::Buffer { file, page }))
            });
            self.submit_sectors(Op::Write, flags, sector, PAGE_SECTORS as u32, bio)
                .await;
        }
    }

    /// Locks a dirty page that is about to be written through its buffer, and makes
    /// it clean ([`State::lock_for_write`]).
    pub fn lock_for_write(&self, id: FileId, page: u64) {
        self.with(|s| s.lock_for_write(id, page));
    }

    /// Writes a locked page, a bio for its buffer, and unlocks it
    /// (`block_write_full_page`). Returns whether it had to be put back: somebody
    /// else has its buffer.
    pub async fn write_full_page(
        &self,
        id: FileId,
        page: u64,
        flags: BioFlags,
        nonblocking: bool,
    ) -> bool {
        let mut next = FullPage::Busy;
        loop {
            self.waking(|s, wake| next = s.take_full_page(id, page, nonblocking, wake));
            match next {
                FullPage::Busy => self.wait_buffer(id, page).await,
                FullPage::PutBack => return true,
                FullPage::Clean => return false,
                FullPage::Write { sector, bio, group } => {
                    self.spend_writing(Op::Write, 1).await;
                    self.submit_bio(Bio {
                        group,
                        ..self.new_bio(Op::Write, flags, sector, PAGE_SECTORS as u32, bio)
                    })
                    .await;
                    return false;
                }
            }
        }
    }
}
