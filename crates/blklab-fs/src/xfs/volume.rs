// SPDX-License-Identifier: MIT OR Apache-2.0
//! A volume's state in memory, and which buffers a change touches.

use super::buffers::Buffers;
use super::directory::Dir;
use super::inodes::{CHUNK_BLOCKS, CHUNK_INODES, CLUSTER_INODES, Inodes};
use super::items::{ItemId, Items, What};
use super::layout::Geometry;
use super::log::Log;
use super::options::XfsOptions;
use super::space::Space;
use crate::mount::PerFile;
use blklab_pagecache::{Extents, File, FileId, FreeSpace, Lru, Mutex};
use blklab_types::{PAGE_BYTES, PAGE_SECTORS, TaskId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Records of a leaf of free space, filled as insertions in the middle leave
/// it, and of the inode tree, as ascending insertions leave it.
const SPACE_RECORDS: usize = 350;
const INODE_RECORDS: u32 = 127;
/// Sectors of a cluster of inodes.
const CLUSTER_SECTORS: u32 = 16;

/// Buffers of an allocation group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Headers of free space and of inodes, one sector each.
    pub(super) agf: u32,
    pub(super) agi: u32,
    /// Leaves of the trees of free space, by begin and by size.
    by_start: Vec<u32>,
    by_size: Vec<u32>,
    /// Leaves of the tree of inodes.
    inode_leaves: Vec<u32>,
}

/// A volume.
#[derive(Debug)]
pub struct Volume {
    /// The numbers of files' inodes.
    pub(super) numbers: PerFile<Option<u32>>,
    pub(crate) options: XfsOptions,
    pub(super) geometry: Geometry,
    pub(super) space: Space,
    pub(super) inodes: Inodes,
    pub(super) dirs: BTreeMap<FileId, Dir>,
    pub(super) buffers: Buffers,
    pub(super) items: Items,
    pub(super) log: Log,
    /// The file of the device's pages.
    pub(super) device: FileId,
    /// `m_sb_bp`.
    pub(super) superblock: u32,
    /// Who changes counters of the superblock holds it until its transaction
    /// is in the log.
    pub(super) counters: Mutex,
    pub(super) groups: Vec<Group>,
    /// What delayed logging has collected, and its bytes.
    pub(super) collected: Vec<ItemId>,
    pub(super) collected_bytes: u64,
    /// Inodes of chunks that are gone whose records are on their way.
    dying: Vec<u32>,
    /// How far the tail is to be pushed, and who does it (`xa_target`).
    pub(super) push_target: u64,
    pub(super) pusher: Option<TaskId>,
}

/// The parts of the shared state that hold pages.
pub(super) struct Pages<'a> {
    pub(super) files: &'a mut Vec<File>,
    pub(super) lru: &'a mut Lru,
    pub(super) nr_cached: &'a mut u64,
}

impl Pages<'_> {
    /// Puts pages of the device into the cache, up to date.
    pub(super) fn cache(&mut self, device: FileId, run: Range<u64>) {
        let file = &mut self.files[device.idx()];
        for page in run {
            let one = page..page + 1;
            if !file.cached.test(page) {
                *self.nr_cached += file.cached.set(one.clone());
                file.uptodate.set(one.clone());
                self.lru.add(device, one);
            }
        }
    }
}

impl Volume {
    /// A volume on these sectors, as `mkfs` and `mount` leave it: with the root
    /// directory's inode, which has number 0.
    ///
    /// # Errors
    /// Sizes that cannot be.
    pub(crate) fn new(
        options: XfsOptions,
        sectors: Range<u64>,
        device: FileId,
        root: FileId,
    ) -> Result<Volume, String> {
        let geometry = Geometry::new(sectors, &options)?;
        let mut v = Volume {
            numbers: PerFile::default(),
            options,
            space: Space::new(&geometry),
            inodes: Inodes::new(geometry.ag_count),
            dirs: BTreeMap::from([(root, Dir::default())]),
            buffers: Buffers::default(),
            items: Items::default(),
            log: Log::new(
                options.log_buffers,
                options.log_buffer_bytes,
                geometry.log_sectors(),
            ),
            device,
            superblock: 0,
            counters: Mutex::default(),
            groups: Vec::new(),
            collected: Vec::new(),
            collected_bytes: 0,
            dying: Vec::new(),
            push_target: 0,
            pusher: None,
            geometry,
        };
        v.superblock = v.buffers.add(geometry.sector(0), 1, None);
        for ag in 0..geometry.ag_count {
            let first = ag * geometry.ag_blocks;
            let header = geometry.sector(first);
            let agf = v.buffers.add(header + 1, 1, None);
            let agi = v.buffers.add(header + 2, 1, None);
            let roots = [1, 2, 3].map(|nth| v.block_buffer(first + nth));
            v.groups.push(Group {
                agf,
                agi,
                by_start: vec![roots[0]],
                by_size: vec![roots[1]],
                inode_leaves: vec![roots[2]],
            });
        }
        let made = v.new_inode(None, true);
        made.map(|_| v)
            .ok_or_else(|| "no room for the root directory".to_owned())
    }

    /// Blocks that nothing has, promised ones included, and the inodes that
    /// could be made of them, 16 of each.
    pub(crate) fn free(&self) -> FreeSpace {
        let blocks = self.space.free();
        FreeSpace::new(blocks, blocks * 16)
    }

    /// The file of metadata pages.
    pub(crate) fn device_file(&self) -> File {
        let mut file = File::new(self.geometry.blocks * PAGE_BYTES);
        file.extents = Extents::raw(self.geometry.start_sector, self.geometry.blocks);
        file
    }

    fn block_buffer(&mut self, block: u64) -> u32 {
        let sector = self.geometry.sector(block);
        self.buffers.add(sector, PAGE_SECTORS as u32, None)
    }

    /// Pages of the device's file that a buffer lies in.
    pub(super) fn pages_of(&mut self, buffer: u32) -> Range<u64> {
        let b = *self.buffers.get(buffer);
        let first = self.geometry.block(b.sector);
        first..first + u64::from(b.nr_sectors).div_ceil(PAGE_SECTORS)
    }

    /// Takes an inode for a file (`xfs_dialloc`). Returns its number and the
    /// buffers that this touches, and whether they are those of a new chunk.
    pub(super) fn new_inode(
        &mut self,
        parent: Option<u32>,
        directory: bool,
    ) -> Option<(u32, Vec<u32>, bool)> {
        let g = self.geometry;
        let ag = self.inodes.choose_group(&g, &self.space, parent, directory);
        let new = self.inodes.take(&g, &mut self.space, ag, parent)?;
        let mut touched = vec![self.groups[ag as usize].agi];
        if new.chunk_made {
            let chunk = *self.inodes.chunk_of(new.index);
            let first = new.index / CHUNK_INODES * CHUNK_INODES;
            let sector = g.sector(chunk.block);
            let clusters = [0, 1].map(|i| {
                let inodes = Some(first + i * CLUSTER_INODES);
                let sector = sector + u64::from(i * CLUSTER_SECTORS);
                self.buffers.add(sector, CLUSTER_SECTORS, inodes)
            });
            self.inodes.chunk_of(new.index).clusters = clusters;
            touched.extend(clusters);
            self.touch_space(chunk.block, &mut touched);
        }
        touched.push(self.inode_leaf(ag, new.index));
        self.inodes.renew(new.index);
        Some((new.index, touched, new.chunk_made))
    }

    /// The leaf of the tree of inodes that an inode's chunk is in.
    pub(super) fn inode_leaf(&mut self, ag: u64, index: u32) -> u32 {
        let nth = (self.inodes.chunk_of(index).nth / INODE_RECORDS) as usize;
        while self.groups[ag as usize].inode_leaves.len() <= nth {
            let Some(leaf) = self.tree_block(ag) else {
                break;
            };
            self.groups[ag as usize].inode_leaves.push(leaf);
        }
        let leaves = &self.groups[ag as usize].inode_leaves;
        leaves[nth.min(leaves.len() - 1)]
    }

    /// A block for a tree, near the beginning of its group
    /// (`xfs_alloc_get_freelist`).
    fn tree_block(&mut self, ag: u64) -> Option<u32> {
        let goal = self.geometry.free_at_first(ag).start;
        let (block, _) = self.space.take_near(goal, 1)?;
        Some(self.block_buffer(block))
    }

    /// The buffers of free space that a change at a block touches
    /// (`xfs_alloc_fixup_trees`).
    pub(super) fn touch_space(&mut self, block: u64, touched: &mut Vec<u32>) {
        let ag = self.geometry.ag_of(block);
        let wanted = self.space.extents_of(ag) / SPACE_RECORDS + 1;
        while self.groups[ag as usize].by_start.len() < wanted {
            let (Some(a), Some(b)) = (self.tree_block(ag), self.tree_block(ag)) else {
                break;
            };
            self.groups[ag as usize].by_start.push(a);
            self.groups[ag as usize].by_size.push(b);
        }
        let group = &self.groups[ag as usize];
        let offset = (block - ag * self.geometry.ag_blocks) as usize;
        let count = group.by_start.len();
        let nth = (offset * count / self.geometry.ag_blocks as usize).min(count - 1);
        // The large extents, which allocation takes from, are in the last leaf.
        let new = [group.agf, group.by_start[nth], group.by_size[count - 1]];
        for buffer in new {
            if !touched.contains(&buffer) {
                touched.push(buffer);
            }
        }
    }

    /// A directory's entries.
    pub(super) fn dir(&mut self, id: FileId) -> &mut Dir {
        self.dirs.get_mut(&id).expect("a directory of the volume")
    }

    /// A block for a directory, near its inode (`xfs_dir2_grow_inode`).
    pub(super) fn directory_block(&mut self, inode: u32, touched: &mut Vec<u32>) -> Option<u32> {
        if !self.space.has(1) {
            return None;
        }
        let goal = self.inodes.block_of(inode);
        let (block, _) = self.space.take_near(goal, 1)?;
        self.touch_space(block, touched);
        let buffer = self.block_buffer(block);
        touched.push(buffer);
        Some(buffer)
    }

    /// A buffer's blocks are given back (`xfs_dir2_shrink_inode`).
    pub(super) fn free_buffer(&mut self, buffer: u32, touched: &mut Vec<u32>) {
        let run = self.pages_of(buffer);
        self.space.put(run.start, run.end - run.start);
        self.touch_space(run.start, touched);
        self.make_stale(buffer);
    }

    /// A buffer will never be written again (`xfs_buf_stale`, `xfs_trans_binval`).
    fn make_stale(&mut self, buffer: u32) {
        let id = ItemId::buffer(buffer);
        self.items.remove(id);
        let b = self.buffers.get(buffer);
        (b.stale, b.queued) = (true, None);
        if !self.items.get(id).pinned() && !b.busy {
            self.buffers.forget(buffer);
        }
    }

    /// An inode is free (`xfs_difree`): its chunk may go. Returns the buffers
    /// touched, and whether the inode is still there to be written.
    pub(super) fn free_inode(&mut self, index: u32) -> (Vec<u32>, bool) {
        let block = self.inodes.block_of(index);
        let ag = self.geometry.ag_of(block);
        let mut touched = vec![self.groups[ag as usize].agi, self.inode_leaf(ag, index)];
        let g = self.geometry;
        let gone = self.inodes.put(&g, index);
        if let Some(chunk) = gone {
            let first = index / CHUNK_INODES * CHUNK_INODES;
            for i in first..first + CHUNK_INODES {
                self.items.remove(ItemId::inode(i));
                let inode = self.inodes.get(i);
                (inode.logged, inode.touched, inode.flushing) = (false, false, false);
            }
            self.space.put(chunk.block, CHUNK_BLOCKS);
            self.touch_space(chunk.block, &mut touched);
            chunk.clusters.into_iter().for_each(|b| self.make_stale(b));
            self.dying.push(first);
        }
        (touched, gone.is_none())
    }

    /// Numbers of chunks whose records have all arrived may be used again.
    fn bury(&mut self) {
        let (items, inodes) = (&mut self.items, &mut self.inodes);
        self.dying.retain(|first| {
            let mut all = *first..*first + CHUNK_INODES;
            let pinned = all.any(|i| items.get(ItemId::inode(i)).pinned());
            if !pinned {
                inodes.forget_chunk(*first);
            }
            pinned
        });
    }

    /// A record is on the disk: its items are not pinned by it any more, and stand
    /// on the list (`xfs_trans_committed`).
    pub(super) fn finish_record(&mut self, nth: usize, wake: &mut Vec<TaskId>) {
        let Volume {
            log,
            items,
            buffers,
            inodes,
            ..
        } = self;
        let any = log.end_bio(nth, |lsn, changed| {
            for id in changed.drain(..) {
                let item = items.get(id);
                item.unpin();
                let free = item.pins == 0;
                let alive = match id.what() {
                    What::Buffer(b) => {
                        let buffer = *buffers.get(b);
                        if buffer.stale && free && !buffer.busy {
                            buffers.forget(b);
                        }
                        !buffer.stale
                    }
                    What::Inode(i) => inodes.get(i).logged,
                };
                if alive {
                    items.insert(id, lsn);
                }
            }
        });
        if any {
            wake.append(&mut self.log.waiters);
            self.tail_moved(wake);
        }
        if !self.dying.is_empty() {
            self.bury();
        }
    }

    /// The first who waits for space may look again (`xfs_log_move_tail`, later
    /// `xfs_log_space_wake`).
    pub(super) fn tail_moved(&mut self, wake: &mut Vec<TaskId>) {
        wake.extend(self.log.space_queue.front());
    }

    /// The oldest position that the log must keep.
    pub(super) fn tail(&mut self) -> u64 {
        let oldest = self.items.oldest_lsn();
        self.log.tail(oldest)
    }

    /// The write of a buffer has ended (`xfs_buf_iodone`, `xfs_iflush_done`).
    pub(super) fn finish_write(&mut self, buffer: u32, wake: &mut Vec<TaskId>) {
        self.buffers.end_write(buffer, wake);
        let b = *self.buffers.get(buffer);
        let id = ItemId::buffer(buffer);
        if b.stale {
            if !self.items.get(id).pinned() {
                self.buffers.forget(buffer);
            }
            return;
        }
        // Else it was changed again, and stands there for that.
        if self.items.get(id).lsn == b.write_lsn {
            self.items.remove(id);
        }
        if let Some(first) = b.inodes {
            for index in first..first + CLUSTER_INODES {
                let inode = self.inodes.get(index);
                if !std::mem::take(&mut inode.flushing) {
                    continue;
                }
                let flushed = inode.flush_lsn;
                let id = ItemId::inode(index);
                if self.items.get(id).lsn == flushed {
                    self.items.remove(id);
                }
            }
        }
        self.tail_moved(wake);
    }
}
