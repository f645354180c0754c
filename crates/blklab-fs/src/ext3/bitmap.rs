// SPDX-License-Identifier: MIT OR Apache-2.0
//! A group's block bitmap and the searches in it (fs/ext3/balloc.c,
//! `find_next_usable_block`, 2.6.28).

use super::layout::GROUP_BLOCKS;

/// One bit per block of a group; set: taken.
pub(super) type GroupBits = [u64; (GROUP_BLOCKS / 64) as usize];

/// Whether a block is taken.
pub(super) fn taken(bits: &GroupBits, at: u64) -> bool {
    bits[(at / 64) as usize] >> (at % 64) & 1 == 1
}

/// The first free block of `from..end`.
pub(super) fn next_clear(bits: &GroupBits, from: u64, end: u64) -> Option<u64> {
    let mut at = from;
    while at < end {
        let ones = u64::from((!(bits[(at / 64) as usize] >> (at % 64))).trailing_zeros());
        let left = 64 - at % 64;
        if ones < left {
            return Some(at + ones).filter(|a| *a < end);
        }
        at += left;
    }
    None
}

/// The first block of `from..end` that is taken; `end` if none is.
pub(super) fn next_taken(bits: &GroupBits, from: u64, end: u64) -> u64 {
    let mut at = from;
    while at < end {
        let free = u64::from((bits[(at / 64) as usize] >> (at % 64)).trailing_zeros());
        if free < 64 {
            return (at + free).min(end);
        }
        at += 64 - at % 64;
    }
    end
}

/// The next block that suits a file (`find_next_usable_block`): near by if the
/// search begins inside the group, else the first eight in a row, else any.
pub(super) fn next_usable(bits: &GroupBits, start: u64, end: u64) -> Option<u64> {
    if start > 0 {
        let near = start.next_multiple_of(64).min(end);
        if let Some(at) = next_clear(bits, start, near) {
            return Some(at);
        }
    }
    let empty_byte = (start / 8..end.div_ceil(8))
        .map(|byte| byte * 8)
        .find(|at| bits[(at / 64) as usize] >> (at % 64) & 0xff == 0)
        .filter(|at| (start..end).contains(at));
    empty_byte.or_else(|| next_clear(bits, start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_by_comes_first_then_a_free_byte_then_any() {
        let mut bits: GroupBits = [u64::MAX; 512];
        bits[2] &= !(1 << 5);
        bits[3] &= !0xff00;
        assert_eq!(next_usable(&bits, 129, 32_768), Some(133));
        assert_eq!(next_usable(&bits, 0, 32_768), Some(200), "bytes first");
        assert_eq!(next_usable(&bits, 64, 200), Some(133));
        assert_eq!(next_usable(&bits, 208, 32_768), None);
        assert!(taken(&bits, 132) && !taken(&bits, 133));
        assert_eq!(next_clear(&bits, 134, 32_768), Some(200));
        assert_eq!(next_taken(&bits, 132, 32_768), 132);
        assert_eq!(next_taken(&bits, 133, 32_768), 134);
        assert_eq!(next_taken(&bits, 200, 32_768), 208);
        bits[4] = 0;
        bits[5] = 0;
        assert_eq!(next_taken(&bits, 260, 32_768), 384);
        assert_eq!(next_taken(&bits, 260, 300), 300);
    }
}
