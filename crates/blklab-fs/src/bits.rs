// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bit per page of a file, with a summary level.
//!
//! The kernel keeps page flags in pages and tags in a radix tree. A bitmap
//! says the same and makes an operation on a run of pages cost words, not
//! pages. The summary has one bit per word that is not zero, so looking for
//! the next set bit skips 4096 clear pages at a step.

use std::ops::Range;

const BITS: u64 = 64;

/// A set of page indexes that grows as needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageBits {
    words: Vec<u64>,
    summary: Vec<u64>,
    count: u64,
}

impl PageBits {
    /// Number of pages in the set.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether `page` is in the set.
    pub(crate) fn test(&self, page: u64) -> bool {
        self.words
            .get((page / BITS) as usize)
            .is_some_and(|w| w >> (page % BITS) & 1 == 1)
    }

    /// Adds a run of pages; returns how many are new.
    pub(crate) fn set(&mut self, run: Range<u64>) -> u64 {
        if run.is_empty() {
            return 0;
        }
        let words = run.end.div_ceil(BITS) as usize;
        if self.words.len() < words {
            self.words.resize(words, 0);
            self.summary.resize(words.div_ceil(BITS as usize), 0);
        }
        let mut added = 0;
        for (i, mask) in masks(run) {
            added += u64::from((mask & !self.words[i]).count_ones());
            self.words[i] |= mask;
            self.summary[i / 64] |= 1 << (i % 64);
        }
        self.count += added;
        added
    }

    /// Removes a run of pages; returns how many were there.
    pub(crate) fn clear(&mut self, run: Range<u64>) -> u64 {
        let run = run.start..run.end.min(self.limit());
        let mut removed = 0;
        for (i, mask) in masks(run) {
            removed += u64::from((mask & self.words[i]).count_ones());
            self.words[i] &= !mask;
            if self.words[i] == 0 {
                self.summary[i / 64] &= !(1 << (i % 64));
            }
        }
        self.count -= removed;
        removed
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
    pub(crate) fn count_in(&self, run: Range<u64>) -> u64 {
        let run = run.start..run.end.min(self.limit());
        masks(run)
            .map(|(i, mask)| u64::from((mask & self.words[i]).count_ones()))
            .sum()
    }

    /// The first page of the set in `from..end`.
    pub(crate) fn next_set(&self, from: u64, end: u64) -> Option<u64> {
        let end = end.min(self.limit());
        if self.count == 0 || from >= end {
            return None;
        }
        let mut word = (from / BITS) as usize;
        let mut bits = self.words[word] & (u64::MAX << (from % BITS));
        while bits == 0 {
            word = self.next_word(word + 1)?;
            bits = self.words[word];
        }
        let page = word as u64 * BITS + u64::from(bits.trailing_zeros());
        (page < end).then_some(page)
    }

    /// The first page of `from..end` that is not in the set; `end` if all are.
    pub(crate) fn next_clear(&self, from: u64, end: u64) -> u64 {
        let mut page = from;
        while page < end {
            let Some(word) = self.words.get((page / BITS) as usize) else {
                return page;
            };
            let ones = u64::from((!(word >> (page % BITS))).trailing_zeros());
            let left = BITS - page % BITS;
            if ones < left {
                return (page + ones).min(end);
            }
            page += left;
        }
        end
    }

    /// Number of pages in the set immediately before `page`, at most `max`.
    pub(crate) fn run_before(&self, page: u64, max: u64) -> u64 {
        (0..max.min(page))
            .take_while(|i| self.test(page - 1 - i))
            .count() as u64
    }

    /// The first word at or after `from` that is not zero.
    fn next_word(&self, from: usize) -> Option<usize> {
        let mut group = from / 64;
        let mut bits = *self.summary.get(group)? & (u64::MAX << (from % 64));
        while bits == 0 {
            group += 1;
            bits = *self.summary.get(group)?;
        }
        Some(group * 64 + bits.trailing_zeros() as usize)
    }

    fn limit(&self) -> u64 {
        self.words.len() as u64 * BITS
    }
}

/// The words that a run touches, each with the mask of its bits.
fn masks(run: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let words = if run.is_empty() {
        0..0
    } else {
        run.start / BITS..run.end.div_ceil(BITS)
    };
    words.map(move |word| {
        let low = run.start.max(word * BITS) - word * BITS;
        let high = run.end.min((word + 1) * BITS) - word * BITS;
        (word as usize, (u64::MAX >> (BITS - (high - low))) << low)
    })
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
            let start = draw(20_000);
            let run = start..start + draw(300);
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
                    let end = run.end + draw(9000);
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
