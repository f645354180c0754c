// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading tree blocks that are not in memory: from the root down to a leaf,
//! one after another, since each says where the next one lies. A listing reads
//! leaves ahead that lie near by (fs/btrfs/ctree.c, `reada_for_search`).

use super::Btrfs;
use super::items::{self, Of};
use crate::mount::Mount;
use blklab_pagecache::{FileId, FsError, Host, PageRun};
use blklab_types::{BioFlags, Op};

/// Leaves that a listing reads ahead.
const AHEAD_LEAVES: usize = 16;
/// How far from the leaf they may lie, pages (64 KiB).
const AHEAD_PAGES: u64 = 16;

impl<H: Host> Mount<'_, H, Btrfs> {
    /// Reads the blocks on the way to a key that are not in memory
    /// (`btrfs_search_slot`).
    pub(super) async fn btrfs_load(&self, of: Of, key: u64) {
        loop {
            let cold = self.with(|s| {
                let b = &*s.volume;
                let bits = &s.files[b.device.idx()].uptodate;
                b.trees[of as usize].cold(key, |block| bits.test(block))
            });
            match cold {
                Some(block) if self.btrfs_read_block(block).await => {}
                _ => return,
            }
        }
    }

    /// Reads one tree block (`read_tree_block`). Returns whether it went well.
    async fn btrfs_read_block(&self, block: u64) -> bool {
        let (device, pages) = self.with(|s| (s.volume.device, s.volume.pool.node_pages));
        if pages > 1 {
            self.btrfs_start_read(device, block, pages).await;
        }
        for page in block..block + pages {
            self.wait_unlocked(device, page).await;
            if !self.read_page(device, page).await {
                return false;
            }
        }
        true
    }

    /// Starts reading a tree block of which nothing is in memory.
    async fn btrfs_start_read(&self, device: FileId, block: u64, pages: u64) {
        let run = block..block + pages;
        self.make_room(pages).await;
        let sector = self.with(|s| {
            if s.file(device).cached.count_in(run.clone()) > 0 {
                return None;
            }
            s.add_locked(device, run.clone());
            Some(s.volume.sector(block))
        });
        if let Some(sector) = sector {
            let run = PageRun {
                start: block,
                pages,
                sector,
            };
            self.submit(Op::Read, BioFlags::NONE, device, run).await;
        }
    }

    /// Before a page is mapped for a read: its extent item (`btrfs_get_extent`),
    /// its checksum (`btrfs_lookup_bio_sums`). Pages without a place are empty, or
    /// lie in the leaf.
    pub(super) async fn btrfs_load_mapping(&self, id: FileId, page: u64) {
        let (device, object, place, by_place) = self.with(|s| {
            let place = s.file(id).extents.map(page);
            let b = &mut *s.volume;
            let place = place.map(|(sector, _)| b.page(sector));
            (
                b.is_device(id),
                b.object(id),
                place,
                b.options.checksum_tree,
            )
        });
        if device {
            return;
        }
        self.btrfs_load(Of::Files, items::extent(object, page))
            .await;
        match place {
            Some(place) if by_place => self.btrfs_load(Of::Checksums, place).await,
            Some(_) => {
                self.btrfs_load(Of::Files, items::checksum(object, page))
                    .await;
            }
            None => {
                if !self.with(|s| s.file(id).cached.test(page)) {
                    self.make_room(1).await;
                    self.fill_hole(id, page);
                }
            }
        }
    }

    /// `btrfs_lookup`.
    pub(super) async fn btrfs_look_up(&self, directory: FileId, id: FileId) -> Result<(), FsError> {
        let (above, object, hash) = self.with(|s| {
            let hash = s.file(id).name.hash;
            let b = &mut *s.volume;
            (b.object(directory), b.object(id), hash)
        });
        self.btrfs_load(Of::Files, items::dir_item(above, hash))
            .await;
        self.btrfs_load(Of::Files, items::inode(object)).await;
        Ok(())
    }

    /// Reads the leaves of a directory's index (`btrfs_real_readdir`).
    pub(super) async fn btrfs_list(&self, directory: FileId) -> Result<(), FsError> {
        let object = self.with(|s| s.volume.object(directory));
        let end = items::dir_index(object, u32::MAX);
        let mut at = items::dir_index(object, 0);
        let mut last = None;
        loop {
            let (next, leaves) = self.with(|s| {
                let tree = &s.volume.trees[Of::Files as usize];
                let next = tree.next_key(at).filter(|k| *k <= end);
                (
                    next,
                    next.map_or(Vec::new(), |k| tree.leaves(k, AHEAD_LEAVES)),
                )
            });
            let Some(key) = next else {
                return Ok(());
            };
            if leaves.first() != last.as_ref() {
                last = leaves.first().copied();
                self.btrfs_read_ahead(&leaves).await;
                self.btrfs_load(Of::Files, key).await;
            }
            at = key + 1;
        }
    }

    /// Starts reading leaves near the first one, if that must be read
    /// (`reada_for_search`).
    async fn btrfs_read_ahead(&self, leaves: &[u64]) {
        let (device, pages) = self.with(|s| (s.volume.device, s.volume.pool.node_pages));
        let Some(first) = leaves.first().copied() else {
            return;
        };
        if self.with(|s| s.file(device).cached.test(first)) {
            return;
        }
        for block in leaves.iter().filter(|b| b.abs_diff(first) <= AHEAD_PAGES) {
            self.btrfs_start_read(device, *block, pages).await;
        }
    }
}
