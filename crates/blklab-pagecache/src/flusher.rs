// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flusher thread of the device (2.6.32 and later).
//!
//! fs/fs-writeback.c of 2.6.32 (`bdi_writeback_task`, rounds of 1024 pages) and
//! of 3.7 (`wb_writeback`, slices by bandwidth). It does what was asked for
//! explicitly, then what has been dirty for long, then, above the background
//! limit, the rest. It does not look at congestion: it sleeps for requests like
//! any writer. Left out: several devices or superblocks, laptop mode, the
//! thread's end after five idle minutes.

use crate::cache::PageCache;
use crate::control::WriteControl;
use crate::features::{Flusher, InodeLists as ListRule};
use crate::file::FileId;
use crate::inode_lists::{End, List};
use crate::ops::Host;
use crate::state::flusher::Work;
use crate::state::{State, Superblock};
use blklab_types::Jiffies;

/// Slices are multiples of so many pages (`MIN_WRITEBACK_PAGES`, 4 MiB).
const SLICE_PAGES: u64 = 1024;

/// Pages that a processor counts on its own before others see them
/// (`BDI_STAT_BATCH` of one processor).
const UNSEEN_PAGES: u64 = 8;

/// Why the flusher writes (`wb_reason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Explicit,
    Periodic,
    Background,
}

/// One run over the dirty inodes.
#[derive(Clone, Copy, Debug)]
struct Run {
    reason: Reason,
    integrity: bool,
    left: i64,
    started: Jiffies,
}

impl<H: Host> PageCache<H> {
    /// Whether somebody writes in the background.
    pub(crate) fn background_runs(&self, s: &State) -> bool {
        match self.config.features.flusher {
            Flusher::Pdflush => s.flusher_busy,
            Flusher::PerDevice => s.flusher.in_progress(),
        }
    }

    /// Starts the flusher, as at boot.
    pub(crate) fn start_flusher(&self) {
        let task = self
            .host
            .spawn("flush", Box::pin(self.clone().flusher_thread()));
        let timer = self
            .host
            .spawn("flush_timer", Box::pin(self.clone().flusher_timer()));
        let now = self.host.jiffies();
        self.with(|s| {
            s.flusher.task = Some(task);
            s.flusher.timer = Some(timer);
            s.flusher.last_periodic = now;
        });
    }

    /// Asks for background writing, or with a budget for so many pages
    /// (`bdi_start_writeback`, `bdi_start_background_writeback`).
    pub(crate) fn ask_flusher(&self, pages: i64) {
        self.with(|s| {
            if pages <= 0 {
                s.flusher.background = true;
            } else if s.flusher.works.iter().all(|w| w.waiter.is_some()) {
                s.flusher.works.push_back(Work {
                    pages,
                    integrity: false,
                    waiter: None,
                });
            }
        });
        self.wake_flusher();
    }

    /// Has the flusher write all that is dirty, and sleeps until it did
    /// (`sync_inodes_sb`).
    pub(crate) async fn flush_and_wait(&self) {
        let me = self.host.current();
        let work = Work {
            pages: i64::MAX,
            integrity: true,
            waiter: Some(me),
        };
        self.with(|s| s.flusher.works.push_back(work));
        self.wake_flusher();
        let done = |s: &mut State| {
            let at = s.flusher.finished.iter().position(|t| *t == me);
            at.map(|i| s.flusher.finished.swap_remove(i)).is_some()
        };
        while !self.with(done) {
            self.host.suspend().await;
        }
    }

    /// The first page became dirty: a flusher that sleeps without a timer starts
    /// one (`bdi_wakeup_thread_delayed`).
    pub fn start_flusher_timer(&self) {
        if self.with(|s| s.flusher.untimed) {
            self.wake_flusher();
        }
    }

    fn wake_flusher(&self) {
        let idle = self.with(|s| std::mem::take(&mut s.flusher.idle));
        if let Some(task) = self.with(|s| s.flusher.task).filter(|_| idle) {
            self.host.wake(task);
        }
    }

    /// `bdi_writeback_task`; later the work `wb_workfn`.
    async fn flusher_thread(self) {
        loop {
            self.with(|s| s.flusher.running = true);
            self.flush_all().await;
            let more = self.with(|s| {
                s.flusher.running = false;
                s.flusher.in_progress()
            });
            if !more {
                self.flusher_sleep().await;
            }
        }
    }

    /// Everything there is to do (`wb_do_writeback`).
    async fn flush_all(&self) {
        let sliced = self.sliced();
        while let Some(work) = self.with(|s| s.flusher.works.pop_front()) {
            let run = self.run_of(Reason::Explicit, work.integrity, work.pages);
            self.flush(run).await;
            if let Some(waiter) = work.waiter {
                self.with(|s| s.flusher.finished.push(waiter));
                self.host.wake(waiter);
            }
        }
        if !sliced && self.with(|s| std::mem::take(&mut s.flusher.background)) {
            let run = self.run_of(Reason::Background, false, i64::MAX);
            self.flush(run).await;
        }
        self.flush_old().await;
        if sliced {
            self.with(|s| s.flusher.background = false);
            let run = self.run_of(Reason::Background, false, i64::MAX);
            self.flush(run).await;
        }
    }

    /// The periodic job, if it is due (`wb_check_old_data_flush`).
    async fn flush_old(&self) {
        let period = self.periodic_ticks();
        let now = self.host.jiffies();
        let pages = self.with(|s| {
            let due = period > 0 && now >= s.flusher.last_periodic.plus(period);
            if !due {
                return 0;
            }
            s.flusher.last_periodic = now;
            s.nr_dirty as i64 + s.files.len() as i64
        });
        if pages > 0 {
            let run = self.run_of(Reason::Periodic, false, pages);
            self.flush(run).await;
        }
    }

    fn periodic_ticks(&self) -> u64 {
        let hz = self.host.hz();
        hz.from_ms(self.config.dirty_writeback_centisecs.saturating_mul(10))
    }

    /// Sleeps until there is work or the periodic job is due.
    async fn flusher_sleep(&self) {
        let period = self.periodic_ticks();
        let when_clean = self.config.features.flusher_sleeps_when_clean;
        let untimed = self.with(|s| {
            let clean = [List::Dirty, List::Io, List::MoreIo].map(|l| s.inodes.is_empty(l));
            period == 0 || when_clean && clean == [true; 3]
        });
        if untimed {
            self.with(|s| s.flusher.untimed = true);
            self.until_woken().await;
            self.with(|s| s.flusher.untimed = false);
        }
        // What ended an untimed sleep may be the first dirty page alone.
        if period > 0 && !self.with(|s| s.flusher.in_progress()) {
            let due = self.host.jiffies().plus(period);
            let timer = self.with(|s| {
                s.flusher.due = Some(due);
                let idle = std::mem::take(&mut s.flusher.timer_idle);
                s.flusher.timer.filter(|_| idle)
            });
            if let Some(timer) = timer {
                self.host.wake(timer);
            }
            self.until_woken().await;
        }
    }

    async fn until_woken(&self) {
        self.with(|s| s.flusher.idle = true);
        while self.with(|s| s.flusher.idle) {
            self.host.suspend().await;
        }
    }

    /// Ends the flusher's timed sleeps. One that was cut short has left an
    /// earlier time behind, from which it is not far to the next one.
    async fn flusher_timer(self) {
        loop {
            let now = self.host.jiffies();
            match self.with(|s| s.flusher.due) {
                Some(due) if due > now => {
                    let span = self.host.hz().start_of(due).since(self.host.now());
                    self.host.sleep(span).await;
                }
                Some(_) => {
                    self.with(|s| s.flusher.due = None);
                    self.wake_flusher();
                }
                None => {
                    self.with(|s| s.flusher.timer_idle = true);
                    self.host.suspend().await;
                }
            }
        }
    }

    fn sliced(&self) -> bool {
        self.config.features.inode_lists == ListRule::Slices
    }

    fn run_of(&self, reason: Reason, integrity: bool, left: i64) -> Run {
        Run {
            reason,
            integrity,
            left,
            started: self.host.jiffies(),
        }
    }

    /// `wb_writeback`.
    async fn flush(&self, mut run: Run) {
        let plugs = self.config.features.flusher_plugs_rounds;
        if plugs {
            self.host.start_plug();
        }
        if self.sliced() {
            self.flush_slices(&mut run).await;
        } else {
            self.flush_rounds(&mut run).await;
        }
        if plugs {
            self.host.finish_plug();
        }
    }

    /// Whether the run has no reason to go on.
    fn is_over(&self, run: &Run) -> bool {
        self.with(|s| {
            let yields = self.sliced() && run.reason != Reason::Explicit;
            let enough = run.reason == Reason::Background && !self.above_background(s);
            run.left <= 0 || enough || yields && !s.flusher.works.is_empty()
        })
    }

    /// Whether there is reason for background writing (`over_bground_thresh`):
    /// from 3.2 on also if the device has more than its share of the limit.
    fn above_background(&self, s: &mut State) -> bool {
        let limit = s.limits.background;
        if !self.sliced() {
            return s.nr_dirty >= limit;
        }
        if s.nr_dirty > limit {
            return true;
        }
        let now = self.host.jiffies();
        s.wbs.groups().any(|group| {
            let seen = s.nr_dirty_of(group) / UNSEEN_PAGES * UNSEEN_PAGES;
            seen > s.share_of(group, limit, now)
        })
    }

    /// Inodes that became dirty later are not for this run.
    fn older_than(&self, run: &Run) -> i64 {
        let hz = self.host.hz();
        let now = self.host.jiffies().0 as i64;
        match run.reason {
            Reason::Explicit => run.started.0 as i64,
            Reason::Background => now,
            Reason::Periodic => {
                let expire = hz.from_ms(self.config.dirty_expire_centisecs.saturating_mul(10));
                now - i64::try_from(expire).unwrap_or(i64::MAX / 2)
            }
        }
    }

    fn control_of(run: &Run, pages: u64) -> WriteControl {
        WriteControl {
            integrity: run.integrity,
            background: run.reason != Reason::Explicit,
            range: run.integrity.then_some(0..u64::MAX),
            ..WriteControl::background(pages)
        }
    }

    /// Rounds over all inodes (2.6.32 to 3.1; `writeback_inodes_wb`).
    async fn flush_rounds(&self, run: &mut Run) {
        let budget = self.config.max_writeback_pages;
        let older_than = (run.reason == Reason::Periodic).then(|| self.older_than(run));
        while !self.is_over(run) {
            let mut control = WriteControl {
                older_than,
                ..Self::control_of(run, budget)
            };
            self.write_inodes(&mut control, false).await;
            let wrote = control.written(budget);
            run.left -= wrote as i64;
            if control.nr_to_write <= 0 {
                continue;
            }
            if !control.more_io {
                return;
            }
            if wrote == 0 && !self.wait_for_another_turn().await {
                return;
            }
        }
    }

    /// Slices of single inodes (3.2 and later; `queue_io`, `writeback_sb_inodes`).
    async fn flush_slices(&self, run: &mut Run) {
        while !self.is_over(run) {
            let older_than = self.older_than(run);
            self.with(|s| {
                if s.inodes.is_empty(List::Io) {
                    s.queue_io(Superblock::Files, ListRule::Slices, Some(older_than));
                }
            });
            let progress = self.write_slices(run).await;
            self.update_bandwidth(run.started);
            if !progress && !self.wait_for_another_turn().await {
                return;
            }
        }
    }

    /// Nothing was written: sleeps until an inode that is being written by
    /// somebody else is free. False if there is none.
    async fn wait_for_another_turn(&self) -> bool {
        let Some(id) = self.with(|s| s.inodes.oldest(List::MoreIo)) else {
            return false;
        };
        self.wait_synced(id).await;
        true
    }

    /// Writes inodes from the io list for a tenth of a second
    /// (`writeback_sb_inodes`). Returns whether anything came of it.
    async fn write_slices(&self, run: &mut Run) -> bool {
        let start = self.host.jiffies();
        let tenth = u64::from(self.host.hz().0) / 10;
        let mut progress = false;
        while let Some(id) = self.with(|s| s.inodes.oldest(List::Io)) {
            if self.with(|s| s.file(id).syncing) {
                self.pass_over(id, run).await;
                continue;
            }
            let slice = self.slice_pages(id, run);
            let mut control = Self::control_of(run, slice);
            self.write_inode(id, &mut control).await;
            let wrote = control.written(slice);
            run.left = run.left.saturating_sub(wrote as i64);
            progress |= wrote > 0 || self.with(|s| !s.file(id).inode_dirty);
            let late = self.host.jiffies() > start.plus(tenth);
            if progress && (late || run.left <= 0) {
                break;
            }
        }
        progress
    }

    /// Somebody else writes the inode: an integrity run sleeps until it is free,
    /// others come back to it (`requeue_io`).
    async fn pass_over(&self, id: FileId, run: &Run) {
        if run.integrity {
            self.wait_synced(id).await;
        } else {
            self.with(|s| s.inodes.put(id, List::MoreIo, End::Newest));
        }
    }

    /// Pages of one inode's turn: what the device writes in half a second
    /// (`writeback_chunk_size`).
    fn slice_pages(&self, id: FileId, run: &Run) -> u64 {
        if run.integrity {
            return i64::MAX as u64;
        }
        self.with(|s| {
            let avg_write = s.wb_of(id).bandwidth.avg_write;
            slice(avg_write, s.dirty_limit_follower, run.left)
        })
    }
}

/// Half a second's bandwidth, an eighth of the dirty limit or what is left of
/// the job, rounded to slices upwards.
fn slice(avg_write: u64, dirty_limit: u64, left: i64) -> u64 {
    let pages = (avg_write / 2)
        .min(dirty_limit / 8)
        .min(left.unsigned_abs());
    (pages + SLICE_PAGES) / SLICE_PAGES * SLICE_PAGES
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn slices_are_half_a_second_of_bandwidth_in_whole_steps() {
        assert_eq!(slice(25_600, 200_000, i64::MAX), 13_312);
        assert_eq!(slice(25_600, 40_000, i64::MAX), 5_120);
        assert_eq!(slice(25_600, 200_000, 10), 1_024);
        assert_eq!(slice(0, 200_000, i64::MAX), 1_024);
        assert_eq!(slice(2_048, 200_000, i64::MAX), 2_048);
    }
}
