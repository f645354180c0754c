// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared state of the page cache, and the accounting of page states.
//!
//! A page counts as dirty or as under write-back, never as both, unless it is
//! dirtied again while its write is in flight. Functions here never sleep.

pub(crate) mod aio;
mod conservation;
pub(crate) mod flusher;
pub(crate) mod pdflush;
pub(crate) mod sleeps;
pub(crate) mod task_dirty;
pub(crate) mod wb;

use self::aio::{AioContext, Deferred, Direct, Workers};
use self::flusher::DeviceFlusher;
use self::pdflush::Pool;
use self::sleeps::Account;
use self::task_dirty::TaskDirty;
use self::wb::Wbs;
use crate::bios::Bios;
use crate::config::Config;
use crate::features::{Ageing, Flusher, InodeLists as ListRule, TaskShare, Throttle};
use crate::file::{Fd, File, FileId, OpenFile, WaitFor};
use crate::inode_lists::{DirtyInodes, End, List};
use crate::limits::{self, Limits};
use crate::lru::Lru;
use crate::proportion::{Events, Share, Timed, period_shift};
use crate::slab::Slab;
use crate::stats::Stats;
use blklab_types::{Hz, Jiffies, Op, TaskId};
use std::ops::Range;

/// Whose inodes: those of the filesystem are written first, as the newer mount,
/// and what is left of a budget goes to the device's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Superblock {
    Files,
    Devices,
}

/// What a bio in flight completes.
#[derive(Clone, Debug)]
pub enum BioWork {
    /// Pages of a file, read or written back.
    Pages {
        /// Read or write.
        op: Op,
        /// Of which file.
        file: FileId,
        /// Which pages.
        run: Range<u64>,
    },
    /// Part of a direct I/O, by key.
    Direct(u64),
    /// A page's buffer, written by the journal.
    Buffer {
        /// Of which file.
        file: FileId,
        /// Which page.
        page: u64,
    },
    /// Something that a task waits for.
    Waited(TaskId),
    /// One of several bios that count together, by key ([`Group`]).
    Group(u64),
    /// Something that the filesystem keeps account of, by a number of its own.
    Filesystem(u64),
}

/// Bios whose common end matters.
#[derive(Clone, Debug)]
pub struct Group {
    /// Bios that have not ended, and one more while others may follow.
    pub left: u32,
    /// One of them failed.
    pub failed: bool,
    /// What their end brings about.
    pub then: GroupEnd,
}

/// What the last bio of a group brings about.
#[derive(Clone, Debug)]
pub enum GroupEnd {
    /// A task that sleeps for it goes on.
    Wake(TaskId),
    /// Pages of a file are on the disk. The filesystem is told if it gave the
    /// group a number.
    Written {
        /// Of which file.
        file: FileId,
        /// Which pages.
        run: Range<u64>,
        /// The filesystem's number.
        number: Option<u64>,
    },
}

/// The device's limit for a task, and what counts against it, in pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// Dirty pages that could be written.
    pub dirty: u64,
    /// Dirty pages and pages under write-back.
    pub pages: u64,
    /// The limit of `pages`.
    pub(crate) limit: u64,
    /// Below it nobody is held back.
    pub(crate) freerun: u64,
    /// Background work starts above it.
    pub(crate) background: u64,
}

/// Everything that tasks share.
#[derive(Debug)]
pub struct State {
    /// All files, by number.
    pub files: Vec<File>,
    /// Descriptors, by number.
    pub open: Vec<OpenFile>,
    /// Descriptors that were closed.
    pub(crate) free_fds: Vec<Fd>,
    /// The directory at the top.
    pub root: FileId,
    /// The pages of the device that hold a filesystem's metadata.
    pub(crate) device: Option<FileId>,
    /// Bios that count together.
    pub groups: Slab<Group>,
    /// Pages in the order in which memory is taken from them.
    pub lru: Lru,
    /// Pages in memory.
    pub nr_cached: u64,
    /// Dirty pages.
    pub nr_dirty: u64,
    pub(crate) nr_writeback: u64,
    pub(crate) limits: Limits,
    completions: Events,
    device_share: Share,
    /// The same of each part of the write-back, where they age by time.
    timed_shares: Option<(Timed, Hz)>,
    pub(crate) wbs: Wbs,
    /// Follows the dirty limit slowly downwards (`global_dirty_limit`).
    pub(crate) dirty_limit_follower: u64,
    pub(crate) task_dirties: Vec<TaskDirty>,
    dirtyings: Events,
    task_shares: Vec<Share>,
    pub(crate) ratelimit: u64,
    /// Pages dirtied since the last check, by processor.
    pub(crate) dirtied: Vec<u64>,
    /// Dirty inodes of files.
    pub inodes: DirtyInodes,
    /// The same of the superblock of block devices.
    pub(crate) device_inodes: DirtyInodes,
    /// Dirty inodes stand on the lists of their device (2.6.32), whatever
    /// their superblock.
    lists_by_device: bool,
    /// A pdflush thread works on the device.
    pub(crate) flusher_busy: bool,
    pub(crate) pdflush: Pool,
    pub(crate) flusher: DeviceFlusher,
    /// Bios that end before pages are counted again, where they are.
    ends_to_count: usize,
    /// Bios in flight, and what they complete.
    pub bios: Bios<BioWork>,
    pub(crate) directs: Slab<Direct>,
    pub(crate) aio: Vec<AioContext>,
    pub(crate) workers: Workers,
    /// Counters since the start.
    pub stats: Stats,
    /// Where each task slept.
    pub(crate) accounts: Vec<Account>,
    /// Room for tasks to wake, kept to save allocations.
    pub(crate) wakeups: Vec<TaskId>,
}

impl State {
    /// Of an empty cache.
    pub fn new(config: &Config) -> State {
        let memory = config.memory();
        let limits = Limits::new(
            &config.features,
            memory,
            config.dirty_ratio,
            config.dirty_background_ratio,
        )
        .with_bytes(config.dirty_bytes, config.dirty_background_bytes);
        let shift = period_shift(u64::from(config.dirty_ratio) * (memory.total_pages + 1) / 100);
        let ratelimit = match config.features.throttle {
            Throttle::SleepOnly => limits::ratelimit_of_limit(limits.dirty, config.cpus),
            _ => limits::ratelimit_pages(memory.total_pages, config.cpus),
        };
        State {
            files: Vec::new(),
            open: Vec::new(),
            free_fds: Vec::new(),
            root: FileId(0),
            device: None,
            groups: Slab::default(),
            lru: Lru::default(),
            nr_cached: 0,
            nr_dirty: 0,
            nr_writeback: 0,
            limits,
            completions: Events::new(shift),
            device_share: Share::default(),
            timed_shares: (config.features.ageing == Ageing::Time)
                .then(|| (Timed::new(), Hz::default())),
            wbs: Wbs::new(),
            dirty_limit_follower: limits.dirty,
            task_dirties: Vec::new(),
            dirtyings: Events::new(shift),
            task_shares: Vec::new(),
            ratelimit,
            dirtied: vec![0; config.cpus as usize],
            inodes: DirtyInodes::default(),
            device_inodes: DirtyInodes::default(),
            lists_by_device: config.features.flusher == Flusher::PerDevice,
            flusher_busy: false,
            pdflush: Pool::default(),
            flusher: DeviceFlusher::default(),
            ends_to_count: 0,
            bios: Bios::default(),
            directs: Slab::default(),
            aio: Vec::new(),
            workers: Workers::default(),
            stats: Stats::default(),
            accounts: Vec::new(),
            wakeups: Vec::new(),
        }
    }

    /// A file.
    pub fn file(&mut self, id: FileId) -> &mut File {
        &mut self.files[id.idx()]
    }

    /// The number of the file that is made next.
    pub fn next_file(&self) -> FileId {
        FileId(self.files.len() as u32)
    }

    /// Adds the file of the device's pages that hold the volume's metadata.
    pub fn add_device(&mut self, mut file: File) -> FileId {
        let id = self.next_file();
        file.metadata = true;
        self.files.push(file);
        self.device = Some(id);
        id
    }

    /// The file of the device's pages that hold the volume's metadata.
    pub fn metadata_file(&self) -> FileId {
        self.device.expect("the volume has made the file at mount")
    }

    /// Adds pages to the cache, locked, for reading into (`add_to_page_cache_lru`).
    pub fn add_locked(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        self.nr_cached += file.cached.set(run.clone());
        file.locked.set(run.clone());
        self.lru.add(id, run);
    }

    /// Pages of a hole are zeroes: nothing is read.
    pub(crate) fn add_zeroes(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        self.nr_cached += file.cached.set(run.clone());
        file.uptodate.set(run.clone());
        self.lru.add(id, run);
    }

    /// A reader or writer used cached pages (`mark_page_accessed`).
    pub fn touch(&mut self, id: FileId, run: Range<u64>) {
        self.lru.touch(&mut self.files[id.idx()], run);
    }

    /// Pages of a file have been filled in memory: adds those that are missing
    /// to the cache.
    pub fn cache_whole(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        let mut at = run.start;
        while at < run.end {
            let hole = file.cached.next_clear(at, run.end);
            at = file.cached.next_set(hole, run.end).unwrap_or(run.end);
            if hole < at {
                self.nr_cached += file.cached.set(hole..at);
                self.lru.add(id, hole..at);
            }
        }
        file.uptodate.set(run.clone());
        self.lru.touch(file, run);
    }

    /// Pages of a file have been written to in memory: adds them to the cache if
    /// need be and makes them dirty (`set_page_dirty`, `__mark_inode_dirty`).
    /// Returns how many were clean.
    pub fn dirty(&mut self, id: FileId, run: Range<u64>, now: Jiffies) -> u64 {
        self.cache_whole(id, run.clone());
        let file = &mut self.files[id.idx()];
        let new = file.dirty.set(run);
        self.nr_dirty += new;
        self.count_dirtied(id, new);
        let all = self.nr_dirty + self.nr_writeback;
        self.stats.dirty_or_writeback_max = self.stats.dirty_or_writeback_max.max(all);
        let file = &mut self.files[id.idx()];
        if new > 0 && !file.inode_dirty {
            file.inode_dirty = true;
            if !file.syncing {
                file.dirtied_when = now;
                self.lists_of(id).put(id, List::Dirty, End::Newest);
            }
        }
        new
    }

    /// Counts pages that a task made dirty: for its share of the limit
    /// (`task_dirty_inc`), or for its pauses (`nr_dirtied`).
    pub fn count_dirtying(&mut self, config: &Config, task: TaskId, pages: u64, mapped: bool) {
        let counts = match config.features.task_share {
            TaskShare::None => false,
            TaskShare::Mapped => mapped,
            TaskShare::All => true,
        };
        if counts {
            let share = share_of(&mut self.task_shares, task);
            self.dirtyings.add(share, pages);
        }
        if config.features.throttle == Throttle::SleepOnly {
            self.task_dirty(task).nr_dirtied += pages;
            self.dirtied[task.idx() % config.cpus as usize] += pages;
        }
    }

    /// Dirty pages are on their way into a bio (`clear_page_dirty_for_io`,
    /// `set_page_writeback`).
    pub fn start_writeback(&mut self, id: FileId, run: Range<u64>) {
        let file = &mut self.files[id.idx()];
        self.nr_dirty -= file.dirty.clear(run.clone());
        // The marker and the mark of reclaim are one bit of the page.
        file.marker.clear(run.clone());
        file.towrite.clear(run.clone());
        let started = file.writeback.set(run.clone());
        conservation::all_of(&run, started, "written twice at a time");
        self.nr_writeback += started;
    }

    /// A write of pages has ended (`end_page_writeback`). A failed one is
    /// remembered for fsync.
    pub fn end_writeback(
        &mut self,
        id: FileId,
        run: &Range<u64>,
        failed: bool,
        wake: &mut Vec<TaskId>,
    ) {
        let file = &mut self.files[id.idx()];
        let pages = file.writeback.clear(run.clone());
        conservation::all_of(run, pages, "written without having begun");
        self.nr_writeback -= pages;
        let group = file.charged_to();
        self.wbs.group(group).nr_written += pages;
        match &mut self.timed_shares {
            Some((timed, _)) => timed.add(usize::from(group), pages),
            None => self.completions.add(&mut self.device_share, pages),
        }
        file.write_error |= failed;
        file.take_waiters(run, WaitFor::Writeback, wake);
        file.take_waiters(run, WaitFor::Buffer, wake);
    }

    /// Leaves something to a worker, which calls [`Ops::work`](crate::Ops::work) with
    /// this number; [`PageCache::send_workers`](crate::PageCache::send_workers) sends
    /// it.
    pub fn add_filesystem_work(&mut self, work: u64) {
        self.workers.add(Deferred::Filesystem(work));
    }

    /// The journal's write of a page's buffer has ended.
    pub(crate) fn end_buffer(
        &mut self,
        id: FileId,
        page: u64,
        failed: bool,
        wake: &mut Vec<TaskId>,
    ) {
        let run = page..page + 1;
        let file = &mut self.files[id.idx()];
        file.buffers.locked.clear(run.clone());
        file.write_error |= failed;
        file.take_waiters(&run, WaitFor::Buffer, wake);
    }

    /// A dirty page that cannot be written is lost (`ENOSPC` at write-out).
    pub fn lose_page(&mut self, id: FileId, page: u64) {
        let file = &mut self.files[id.idx()];
        self.nr_dirty -= file.dirty.clear(page..page + 1);
        file.towrite.clear(page..page + 1);
        file.write_error = true;
    }

    /// Counts pages whose write-out has ended for the device's share
    /// (`__bdi_writeout_inc`).
    pub(crate) fn count_completions(&mut self, pages: u64) {
        self.completions.add(&mut self.device_share, pages);
    }

    /// A read of pages has ended.
    pub fn end_read(&mut self, id: FileId, run: &Range<u64>, failed: bool, wake: &mut Vec<TaskId>) {
        let file = &mut self.files[id.idx()];
        if !failed {
            file.uptodate.set(run.clone());
        }
        let read = file.locked.clear(run.clone());
        conservation::all_of(run, read, "read without their locks");
        file.take_waiters(run, WaitFor::Unlock, wake);
    }

    /// Drops the clean pages of a run (`invalidate_mapping_pages`).
    pub(crate) fn drop_clean(&mut self, id: FileId, run: Range<u64>) -> u64 {
        let dropped = self.lru.drop_clean(id, &mut self.files[id.idx()], run);
        self.nr_cached -= dropped;
        dropped
    }

    /// The tick rate, which proportions by time need.
    pub(crate) fn set_hz(&mut self, hz: Hz) {
        if let Some((_, known)) = &mut self.timed_shares {
            *known = hz;
        }
    }

    /// What the throttle compares for a task (up to 3.1).
    pub(crate) fn check(&mut self, config: &Config, task: TaskId) -> Check {
        let pages = self.nr_dirty + self.nr_writeback;
        let (limit, freerun) = match config.features.throttle {
            Throttle::Global => (self.limits.dirty, 0),
            Throttle::PerDevice | Throttle::SleepOnly => {
                let share = self.completions.fraction(&mut self.device_share);
                let device = self.limits.of_device(share, pages, pages);
                let part = self
                    .dirtyings
                    .fraction(share_of(&mut self.task_shares, task));
                (limits::of_task(device, part), self.limits.freerun())
            }
        };
        Check {
            dirty: self.nr_dirty,
            pages,
            limit,
            freerun,
            background: self.limits.background,
        }
    }

    /// Chooses inodes for a run of write-back (`move_expired_inodes`): those
    /// waiting for another turn come first, then what was left, then the dirty ones
    /// from the oldest on, up to `older_than`.
    pub(crate) fn queue_io(&mut self, sb: Superblock, rule: ListRule, older_than: Option<i64>) {
        let lists = self.superblock(sb);
        while let Some(inode) = lists.newest(List::MoreIo) {
            lists.put(inode, List::Io, End::Oldest);
        }
        while let Some(inode) = self.superblock(sb).oldest(List::Dirty) {
            let young = older_than
                .is_some_and(|limit| self.files[inode.idx()].dirtied_when.0 as i64 > limit);
            if young && rule != ListRule::Two {
                break;
            }
            self.superblock(sb).put(inode, List::Io, End::Newest);
        }
    }

    /// The dirty inodes of a superblock.
    pub(crate) fn superblock(&mut self, sb: Superblock) -> &mut DirtyInodes {
        match sb {
            Superblock::Files => &mut self.inodes,
            Superblock::Devices => &mut self.device_inodes,
        }
    }

    /// The lists that an inode stands on.
    pub fn lists_of(&mut self, id: FileId) -> &mut DirtyInodes {
        let device = self.device == Some(id);
        self.superblock(if device && !self.lists_by_device {
            Superblock::Devices
        } else {
            Superblock::Files
        })
    }

    /// A pass could not write pages of an inode: it waits behind the other
    /// dirty ones (fs/fs-writeback.c, `generic_sync_sb_inodes`, 2.6.16 and
    /// later).
    pub(crate) fn put_behind(&mut self, id: FileId, rule: ListRule, now: Jiffies) {
        if !self.files[id.idx()].inode_dirty {
            return;
        }
        match rule {
            ListRule::Two => self.lists_of(id).put(id, List::Dirty, End::Newest),
            ListRule::Three | ListRule::Slices => self.redirty(id, now),
        }
    }

    /// Puts an inode back among the dirty ones (`redirty_tail`). Its time is
    /// renewed only if the list would be out of order otherwise.
    pub(crate) fn redirty(&mut self, id: FileId, now: Jiffies) {
        if let Some(newest) = self.lists_of(id).newest(List::Dirty)
            && self.files[id.idx()].dirtied_when < self.files[newest.idx()].dirtied_when
        {
            self.files[id.idx()].dirtied_when = now;
        }
        self.lists_of(id).put(id, List::Dirty, End::Newest);
    }
}

fn share_of(shares: &mut Vec<Share>, task: TaskId) -> &mut Share {
    if shares.len() <= task.idx() {
        shares.resize(task.idx() + 1, Share::default());
    }
    &mut shares[task.idx()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::rules_of;

    #[test]
    fn inodes_waiting_for_another_turn_come_first_and_young_ones_stay() {
        let mut s = State::new(&Config::new(rules_of("2.6.28"), 1 << 30));
        for (i, when) in [1, 2, 3, 4, 5, 6].into_iter().enumerate() {
            s.files.push(File::new(4096));
            s.dirty(FileId(i as u32), 0..1, Jiffies(when));
        }
        s.inodes.put(FileId(4), List::Io, End::Newest);
        s.inodes.put(FileId(1), List::MoreIo, End::Newest);
        s.inodes.put(FileId(0), List::MoreIo, End::Newest);
        s.queue_io(Superblock::Files, ListRule::Three, Some(4));
        let on = |s: &State, list| s.inodes.iter(list).map(|f| f.0).collect::<Vec<_>>();
        assert_eq!(on(&s, List::Io), [1, 0, 4, 2, 3]);
        assert_eq!(on(&s, List::Dirty), [5]);

        s.redirty(FileId(3), Jiffies(100));
        assert_eq!(
            s.files[3].dirtied_when,
            Jiffies(100),
            "it would stand out of order"
        );
        s.inodes.remove(FileId(3));
        s.inodes.remove(FileId(5));
        s.redirty(FileId(2), Jiffies(200));
        assert_eq!(s.files[2].dirtied_when, Jiffies(3));
    }
}
