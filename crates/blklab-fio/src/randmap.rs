// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which blocks of a file a random job has touched: one bit per block, with
//! fast search for the next free one.
//!
//! Behaviour of fio 3.33's map as a random job sees it. Layout: pages of
//! 2048 bits, allocated when first touched, each with a summary of its full
//! words; a bitmap of full pages over all. Setting a bit and finding a free one
//! cost a few words however full the map is; of thousands of jobs with a few draws each, no
//! map takes more than some kilobytes.

const WORDS_PER_PAGE: usize = 32;
const BITS_PER_PAGE: u64 = WORDS_PER_PAGE as u64 * 64;
/// Most blocks of a map: 2^34, 64 TiB in blocks of 4 KiB.
pub const BLOCKS_MAX: u64 = 1 << 34;

#[derive(Clone, Debug)]
struct Page {
    words: [u64; WORDS_PER_PAGE],
    /// Bit i: word i is full.
    full: u32,
    /// Whether it is listed as touched.
    touched: bool,
}

/// A map of the blocks of one file.
#[derive(Clone, Debug, Default)]
pub struct RandomMap {
    blocks: u64,
    pages: Vec<Option<Box<Page>>>,
    /// Bit i: page i is full.
    full: Vec<u64>,
    /// Pages that may hold bits, so that clearing touches only those.
    touched: Vec<u32>,
}

impl RandomMap {
    /// An empty map; `None` if it would be too large.
    pub fn new(blocks: u64) -> Option<RandomMap> {
        if blocks > BLOCKS_MAX {
            return None;
        }
        let mut map = RandomMap {
            blocks,
            ..RandomMap::default()
        };
        map.grow(blocks.div_ceil(BITS_PER_PAGE) as usize);
        Some(map)
    }

    /// Memory that a map takes at most once `nr_draws` blocks are set; 0 draws
    /// are any number.
    pub fn bytes(blocks: u64, nr_draws: u64) -> u64 {
        let pages = blocks.div_ceil(BITS_PER_PAGE);
        let touched = match nr_draws {
            0 => pages,
            draws => pages.min(draws),
        };
        let of_pages = touched.saturating_mul(size_of::<Page>() as u64 + 16);
        of_pages.saturating_add(pages * 8)
    }

    /// Forgets everything; pages keep their memory.
    pub fn clear(&mut self) {
        for &page in &self.touched {
            if let Some(page) = &mut self.pages[page as usize] {
                page.words.fill(0);
                page.full = 0;
                page.touched = false;
            }
        }
        self.touched.clear();
        self.full.fill(0);
    }

    /// Whether a block was touched; blocks past the end count as touched.
    pub fn is_set(&self, block: u64) -> bool {
        block >= self.blocks || self.bit(block)
    }

    /// The first free block behind this one, or else from the beginning.
    pub fn next_free(&self, block: u64) -> Option<u64> {
        if block >= self.blocks {
            return None;
        }
        self.first_free_from(block + 1)
            .or_else(|| self.first_free_from(0))
    }

    /// The first free block from this one on.
    pub fn first_free(&self, block: u64) -> Option<u64> {
        self.first_free_from(block)
    }

    /// Marks up to `count` blocks from here on, up to the first that is marked
    /// already, and returns how many. Blocks past the end can be marked too, up
    /// to a multiple of 64.
    #[inline]
    pub fn set(&mut self, block: u64, count: u64) -> u64 {
        let room = self.blocks.next_multiple_of(64).saturating_sub(block);
        let count = count.min(room);
        if count == 1 {
            return self.set_in_word(block, 1);
        }
        let mut done = 0;
        while done < count {
            let at = block + done;
            let take = (64 - at % 64).min(count - done);
            let free = self.set_in_word(at, take);
            done += free;
            if free < take {
                break;
            }
        }
        done
    }

    fn bit(&self, block: u64) -> bool {
        match self.pages.get((block / BITS_PER_PAGE) as usize) {
            Some(Some(page)) => {
                page.words[(block % BITS_PER_PAGE / 64) as usize] >> (block % 64) & 1 == 1
            }
            _ => false,
        }
    }

    #[cold]
    fn grow(&mut self, pages: usize) {
        self.pages.resize_with(pages, || None);
        self.full.resize(pages.div_ceil(64), 0);
    }

    /// Sets bits of one word up to the first one that is set.
    #[inline]
    fn set_in_word(&mut self, block: u64, count: u64) -> u64 {
        let page_idx = (block / BITS_PER_PAGE) as usize;
        if page_idx >= self.pages.len() {
            self.grow(page_idx + 1);
        }
        let page = self.pages[page_idx].get_or_insert_with(|| {
            Box::new(Page {
                words: [0; WORDS_PER_PAGE],
                full: 0,
                touched: false,
            })
        });
        if !std::mem::replace(&mut page.touched, true) {
            self.touched.push(page_idx as u32);
        }
        let word_idx = (block % BITS_PER_PAGE / 64) as usize;
        let word = &mut page.words[word_idx];
        let free = u64::from((*word >> (block % 64)).trailing_zeros()).min(count);
        if free > 0 {
            *word |= (u64::MAX >> (64 - free)) << (block % 64);
        }
        if *word == u64::MAX {
            page.full |= 1 << word_idx;
            if page.full == u32::MAX {
                self.full[page_idx / 64] |= 1 << (page_idx % 64);
            }
        }
        free
    }

    /// The first free block from this one on, before the end.
    fn first_free_from(&self, block: u64) -> Option<u64> {
        let mut page_idx = (block / BITS_PER_PAGE) as usize;
        let mut from = block % BITS_PER_PAGE;
        while (page_idx as u64) * BITS_PER_PAGE < self.blocks {
            let found = match self.pages.get(page_idx) {
                Some(Some(page)) => page.first_free_from(from),
                _ => Some(from),
            };
            if let Some(bit) = found {
                let block = page_idx as u64 * BITS_PER_PAGE + bit;
                return (block < self.blocks).then_some(block);
            }
            from = 0;
            page_idx = first_zero_from(&self.full, page_idx + 1);
        }
        None
    }
}

impl Page {
    fn first_free_from(&self, bit: u64) -> Option<u64> {
        let mut word_idx = (bit / 64) as usize;
        // Bits before the start count as taken.
        let mut below = (1u64 << (bit % 64)) - 1;
        while word_idx < WORDS_PER_PAGE {
            let free = !(self.words[word_idx] | below);
            if free != 0 {
                return Some(word_idx as u64 * 64 + u64::from(free.trailing_zeros()));
            }
            below = 0;
            let behind = !self.full & u32::MAX.checked_shl(word_idx as u32 + 1).unwrap_or(0);
            word_idx = behind.trailing_zeros() as usize;
        }
        None
    }
}

/// The first zero bit from this one on, or a number past the end.
fn first_zero_from(words: &[u64], from: usize) -> usize {
    let mut at = from / 64;
    let mut below = (1u64 << (from % 64)) - 1;
    while let Some(word) = words.get(at) {
        let zero = !(word | below);
        if zero != 0 {
            return at * 64 + zero.trailing_zeros() as usize;
        }
        below = 0;
        at += 1;
    }
    words.len() * 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The same with a plain list of booleans.
    fn next_free_slowly(bits: &[bool], block: usize) -> Option<u64> {
        let len = bits.len();
        (block + 1..len)
            .chain(0..len)
            .find(|&at| !bits[at])
            .map(|at| at as u64)
    }

    fn fill(blocks: u64, count_max: u64) {
        let mut map = RandomMap::new(blocks).expect("small");
        let mut bits = vec![false; blocks as usize];
        let mut rng = Rng::new(blocks, false);
        for _ in 0..blocks * 2 {
            let mut block = rng.below(blocks);
            assert_eq!(map.is_set(block), bits[block as usize]);
            if map.is_set(block) {
                let next = map.next_free(block);
                assert_eq!(next, next_free_slowly(&bits, block as usize));
                match next {
                    Some(next) => block = next,
                    None => break,
                }
            }
            let count = 1 + rng.below(count_max);
            let expected = (block..(block + count).min(blocks))
                .take_while(|&at| !bits[at as usize])
                .count() as u64;
            // Only within the end: past it, bits are free until marked.
            let count = count.min(blocks - block);
            assert_eq!(map.set(block, count), expected);
            for at in block..block + expected {
                bits[at as usize] = true;
            }
        }
        assert!(
            bits.iter().all(|&bit| bit),
            "{blocks} blocks are all taken in the end"
        );
        map.clear();
        assert_eq!(map.first_free_from(0), Some(0));
    }

    #[test]
    fn agrees_with_a_plain_list() {
        for blocks in [1, 63, 64, 65, 1000, 2048, 2049, 8192, 70000] {
            fill(blocks, 1);
            fill(blocks, 9);
        }
    }

    #[test]
    fn few_draws_in_a_large_file_take_little_memory() {
        let of_a_job = RandomMap::bytes((1 << 30) / 4096, 16);
        assert!(of_a_job < 6 << 10, "{of_a_job} bytes");
    }

    #[test]
    fn past_the_end() {
        let mut map = RandomMap::new(10).expect("small");
        assert_eq!(map.set(8, 4), 4);
        assert_eq!(map.set(60, 9), 4);
        assert_eq!(map.set(9, 3), 0);
        assert!(map.is_set(10) && map.is_set(99));
        assert_eq!(map.next_free(10), None);
        assert!(RandomMap::new(BLOCKS_MAX + 1).is_none());
    }
}
