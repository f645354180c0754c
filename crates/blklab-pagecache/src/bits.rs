// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bit per page of a file; for files of more than 64 pages with a summary
//! level.
//!
//! The kernel keeps page flags in pages and tags in a radix tree. A bitmap
//! says the same and makes an operation on a run of pages cost words, not
//! pages. A file of up to 64 pages, as most are, has its one word in place. The
//! summary has one bit per word that is not zero, so looking for the next set
//! bit skips 4096 clear pages at a step.

use std::ops::Range;

const BITS: u64 = 64;

/// A set of page indexes that grows as needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageBits {
    /// Pages 0 to 63.
    Word(u64),
    /// Any.
    Words(Box<Words>),
}

impl Default for PageBits {
    fn default() -> PageBits {
        PageBits::Word(0)
    }
}

impl PageBits {
    /// Number of pages in the set.
    pub fn count(&self) -> u64 {
        match self {
            PageBits::Word(word) => u64::from(word.count_ones()),
            PageBits::Words(words) => words.count,
        }
    }

    /// Whether `page` is in the set.
    pub fn test(&self, page: u64) -> bool {
        match self {
            PageBits::Word(word) => page < BITS && word >> page & 1 == 1,
            PageBits::Words(words) => words.test(page),
        }
    }

    /// Adds a run of pages; returns how many are new.
    #[inline]
    pub fn set(&mut self, run: Range<u64>) -> u64 {
        match self {
            PageBits::Words(words) if is_page(&run) => words.set_page(run.start),
            _ => self.set_run(run),
        }
    }

    fn set_run(&mut self, run: Range<u64>) -> u64 {
        if let PageBits::Word(word) = self {
            if run.is_empty() {
                return 0;
            }
            if run.end <= BITS {
                let mask = mask_of(&run);
                let added = mask & !*word;
                *word |= mask;
                return u64::from(added.count_ones());
            }
            *self = PageBits::Words(Box::new(Words::from_word(*word)));
        }
        match self {
            PageBits::Word(_) => 0,
            PageBits::Words(words) => words.set(run),
        }
    }

    /// Removes a run of pages; returns how many were there.
    #[inline]
    pub fn clear(&mut self, run: Range<u64>) -> u64 {
        match self {
            PageBits::Word(0) => 0,
            PageBits::Words(words) if words.count == 0 => 0,
            PageBits::Words(words) if is_page(&run) => words.clear_page(run.start),
            _ => self.clear_run(run),
        }
    }

    fn clear_run(&mut self, run: Range<u64>) -> u64 {
        match self {
            PageBits::Word(word) => {
                let run = run.start..run.end.min(BITS);
                let removed = mask_of(&run) & *word;
                *word &= !removed;
                u64::from(removed.count_ones())
            }
            PageBits::Words(words) => words.clear(run),
        }
    }

    /// Gives memory back if the set is empty.
    pub(crate) fn shrink(&mut self) {
        if self.count() == 0 {
            *self = PageBits::Word(0);
        }
    }

    /// Adds the pages of `run` that are in `other`; returns how many are new.
    pub(crate) fn set_where(&mut self, other: &PageBits, run: Range<u64>) -> u64 {
        let mut added = 0;
        let mut at = run.start;
        while let Some(first) = other.next_set(at, run.end) {
            at = other.next_clear(first, run.end);
            added += self.set(first..at);
        }
        added
    }

    /// Number of pages of `run` in the set.
    pub fn count_in(&self, run: Range<u64>) -> u64 {
        match self {
            PageBits::Word(word) => {
                let mask = mask_of(&(run.start..run.end.min(BITS)));
                u64::from((mask & word).count_ones())
            }
            PageBits::Words(words) => words.count_in(run),
        }
    }

    /// The first page of the set in `from..end`.
    pub fn next_set(&self, from: u64, end: u64) -> Option<u64> {
        match self {
            PageBits::Word(word) => {
                let found = mask_of(&(from..end.min(BITS))) & word;
                (found != 0).then(|| u64::from(found.trailing_zeros()))
            }
            PageBits::Words(words) => words.next_set(from, end),
        }
    }

    /// The first page of `from..end` that is not in the set; `end` if all are.
    pub fn next_clear(&self, from: u64, end: u64) -> u64 {
        match self {
            PageBits::Word(_) if from >= end.min(BITS) => from.min(end),
            PageBits::Word(word) => {
                let ones = u64::from((!(word >> from)).trailing_zeros());
                (from + ones).min(BITS).min(end)
            }
            PageBits::Words(words) => words.next_clear(from, end),
        }
    }

    /// Number of pages in the set immediately before `page`, at most `max`.
    pub(crate) fn run_before(&self, page: u64, max: u64) -> u64 {
        (0..max.min(page))
            .take_while(|i| self.test(page - 1 - i))
            .count() as u64
    }
}

/// Words in a chunk: one bit each in a word of the summary.
const CHUNK: usize = 64;

/// A set of page indexes of any size, in chunks of 4096 pages; a chunk without
/// a page in the set takes no memory until it had one.
#[derive(Clone, Debug, Default)]
pub struct Words {
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
    /// By chunk, which of its words are not zero.
    summary: Vec<u64>,
    count: u64,
}

impl Words {
    /// The set of the pages 0 to 63 in `word`.
    fn from_word(word: u64) -> Words {
        let mut words = Words::default();
        if word != 0 {
            let mut chunk = Box::new([0; CHUNK]);
            chunk[0] = word;
            words.chunks.push(Some(chunk));
            words.summary.push(1);
            words.count = u64::from(word.count_ones());
        }
        words
    }

    fn word(&self, i: usize) -> u64 {
        match self.chunks.get(i / CHUNK) {
            Some(Some(chunk)) => chunk[i % CHUNK],
            _ => 0,
        }
    }

    /// Whether `page` is in the set.
    fn test(&self, page: u64) -> bool {
        self.word((page / BITS) as usize) >> (page % BITS) & 1 == 1
    }

    /// Adds a run of pages; returns how many are new.
    fn set(&mut self, run: Range<u64>) -> u64 {
        if run.is_empty() {
            return 0;
        }
        self.make_chunk(run.end - 1);
        let mut added = 0;
        for i in words_of(&run) {
            let chunk = self.chunks[i / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]));
            let (word, mask) = (&mut chunk[i % CHUNK], mask_in(&run, i));
            added += u64::from((mask & !*word).count_ones());
            *word |= mask;
            self.summary[i / CHUNK] |= 1 << (i % CHUNK);
        }
        self.count += added;
        added
    }

    /// Makes places for the chunks up to a page's.
    #[inline]
    fn make_chunk(&mut self, page: u64) {
        let chunks = (page / (BITS * CHUNK as u64)) as usize + 1;
        if self.chunks.len() < chunks {
            self.chunks.resize_with(chunks, || None);
            self.summary.resize(chunks, 0);
        }
    }

    /// Adds a page; returns 1 if it is new.
    fn set_page(&mut self, page: u64) -> u64 {
        self.make_chunk(page);
        let (i, bit) = ((page / BITS) as usize, 1 << (page % BITS));
        let chunk = self.chunks[i / CHUNK].get_or_insert_with(|| Box::new([0; CHUNK]));
        let word = &mut chunk[i % CHUNK];
        let added = u64::from(*word & bit == 0);
        *word |= bit;
        self.summary[i / CHUNK] |= 1 << (i % CHUNK);
        self.count += added;
        added
    }

    /// Removes a page; returns 1 if it was there.
    fn clear_page(&mut self, page: u64) -> u64 {
        let (i, bit) = ((page / BITS) as usize, 1 << (page % BITS));
        let Some(Some(chunk)) = self.chunks.get_mut(i / CHUNK) else {
            return 0;
        };
        let word = &mut chunk[i % CHUNK];
        if *word & bit == 0 {
            return 0;
        }
        *word &= !bit;
        if *word == 0 {
            self.summary[i / CHUNK] &= !(1 << (i % CHUNK));
        }
        self.count -= 1;
        1
    }

    /// Removes a run of pages; returns how many were there.
    fn clear(&mut self, run: Range<u64>) -> u64 {
        let run = run.start..run.end.min(self.limit());
        let words = words_of(&run);
        let (mut removed, mut from) = (0, words.start);
        while let Some(i) = self.next_word(from, words.end) {
            from = i + 1;
            if let Some(chunk) = &mut self.chunks[i / CHUNK] {
                let (word, mask) = (&mut chunk[i % CHUNK], mask_in(&run, i));
                removed += u64::from((mask & *word).count_ones());
                *word &= !mask;
                if *word == 0 {
                    self.summary[i / CHUNK] &= !(1 << (i % CHUNK));
                }
            }
        }
        self.count -= removed;
        removed
    }

    /// Number of pages of `run` in the set.
    fn count_in(&self, run: Range<u64>) -> u64 {
        let run = run.start..run.end.min(self.limit());
        let words = words_of(&run);
        let (mut count, mut from) = (0, words.start);
        while let Some(i) = self.next_word(from, words.end) {
            from = i + 1;
            count += u64::from((mask_in(&run, i) & self.word(i)).count_ones());
        }
        count
    }

    /// The first page of the set in `from..end`.
    fn next_set(&self, from: u64, end: u64) -> Option<u64> {
        let end = end.min(self.limit());
        if self.count == 0 || from >= end {
            return None;
        }
        let mut word = (from / BITS) as usize;
        let mut bits = self.word(word) & (u64::MAX << (from % BITS));
        while bits == 0 {
            word = self.next_word(word + 1, words_of(&(from..end)).end)?;
            bits = self.word(word);
        }
        let page = word as u64 * BITS + u64::from(bits.trailing_zeros());
        (page < end).then_some(page)
    }

    /// The first page of `from..end` that is not in the set; `end` if all are.
    fn next_clear(&self, from: u64, end: u64) -> u64 {
        let mut page = from;
        while page < end {
            let word = self.word((page / BITS) as usize);
            let ones = u64::from((!(word >> (page % BITS))).trailing_zeros());
            let left = BITS - page % BITS;
            if ones < left {
                return (page + ones).min(end);
            }
            page += left;
        }
        end
    }

    /// The first word of `from..end` that is not zero.
    fn next_word(&self, from: usize, end: usize) -> Option<usize> {
        let mut group = from / CHUNK;
        let mut bits = u64::MAX << (from % CHUNK);
        while group * CHUNK < end {
            bits &= *self.summary.get(group)?;
            if bits != 0 {
                let word = group * CHUNK + bits.trailing_zeros() as usize;
                return (word < end).then_some(word);
            }
            group += 1;
            bits = u64::MAX;
        }
        None
    }

    fn limit(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK as u64 * BITS
    }
}

impl PartialEq for Words {
    fn eq(&self, other: &Words) -> bool {
        let words = self.chunks.len().max(other.chunks.len()) * CHUNK;
        self.count == other.count && (0..words).all(|i| self.word(i) == other.word(i))
    }
}

impl Eq for Words {}

/// Whether a run is one page.
#[inline]
fn is_page(run: &Range<u64>) -> bool {
    run.end.wrapping_sub(run.start) == 1
}

/// The words that a run touches.
fn words_of(run: &Range<u64>) -> Range<usize> {
    if run.is_empty() {
        return 0..0;
    }
    (run.start / BITS) as usize..run.end.div_ceil(BITS) as usize
}

/// A run's bits in one of the words that it touches.
fn mask_in(run: &Range<u64>, word: usize) -> u64 {
    let first = word as u64 * BITS;
    mask_of(&(run.start.max(first) - first..run.end.min(first + BITS) - first))
}

/// The bits of a run of the pages 0 to 63.
fn mask_of(run: &Range<u64>) -> u64 {
    if run.start >= run.end {
        return 0;
    }
    (u64::MAX >> (BITS - (run.end - run.start))) << run.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn runs_across_words_are_found_again() {
        let mut bits = PageBits::default();
        assert_eq!(bits.set(60..200), 140);
        assert_eq!(bits.set(190..210), 10);
        assert_eq!(bits.clear(100..101), 1);
        assert_eq!(bits.next_set(0, 1000), Some(60));
        assert_eq!(bits.next_clear(60, 1000), 100);
        assert_eq!(bits.next_clear(101, 1000), 210);
        assert_eq!(bits.next_clear(101, 150), 150);
        assert_eq!(bits.next_set(210, 1000), None);
        assert_eq!(bits.count_in(90..110), 19);
        assert_eq!(bits.run_before(110, 32), 9);
        assert_eq!(bits.count(), 149);
    }

    #[test]
    fn agrees_with_a_plain_set() {
        agrees(20_000, 300, 9000);
    }

    #[test]
    fn so_does_the_set_of_a_small_file() {
        agrees(50, 15, 40);
        let mut bits = PageBits::default();
        bits.set(63..65);
        bits.clear(0..100);
        assert!(matches!(bits, PageBits::Words(_)));
        bits.shrink();
        assert_eq!(bits, PageBits::default());
    }

    fn agrees(pages: u64, longest: u64, ahead: u64) {
        let mut bits = PageBits::default();
        let mut plain = BTreeSet::new();
        let mut x = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x % n
        };
        for _ in 0..2000 {
            let start = draw(pages);
            let run = start..start + if draw(2) == 0 { 1 } else { draw(longest) };
            match draw(3) {
                0 => {
                    let added = run.clone().filter(|p| plain.insert(*p)).count() as u64;
                    assert_eq!(bits.set(run), added);
                }
                1 => {
                    let removed = run.clone().filter(|p| plain.remove(p)).count() as u64;
                    assert_eq!(bits.clear(run), removed);
                }
                _ => {
                    let end = run.end + draw(ahead);
                    assert_eq!(
                        bits.next_set(start, end),
                        plain.range(start..end).next().copied()
                    );
                    let clear = (start..end).find(|p| !plain.contains(p)).unwrap_or(end);
                    assert_eq!(bits.next_clear(start, end), clear);
                }
            }
            assert_eq!(bits.count(), plain.len() as u64);
        }
    }
}
