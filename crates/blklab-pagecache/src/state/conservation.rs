// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conservation of pages: none is written twice at a time, none is lost on its way
//! to the disk or back, and the counters are those of the pages.
//!
//! What costs nothing is asserted where an I/O starts and ends, as the kernel does
//! (`BUG_ON(PageWriteback(page))`). What counts runs in debug builds, each time as
//! many bios have ended as the last count looked at, so that its cost for a bio
//! stays the same however many are in flight.

use super::{BioWork, State};
use crate::file::File;
use blklab_types::Op;
use std::ops::Range;

/// The fewest bios that end between two counts.
const BIOS_PER_COUNT: usize = 64;

/// Asserts that all pages of a run were in the state that they leave, or were not
/// in the one that they enter.
#[track_caller]
pub(super) fn all_of(run: &Range<u64>, pages: u64, what: &str) {
    let all = run.end - run.start;
    assert!(pages == all, "{what}: {pages} of the {all} pages {run:?}");
}

impl State {
    /// Counts, now and then.
    pub(crate) fn check_pages(&mut self) {
        match self.ends_to_count.checked_sub(1) {
            Some(left) => self.ends_to_count = left,
            None => {
                self.count_pages();
                self.ends_to_count = BIOS_PER_COUNT.max(self.files.len() + self.bios.nr_places());
            }
        }
    }

    /// Counters are sums over the files; pages in bios are in the state that their
    /// bios end.
    fn count_pages(&self) {
        let sum = |pages: fn(&File) -> u64| self.files.iter().map(pages).sum::<u64>();
        assert_eq!(self.nr_dirty, sum(|f| f.dirty.count()), "dirty pages");
        assert_eq!(
            self.nr_writeback,
            sum(|f| f.writeback.count()),
            "pages under write-back"
        );
        assert_eq!(self.nr_cached, sum(|f| f.cached.count()), "cached pages");
        let mut in_bios = 0;
        for work in self.bios.iter() {
            let BioWork::Pages { op, file, run } = work else {
                continue;
            };
            let file = &self.files[file.idx()];
            if *op == Op::Read {
                all_of(run, file.locked.count_in(run.clone()), "locked for a read");
            } else {
                all_of(run, file.writeback.count_in(run.clone()), "in a write");
                in_bios += run.end - run.start;
            }
        }
        // Others are about to get their bios, or count with a group of them.
        assert!(
            in_bios <= self.nr_writeback,
            "{in_bios} pages in writes, {} under write-back",
            self.nr_writeback
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::features::rules_of;
    use crate::file::{File, FileId};
    use crate::state::{BioWork, State};
    use blklab_types::{Jiffies, Op};

    const FILE: FileId = FileId(0);

    /// A file with four dirty pages.
    fn state() -> State {
        let mut s = State::new(&Config::new(rules_of("2.6.28"), 1 << 30));
        s.files.push(File::new(4 * 4096));
        s.dirty(FILE, 0..4, Jiffies(1));
        s
    }

    #[test]
    fn what_is_counted_agrees() {
        let mut s = state();
        s.start_writeback(FILE, 0..2);
        let (op, file) = (Op::Write, FILE);
        s.bios.insert(BioWork::Pages {
            op,
            file,
            run: 0..2,
        });
        s.count_pages();
    }

    #[test]
    #[should_panic(expected = "written twice at a time: 1 of the 2 pages 1..3")]
    fn a_page_is_written_once_at_a_time() {
        let mut s = state();
        s.start_writeback(FILE, 0..2);
        s.start_writeback(FILE, 1..3);
    }

    #[test]
    #[should_panic(expected = "written without having begun: 2 of the 3 pages 0..3")]
    fn no_page_ends_that_did_not_begin() {
        let mut s = state();
        s.start_writeback(FILE, 0..2);
        s.end_writeback(FILE, &(0..3), false, &mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "dirty pages")]
    fn a_wrong_counter_is_found() {
        let mut s = state();
        s.files[0].dirty.clear(3..4);
        s.count_pages();
    }

    #[test]
    #[should_panic(expected = "in a write: 0 of the 1 pages 3..4")]
    fn a_page_that_a_bio_writes_is_under_write_back() {
        let mut s = state();
        let (op, file) = (Op::Write, FILE);
        s.bios.insert(BioWork::Pages {
            op,
            file,
            run: 3..4,
        });
        s.count_pages();
    }
}
