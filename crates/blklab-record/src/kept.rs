// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last pages of a CPU, in memory.

use std::collections::VecDeque;
use std::io::{self, Write};

/// Pages in order. Each begins with the time of its first event, in ns of this machine's byte
/// order (kernel/trace/ring_buffer.c).
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pages: VecDeque<Box<[u8]>>,
    bytes: usize,
    is_cut: bool,
}

fn time_ns(page: &[u8]) -> u64 {
    page.first_chunk()
        .map_or(0, |time| u64::from_ne_bytes(*time))
}

impl Kept {
    pub(crate) fn push(&mut self, page: &[u8]) {
        self.bytes += page.len();
        self.pages.push_back(page.into());
    }

    /// When the last page begins.
    pub(crate) fn newest_ns(&self) -> Option<u64> {
        self.pages.back().map(|page| time_ns(page))
    }

    /// Forgets pages that end before a time, and the oldest of more bytes than these.
    pub(crate) fn forget(&mut self, since_ns: u64, most_bytes: usize) {
        // A page ends where the next one begins.
        while let Some(next) = self.pages.get(1) {
            let is_old = time_ns(next) < since_ns;
            let is_much = self.bytes > most_bytes;
            if !is_old && !is_much {
                return;
            }
            self.is_cut |= !is_old;
            if let Some(page) = self.pages.pop_front() {
                self.bytes -= page.len();
            }
        }
    }

    /// Whether pages were forgotten that were not old.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Writes all of them, and keeps none.
    pub(crate) fn write_to(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.bytes = 0;
        let mut pages = std::mem::take(&mut self.pages).into_iter();
        pages.try_for_each(|page| out.write_all(&page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time_ns: u64) -> [u8; 16] {
        let mut page = [0; 16];
        page[..8].copy_from_slice(&time_ns.to_ne_bytes());
        page
    }

    fn times(kept: &mut Kept) -> Vec<u64> {
        let mut out = Vec::new();
        kept.write_to(&mut out).expect("a vector");
        out.chunks(16).map(time_ns).collect()
    }

    #[test]
    fn the_page_in_which_a_time_lies_is_kept() {
        let mut kept = Kept::default();
        [10, 20, 30, 40].iter().for_each(|t| kept.push(&page(*t)));
        assert_eq!(kept.newest_ns(), Some(40));
        kept.forget(25, usize::MAX);
        assert!(!kept.is_cut());
        assert_eq!(times(&mut kept), [20, 30, 40]);
        assert_eq!(times(&mut kept), [0; 0]);
    }

    #[test]
    fn too_much_is_cut_and_said() {
        let mut kept = Kept::default();
        [10, 20, 30, 40].iter().for_each(|t| kept.push(&page(*t)));
        kept.forget(0, 32);
        assert!(kept.is_cut());
        assert_eq!(times(&mut kept), [30, 40]);
    }
}
