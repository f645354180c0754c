// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes into a log, and where (fs/nilfs2/segment.c, 2.6.32:
//! `nilfs_segctor_collect`, `nilfs_segctor_assign`).
//!
//! A log is a summary and the blocks behind it, in one segment; what does not
//! fit makes another log in the next segment. A block that was in a segment
//! before gets a new virtual number, so that its old number tells the cleaner
//! that it is dead; blocks of the translation itself have none.

use super::CHECKPOINTS_PER_BLOCK;
use super::Nilfs;
use super::USAGES_PER_BLOCK;
use super::segments::{NO_NUMBER, Piece};
use crate::mount::View;
use blklab_pagecache::FileId;
use blklab_types::{PAGE_BYTES, PAGE_SECTORS, TaskId, Time};
use std::ops::Range;

/// Bytes of a summary's header.
const HEADER_BYTES: u64 = 64;
/// Bytes of a summary per file.
const FILE_BYTES: u64 = 24;
/// Bytes of a summary per block of a file.
const BLOCK_BYTES: u64 = 16;
/// Bytes of a summary per B-tree node.
const NODE_BYTES: u64 = 8;
/// The same per block of the translation.
const TRANSLATION_BLOCK_BYTES: u64 = 8;

/// How far a log goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Everything, ended by a super root (`SC_LSEG_SR`).
    Checkpoint,
    /// Files and directories only (`SC_FLUSH_FILE`).
    Files,
    /// The data of one file (`SC_LSEG_DSYNC`).
    Data(FileId),
}

/// What a log is to hold.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) mode: Mode,
    /// Pages that are not dirty, but move.
    pub(super) moved: Vec<(FileId, Range<u64>)>,
    /// Segments that are clean when the log is on the disk.
    pub(super) released: Vec<u64>,
}

impl Plan {
    pub(super) fn new(mode: Mode) -> Plan {
        Plan {
            mode,
            moved: Vec::new(),
            released: Vec::new(),
        }
    }

    pub(super) fn checkpoint() -> Plan {
        Plan::new(Mode::Checkpoint)
    }
}

/// Pages in a log.
#[derive(Clone, Debug)]
struct Item {
    file: FileId,
    page: u64,
    pages: u64,
    number: u32,
    /// They were dirty.
    dirty: bool,
}

/// Logs that have a place.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Where each lies: its sector, and how many blocks it has.
    pub(super) parts: Vec<(u64, u64)>,
    items: Vec<Item>,
    released: Vec<u64>,
    checkpoint: bool,
    /// Of the log under construction.
    pending: Vec<Item>,
    blocks: u64,
    summary_bytes: u64,
    last_file: Option<FileId>,
    /// No segment is clean.
    full: bool,
}

impl Log {
    /// Whether a block of so many summary bytes fits into so much room.
    fn fits(&self, bytes: u64, room: u64) -> bool {
        let summary = (self.summary_bytes.max(HEADER_BYTES) + bytes).div_ceil(PAGE_BYTES);
        summary + self.blocks < room
    }

    fn push(&mut self, item: Item, bytes: u64) {
        self.summary_bytes = self.summary_bytes.max(HEADER_BYTES) + bytes;
        self.blocks += 1;
        self.last_file = Some(item.file);
        if let Some(last) = self.pending.last_mut()
            && (last.file, last.dirty) == (item.file, item.dirty)
            && last.page + last.pages == item.page
            && (last.number == NO_NUMBER && item.number == NO_NUMBER
                || u64::from(last.number) + last.pages == u64::from(item.number))
        {
            last.pages += 1;
        } else {
            self.pending.push(item);
        }
    }
}

impl View<'_, Nilfs> {
    /// Collects what a plan names, and gives it a place (`nilfs_segctor_collect`);
    /// dirty pages are on their way to the disk from then on.
    pub(super) fn nilfs_collect(&mut self, plan: &Plan, now: Time) -> Log {
        let mut log = Log {
            released: plan.released.clone(),
            checkpoint: plan.mode == Mode::Checkpoint,
            ..Log::default()
        };
        for (id, run) in &plan.moved {
            for page in run.clone() {
                self.nilfs_add_block(&mut log, *id, page, BLOCK_BYTES, false, now);
            }
        }
        let queue = std::mem::take(&mut self.volume.queue);
        match plan.mode {
            Mode::Data(id) => {
                self.nilfs_renumber(id);
                self.nilfs_add_data(&mut log, id, now);
            }
            Mode::Files | Mode::Checkpoint => {
                for id in &queue {
                    self.nilfs_add_file(&mut log, *id, now);
                }
            }
        }
        if plan.mode == Mode::Checkpoint {
            self.nilfs_add_metadata(&mut log, &queue, now);
        } else {
            self.volume.queue = queue;
        }
        self.nilfs_place(&mut log, now);
        log
    }

    /// What makes a log a checkpoint (`nilfs_segctor_collect_blocks`).
    fn nilfs_add_metadata(&mut self, log: &mut Log, queue: &[FileId], now: Time) {
        for id in queue {
            let inode = self.volume.inode(*id);
            (inode.queued, inode.fresh) = (false, false);
            let gone = self.files[id.idx()].removed;
            if !gone {
                self.nilfs_dirty_inode(*id);
            }
        }
        let n = &mut *self.volume;
        let meta = n.meta;
        let checkpoint = 1 + n.checkpoint / CHECKPOINTS_PER_BLOCK;
        let usage = 1 + n.segments.current() / USAGES_PER_BLOCK;
        n.checkpoint += 1;
        self.nilfs_add_meta(log, meta.inodes, now);
        for page in [0, checkpoint] {
            self.nilfs_dirty_meta(meta.checkpoints, page);
        }
        self.nilfs_add_meta(log, meta.checkpoints, now);
        for page in [0, usage] {
            self.nilfs_dirty_meta(meta.usage, page);
        }
        self.nilfs_add_meta(log, meta.usage, now);
        self.nilfs_add_meta(log, meta.translation, now);
        // The super root: a block without an entry in the summary.
        self.nilfs_make_room(log, 0, now);
        log.blocks += 1;
    }

    /// A metadata file whose B-tree was not kept up to date.
    fn nilfs_add_meta(&mut self, log: &mut Log, id: FileId, now: Time) {
        let physical = id == self.volume.meta.translation;
        for run in self.files[id.idx()].dirty_runs() {
            if !physical {
                self.nilfs_number(id, run.clone());
            }
            let pages = self.files[id.idx()].eof_pages();
            self.nilfs_grow_tree(id, pages);
            self.nilfs_dirty_paths(id, run);
        }
        self.nilfs_add_file(log, id, now);
    }

    /// A file's dirty pages, then its dirty B-tree nodes
    /// (`nilfs_segctor_scan_file`).
    fn nilfs_add_file(&mut self, log: &mut Log, id: FileId, now: Time) {
        self.nilfs_renumber(id);
        let Some(tree) = self.volume.inode(id).tree.take() else {
            return self.nilfs_add_data(log, id, now);
        };
        let meta = self.volume.meta.nodes;
        // What changes its place changes the node above.
        for (node, above) in tree.edges() {
            if self.files[meta.idx()].dirty.test(u64::from(node)) {
                self.nilfs_dirty_meta(meta, u64::from(above));
            }
        }
        self.nilfs_add_data(log, id, now);
        for node in tree.nodes().map(u64::from) {
            let file = &self.files[meta.idx()];
            if !file.dirty.test(node) {
                continue;
            }
            let number = self.volume.number(meta, node);
            if let Some(old) = number.filter(|_| self.nilfs_placed(meta, node)) {
                let (new, _) = self.nilfs_take_numbers(1);
                self.volume.node_numbers[node as usize] = new as u32;
                self.nilfs_dirty_number(old, false);
            }
            self.nilfs_add_block(log, meta, node, NODE_BYTES, true, now);
        }
        self.volume.inode(id).tree = Some(tree);
    }

    fn nilfs_placed(&self, id: FileId, page: u64) -> bool {
        self.files[id.idx()].extents.map(page).is_some()
    }

    /// Dirty pages that lie in a segment already get new numbers.
    fn nilfs_renumber(&mut self, id: FileId) {
        if id == self.volume.meta.translation {
            return;
        }
        for run in self.files[id.idx()].dirty_runs() {
            let mut any = false;
            for page in run.clone() {
                if !self.nilfs_placed(id, page) {
                    continue;
                }
                any = true;
                let (new, _) = self.nilfs_take_numbers(1);
                let old = self.volume.number(id, page);
                let numbers = &mut self.volume.inode(id).numbers;
                numbers.remap(page, new * PAGE_SECTORS, 1, |_| {});
                if let Some(old) = old {
                    self.nilfs_dirty_number(old, false);
                }
            }
            if any {
                self.nilfs_dirty_paths(id, run);
            }
        }
    }

    fn nilfs_add_data(&mut self, log: &mut Log, id: FileId, now: Time) {
        let bytes = if id == self.volume.meta.translation {
            TRANSLATION_BLOCK_BYTES
        } else {
            BLOCK_BYTES
        };
        for run in self.files[id.idx()].dirty_runs() {
            for page in run {
                self.nilfs_add_block(log, id, page, bytes, true, now);
            }
        }
    }

    /// One block more (`nilfs_segctor_add_file_block`).
    fn nilfs_add_block(
        &mut self,
        log: &mut Log,
        id: FileId,
        page: u64,
        bytes: u64,
        dirty: bool,
        now: Time,
    ) {
        let of_file = if log.last_file == Some(id) {
            0
        } else {
            FILE_BYTES
        };
        self.nilfs_make_room(log, bytes + FILE_BYTES, now);
        if log.full {
            let regular = !self.files[id.idx()].metadata;
            if dirty && regular {
                self.lose_page(id, page);
            }
            return;
        }
        let number = self.volume.number(id, page);
        if let Some(number) = number {
            self.nilfs_dirty_number(number, false);
        }
        let item = Item {
            file: id,
            page,
            pages: 1,
            number: number.map_or(NO_NUMBER, |n| n as u32),
            dirty,
        };
        log.push(item, bytes + of_file);
    }

    /// Makes sure that a block more fits; a log that is full gets its place.
    fn nilfs_make_room(&mut self, log: &mut Log, bytes: u64, now: Time) {
        if log.pending.is_empty() && log.blocks == 0 {
            log.full = !self.volume.segments.advance();
        }
        if !log.full && !log.fits(bytes, self.volume.segments.room_here()) {
            self.nilfs_place(log, now);
            log.full = !self.volume.segments.next_segment();
        }
    }

    /// Gives the log under construction its place (`nilfs_segctor_assign`).
    fn nilfs_place(&mut self, log: &mut Log, now: Time) {
        if log.blocks == 0 || log.full {
            return;
        }
        let summary = log.summary_bytes.max(HEADER_BYTES).div_ceil(PAGE_BYTES);
        let start = self.volume.segments.sector();
        let mut ahead = summary;
        for item in &log.pending {
            let sector = start + ahead * PAGE_SECTORS;
            let run = item.page..item.page + item.pages;
            let place = &mut self.files[item.file.idx()].extents;
            place.remap(item.page, sector, item.pages, |_| {});
            let piece = Piece {
                file: item.file.0,
                page: item.page as u32,
                number: item.number,
                pages: item.pages as u16,
                offset: 0,
            };
            self.volume.segments.note(piece, ahead);
            if item.dirty {
                self.start_writeback(item.file, run);
                self.stats.pages_written += item.pages;
            }
            ahead += item.pages;
        }
        log.items.append(&mut log.pending);
        let blocks = summary + log.blocks;
        self.volume.segments.fill(blocks, now);
        log.parts.push((start, blocks));
        (log.blocks, log.summary_bytes, log.last_file) = (0, 0, None);
    }

    /// A log is on the disk (`nilfs_segctor_complete_write`).
    pub(super) fn nilfs_finish(&mut self, log: &Log, failed: bool, wake: &mut Vec<TaskId>) {
        for item in log.items.iter().filter(|i| i.dirty) {
            let run = item.page..item.page + item.pages;
            self.end_writeback(item.file, &run, failed, wake);
            if !self.files[item.file.idx()].metadata {
                self.nilfs_put_off_lists(item.file);
            }
        }
        let n = &mut *self.volume;
        for segment in &log.released {
            n.segments.release(*segment);
        }
        if log.checkpoint {
            n.constructor.unclosed = None;
        }
    }
}
