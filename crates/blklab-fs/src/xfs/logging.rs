// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log's way to the disk: copying into its buffers, records, checkpoints of
//! delayed logging, forcing (fs/xfs/xfs_log.c, 2.6.26; xfs_log_cil.c, 2.6.35).

use super::items::ItemId;
use super::log::{Copied, Record};
use super::transaction::Io;
use super::volume::Volume;
use crate::mount::{Mount, View};
use blklab_pagecache::{BioWork, Host, Sleep};
use blklab_types::{Bio, Completion, Op};

impl<H: Host> Mount<'_, H, Volume> {
    /// Copies bytes into the log's buffers (`xfs_log_write`, `xlog_write`), writing
    /// those that become full, and sleeping while none is free. `items` belong to
    /// the last of them.
    pub(super) async fn copy_to_log(&self, bytes: u64, items: &[ItemId]) {
        let mut left = bytes.max(1);
        while left > 0 {
            let copied = self.with(|s| s.volume.log.copy(left));
            let Copied::Took(took, record) = copied else {
                self.wait_log_until(|s| s.volume.log.is_ready()).await;
                continue;
            };
            left -= took;
            if left == 0 {
                self.with(|s| s.attach(items, record));
            }
            if let Some(record) = record {
                self.write_record(record).await;
            }
        }
    }

    /// Sleeps until records have reached the disk and something holds.
    async fn wait_log_until(&self, holds: impl Fn(&mut View<'_, Volume>) -> bool) {
        let me = self.host.current();
        let wait = async {
            while !self.with(&holds) {
                self.flush_task_plug();
                if !self.with(&holds) {
                    self.with(|s| s.volume.log.waiters.push(me));
                    self.host.suspend().await;
                }
            }
        };
        self.sleeping(Sleep::Log, wait).await;
    }

    /// Logs what delayed logging has collected (`xlog_cil_push`).
    pub(super) async fn checkpoint(&self) {
        let (items, bytes) = self.with(|s| {
            let v = &mut *s.volume;
            let items = std::mem::take(&mut v.collected);
            for id in &items {
                v.items.get(*id).collected = false;
            }
            (items, std::mem::take(&mut v.collected_bytes))
        });
        if !items.is_empty() {
            self.copy_to_log(bytes, &items).await;
            self.waking(|s, wake| {
                s.volume.log.unreserve(bytes);
                s.volume.tail_moved(wake);
            });
        }
    }

    /// Writes a record (`xlog_sync`): one bio, or two around the end of the log.
    async fn write_record(&self, record: Record) {
        let mut at = record.sector;
        for nr_sectors in record.nr_sectors.into_iter().filter(|n| *n > 0) {
            let (bio, me) = self.with(|s| {
                s.stats.write_bios += 1;
                let key = s
                    .bios
                    .insert(BioWork::Filesystem(Io::Record(record.nth as u32).number()));
                let v = &mut *s.volume;
                let log = v.geometry.sector(v.geometry.log_start);
                let bio = Bio {
                    op: Op::Write,
                    flags: v.options.log_flags(),
                    sector: log + at,
                    nr_sectors,
                    segments: v.options.log_segments(nr_sectors),
                    completion: Completion::Submitter(key),
                    ..Bio::default()
                };
                (bio, self.host.current())
            });
            let bio = Bio { task: me, ..bio };
            self.sleeping(Sleep::Request, self.host.submit_bio(bio))
                .await;
            at = 0;
        }
    }

    /// Forces the log to the disk; waits for that if asked to (`xfs_log_force`).
    pub(super) async fn log_force(&self, wait: bool) {
        if self.with(|s| s.volume.options.delayed_logging) {
            self.checkpoint().await;
        }
        let (record, upto) = self.with(|s| s.volume.log.force());
        if let Some(record) = record {
            self.write_record(record).await;
        }
        if wait {
            self.wait_log_until(|s| s.volume.log.done >= upto).await;
        }
    }

    /// Sleeps until no record with the item is on its way (`xfs_buf_wait_unpin`).
    pub(super) async fn wait_unpinned(&self, item: ItemId) {
        self.wait_log_until(|s| !s.volume.items.get(item).pinned())
            .await;
    }
}
