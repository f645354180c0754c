// SPDX-License-Identifier: MIT OR Apache-2.0
//! The daemon: serves one message after another on the block device.

use super::clusters::RECORD_BYTES;
use super::fuse::Op;
use super::index::Index;
use super::{RESIDENT_BYTES, Volume};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host};
use blklab_types::{PAGE_BYTES, Span};
use std::ops::Range;

impl View<'_, Volume> {
    /// The clusters that are read to get from the top directory to a file:
    /// every directory's record and index on the way, and the file's record.
    fn ntfs_path(&mut self, id: FileId, out: &mut Vec<u64>) {
        let mut at = id;
        loop {
            let (parent, entry) = (self.files[at.idx()].parent, self.ntfs_entry(at));
            let top = at == self.root;
            let v = &mut *self.volume;
            out.push(v.record_of(at));
            if top {
                break;
            }
            if let Some(index) = &v.node(parent).index {
                out.extend(index.path(entry));
            }
            at = parent;
        }
        out.reverse();
    }

    /// Takes a record and an entry for a new file. Returns the clusters that
    /// change.
    fn ntfs_make(&mut self, directory: FileId, id: FileId) -> Result<Vec<u64>, FsError> {
        let entry = self.ntfs_entry(id);
        let is_directory = self.files[id.idx()].directory.is_some();
        let v = &mut *self.volume;
        let blocks = match &v.node(directory).index {
            Some(index) => index.clusters_for(entry),
            None => return Err(FsError::NotDirectory),
        };
        // The MFT may need a cluster, too.
        if v.clusters.free() < blocks + 1 {
            return Err(FsError::NoSpace);
        }
        let Some(record) = v.records.take(&mut v.clusters) else {
            return Err(FsError::NoSpace);
        };
        let mut changed = vec![
            v.clusters.mft_bitmap_of(record),
            v.clusters.record(record),
            v.record_of(directory),
        ];
        let node = v.node(id);
        node.record = record as u32;
        node.index = is_directory.then(Box::<Index>::default);
        changed.extend(v.add_entry(directory, entry));
        Ok(changed)
    }

    /// Takes an entry out. Returns the clusters that change.
    fn ntfs_remove_entry(&mut self, directory: FileId, id: FileId) -> Vec<u64> {
        let entry = self.ntfs_entry(id);
        let v = &mut *self.volume;
        let mut changed = vec![v.record_of(directory), v.record_of(id)];
        let freed = match &mut v.node(directory).index {
            Some(index) => index.remove(entry, &mut changed),
            None => None,
        };
        if let Some(cluster) = freed {
            v.clusters.give_back(cluster..cluster + 1);
            changed.push(v.clusters.bitmap_of(cluster));
        }
        changed
    }

    /// Frees a file's clusters, or a directory's.
    fn ntfs_free_clusters(&mut self, id: FileId, changed: &mut Vec<u64>) {
        let v = &mut *self.volume;
        let extents = std::mem::take(&mut v.node(id).extents);
        for e in extents.runs() {
            let first = v.cluster(e.sector);
            changed.extend(v.clusters.bitmap_of(first)..=v.clusters.bitmap_of(first + e.pages - 1));
            v.clusters.give_back(first..first + e.pages);
        }
        if let Some(index) = v.node(id).index.take() {
            for cluster in index.clusters() {
                changed.push(v.clusters.bitmap_of(cluster));
                v.clusters.give_back(cluster..cluster + 1);
            }
        }
    }

    /// Frees a file with its record. Returns the clusters that change.
    fn ntfs_free(&mut self, id: FileId) -> Vec<u64> {
        let mut changed = Vec::new();
        self.ntfs_free_clusters(id, &mut changed);
        let v = &mut *self.volume;
        if !std::mem::replace(&mut v.node(id).gone, true) {
            let record = u64::from(v.node(id).record);
            changed.extend([v.clusters.record(record), v.clusters.mft_bitmap_of(record)]);
            v.records.give_back(record);
        }
        changed
    }

    /// Gives a file clusters up to a byte, unless it stays in its record.
    /// Returns the clusters that change, and whether there was room.
    fn ntfs_extend(&mut self, id: FileId, end: u64) -> (Vec<u64>, bool) {
        let mut changed = Vec::new();
        let v = &mut *self.volume;
        let stays = end <= RESIDENT_BYTES && v.node(id).extents.pages() == 0;
        let room = stays || v.grow(id, end.div_ceil(PAGE_BYTES), &mut changed);
        (changed, room)
    }
}

impl<H: Host> Mount<'_, H, Volume> {
    /// Starts the daemon.
    pub(super) fn ntfs_start(&self) {
        self.spawn(
            "ntfs-3g",
            |kept| async move { kept.mount().ntfs_daemon().await },
        );
    }

    async fn ntfs_daemon(&self) {
        let me = self.host.current();
        self.with(|s| s.volume.fuse.daemon = Some(me));
        loop {
            let Some((key, op)) = self.with(|s| s.volume.fuse.receive()) else {
                self.host.suspend().await;
                continue;
            };
            let cost = self.ntfs_cost(&op);
            self.spend(cost).await;
            let reply = self.ntfs_serve(op).await;
            self.waking(|s, wake| s.volume.fuse.reply(key, reply, wake));
        }
    }

    /// Processor time of a message.
    fn ntfs_cost(&self, op: &Op) -> Span {
        let costs = self.with(|s| s.volume.options.costs);
        costs.message
            + match op {
                Op::Create { .. } => costs.create,
                Op::Write { pages, .. } => Span(costs.write_page.ns() * (pages.end - pages.start)),
                Op::Unlink { .. } => costs.unlink,
                _ => Span::ZERO,
            }
    }

    async fn ntfs_serve(&self, op: Op) -> Result<(), FsError> {
        match op {
            Op::Lookup { id } | Op::Open { id } | Op::OpenDirectory { id } => {
                self.ntfs_walk(id).await
            }
            Op::Create { directory, id } => {
                self.ntfs_walk(directory).await?;
                let changed = self.with(|s| s.ntfs_make(directory, id))?;
                self.ntfs_change(changed).await
            }
            Op::Write { id, pages, end } => self.ntfs_write_data(id, pages, end).await,
            Op::Read { id, pages } => self.ntfs_read_data(id, pages).await,
            Op::Flush | Op::Release | Op::ListMore => Ok(()),
            Op::List { id } => self.ntfs_list_directory(id).await,
            Op::Unlink { directory, id } => {
                self.ntfs_walk(id).await?;
                let changed = self.with(|s| {
                    let mut changed = s.ntfs_remove_entry(directory, id);
                    if s.files[id.idx()].nr_open == 0 {
                        changed.extend(s.ntfs_free(id));
                    }
                    changed
                });
                self.ntfs_change(changed).await
            }
            Op::Free { id } => {
                let changed = self.with(|s| s.ntfs_free(id));
                self.ntfs_change(changed).await
            }
            Op::Truncate { id } => {
                self.ntfs_walk(id).await?;
                let changed = self.with(|s| {
                    let mut changed = vec![s.volume.record_of(id)];
                    s.ntfs_free_clusters(id, &mut changed);
                    changed
                });
                self.ntfs_change(changed).await
            }
            Op::Fsync => {
                let fd = self.with(|s| s.volume.fd);
                self.fsync(fd).await
            }
        }
    }

    // The device -------------------------------------------------------------

    /// Finds a file by its path: reads what is not in memory.
    async fn ntfs_walk(&self, id: FileId) -> Result<(), FsError> {
        let mut path = Vec::new();
        self.with(|s| s.ntfs_path(id, &mut path));
        for cluster in path {
            self.ntfs_read_cluster(cluster).await?;
        }
        Ok(())
    }

    async fn ntfs_read_cluster(&self, cluster: u64) -> Result<(), FsError> {
        let (device, fd) = self.with(|s| {
            let v = &mut *s.volume;
            (v.device, v.fd)
        });
        if self.with(|s| s.files[device.idx()].uptodate.test(cluster)) {
            self.with(|s| s.touch(device, cluster..cluster + 1));
            return Ok(());
        }
        self.read(fd, cluster * PAGE_BYTES, PAGE_BYTES)
            .await
            .map(|_| ())
    }

    /// Writes a part of each of some metadata clusters.
    async fn ntfs_change(&self, mut clusters: Vec<u64>) -> Result<(), FsError> {
        clusters.sort_unstable();
        clusters.dedup();
        for cluster in clusters {
            self.ntfs_change_cluster(cluster).await?;
        }
        Ok(())
    }

    async fn ntfs_change_cluster(&self, cluster: u64) -> Result<(), FsError> {
        let (device, fd) = self.with(|s| {
            let v = &mut *s.volume;
            (v.device, v.fd)
        });
        let dirty = self.with(|s| {
            let file = &s.files[device.idx()];
            let dirty = file.dirty.test(cluster) && !file.locked.test(cluster);
            if dirty {
                s.touch(device, cluster..cluster + 1);
            }
            dirty
        });
        if dirty {
            // Once more into a page that will be written anyhow.
            return Ok(());
        }
        let wrote = self.write(fd, cluster * PAGE_BYTES, RECORD_BYTES).await;
        wrote.map(|_| ())
    }

    /// Pages of a file arrive: clusters for those that are new, the data, the
    /// record, and the entry that repeats the file's size.
    async fn ntfs_write_data(
        &self,
        id: FileId,
        pages: Range<u64>,
        end: u64,
    ) -> Result<(), FsError> {
        self.ntfs_walk(id).await?;
        let (mut changed, room) = self.with(|s| s.ntfs_extend(id, end));
        self.with(|s| {
            let (parent, entry) = (s.files[id.idx()].parent, s.ntfs_entry(id));
            let v = &mut *s.volume;
            changed.push(v.record_of(id));
            if let Some(index) = &v.node(parent).index {
                changed.extend(index.path(entry));
            }
        });
        self.ntfs_change(changed).await?;
        if !room {
            return Err(FsError::NoSpace);
        }
        for bytes in self.with(|s| s.ntfs_pieces(id, pages.clone(), end)) {
            let fd = self.with(|s| s.volume.fd);
            self.write(fd, bytes.start, bytes.end - bytes.start).await?;
        }
        Ok(())
    }

    /// Pages of a file are read from the device, and are ready then.
    async fn ntfs_read_data(&self, id: FileId, pages: Range<u64>) -> Result<(), FsError> {
        let read = self.ntfs_read_pieces(id, pages.clone()).await;
        self.waking(|s, wake| s.end_read(id, &pages, read.is_err(), wake));
        read
    }

    async fn ntfs_read_pieces(&self, id: FileId, pages: Range<u64>) -> Result<(), FsError> {
        self.ntfs_walk(id).await?;
        for bytes in self.with(|s| s.ntfs_pieces(id, pages, u64::MAX)) {
            let fd = self.with(|s| s.volume.fd);
            self.read(fd, bytes.start, bytes.end - bytes.start).await?;
        }
        if self.with(|s| s.volume.options.atime) {
            let record = self.with(|s| s.volume.record_of(id));
            self.ntfs_change_cluster(record).await?;
        }
        Ok(())
    }

    async fn ntfs_list_directory(&self, id: FileId) -> Result<(), FsError> {
        let clusters: Vec<u64> = self.with(|s| {
            let index = &s.volume.node(id).index;
            index.iter().flat_map(|i| i.clusters()).collect()
        });
        for cluster in clusters {
            self.ntfs_read_cluster(cluster).await?;
        }
        if self.with(|s| s.volume.options.atime) {
            let record = self.with(|s| s.volume.record_of(id));
            self.ntfs_change_cluster(record).await?;
        }
        Ok(())
    }
}

impl View<'_, Volume> {
    /// Where the bytes of some pages up to `end` lie on the device, in pieces.
    /// None of a file in its record.
    fn ntfs_pieces(&mut self, id: FileId, pages: Range<u64>, end: u64) -> Vec<Range<u64>> {
        let mut pieces = Vec::new();
        let v = &mut *self.volume;
        let mut page = pages.start;
        while page < pages.end
            && let Some((sector, count)) = v.node(id).extents.map(page)
        {
            let count = count.min(pages.end - page);
            let start = v.cluster(sector) * PAGE_BYTES;
            let bytes = (count * PAGE_BYTES).min(end.saturating_sub(page * PAGE_BYTES));
            if bytes > 0 {
                pieces.push(start..start + bytes);
            }
            page += count;
        }
        pieces
    }
}
