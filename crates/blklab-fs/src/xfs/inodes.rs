// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inodes: chunks of 64 in 4 blocks, written in clusters of 32
//! (fs/xfs/xfs_ialloc.c, 2.6.26).
//!
//! A directory goes to the next group in turn, a file to its directory's. In
//! the group, the chunk nearest to the directory's own has precedence, or, for
//! a directory from another group, the newest; a chunk is made when the group
//! has no free inode, and goes when all of it are free.

use super::layout::Geometry;
use super::space::Space;
use std::collections::BTreeMap;

/// Inodes of a chunk (`XFS_INODES_PER_CHUNK`), blocks of a chunk, and inodes of a
/// cluster.
pub(super) const CHUNK_INODES: u32 = 64;
pub(super) const CHUNK_BLOCKS: u64 = 4;
pub(super) const CLUSTER_INODES: u32 = 32;
/// Chunks begin at multiples of so many blocks (`sb_inoalignmt`).
const CHUNK_ALIGN: u64 = 2;

/// An inode in memory (`xfs_inode_t`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inode {
    /// It was changed in a transaction and is not in its cluster (`ilf_fields`).
    pub(super) logged: bool,
    /// Times or the size changed outside of transactions (`i_update_core`).
    pub(super) touched: bool,
    /// It was copied to its cluster, whose write has not ended (`xfs_iflock`).
    pub(super) flushing: bool,
    /// Position of the change that was copied (`ili_flush_lsn`).
    pub(super) flush_lsn: u64,
    /// The directory's block that the entry is in.
    pub(super) entry_block: u16,
    /// Dirty pages without a place (`i_delayed_blks`).
    pub(super) delayed: u32,
    /// Blocks behind the end that the file has while it grows.
    pub(super) spare_start: u64,
    pub(super) spare_blocks: u16,
    pub(super) atime_s: u32,
    pub(super) mtime_s: u32,
}

impl Inode {
    /// Whether the cluster lacks something of it.
    pub(super) fn is_dirty(&self) -> bool {
        self.logged || self.touched
    }
}

/// A chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) block: u64,
    /// One bit per inode that is free.
    free: u64,
    /// Buffers of its two clusters.
    pub(super) clusters: [u32; 2],
    /// Which of its group's chunks it was, in order of creation.
    pub(super) nth: u32,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Chunks with free inodes by their block.
    with_free: BTreeMap<u64, u32>,
    /// `agi_newino`.
    newest: Option<u32>,
    made: u32,
}

/// All inodes, numbered by chunk and place in it.
#[derive(Debug)]
pub(super) struct Inodes {
    table: Vec<Inode>,
    chunks: Vec<Chunk>,
    /// Numbers of chunks that are gone.
    gone: Vec<u32>,
    groups: Vec<Group>,
    /// The group of the next directory (`m_agirotor`).
    rotor: u64,
}

/// A new inode, and the chunk that had to be made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewInode {
    pub(super) index: u32,
    pub(super) chunk_made: bool,
}

impl Inodes {
    pub(super) fn new(groups: u64) -> Inodes {
        Inodes {
            table: Vec::new(),
            chunks: Vec::new(),
            gone: Vec::new(),
            groups: vec![Group::default(); groups as usize],
            rotor: 0,
        }
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Inode {
        &mut self.table[index as usize]
    }

    /// An inode is taken anew: what was on its way to the cluster still is.
    pub(super) fn renew(&mut self, index: u32) {
        let inode = self.get(index);
        let (flushing, flush_lsn) = (inode.flushing, inode.flush_lsn);
        *inode = Inode {
            flushing,
            flush_lsn,
            ..Inode::default()
        };
    }

    pub(super) fn chunk_of(&mut self, index: u32) -> &mut Chunk {
        &mut self.chunks[(index / CHUNK_INODES) as usize]
    }

    /// The block that an inode lies in.
    pub(super) fn block_of(&self, index: u32) -> u64 {
        let chunk = &self.chunks[(index / CHUNK_INODES) as usize];
        chunk.block + u64::from(index % CHUNK_INODES) / 16
    }

    /// The buffer of an inode's cluster.
    pub(super) fn cluster_of(&self, index: u32) -> u32 {
        let chunk = &self.chunks[(index / CHUNK_INODES) as usize];
        chunk.clusters[(index % CHUNK_INODES / CLUSTER_INODES) as usize]
    }

    /// Numbers of all inodes that there were so far.
    pub(super) fn count(&self) -> u32 {
        self.table.len() as u32
    }

    /// The group for a new inode: a directory's is the next in turn that has room
    /// (`xfs_ialloc_ag_select`).
    pub(super) fn choose_group(
        &mut self,
        g: &Geometry,
        space: &Space,
        parent: Option<u32>,
        directory: bool,
    ) -> u64 {
        let count = g.ag_count;
        let first = match (directory, parent) {
            (false, Some(p)) => g.ag_of(self.block_of(p)),
            _ => {
                let ag = self.rotor;
                self.rotor = (ag + 1) % count;
                ag
            }
        };
        let has_room = |ag: &u64| {
            let group = &self.groups[*ag as usize];
            !group.with_free.is_empty() || space.free_of(*ag) > CHUNK_BLOCKS
        };
        let mut all = (0..count).map(|i| (first + i) % count);
        all.find(has_room).unwrap_or(first)
    }

    /// Takes an inode of a group (`xfs_dialloc`); none if there is no room for a
    /// chunk. The clusters of a new chunk have no buffers yet.
    pub(super) fn take(
        &mut self,
        g: &Geometry,
        space: &mut Space,
        ag: u64,
        parent: Option<u32>,
    ) -> Option<NewInode> {
        let chunk_made = self.groups[ag as usize].with_free.is_empty();
        if chunk_made {
            self.make_chunk(g, space, ag)?;
        }
        let home = parent.map(|p| self.chunks[(p / CHUNK_INODES) as usize].block);
        let home = home.filter(|block| g.ag_of(*block) == ag);
        let group = &mut self.groups[ag as usize];
        let newest = group.newest.map(|n| self.chunks[n as usize]);
        let (block, number) = match (home, newest) {
            (Some(home), _) => nearest(&group.with_free, home),
            (None, Some(c)) if c.free != 0 => (c.block, group.newest),
            _ => first(&group.with_free),
        };
        let number = number?;
        let chunk = &mut self.chunks[number as usize];
        let place = chunk.free.trailing_zeros();
        chunk.free &= chunk.free - 1;
        if chunk.free == 0 {
            group.with_free.remove(&block);
        }
        let index = number * CHUNK_INODES + place;
        Some(NewInode { index, chunk_made })
    }

    /// A new chunk (`xfs_ialloc_ag_alloc`).
    fn make_chunk(&mut self, g: &Geometry, space: &mut Space, ag: u64) -> Option<()> {
        let group = &mut self.groups[ag as usize];
        // Behind the newest chunk, or near the group's beginning.
        let start = g.free_at_first(ag).start;
        let goal = group
            .newest
            .map_or(start, |n| self.chunks[n as usize].block + CHUNK_BLOCKS);
        let behind = space.take_aligned(ag, goal, CHUNK_BLOCKS, CHUNK_ALIGN);
        let block = match behind {
            Some(block) if block == goal => block,
            Some(block) => {
                space.put(block, CHUNK_BLOCKS);
                space.take_aligned(ag, start, CHUNK_BLOCKS, CHUNK_ALIGN)?
            }
            None => return None,
        };
        let chunk = Chunk {
            block,
            free: u64::MAX,
            clusters: [0; 2],
            nth: group.made,
        };
        let number = self.gone.pop().unwrap_or(self.chunks.len() as u32);
        if number as usize == self.chunks.len() {
            self.chunks.push(chunk);
            let inodes = self.chunks.len() * CHUNK_INODES as usize;
            self.table.resize(inodes, Inode::default());
        } else {
            self.chunks[number as usize] = chunk;
        }
        group.made += 1;
        group.newest = Some(number);
        group.with_free.insert(block, number);
        Some(())
    }

    /// Gives an inode back (`xfs_difree`). Returns its chunk if all of that is free
    /// now: the chunk is gone then, and its number may be used again after
    /// [`Inodes::forget_chunk`].
    pub(super) fn put(&mut self, g: &Geometry, index: u32) -> Option<Chunk> {
        let number = index / CHUNK_INODES;
        let chunk = &mut self.chunks[number as usize];
        chunk.free |= 1 << (index % CHUNK_INODES);
        let group = &mut self.groups[g.ag_of(chunk.block) as usize];
        if chunk.free != u64::MAX {
            group.with_free.insert(chunk.block, number);
            return None;
        }
        group.with_free.remove(&chunk.block);
        if group.newest == Some(number) {
            group.newest = group.with_free.values().next_back().copied();
        }
        Some(*chunk)
    }

    /// A chunk's number may be used again.
    pub(super) fn forget_chunk(&mut self, index: u32) {
        self.gone.push(index / CHUNK_INODES);
    }
}

fn nearest(with_free: &BTreeMap<u64, u32>, home: u64) -> (u64, Option<u32>) {
    let left = with_free.range(..=home).next_back();
    let right = with_free.range(home..).next();
    let best = match (left, right) {
        (Some(l), Some(r)) if home - l.0 <= r.0 - home => Some(l),
        (Some(_), Some(r)) => Some(r),
        (l, r) => l.or(r),
    };
    best.map_or((0, None), |(block, number)| (*block, Some(*number)))
}

fn first(with_free: &BTreeMap<u64, u32>) -> (u64, Option<u32>) {
    let first = with_free.first_key_value();
    first.map_or((0, None), |(block, number)| (*block, Some(*number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xfs::{XfsFeatures, XfsOptions};
    use blklab_kernel::KernelVersion;

    #[test]
    fn directories_take_turns_and_files_follow_their_directory() {
        let o = XfsOptions::new(XfsFeatures::of(KernelVersion::v2_6(26)));
        let g = Geometry::new(0..20_012_072_960 / 512, &o).unwrap();
        let (mut space, mut inodes) = (Space::new(&g), Inodes::new(g.ag_count));
        let free = space.free();
        let make = |inodes: &mut Inodes, space: &mut Space, parent, directory| {
            let ag = inodes.choose_group(&g, space, parent, directory);
            let new = inodes.take(&g, space, ag, parent).unwrap();
            (ag, new.index, new.chunk_made)
        };
        assert_eq!(make(&mut inodes, &mut space, None, true), (0, 0, true));
        let second = make(&mut inodes, &mut space, Some(0), true);
        assert_eq!(second, (1, 64, true));
        assert_eq!(
            make(&mut inodes, &mut space, Some(64), false),
            (1, 65, false)
        );
        assert_eq!(make(&mut inodes, &mut space, Some(0), false), (0, 1, false));
        assert_eq!(inodes.block_of(64 + 16), g.ag_blocks + 9);
        for _ in 2..64 {
            make(&mut inodes, &mut space, Some(64), false);
        }
        let next = make(&mut inodes, &mut space, Some(64), false);
        assert_eq!(next, (1, 128, true), "a second chunk");
        assert_eq!(inodes.block_of(128), g.ag_blocks + 12, "behind the first");
        assert_eq!(space.free(), free - 3 * 4);
        let chunk = inodes.put(&g, 128).unwrap();
        space.put(chunk.block, CHUNK_BLOCKS);
        inodes.forget_chunk(128);
        assert_eq!(inodes.put(&g, 70), None);
        let again = make(&mut inodes, &mut space, Some(64), false);
        assert_eq!(
            again,
            (1, 70, false),
            "what is free in the directory's chunk"
        );
        let again = make(&mut inodes, &mut space, Some(64), false);
        assert_eq!(again, (1, 128, true));
    }
}
