// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handle that tasks use: sleeping on pages, spending time, submitting runs.

use crate::config::Config;
use crate::control::BATCH;
use crate::error::FsError;
use crate::features::Readahead;
use crate::file::{Fd, FileId, OpenFile, WaitFor};
use crate::fs_traits::FsTraits;
use crate::host::Runtime;
use crate::layout::PageRun;
use crate::state::sleeps::Sleep;
use crate::state::{BioWork, State};
use crate::stats::{Stats, Usage};
use blklab_types::{Bio, BioFlags, BioKey, Completion, Op, PAGE_SECTORS, Span, TaskId};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// The page cache of a machine with one device. Clones are handles to the
/// same cache.
pub struct PageCache<H: Runtime> {
    /// The machine around it.
    pub host: H,
    /// The settings.
    pub config: Rc<Config>,
    pub(crate) filesystem: Rc<H::Filesystem>,
    /// What is true of that.
    pub(crate) traits: FsTraits,
    state: Rc<RefCell<State>>,
}

impl<H: Runtime> Clone for PageCache<H> {
    fn clone(&self) -> PageCache<H> {
        PageCache {
            host: self.host.clone(),
            config: Rc::clone(&self.config),
            filesystem: Rc::clone(&self.filesystem),
            traits: self.traits,
            state: Rc::clone(&self.state),
        }
    }
}

/// The control group of a bio that its task is charged for ([`Bio::group`]).
const OF_ITS_TASK: u16 = 0;

impl<H: Runtime> PageCache<H> {
    /// Its parts, put together.
    pub(crate) fn from_parts(
        host: H,
        config: Config,
        filesystem: H::Filesystem,
        traits: FsTraits,
        state: State,
    ) -> PageCache<H> {
        PageCache {
            host,
            config: Rc::new(config),
            filesystem: Rc::new(filesystem),
            traits,
            state: Rc::new(RefCell::new(state)),
        }
    }

    /// Runs `f` on the shared state. Not re-entrant: `f` must not use the
    /// handle or the host.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.borrow_mut())
    }

    /// Runs `f` and wakes the tasks that it names, in order.
    #[inline]
    pub fn waking(&self, f: impl FnOnce(&mut State, &mut Vec<TaskId>)) {
        let mut state = self.state.borrow_mut();
        let mut wake = std::mem::take(&mut state.wakeups);
        f(&mut state, &mut wake);
        if !wake.is_empty() {
            drop(state);
            for task in &wake {
                self.host.wake(*task);
            }
            wake.clear();
            state = self.state.borrow_mut();
        }
        state.wakeups = wake;
    }

    pub(crate) fn opened(&self, fd: Fd) -> Result<OpenFile, FsError> {
        self.with(|s| s.open.get(fd.0 as usize).copied().ok_or(FsError::BadHandle))
    }

    // Figures ----------------------------------------------------------------

    /// Counters since the start.
    pub fn stats(&self) -> Stats {
        self.with(|s| s.stats.clone())
    }

    /// Page counts now.
    pub fn usage(&self) -> Usage {
        let capacity = self.config.cache_pages();
        self.with(|s| Usage {
            cached: s.nr_cached,
            dirty: s.nr_dirty,
            writeback: s.nr_writeback,
            free: capacity.saturating_sub(s.nr_cached),
            background_limit: s.limits.background,
            dirty_limit: s.limits.dirty,
            pdflush_threads: s.pdflush.threads(),
        })
    }

    /// Bios submitted and not ended.
    pub fn bios_in_flight(&self) -> usize {
        self.with(|s| s.bios.len())
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    // Sleeping ---------------------------------------------------------------

    /// Sleeps until nobody holds the page's lock (`wait_on_page_locked`).
    pub async fn wait_unlocked(&self, id: FileId, page: u64) {
        self.wait_page(id, page, WaitFor::Unlock).await;
    }

    /// Sleeps until the page's write has ended (`wait_on_page_writeback`).
    pub async fn wait_writeback(&self, id: FileId, page: u64) {
        self.wait_page(id, page, WaitFor::Writeback).await;
    }

    pub(crate) async fn wait_page(&self, id: FileId, page: u64, what: WaitFor) {
        if self.with(|s| s.file(id).must_wait(page, what)) {
            let metadata = self.with(|s| s.file(id).metadata);
            let sleep = match (what, metadata) {
                (WaitFor::Unlock, true) => Sleep::MetadataRead,
                (WaitFor::Unlock, false) => Sleep::Page,
                (WaitFor::Writeback | WaitFor::Buffer, true) => Sleep::MetadataWrite,
                (WaitFor::Writeback | WaitFor::Buffer, false) => Sleep::Data,
            };
            self.sleeping(sleep, self.sleep_on_page(id, page, what))
                .await;
        }
    }

    async fn sleep_on_page(&self, id: FileId, page: u64, what: WaitFor) {
        let me = self.host.current();
        while self.with(|s| s.file(id).must_wait(page, what)) {
            self.host.unplug();
            // Registered after the unplug and before the sleep: no wake is
            // lost, even if the unplug brings the end about.
            let waits = self.with(|s| s.file(id).wait(page, what, me));
            if waits {
                self.host.suspend_for_io().await;
            }
        }
    }

    /// Waits for the writes of a run that are in flight, in ascending order
    /// (`wait_on_page_writeback_range`, later `filemap_fdatawait_range`).
    pub async fn wait_writeback_run(&self, id: FileId, run: Range<u64>) {
        let mut page = run.start;
        while let Some(next) = self.with(|s| s.file(id).writeback.next_set(page, run.end)) {
            self.wait_writeback(id, next).await;
            page = next + 1;
        }
    }

    /// Gives up the lock of a page.
    pub(crate) fn unlock_page(&self, id: FileId, page: u64) {
        self.waking(|s, wake| s.unlock_page(id, page, wake));
    }

    /// Takes the inode's mutex (`i_mutex`, later `i_rwsem`).
    pub async fn lock_inode(&self, id: FileId) {
        let me = self.host.current();
        if self.with(|s| s.file(id).mutex.lock_or_queue(me)) {
            return;
        }
        self.sleeping(Sleep::Mutex, async {
            loop {
                self.host.suspend().await;
                if self.with(|s| s.file(id).mutex.granted(me)) {
                    return;
                }
            }
        })
        .await;
    }

    /// Gives up the inode's mutex.
    pub fn unlock_inode(&self, id: FileId) {
        self.waking(|s, wake| wake.extend(s.file(id).mutex.unlock()));
    }

    /// Spends processor time.
    pub async fn spend(&self, cost: Span) {
        if cost > Span::ZERO {
            self.host.work(cost, 1).await;
        }
    }

    /// Spends processor time with so many places where others may go first
    /// (`cond_resched`).
    pub(crate) async fn spend_in_pieces(&self, cost: Span, pieces: u64) {
        if cost > Span::ZERO {
            self.host.work(cost, pieces).await;
        }
    }

    /// Spends processor time for pages that are written to the disk.
    pub(crate) async fn spend_writing(&self, op: Op, pages: u64) {
        let each = self.config.writeout_cost.ns();
        if op == Op::Write && each > 0 {
            let cost = Span(each.saturating_mul(pages));
            self.spend_in_pieces(cost, pages.div_ceil(BATCH)).await;
        }
    }

    /// Spends processor time of a read, between two sleeps for pages.
    pub(crate) async fn spend_reading(&self, cost: Span) {
        if cost > Span::ZERO {
            self.host.compute(cost).await;
        }
    }

    // Bios -------------------------------------------------------------------

    /// Submits one bio for a contiguous run of pages.
    pub async fn submit(&self, op: Op, flags: BioFlags, id: FileId, run: PageRun) {
        let nr_sectors = (run.pages * PAGE_SECTORS) as u32;
        let segments = segments(self.config.adjacent_pages_percent, run.sector, nr_sectors);
        self.submit_segments(op, flags, id, run, segments).await;
    }

    /// The same, of pages that lie in so many segments.
    pub(crate) async fn submit_segments(
        &self,
        op: Op,
        flags: BioFlags,
        id: FileId,
        run: PageRun,
        segments: u16,
    ) {
        self.spend_writing(op, run.pages).await;
        let (bio, group) = self.with(|s| {
            let pages = run.start..run.start + run.pages;
            let group = match op {
                Op::Read => {
                    s.stats.pages_read += run.pages;
                    s.stats.read_bios += 1;
                    OF_ITS_TASK
                }
                _ => {
                    s.stats.pages_written += run.pages;
                    s.stats.write_bios += 1;
                    s.file(id).charged_to()
                }
            };
            let bio = s.bios.insert(BioWork::Pages {
                op,
                file: id,
                run: pages,
            });
            (bio, group)
        });
        let nr_sectors = (run.pages * PAGE_SECTORS) as u32;
        self.submit_bio(Bio {
            segments,
            group,
            ..self.new_bio(op, flags, run.sector, nr_sectors, bio)
        })
        .await;
    }

    /// Submits a bio for cached sectors of the disk.
    pub async fn submit_sectors(
        &self,
        op: Op,
        flags: BioFlags,
        sector: u64,
        nr_sectors: u32,
        bio: BioKey,
    ) {
        self.spend_writing(op, u64::from(nr_sectors) / PAGE_SECTORS)
            .await;
        self.submit_bio(self.new_bio(op, flags, sector, nr_sectors, bio))
            .await;
    }

    /// A bio of the running task, for sectors of the disk.
    #[inline(always)]
    pub(crate) fn new_bio(
        &self,
        op: Op,
        flags: BioFlags,
        sector: u64,
        nr_sectors: u32,
        bio: BioKey,
    ) -> Bio {
        Bio {
            op,
            flags,
            sector,
            nr_sectors,
            segments: segments(self.config.adjacent_pages_percent, sector, nr_sectors),
            completion: Completion::Submitter(bio),
            task: self.host.current(),
            ..Bio::default()
        }
    }

    /// Submits a bio, and sleeps for its request if none is free.
    pub(crate) async fn submit_bio(&self, bio: Bio) {
        if let Some(pending) = self.host.begin_bio(bio) {
            self.sleep_for_request(pending).await;
        }
    }

    /// Whether read-ahead is the old one with two windows.
    pub(crate) fn two_windows(&self) -> bool {
        self.config.features.readahead == Readahead::TwoWindow
    }
}

impl PageRun {
    /// How many more pages fit behind, if `page` at `sector` continues the
    /// run.
    pub(crate) fn room(&self, page: u64, sector: u64, bio_pages: u64) -> u64 {
        let follows =
            self.start + self.pages == page && self.sector + self.pages * PAGE_SECTORS == sector;
        if follows { bio_pages - self.pages } else { 0 }
    }
}

/// Segments of a bio of whole pages. Which of them lie side by side in memory
/// is taken from their sectors: the same in every run.
pub(crate) fn segments(adjacent_percent: u32, sector: u64, nr_sectors: u32) -> u16 {
    let most = Bio::segments_of_pages(nr_sectors);
    let joins = |i: &u16| {
        let page = sector / PAGE_SECTORS + u64::from(*i);
        let mixed = (page ^ page >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed % 100 < u64::from(adjacent_percent)
    };
    match adjacent_percent {
        0 => most,
        _ => most - (1..most).filter(joins).count() as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::segments;

    #[test]
    fn pages_side_by_side_are_one_segment() {
        assert_eq!(segments(0, 800, 248), 31);
        assert_eq!(segments(100, 800, 248), 1);
        assert_eq!(segments(35, 800, 8), 1);
        let some: u32 = (0..1000)
            .map(|i| u32::from(segments(35, i * 376, 376)))
            .sum();
        // 47 pages: 46 * 0.65 + 1.
        assert!((30_000..31_900).contains(&some), "{some}");
    }
}
