// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading what is not in memory: translations, inodes, B-tree nodes,
//! directories.
//!
//! To read a block its virtual number must be translated: an entry of the
//! translation file, which may have to be read itself. For a file of more than
//! six blocks a B-tree node, with a number of its own, comes before.

use super::Nilfs;
use super::log::{Mode, Plan};
use crate::mount::{Mount, View};
use blklab_pagecache::{FileId, FsError, Host, Window};
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// Pages of a directory that are read at once (128 KiB).
const DIRECTORY_WINDOW: u64 = 32;

impl View<'_, Nilfs> {
    /// The metadata block is on the disk and not in memory.
    fn nilfs_is_cold(&self, id: FileId, page: u64) -> bool {
        let file = &self.files[id.idx()];
        !file.uptodate.test(page) && file.extents.map(page).is_some()
    }
}

impl<H: Host> Mount<'_, H, Nilfs> {
    /// Reads a metadata block if need be.
    pub(super) async fn nilfs_load(&self, id: FileId, page: u64) {
        if self.with(|s| s.nilfs_is_cold(id, page)) {
            self.nilfs_load_translation(id, page).await;
            self.read_page(id, page).await;
        }
    }

    /// Reads the translation of a page's number if need be (`nilfs_dat_translate`).
    /// Blocks of the translation have none.
    async fn nilfs_load_translation(&self, id: FileId, page: u64) {
        let block = self.with(|s| {
            let n = &mut *s.volume;
            let number = n.number(id, page)?;
            let meta = n.meta.translation;
            (id != meta).then(|| (meta, n.translation.block(number)))
        });
        if let Some((meta, block)) = block
            && self.with(|s| s.nilfs_is_cold(meta, block))
        {
            self.read_page(meta, block).await;
        }
    }

    /// Before a page is mapped for a read (`nilfs_get_block`). Pages without a
    /// place are empty.
    pub(super) async fn nilfs_load_mapping(&self, id: FileId, page: u64) {
        let (hole, node, nodes) = self.with(|s| {
            let file = s.file(id);
            let hole = file.extents.map(page).is_none() && !file.cached.test(page);
            let n = &mut *s.volume;
            let node = n.inode(id).tree.as_ref().and_then(|t| t.path(page).next());
            (hole, node, n.meta.nodes)
        });
        if let Some(node) = node {
            self.nilfs_load(nodes, u64::from(node)).await;
        }
        if !hole {
            return self.nilfs_load_translation(id, page).await;
        }
        self.make_room(1).await;
        self.fill_hole(id, page);
    }

    /// Reads the block of a file's inode.
    pub(super) async fn nilfs_load_inode(&self, id: FileId) {
        let (meta, block) = self.with(|s| {
            let n = &mut *s.volume;
            let number = u64::from(n.inode(id).number);
            (n.meta.inodes, n.inode_table.block(number))
        });
        self.nilfs_load(meta, block).await;
    }

    /// Reads what the next new inode changes.
    pub(super) async fn nilfs_load_new_inode(&self) {
        let (meta, blocks) = self.with(|s| {
            let n = &mut *s.volume;
            let next = n.inode_table.next();
            let t = &n.inode_table;
            let blocks = [
                t.descriptor_block(next),
                t.bitmap_block(next),
                t.block(next),
            ];
            (n.meta.inodes, blocks)
        });
        for block in blocks {
            self.nilfs_load(meta, block).await;
        }
    }

    /// Reads what the next new virtual block number changes.
    pub(super) async fn nilfs_load_new_number(&self) {
        let (meta, blocks) = self.with(|s| {
            let n = &mut *s.volume;
            let next = n.translation.next();
            let t = &n.translation;
            let blocks = [
                t.descriptor_block(next),
                t.bitmap_block(next),
                t.block(next),
            ];
            (n.meta.translation, blocks)
        });
        for block in blocks {
            self.nilfs_load(meta, block).await;
        }
    }

    /// Reads the translations of a run of pages.
    pub(super) async fn nilfs_load_numbers(&self, id: FileId, run: Range<u64>) {
        for page in run {
            self.nilfs_load_translation(id, page).await;
        }
    }

    /// Reads translation entries.
    pub(super) async fn nilfs_load_entries(&self, numbers: &[u64]) {
        for number in numbers {
            let (meta, block) = self.with(|s| {
                let n = &mut *s.volume;
                (n.meta.translation, n.translation.block(*number))
            });
            self.nilfs_load(meta, block).await;
        }
    }

    /// Reads the first pages of a directory that are not in memory
    /// (`nilfs_readdir`).
    pub(super) async fn nilfs_read_directory(&self, id: FileId, pages: u64) -> Result<(), FsError> {
        let end = self.with(|s| s.file(id).eof_pages()).min(pages);
        let mut page = 0;
        while page < end {
            page = self.with(|s| s.file(id).uptodate.next_clear(page, end));
            if page >= end {
                break;
            }
            let window = Window {
                start: page,
                pages: DIRECTORY_WINDOW.min(end - page),
                marker: None,
            };
            self.read_window(id, window).await;
            self.wait_unlocked(id, page).await;
            if !self.read_page(id, page).await {
                return Err(FsError::Io);
            }
        }
        self.with(|s| s.touch(id, 0..end));
        Ok(())
    }

    /// Reads what a construction changes: inodes of the files, translations of
    /// what is written again or moves.
    pub(super) async fn read_for_log(&self, plan: &Plan) {
        let files = match plan.mode {
            Mode::Data(id) => vec![id],
            _ => self.with(|s| s.volume.queue.clone()),
        };
        for id in files {
            if plan.mode == Mode::Checkpoint && self.with(|s| !s.file(id).removed) {
                self.nilfs_load_inode(id).await;
            }
            for run in self.with(|s| s.file(id).dirty_runs()) {
                self.nilfs_load_numbers(id, run).await;
            }
        }
        for (id, run) in &plan.moved {
            self.nilfs_load_numbers(*id, run.clone()).await;
        }
        if plan.mode == Mode::Checkpoint {
            for id in self.with(|s| s.volume.meta.all()) {
                for run in self.with(|s| s.file(id).dirty_runs()) {
                    self.nilfs_load_numbers(id, run).await;
                }
            }
        }
        self.nilfs_load_new_number().await;
    }
}

/// A page of the cache is a block.
const _: () = assert!(PAGE_BYTES == 4096);
