// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the write-back of the device, or of each control group's part of it
//! where write-back is charged to groups (`struct bdi_writeback`; fs/fs-writeback.c and
//! mm/page-writeback.c, 6.1).
//!
//! Each part has its own rates, and of the limits the share that it has of what was
//! written lately. So a group that may write little holds others back only by the pages
//! that it is allowed to have dirty.

use super::State;
use crate::bandwidth::Bandwidth;
use crate::file::FileId;
use blklab_types::Jiffies;

/// The part of everything that is charged to no group, of all if groups are charged
/// nothing: that of the root group, by whose number parts are counted.
const ROOT: u16 = 0;

/// One part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wb {
    pub(crate) bandwidth: Bandwidth,
    /// Clean pages that ever became dirty.
    pub(crate) nr_dirtied: u64,
    /// Pages whose writes ever ended.
    pub(crate) nr_written: u64,
    /// Its writers are to look at the limits often.
    pub(crate) dirty_exceeded: bool,
}

impl Wb {
    fn new() -> Wb {
        Wb {
            bandwidth: Bandwidth::new(),
            nr_dirtied: 0,
            nr_written: 0,
            dirty_exceeded: false,
        }
    }
}

/// All parts, by control group.
#[derive(Clone, Debug)]
pub(crate) struct Wbs(Vec<Wb>);

impl Wbs {
    pub(crate) fn new() -> Wbs {
        Wbs(vec![Wb::new()])
    }

    /// The part of a group.
    pub(crate) fn group(&mut self, group: u16) -> &mut Wb {
        let at = usize::from(group);
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Wb::new);
        }
        &mut self.0[at]
    }

    /// The numbers of all.
    pub(crate) fn groups(&self) -> std::ops::Range<u16> {
        ROOT..self.0.len() as u16
    }

    fn is_one(&self) -> bool {
        self.0.len() == 1
    }
}

impl State {
    /// The part of the write-back that a file belongs to.
    pub(crate) fn wb_of(&mut self, id: FileId) -> &mut Wb {
        self.wbs.group(self.files[id.idx()].charged_to())
    }

    /// Counts clean pages of a file that became dirty (`account_page_dirtied`).
    pub fn count_dirtied(&mut self, id: FileId, pages: u64) {
        self.stats.pages_dirtied += pages;
        self.wb_of(id).nr_dirtied += pages;
    }

    /// Pages of a part that are dirty.
    pub(crate) fn nr_dirty_of(&self, group: u16) -> u64 {
        if self.wbs.is_one() {
            return self.nr_dirty;
        }
        let own = self.files.iter().filter(|f| f.charged_to() == group);
        own.map(|f| f.dirty.count()).sum()
    }

    /// Pages of a part that are dirty or on their way to the disk.
    pub(crate) fn nr_unwritten_of(&self, group: u16) -> u64 {
        if self.wbs.is_one() {
            return self.nr_dirty + self.nr_writeback;
        }
        let own = self.files.iter().filter(|f| f.charged_to() == group);
        own.map(|f| f.dirty.count() + f.writeback.count()).sum()
    }

    /// A part's share of a number of pages (`bdi_dirty_limit`, later
    /// `wb_calc_thresh`).
    pub(crate) fn share_of(&mut self, group: u16, pages: u64, now: Jiffies) -> u64 {
        let (num, den) = match &mut self.timed_shares {
            Some((timed, hz)) => timed.fraction(usize::from(group), now, *hz),
            None => self.completions.fraction(&mut self.device_share),
        };
        let share = u128::from(pages) * u128::from(num) / u128::from(den.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::features::rules_of;
    use crate::file::File;

    #[test]
    fn each_group_has_its_pages_and_its_share_of_what_was_written() {
        let mut s = State::new(&Config::new(rules_of("6.6"), 1 << 30));
        s.set_hz(blklab_types::Hz(1000));
        for group in [None, Some(1), Some(2)] {
            let mut file = File::new(1 << 20);
            file.written_by = group;
            s.files.push(file);
        }
        let now = Jiffies(1);
        for (id, pages) in [(0, 10), (1, 30), (2, 60)] {
            s.dirty(FileId(id), 0..pages, now);
        }
        assert_eq!(s.stats.pages_dirtied, 100);
        assert_eq!(
            [0, 1, 2].map(|group| s.wbs.group(group).nr_dirtied),
            [10, 30, 60]
        );
        s.start_writeback(FileId(1), 0..30);
        s.end_writeback(FileId(1), &(0..30), false, &mut Vec::new());
        s.start_writeback(FileId(2), 0..10);
        assert_eq!([0, 1, 2].map(|group| s.nr_dirty_of(group)), [10, 0, 50]);
        assert_eq!([0, 1, 2].map(|group| s.nr_unwritten_of(group)), [10, 0, 60]);
        s.end_writeback(FileId(2), &(0..10), false, &mut Vec::new());
        // Of 41, since the total begins at 1.
        assert_eq!(
            [0, 1, 2].map(|group| s.share_of(group, 41, now)),
            [0, 30, 10]
        );
    }
}
