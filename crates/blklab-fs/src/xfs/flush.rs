// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata on their way to their places: clusters of inodes, queued buffers,
//! the push of the log's tail (fs/xfs/xfs_inode.c `xfs_iflush`, xfs_trans_ail.c,
//! linux-2.6/xfs_buf.c; 2.6.26).
//!
//! One dirty inode takes along all others of its cluster that can go. What is
//! pinned cannot; whoever meets it forces the log.

use super::inodes::CLUSTER_INODES;
use super::items::{ItemId, What};
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::Host;
use blklab_types::{BioFlags, Span, Time};

/// How a flushed cluster is written (flags of `xfs_iflush`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// Queued (`XFS_IFLUSH_DELWRI`).
    Later,
    /// At once (`XFS_IFLUSH_ASYNC`).
    Now,
    /// At once, and waited for (`XFS_IFLUSH_SYNC`).
    Wait,
}

/// A pass over the list of logged items ends after so many that cannot go.
const STUCK: u32 = 100;
/// How old queued buffers are when they are written (`xfs_buf_age_centisecs`).
const BUFFER_AGE: Span = Span::from_ms(15_000);

/// What a push pass met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pushed {
    /// Items looked at.
    pub(super) seen: u32,
    /// Those that could not go.
    pub(super) stuck: u32,
    /// A pinned one was met.
    pinned: bool,
    /// Nothing up to the target is left to look at.
    pub(super) complete: bool,
}

impl View<'_, Volume> {
    /// Copies the dirty inodes of a cluster that are neither pinned nor on their
    /// way (`xfs_iflush_cluster`). Returns whether there were any.
    fn copy_inodes(&mut self, cluster: u32) -> bool {
        let v = &mut *self.volume;
        let Some(first) = v.buffers.get(cluster).inodes else {
            return false;
        };
        let mut any = false;
        for index in first..first + CLUSTER_INODES {
            let item = *v.items.get(ItemId::inode(index));
            let inode = v.inodes.get(index);
            if inode.is_dirty() && !inode.flushing && !item.pinned() {
                (inode.logged, inode.touched, inode.flushing) = (false, false, true);
                inode.flush_lsn = item.lsn;
                any = true;
            }
        }
        any
    }

    /// Queued buffers old enough to be written now (`xfs_buf_delwri_split`).
    fn old_buffers(&mut self, limit: Time, out: &mut Vec<u32>) {
        let v = &mut *self.volume;
        let items = &mut v.items;
        let ready = |b| !items.get(ItemId::buffer(b)).pinned();
        v.buffers.take_old(limit, ready, out);
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Brings an inode, and its neighbours, to the cluster's buffer, and that to
    /// its place (`xfs_iflush`). Nothing if the inode is clean, pinned or on its
    /// way.
    pub(super) async fn flush_inode(&self, index: u32, how: How) {
        let cluster = self.with(|s| s.volume.inodes.cluster_of(index));
        self.read_buffer(cluster).await;
        self.wait_buffer_idle(cluster).await;
        if !self.with(|s| s.copy_inodes(cluster)) {
            return;
        }
        let now = self.host.now();
        let (pinned, flags) = self.with(|s| {
            let v = &mut *s.volume;
            v.buffers.queue(cluster, now);
            let flags = v.options.metadata_flags();
            (v.items.get(ItemId::buffer(cluster)).pinned(), flags)
        });
        if pinned {
            self.log_force(false).await;
        }
        if how == How::Later {
            return;
        }
        self.write_when_unpinned(cluster, flags).await;
        if how == How::Wait {
            self.wait_buffer_idle(cluster).await;
        }
    }

    /// Writes a queued buffer, after its records have arrived.
    async fn write_when_unpinned(&self, buffer: u32, flags: BioFlags) {
        self.wait_unpinned(ItemId::buffer(buffer)).await;
        let still = self.with(|s| {
            let b = s.volume.buffers.get(buffer);
            b.queued.is_some() && !b.busy && !b.stale
        });
        if still {
            self.write_metadata_buffer(buffer, flags).await;
        }
    }

    /// Pushes the tail if a transaction of that size would leave too little room
    /// (`xlog_grant_push_ail`): by the thread for it, or right here on old kernels.
    pub(super) async fn push_tail(&self, bytes: u64) {
        let (target, thread) = self.with(|s| {
            let v = &mut *s.volume;
            let tail = v.tail();
            let target = v.log.push_target(tail, bytes);
            if let Some(target) = target {
                v.push_target = v.push_target.max(target);
            }
            (target, v.pusher)
        });
        match (target, thread) {
            (Some(_), Some(thread)) => self.host.wake(thread),
            (Some(target), None) => {
                self.push_pass(target).await;
            }
            (None, _) => {}
        }
    }

    /// One pass over the list from the oldest on (`xfsaild_push`; before the
    /// thread, `xfs_trans_push_ail`).
    pub(super) async fn push_pass(&self, target: u64) -> Pushed {
        let mut pushed = Pushed::default();
        let mut at = self.with(|s| s.volume.items.oldest());
        let mut lsn = 0;
        while pushed.stuck <= STUCK {
            let here = at.filter(|id| {
                self.with(|s| {
                    let item = *s.volume.items.get(*id);
                    item.lsn >= lsn.max(1) && item.lsn <= target
                })
            });
            let Some(id) = here else {
                // The next one may have left the list during a sleep.
                let gone = |id| self.with(|s| s.volume.items.get(id).lsn == 0);
                pushed.complete = !at.is_some_and(gone);
                break;
            };
            // What follows may be gone after a sleep: the pass ends there.
            let next = self.with(|s| {
                lsn = s.volume.items.get(id).lsn;
                s.volume.items.after(id)
            });
            pushed.seen += 1;
            match id.what() {
                What::Buffer(buffer) => self.push_buffer(buffer, &mut pushed).await,
                What::Inode(index) => self.push_inode(index, &mut pushed).await,
            }
            at = next;
        }
        if pushed.pinned {
            self.log_force(false).await;
        }
        pushed
    }

    /// Writes a buffer of the list if it can go (`xfs_buf_item_push`).
    async fn push_buffer(&self, buffer: u32, pushed: &mut Pushed) {
        let (pinned, free, flags) = self.with(|s| {
            let v = &mut *s.volume;
            let b = *v.buffers.get(buffer);
            let pinned = v.items.get(ItemId::buffer(buffer)).pinned();
            let free = !b.busy && b.queued.is_some();
            (pinned, free, v.options.metadata_flags())
        });
        pushed.pinned |= pinned;
        if pinned || !free {
            pushed.stuck += 1;
        } else {
            self.write_metadata_buffer(buffer, flags).await;
        }
    }

    /// Flushes an inode of the list if it can go (`xfs_inode_item_push`), or writes
    /// the cluster that it was copied to (`xfs_inode_item_pushbuf`).
    async fn push_inode(&self, index: u32, pushed: &mut Pushed) {
        let (pinned, flushing, delayed, cluster) = self.with(|s| {
            let v = &mut *s.volume;
            let pinned = v.items.get(ItemId::inode(index)).pinned();
            let flushing = v.inodes.get(index).flushing;
            let delayed = v.options.features.delayed_inodes;
            (pinned, flushing, delayed, v.inodes.cluster_of(index))
        });
        if pinned {
            pushed.pinned = true;
            pushed.stuck += 1;
        } else if flushing {
            self.push_buffer(cluster, pushed).await;
        } else {
            let how = if delayed { How::Later } else { How::Now };
            let busy = self.with(|s| s.volume.buffers.get(cluster).busy);
            if busy {
                pushed.stuck += 1;
            } else {
                self.flush_inode(index, how).await;
            }
        }
    }

    /// `xfsbufd`'s turn: writes buffers that were queued long ago.
    pub(super) async fn write_old_buffers(&self, room: &mut Vec<u32>) {
        let now = self.host.now();
        let Some(limit) = now.0.checked_sub(BUFFER_AGE.ns()) else {
            return;
        };
        room.clear();
        self.with(|s| s.old_buffers(Time(limit), room));
        if room.is_empty() {
            return;
        }
        self.host.start_plug();
        for buffer in room.drain(..) {
            self.write_metadata_buffer(buffer, BioFlags::NONE).await;
        }
        self.host.finish_plug();
        self.host.unplug();
    }
}
