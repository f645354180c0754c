// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file: its pages, who waits for them, and its inode's state.

use crate::bits::PageBits;
use crate::layout::Extents;
use crate::readahead::{Cached, RaState};
use blklab_types::{Jiffies, PAGE_BYTES, TaskId};
use std::collections::VecDeque;
use std::ops::Range;

/// A file of the simulated machine, an index in order of creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

impl FileId {
    /// The index as a `usize`.
    pub fn idx(self) -> usize {
        self.0 as usize
    }
}

/// An open file, an index in order of opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// What `open` says about writes (open(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OSync {
    /// Nothing.
    #[default]
    None,
    /// `O_DSYNC`: a write ends like one with fdatasync behind it. Up to 2.6.32 the
    /// same as `O_SYNC`.
    Data,
    /// `O_SYNC`: like one with fsync behind it.
    File,
}

impl From<bool> for OSync {
    /// Whether there is `O_SYNC`.
    fn from(o_sync: bool) -> OSync {
        if o_sync { OSync::File } else { OSync::None }
    }
}

/// A name, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Its length.
    pub bytes: u8,
    /// What a filesystem's hash is made from.
    pub hash: u32,
}

/// What is in a directory, in order of creation.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// Files, in order of creation.
    pub entries: Vec<FileId>,
}

/// The buffers of a file's pages.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    /// There are buffers: pages are written one by one through them.
    pub present: bool,
    /// Dirty buffers; the page may be dirty without.
    pub dirty: PageBits,
    /// Buffers that somebody writes behind the page's back.
    pub locked: PageBits,
}

impl Buffers {
    /// Gives back the memory of empty sets of pages.
    pub(crate) fn shrink(&mut self) {
        self.dirty.shrink();
        self.locked.shrink();
    }
}

/// What a program says about its access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Nothing: the device's read-ahead.
    #[default]
    Normal,
    /// Twice as much read-ahead.
    Sequential,
    /// None; before 2.6.34 even reads of many pages go page by page.
    Random,
    /// Read the range now, without waiting.
    WillNeed,
    /// Drop the range's clean pages, and start writing the dirty ones of the
    /// file.
    DontNeed,
}

/// The state of an open file.
#[derive(Clone, Copy, Debug)]
pub struct OpenFile {
    /// Which file.
    pub file: FileId,
    /// What `open` said about writes.
    pub sync: OSync,
    /// Where its reads are, and what is read ahead.
    pub ra: RaState,
    /// `POSIX_FADV_RANDOM`, 2.6.34 and later.
    pub random: bool,
    /// Where the previous read ended, in bytes.
    pub prev_end: u64,
    /// Somebody wrote through it.
    pub wrote: bool,
    /// Advice for the mapping (`madvise`).
    pub mapped_as: Advice,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitFor {
    Unlock,
    Writeback,
    /// The page's buffer, whoever writes it.
    Buffer,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    page: u64,
    what: WaitFor,
    task: TaskId,
}

/// A sleeping lock that passes from waiter to waiter in order.
///
/// The kernel's mutex wakes the first waiter but lets a task that runs take
/// the lock before it; that race is left out.
#[derive(Clone, Debug, Default)]
pub struct Mutex {
    held: bool,
    granted: Option<TaskId>,
    /// Those who wait; most files never have any.
    queue: Option<Box<Queue>>,
}

/// Tasks in order of arrival.
#[derive(Clone, Debug, Default)]
struct Queue {
    tasks: VecDeque<TaskId>,
}

impl Mutex {
    /// Takes the lock if it is free; else joins the queue.
    pub fn lock_or_queue(&mut self, task: TaskId) -> bool {
        if self.held {
            self.queue.get_or_insert_default().tasks.push_back(task);
            return false;
        }
        self.held = true;
        true
    }

    /// Takes the lock if it is free.
    pub(crate) fn try_lock(&mut self) -> bool {
        !std::mem::replace(&mut self.held, true)
    }

    /// Whether the lock has passed to the task that waited for it.
    pub fn granted(&mut self, task: TaskId) -> bool {
        self.granted.take_if(|t| *t == task).is_some()
    }

    /// Gives the lock up; returns the task that has it now.
    pub fn unlock(&mut self) -> Option<TaskId> {
        self.granted = self.queue.as_mut().and_then(|q| q.tasks.pop_front());
        self.held = self.granted.is_some();
        self.granted
    }
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its length.
    pub size_bytes: u64,
    /// Where its pages lie.
    pub extents: Extents,
    /// The disk itself.
    pub(crate) is_device: bool,
    /// The filesystem's own: tasks that wait for its pages wait for metadata.
    pub metadata: bool,
    /// Whether the file takes space by reservations.
    pub grows: bool,

    /// Pages in memory.
    pub cached: PageBits,
    /// Pages that have been read or written.
    pub uptodate: PageBits,
    /// Pages that differ from the disk.
    pub dirty: PageBits,
    /// Tagged by an integrity walk (2.6.36 and later).
    pub towrite: PageBits,
    /// Pages on their way to the disk.
    pub writeback: PageBits,
    /// Pages that somebody holds (`PG_locked`).
    pub locked: PageBits,
    /// Pages that start the next read-ahead (`PG_readahead`).
    pub marker: PageBits,
    pub(crate) referenced: PageBits,
    pub(crate) active: PageBits,
    /// Pages that must stay for another reason than their state.
    pub pinned: PageBits,
    /// Control group of the first task that wrote to it, where write-back is
    /// charged to that.
    pub(crate) written_by: Option<u16>,
    /// Buffers of its pages.
    pub buffers: Buffers,

    /// It belongs to the volume; else it is a disk, or a filesystem's pages.
    pub on_volume: bool,
    /// The directory that it is in; its own, for the root.
    pub parent: FileId,
    /// Its name.
    pub name: Name,
    /// What is in it, if it is a directory.
    pub directory: Option<Box<Directory>>,
    /// Its name and its inode are in memory.
    pub(crate) in_memory: bool,
    /// Its name is gone; when nobody has it open, so is the file.
    pub removed: bool,
    /// Descriptors that name it.
    pub nr_open: u32,
    waiters: Vec<Waiter>,

    /// `i_mutex`.
    pub(crate) mutex: Mutex,
    /// Where the last cyclic walk stopped (`writeback_index`).
    pub cursor: u64,
    /// When it last became dirty after being clean.
    pub dirtied_when: Jiffies,
    /// `I_DIRTY_PAGES`.
    pub inode_dirty: bool,
    /// `I_SYNC` (`I_LOCK` before 2.6.24): somebody writes it.
    pub syncing: bool,
    /// Tasks that sleep until nobody writes it.
    pub(crate) sync_waiters: Vec<TaskId>,
    /// A write failed since the last fsync (`AS_EIO`).
    pub(crate) write_error: bool,
}

impl File {
    /// A file of that size without a place on the disk.
    pub fn new(size_bytes: u64) -> File {
        File {
            size_bytes,
            ..File::default()
        }
    }

    /// Control group that its write-back is charged to; 0: that of the task that
    /// submits it.
    pub(crate) fn charged_to(&self) -> u16 {
        self.written_by.unwrap_or_default()
    }

    /// Number of pages up to the end of the file.
    pub fn eof_pages(&self) -> u64 {
        self.size_bytes.div_ceil(PAGE_BYTES)
    }

    /// Whether the page may be dropped: clean, unlocked, not on its way.
    pub(crate) fn busy(&self, page: u64) -> bool {
        [&self.dirty, &self.writeback, &self.locked, &self.pinned]
            .into_iter()
            .any(|bits| bits.test(page))
    }

    /// The first busy page of a run.
    pub(crate) fn next_busy(&self, run: Range<u64>) -> Option<u64> {
        [&self.dirty, &self.writeback, &self.locked, &self.pinned]
            .into_iter()
            .filter_map(|bits| bits.next_set(run.start, run.end))
            .min()
    }

    /// The first page of a run that is not busy; its end if all are.
    pub(crate) fn next_idle(&self, run: Range<u64>) -> u64 {
        let sets = [&self.dirty, &self.writeback, &self.locked, &self.pinned];
        let mut page = run.start;
        loop {
            let later = |from, bits: &&PageBits| bits.next_clear(from, run.end);
            let next = sets.iter().fold(page, later);
            if next == page {
                return page;
            }
            page = next;
        }
    }

    /// Gives back the memory of empty sets of pages.
    pub(crate) fn shrink(&mut self) {
        for bits in [
            &mut self.cached,
            &mut self.uptodate,
            &mut self.dirty,
            &mut self.towrite,
            &mut self.writeback,
            &mut self.locked,
            &mut self.marker,
            &mut self.referenced,
            &mut self.active,
            &mut self.pinned,
        ] {
            bits.shrink();
        }
        self.buffers.shrink();
    }

    /// The runs of dirty pages, in ascending order.
    pub fn dirty_runs(&self) -> Vec<Range<u64>> {
        let (mut runs, mut page) = (Vec::new(), 0);
        while let Some(first) = self.dirty.next_set(page, u64::MAX) {
            page = self.dirty.next_clear(first, u64::MAX);
            runs.push(first..page);
        }
        runs
    }

    /// Tags the dirty pages of a run (`tag_pages_for_writeback`).
    pub(crate) fn tag_dirty(&mut self, run: Range<u64>) {
        let mut page = run.start;
        while let Some(first) = self.dirty.next_set(page, run.end) {
            page = self.dirty.next_clear(first, run.end);
            self.towrite.set(first..page);
        }
    }

    /// Whether who waits for that has to sleep.
    pub(crate) fn must_wait(&self, page: u64, what: WaitFor) -> bool {
        match what {
            WaitFor::Unlock => self.locked.test(page),
            WaitFor::Writeback => self.writeback.test(page),
            WaitFor::Buffer => self.buffers.locked.test(page) || self.writeback.test(page),
        }
    }

    /// Registers a task to be woken, if it has to sleep.
    pub(crate) fn wait(&mut self, page: u64, what: WaitFor, task: TaskId) -> bool {
        let waits = self.must_wait(page, what);
        if waits {
            self.waiters.push(Waiter { page, what, task });
        }
        waits
    }

    /// Takes the tasks that wait for pages of a run, in order of arrival.
    pub(crate) fn take_waiters(&mut self, run: &Range<u64>, what: WaitFor, out: &mut Vec<TaskId>) {
        if self.waiters.is_empty() {
            return;
        }
        self.waiters.retain(|w| {
            let hit = w.what == what && run.contains(&w.page);
            if hit {
                out.push(w.task);
            }
            !hit
        });
    }
}

impl Cached for File {
    fn next_hole(&self, page: u64, max: u64) -> Option<u64> {
        let hole = self.cached.next_clear(page, page + max);
        (hole < page + max).then_some(hole)
    }

    fn run_before(&self, page: u64, max: u64) -> u64 {
        self.cached.run_before(page, max)
    }
}
