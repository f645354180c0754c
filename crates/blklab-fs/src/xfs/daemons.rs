// SPDX-License-Identifier: MIT OR Apache-2.0
//! The volume's threads: the one that pushes the log's tail, the one that
//! writes queued buffers, the one that syncs now and then
//! (fs/xfs/linux-2.6/xfs_super.c, xfs_buf.c, fs/xfs/xfs_trans_ail.c; 2.6.26).

use super::flush::How;
use super::items::ItemId;
use super::volume::Volume;
use crate::mount::Mount;
use blklab_pagecache::Host;
use blklab_types::Span;

/// How often queued buffers are looked at (`xfs_buf_timer_centisecs`).
const BUFFER_TIMER: Span = Span::from_ms(1000);
/// How often the volume is synced (`xfs_syncd_centisecs`).
const SYNC_TIMER: Span = Span::from_ms(30_000);
/// Sleeps of the pusher (`xfsaild_push`): after a pass, when it has reached its
/// target, and when almost nothing could go.
const PUSH: Span = Span::from_ms(10);
const PUSH_DONE: Span = Span::from_ms(20);
const PUSH_STUCK: Span = Span::from_ms(20);

impl<H: Host> Mount<'_, H, Volume> {
    /// Starts the threads, as at mount.
    pub(super) fn start_xfs(&self) {
        self.spawn(
            "xfsbufd",
            |kept| async move { kept.mount().xfsbufd().await },
        );
        if self.with(|s| s.volume.options.features.tail_thread) {
            let pusher = self.spawn(
                "xfsaild",
                |kept| async move { kept.mount().xfsaild().await },
            );
            self.with(|s| s.volume.pusher = Some(pusher));
        }
        self.spawn(
            "xfssyncd",
            |kept| async move { kept.mount().xfssyncd().await },
        );
    }

    async fn xfsbufd(&self) {
        let mut room = Vec::new();
        loop {
            self.host.sleep(BUFFER_TIMER).await;
            self.write_old_buffers(&mut room).await;
        }
    }

    async fn xfsaild(&self) {
        loop {
            let target = self.with(|s| {
                let v = &mut *s.volume;
                let oldest = v.items.oldest_lsn();
                oldest
                    .filter(|lsn| *lsn <= v.push_target)
                    .map(|_| v.push_target)
            });
            let Some(target) = target else {
                self.host.suspend().await;
                continue;
            };
            let pushed = self.push_pass(target).await;
            let sleep = match pushed {
                p if p.complete => PUSH_DONE,
                p if p.stuck * 10 > p.seen * 9 => PUSH_STUCK,
                _ => PUSH,
            };
            self.host.sleep(sleep).await;
        }
    }

    async fn xfssyncd(&self) {
        loop {
            self.host.sleep(SYNC_TIMER).await;
            self.log_force(false).await;
            if self.with(|s| s.volume.options.features.syncd_flushes_inodes) {
                self.flush_inodes(How::Later).await;
            }
        }
    }

    /// Flushes all inodes that can be (`xfs_sync_inodes`).
    async fn flush_inodes(&self, how: How) {
        let count = self.with(|s| s.volume.inodes.count());
        for index in 0..count {
            let ready = self.with(|s| {
                let v = &mut *s.volume;
                let inode = *v.inodes.get(index);
                inode.is_dirty() && !inode.flushing && !v.items.get(ItemId::inode(index)).pinned()
            });
            if ready {
                self.flush_inode(index, how).await;
            }
        }
    }

    /// `sync`: inodes that can go are written, the log is forced, then the others
    /// are written (`xfs_fs_sync_super`, later `xfs_fs_sync_fs`).
    pub(super) async fn sync_xfs(&self) {
        self.flush_inodes(How::Now).await;
        self.log_force(true).await;
        self.flush_inodes(How::Wait).await;
    }
}
