// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing dirty inodes: which inode, which pages, which bios.
//!
//! fs/fs-writeback.c (`generic_sync_sb_inodes`), mm/page-writeback.c
//! (`write_cache_pages`) and the generic multi-page path of fs/mpage.c, 2.6.18
//! to 3.7. The kernel handles page after page; here a run of pages that
//! nothing can come between is handled in one step. The page that does not fit
//! into the bio under construction stays locked while that bio is submitted,
//! and therefore while its submitter sleeps for a request: whoever writes to
//! that page waits as long.
//!
//! Left out: inodes without pages; superblocks beside the filesystem's and that
//! of the block devices.

use crate::cache::PageCache;
use crate::control::{BATCH, WriteControl};
use crate::features::{InodeLists as ListRule, Walk};
use crate::file::{File, FileId};
use crate::inode_lists::{End, List};
use crate::layout::PageRun;
use crate::ops::Host;
use crate::state::Superblock;
use crate::volume::on_volume;
use blklab_types::{BioFlags, Op};
use std::ops::Range;

/// The state of one walk over an inode's pages.
#[derive(Debug, Default)]
struct Walking {
    /// Pages to look at.
    index: u64,
    end: u64,
    /// Dirty pages looked at.
    seen: u64,
    /// The budget is used up, or congestion was met.
    done: bool,
    /// Something may have been submitted since congestion was last looked at.
    slept: bool,
    /// The bio under construction.
    bio: Option<PageRun>,
}

/// The next thing to do in a walk.
enum Step {
    /// No dirty page is left.
    End,
    /// Somebody holds the page's lock.
    Locked(u64),
    /// An integrity walk meets a page on its way to the disk.
    InFlight(u64),
    /// Another walk passes over such pages.
    Skip(Range<u64>),
    /// The page needs a bio of its own: submit the one under construction.
    Submit(u64),
    /// Pages for the bio under construction.
    Take(PageRun),
    /// A page that is written through its buffer.
    Buffer(u64),
    /// A page without a place.
    Place(u64),
}

impl<H: Host> PageCache<H> {
    /// Writes inodes, the oldest first, until the budget is used up
    /// (`writeback_inodes`). `flusher`: a pdflush thread does it; of those
    /// only one at a time writes to a device.
    pub(crate) async fn write_inodes(&self, control: &mut WriteControl, flusher: bool) {
        self.write_superblock(Superblock::Files, control, flusher)
            .await;
        if control.nr_to_write > 0 && self.with(|s| s.device.is_some()) {
            self.write_superblock(Superblock::Devices, control, flusher)
                .await;
        }
    }

    /// Writes inodes of a superblock (`generic_sync_sb_inodes`).
    async fn write_superblock(&self, sb: Superblock, control: &mut WriteControl, flusher: bool) {
        let start = self.host.jiffies();
        let rule = self.config.features.inode_lists;
        self.with(|s| {
            if !control.periodic() || s.superblock(sb).is_empty(List::Io) {
                s.queue_io(sb, rule, control.older_than);
            }
        });
        while let Some(id) = self.with(|s| s.superblock(sb).oldest(List::Io)) {
            if control.nonblocking && self.host.write_congested() {
                control.congested = true;
                return;
            }
            let dirtied_when = self.with(|s| s.file(id).dirtied_when);
            let young = control
                .older_than
                .is_some_and(|limit| dirtied_when.0 as i64 > limit);
            if dirtied_when > start || young && rule == ListRule::Two {
                return;
            }
            if flusher && self.with(|s| std::mem::replace(&mut s.flusher_busy, true)) {
                return;
            }
            let skipped = control.pages_skipped;
            self.write_inode(id, control).await;
            let now = self.host.jiffies();
            self.with(|s| {
                s.flusher_busy &= !flusher;
                if control.pages_skipped != skipped {
                    s.put_behind(id, rule, now);
                }
                control.more_io |=
                    control.nr_to_write <= 0 || !s.superblock(sb).is_empty(List::MoreIo);
            });
            if control.nr_to_write <= 0 {
                return;
            }
        }
    }

    /// Writes one inode's pages (`writeback_single_inode`,
    /// `__writeback_single_inode`) and puts it on the list where it belongs then.
    pub(crate) async fn write_inode(&self, id: FileId, control: &mut WriteControl) {
        let rule = self.config.features.inode_lists;
        while control.integrity && self.with(|s| s.file(id).syncing) {
            self.wait_synced(id).await;
        }
        let busy = self.with(|s| {
            let busy = std::mem::replace(&mut s.file(id).syncing, true);
            match rule {
                _ if !busy => s.file(id).inode_dirty = false,
                ListRule::Two => s.lists_of(id).put(id, List::Dirty, End::Newest),
                ListRule::Three | ListRule::Slices => {
                    s.lists_of(id).put(id, List::MoreIo, End::Newest);
                }
            }
            busy
        });
        if busy {
            return;
        }
        self.write_pages(id, control).await;
        on_volume!(self, write_inode(id, control));
        let now = self.host.jiffies();
        self.waking(|s, wake| {
            let file = s.file(id);
            file.syncing = false;
            wake.append(&mut file.sync_waiters);
            let redirtied = file.inode_dirty;
            let left = file.dirty.count() > 0;
            file.inode_dirty = redirtied || left;
            if control.integrity && rule == ListRule::Slices {
                // What became dirty meanwhile is not for this sync.
                file.dirtied_when = now;
            }
            match (rule, redirtied, left) {
                (_, false, false) => s.lists_of(id).remove(id),
                (ListRule::Two, true, _) => s.lists_of(id).put(id, List::Dirty, End::Newest),
                (ListRule::Two, false, true) if control.periodic() => {
                    s.lists_of(id).put(id, List::Dirty, End::Oldest);
                }
                (ListRule::Two, false, true) => {
                    s.file(id).dirtied_when = now;
                    s.lists_of(id).put(id, List::Dirty, End::Newest);
                }
                (ListRule::Three, false, true)
                    if control.periodic() && control.nr_to_write <= 0 =>
                {
                    s.lists_of(id).put(id, List::MoreIo, End::Newest);
                }
                (ListRule::Slices, _, true) if control.nr_to_write <= 0 => {
                    s.lists_of(id).put(id, List::MoreIo, End::Newest);
                }
                (ListRule::Three | ListRule::Slices, _, _) => s.redirty(id, now),
            }
        });
    }

    /// Sleeps until nobody writes the inode (`inode_wait_for_writeback`).
    pub(crate) async fn wait_synced(&self, id: FileId) {
        let me = self.host.current();
        while self.with(|s| s.file(id).syncing) {
            if self.config.features.flusher_plugs_rounds {
                self.host.unplug();
            }
            self.with(|s| s.file(id).sync_waiters.push(me));
            self.host.suspend().await;
        }
    }

    /// Writes dirty pages of one inode, or has its filesystem do so
    /// (`do_writepages`).
    pub(crate) async fn write_pages(&self, id: FileId, control: &mut WriteControl) {
        if !on_volume!(self, writes_itself(id, control)) {
            self.write_cache_pages(id, control).await;
        }
    }

    /// Writes dirty pages of one inode (`write_cache_pages`).
    pub async fn write_cache_pages(&self, id: FileId, control: &mut WriteControl) {
        if control.nr_to_write <= 0 {
            return;
        }
        if control.nonblocking && self.host.write_congested() {
            control.congested = true;
            return;
        }
        let exact = self.config.features.walk == Walk::Exact;
        let cursor = self.with(|s| s.file(id).cursor);
        let range = control.range.clone().unwrap_or(cursor..u64::MAX);
        let mut walk = Walking {
            index: range.start,
            end: range.end,
            ..Walking::default()
        };
        if self.tags(control) {
            let end = range.end;
            self.with(|s| s.file(id).tag_dirty(range.start..end));
        }
        self.host.start_plug();
        self.walk(id, control, &mut walk).await;
        let wraps = if exact {
            cursor > 0 && !walk.done
        } else {
            walk.seen == 0
        };
        if control.range.is_none() && wraps {
            walk.index = 0;
            walk.end = if exact { cursor } else { u64::MAX };
            self.walk(id, control, &mut walk).await;
        }
        if let Some(run) = walk.bio.take() {
            self.submit(Op::Write, self.write_flags(id, control), id, run)
                .await;
        }
        self.host.finish_plug();
        let whole = control.range == Some(0..u64::MAX);
        if control.range.is_none() || whole && control.nr_to_write > 0 {
            self.with(|s| s.file(id).cursor = walk.index);
        }
    }

    /// One pass of a walk.
    async fn walk(&self, id: FileId, control: &mut WriteControl, walk: &mut Walking) {
        let exact = self.config.features.walk == Walk::Exact;
        while !walk.done || !exact && !walk.seen.is_multiple_of(BATCH) {
            let step = self.with(|s| self.step(s.file(id), control, walk));
            if let Step::Locked(_) | Step::InFlight(_) | Step::Place(_) = step {
                self.taken(id, u64::MAX);
                if self.traits_of(id).submits_before_sleep
                    && let Some(run) = walk.bio.take()
                {
                    let flags = self.write_flags(id, control);
                    self.submit(Op::Write, flags, id, run).await;
                    walk.slept = true;
                    continue;
                }
            }
            match step {
                Step::End => break,
                Step::Locked(page) => {
                    self.wait_unlocked(id, page).await;
                    walk.slept = true;
                }
                Step::InFlight(page) => {
                    self.with(|s| s.file(id).locked.set(page..page + 1));
                    self.wait_writeback(id, page).await;
                    self.unlock_page(id, page);
                    walk.slept = true;
                }
                Step::Skip(run) => {
                    if self.tags(control) {
                        self.with(|s| s.file(id).towrite.clear(run.clone()));
                    }
                    walk.seen += run.end - run.start;
                    walk.index = run.end;
                }
                Step::Place(page) => {
                    self.with(|s| s.file(id).locked.set(page..page + 1));
                    let placed = on_volume!(self, place_dirty(id, page));
                    self.unlock_page(id, page);
                    walk.slept = true;
                    if placed.is_err() {
                        self.with(|s| s.lose_page(id, page));
                    }
                }
                Step::Submit(page) => {
                    self.with(|s| s.file(id).locked.set(page..page + 1));
                    if let Some(run) = walk.bio.take() {
                        self.submit(Op::Write, self.write_flags(id, control), id, run)
                            .await;
                    }
                    self.unlock_page(id, page);
                    walk.slept = true;
                }
                Step::Take(run) => {
                    self.with(|s| s.start_writeback(id, run.start..run.start + run.pages));
                    walk.seen += run.pages;
                    walk.index = run.start + run.pages;
                    match &mut walk.bio {
                        Some(bio) => bio.pages += run.pages,
                        None => walk.bio = Some(run),
                    }
                    self.taken(id, walk.index);
                    self.charge(control, walk, run.pages);
                }
                Step::Buffer(page) => {
                    let flags = self.write_flags(id, control);
                    let nonblocking = control.nonblocking;
                    let skipped = on_volume!(self, write_page(id, page, flags, nonblocking));
                    control.pages_skipped += u64::from(skipped);
                    walk.seen += 1;
                    walk.index = page + 1;
                    walk.slept = true;
                    self.charge(control, walk, 1);
                }
            }
        }
        self.taken(id, u64::MAX);
    }

    /// Takes written pages off the budget; looks at congestion.
    fn charge(&self, control: &mut WriteControl, walk: &mut Walking, pages: u64) {
        control.nr_to_write -= pages as i64;
        if self.to_the_end(control) {
            control.nr_to_write = control.nr_to_write.max(0);
        } else {
            walk.done |= control.nr_to_write <= 0;
        }
        if control.nonblocking && std::mem::take(&mut walk.slept) && self.host.write_congested() {
            control.congested = true;
            walk.done = true;
        }
    }

    /// Decides what comes next.
    fn step(&self, file: &File, control: &WriteControl, walk: &Walking) -> Step {
        let wanted = if self.tags(control) {
            &file.towrite
        } else {
            &file.dirty
        };
        let Some(page) = wanted.next_set(walk.index, walk.end) else {
            return Step::End;
        };
        if file.locked.test(page) {
            return Step::Locked(page);
        }
        // Page by page, however many follow.
        let in_flight = file.writeback.test(page);
        if file.buffers.present && !in_flight && file.dirty.test(page) {
            return Step::Buffer(page);
        }
        // After a sleep congestion is looked at before the second page.
        let most = if walk.done {
            BATCH - walk.seen % BATCH
        } else if control.nonblocking && walk.slept {
            1
        } else if self.to_the_end(control) {
            u64::MAX
        } else {
            control.nr_to_write as u64
        };
        let end = wanted.next_clear(page, walk.end.min(page.saturating_add(most)));
        if self.tags(control) && !file.dirty.test(page) {
            return Step::Skip(page..file.dirty.next_set(page, end).unwrap_or(end));
        }
        let end = file.dirty.next_clear(page, end);
        if in_flight {
            return if control.integrity {
                Step::InFlight(page)
            } else {
                Step::Skip(page..file.writeback.next_clear(page, end))
            };
        }
        let end = file.locked.next_set(page, end).unwrap_or(end);
        let end = file.writeback.next_set(page, end).unwrap_or(end);
        let Some((sector, contiguous)) = file.extents.map(page) else {
            return Step::Place(page);
        };
        let most = self.bio_pages(file.on_volume);
        let room = match &walk.bio {
            Some(bio) => bio.room(page, sector, most),
            None => most,
        };
        if room == 0 {
            return Step::Submit(page);
        }
        Step::Take(PageRun {
            start: page,
            pages: (end - page).min(room).min(contiguous).max(1),
            sector,
        })
    }

    /// Whether the walk goes on when its budget is used up.
    fn to_the_end(&self, control: &WriteControl) -> bool {
        control.integrity && self.config.features.walk == Walk::Exact
    }

    /// Whether the walk writes only what it tagged at its start.
    fn tags(&self, control: &WriteControl) -> bool {
        control.integrity && self.config.features.integrity_tags
    }

    /// Flags of the bios of a file.
    pub fn write_flags(&self, id: FileId, control: &WriteControl) -> BioFlags {
        let features = &self.config.features;
        if control.integrity {
            features.integrity_flags
        } else if control.background && self.traits_of(id).marks_background {
            features.background_flags
        } else {
            BioFlags::NONE
        }
    }
}
