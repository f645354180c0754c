// SPDX-License-Identifier: MIT OR Apache-2.0
//! Free space of one block group, as the multi-block allocator looks at it
//! (fs/ext4/mballoc.c): free blocks in chunks of powers of two, each the
//! largest that its alignment allows.

use super::layout::GROUP_BLOCKS;
use std::ops::Range;

/// Chunks have 2^0 to 2^13 blocks.
pub(super) const ORDERS: usize = 14;

const BLOCKS: u32 = GROUP_BLOCKS as u32;

/// Which blocks of a group are free (`ext4_buddy`, `ext4_group_info`). Blocks are
/// counted from its start.
#[derive(Clone, Debug)]
pub(super) struct Buddy {
    used: Vec<u64>,
    /// The chunks of each order.
    chunks: [Vec<u64>; ORDERS],
    /// `bb_counters`.
    counts: [u32; ORDERS],
    free: u32,
    /// Runs of free blocks (`bb_fragments`).
    fragments: u32,
}

fn test(bits: &[u64], at: u32) -> bool {
    bits[(at / 64) as usize] >> (at % 64) & 1 == 1
}

impl Buddy {
    /// A group that is free but for these ranges, which do not overlap
    /// (`ext4_mb_generate_buddy`).
    pub(super) fn new(taken: impl IntoIterator<Item = Range<u32>>) -> Buddy {
        let words = |order: usize| (BLOCKS as usize >> order).div_ceil(64);
        let mut buddy = Buddy {
            used: vec![0; words(0)],
            chunks: std::array::from_fn(|order| vec![0; words(order)]),
            counts: [0; ORDERS],
            free: BLOCKS,
            fragments: 1,
        };
        buddy.add_pieces(0..BLOCKS);
        for range in taken {
            buddy.take(range);
        }
        buddy
    }

    /// Free blocks.
    pub(super) fn free(&self) -> u32 {
        self.free
    }

    /// Mean length of a free run.
    pub(super) fn mean_run(&self) -> u32 {
        self.free.checked_div(self.fragments).unwrap_or(0)
    }

    /// Whether there is a chunk of at least that order.
    pub(super) fn has_chunk(&self, order: usize) -> bool {
        self.counts[order..].iter().any(|n| *n > 0)
    }

    /// The first chunk of the lowest order from this one on that has any.
    pub(super) fn first_chunk(&self, order: usize) -> Option<u32> {
        let order = (order..ORDERS).find(|k| self.counts[*k] > 0)?;
        let words = self.chunks[order].iter().enumerate();
        let (i, word) = words.into_iter().find(|(_, w)| **w != 0)?;
        Some((i as u32 * 64 + word.trailing_zeros()) << order)
    }

    /// The order of the chunk that a free block lies in
    /// (`mb_find_order_for_block`).
    fn order_of(&self, at: u32) -> Option<usize> {
        (0..ORDERS).find(|k| test(&self.chunks[*k], at >> k))
    }

    /// The first free block from one on.
    pub(super) fn next_free(&self, from: u32) -> Option<u32> {
        let mut at = from;
        while at < BLOCKS {
            let clear = !(self.used[(at / 64) as usize] >> (at % 64));
            let skip = clear.trailing_zeros();
            if skip < 64 - at % 64 {
                return Some(at + skip);
            }
            at += 64 - at % 64;
        }
        None
    }

    /// Free blocks in a row from one on, at most so many.
    pub(super) fn run_at(&self, at: u32, most: u32) -> u32 {
        let end = at.saturating_add(most).min(BLOCKS);
        let mut next = at;
        while next < end {
            let ahead = self.used[(next / 64) as usize] >> (next % 64);
            let skip = ahead.trailing_zeros();
            if skip < 64 - next % 64 {
                return (next + skip).min(end) - at;
            }
            next += 64 - next % 64;
        }
        end - at
    }

    /// The extent that the allocator sees at a free block: its chunk, and those
    /// behind it until `needed` blocks are there (`mb_find_extent`).
    pub(super) fn extent_at(&self, at: u32, needed: u32) -> u32 {
        let mut end = at;
        while end < BLOCKS && end - at < needed {
            let Some(order) = self.order_of(end) else {
                break;
            };
            end = ((end >> order) + 1) << order;
        }
        end - at
    }

    fn set_chunk(&mut self, order: usize, chunk: u32, on: bool) {
        let (word, bit) = ((chunk / 64) as usize, 1 << (chunk % 64));
        debug_assert!(
            test(&self.chunks[order], chunk) != on,
            "chunk {chunk} of order {order} is set to {on} twice"
        );
        if on {
            self.chunks[order][word] |= bit;
            self.counts[order] += 1;
        } else {
            self.chunks[order][word] &= !bit;
            self.counts[order] -= 1;
        }
    }

    /// Adds free blocks that have no free neighbours beyond their parent chunk
    /// (`ext4_mb_mark_free_simple`).
    fn add_pieces(&mut self, range: Range<u32>) {
        let mut at = range.start;
        while at < range.end {
            let order = largest_piece(at, range.end);
            self.set_chunk(order, at >> order, true);
            at += 1 << order;
        }
    }

    fn mark(&mut self, range: &Range<u32>, used: bool) {
        let joins = |b: bool| u32::from(b);
        let before = range.start > 0 && !test(&self.used, range.start - 1);
        let after = range.end < BLOCKS && !test(&self.used, range.end);
        let both = joins(before) + joins(after);
        let blocks = range.end - range.start;
        for at in range.clone() {
            let (word, bit) = ((at / 64) as usize, 1 << (at % 64));
            if used {
                self.used[word] |= bit;
            } else {
                self.used[word] &= !bit;
            }
        }
        if used {
            self.free -= blocks;
            self.fragments = self.fragments + both - 1;
        } else {
            self.free += blocks;
            self.fragments = self.fragments + 1 - both;
        }
        debug_assert_eq!(
            (0..ORDERS).map(|k| self.counts[k] << k).sum::<u32>(),
            self.free,
            "chunks hold the free blocks of a group"
        );
    }

    /// Takes free blocks (`mb_mark_used`).
    pub(super) fn take(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        let mut at = range.start;
        while at < range.end {
            let order = self.order_of(at);
            let order = order.unwrap_or_else(|| panic!("block {at} of a group is taken twice"));
            let chunk = at >> order;
            self.set_chunk(order, chunk, false);
            let (start, end) = (chunk << order, (chunk + 1) << order);
            self.add_pieces(start..at);
            let stop = range.end.min(end);
            self.add_pieces(stop..end);
            at = stop;
        }
        self.mark(&range, true);
    }

    /// Gives blocks back (`mb_free_blocks`).
    pub(super) fn give(&mut self, range: Range<u32>) {
        if range.is_empty() {
            return;
        }
        let free = self.next_free(range.start);
        assert!(
            free.is_none_or(|at| at >= range.end),
            "{range:?} of a group are given back, but {free:?} is free"
        );
        let mut at = range.start;
        while at < range.end {
            let mut order = largest_piece(at, range.end);
            let mut chunk = at >> order;
            at += 1 << order;
            while order + 1 < ORDERS && test(&self.chunks[order], chunk ^ 1) {
                self.set_chunk(order, chunk ^ 1, false);
                chunk >>= 1;
                order += 1;
            }
            self.set_chunk(order, chunk, true);
        }
        self.mark(&range, false);
    }
}

/// The largest chunk that begins at a block and ends no later.
fn largest_piece(at: u32, end: u32) -> usize {
    let aligned = if at == 0 { 31 } else { at.trailing_zeros() };
    let fits = (end - at).ilog2();
    (aligned.min(fits) as usize).min(ORDERS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn chunks_are_split_and_joined_again() {
        let mut b = Buddy::new(std::iter::once(0..5));
        assert_eq!((b.free(), b.mean_run()), (32763, 32763));
        // 5, then 6 and 7, then 8 to 15: alone, a pair, eight.
        assert_eq!(b.first_chunk(0), Some(5));
        assert_eq!(b.first_chunk(1), Some(6));
        assert_eq!(b.first_chunk(2), Some(8));
        assert_eq!(b.first_chunk(11), Some(2048));
        assert_eq!(b.extent_at(5, 3), 3);
        assert_eq!(b.extent_at(5, 4), 11);
        b.take(2048..4096);
        assert_eq!(
            b.first_chunk(11),
            Some(4096),
            "no smaller one is that large"
        );
        assert_eq!(b.mean_run(), (32768 - 5 - 2048) / 2);
        b.give(2048..4096);
        b.give(0..5);
        assert_eq!((b.free(), b.mean_run()), (32768, 32768));
        assert_eq!(b.counts[13], 4);
        assert_eq!(b.counts[..13], [0; 13]);
    }

    #[test]
    fn agrees_with_a_plain_set() {
        let mut b = Buddy::new([]);
        let mut free: BTreeSet<u32> = (0..BLOCKS).collect();
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x % n) as u32
        };
        let mut taken: Vec<Range<u32>> = Vec::new();
        for _ in 0..3000 {
            if draw(3) > 0 || taken.is_empty() {
                let Some(at) = b.next_free(draw(u64::from(BLOCKS))) else {
                    continue;
                };
                let len = b.run_at(at, 1 + draw(300));
                assert!((at..at + len).all(|i| free.remove(&i)));
                b.take(at..at + len);
                taken.push(at..at + len);
            } else {
                let range = taken.swap_remove(draw(taken.len() as u64) as usize);
                free.extend(range.clone());
                b.give(range);
            }
            assert_eq!(b.free() as usize, free.len());
            let starts = free
                .iter()
                .filter(|i| **i == 0 || !free.contains(&(**i - 1)));
            if draw(50) == 0 {
                assert_eq!(b.fragments as usize, starts.count());
                let sum: u32 = (0..ORDERS).map(|k| b.counts[k] << k).sum();
                assert_eq!(sum, b.free());
            }
        }
    }
}
