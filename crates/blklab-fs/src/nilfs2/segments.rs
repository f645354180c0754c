// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments: which are clean, where the next log goes, what lies in them.

use blklab_types::{PAGE_SECTORS, Time};

/// Blocks that are left alone at the end of a segment: a log needs a summary
/// and a block (`NILFS_PSEG_MIN_BLOCKS`).
const LEAST_LOG_BLOCKS: u64 = 2;
/// Fewest segments kept back (`NILFS_MIN_NRSVSEGS`).
const LEAST_RESERVED: u64 = 8;

/// No virtual block number: blocks of the translation itself.
pub(super) const NO_NUMBER: u32 = u32::MAX;

/// Blocks in a row that a log put into a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The file, an index.
    pub(super) file: u32,
    /// First page.
    pub(super) page: u32,
    /// Virtual block number of that page, if it has one.
    pub(super) number: u32,
    pub(super) pages: u16,
    /// First block in the segment.
    pub(super) offset: u16,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    used: bool,
    pieces: Vec<Piece>,
    /// When it was last written to.
    written: Time,
}

/// The segments of a volume.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    start_sector: u64,
    blocks: u64,
    all: Vec<Segment>,
    clean: u64,
    reserved: u64,
    /// Where the next log begins.
    current: usize,
    offset: u64,
}

impl Segments {
    /// Clean segments of `blocks` blocks each. The first one is written to
    /// first; its first block holds the superblock.
    pub(super) fn new(
        sectors: std::ops::Range<u64>,
        blocks: u64,
        percent: u64,
    ) -> Option<Segments> {
        let number = (sectors.end.checked_sub(sectors.start)?) / (blocks * PAGE_SECTORS);
        let reserved = (number * percent / 100).max(LEAST_RESERVED);
        if number < 2 * reserved {
            return None;
        }
        let mut all = vec![Segment::default(); usize::try_from(number).ok()?];
        all[0].used = true;
        Some(Segments {
            start_sector: sectors.start,
            blocks,
            clean: number - 1,
            reserved,
            all,
            current: 0,
            offset: 1,
        })
    }

    /// Clean segments.
    #[cfg(test)]
    pub(super) fn clean(&self) -> u64 {
        self.clean
    }

    /// The number of the segment that is written to.
    pub(super) fn current(&self) -> u64 {
        self.current as u64
    }

    /// Blocks that writers may still fill.
    pub(super) fn room(&self) -> u64 {
        self.clean.saturating_sub(self.reserved) * self.blocks
    }

    /// Blocks for a log in the current segment.
    pub(super) fn room_here(&self) -> u64 {
        self.blocks - self.offset
    }

    /// Goes on to the next clean segment if the current one has no room for a
    /// log. False if there is none.
    pub(super) fn advance(&mut self) -> bool {
        if self.room_here() >= LEAST_LOG_BLOCKS {
            return true;
        }
        self.next_segment()
    }

    /// Goes on to the next clean segment (`nilfs_sufile_alloc`).
    pub(super) fn next_segment(&mut self) -> bool {
        let n = self.all.len();
        let next = (1..n)
            .map(|i| (self.current + i) % n)
            .find(|i| !self.all[*i].used);
        let Some(next) = next else {
            return false;
        };
        self.all[next].used = true;
        debug_assert!(self.all[next].pieces.is_empty(), "segment {next} is clean");
        self.clean -= 1;
        (self.current, self.offset) = (next, u64::from(next == 0));
        true
    }

    /// The sector at which the next log begins.
    pub(super) fn sector(&self) -> u64 {
        self.start_sector + (self.current as u64 * self.blocks + self.offset) * PAGE_SECTORS
    }

    /// First sector of a segment.
    pub(super) fn first_sector(&self, segment: u64) -> u64 {
        self.start_sector + segment * self.blocks * PAGE_SECTORS
    }

    /// A log of so many blocks was put there.
    pub(super) fn fill(&mut self, blocks: u64, now: Time) {
        assert!(
            blocks <= self.room_here(),
            "a log of {blocks} blocks does not fit into segment {}",
            self.current
        );
        self.offset += blocks;
        self.all[self.current].written = now;
    }

    /// Notes what lies behind `ahead` blocks of the next log.
    pub(super) fn note(&mut self, piece: Piece, ahead: u64) {
        let offset = (self.offset + ahead) as u16;
        self.all[self.current]
            .pieces
            .push(Piece { offset, ..piece });
    }

    /// The segments that were written longest ago, no later than `limit`, at
    /// most `most` of them.
    pub(super) fn oldest(&self, limit: Time, most: usize) -> Vec<u64> {
        let old = |(i, s): &(usize, &Segment)| s.used && *i != self.current && s.written <= limit;
        let segments = self.all.iter().enumerate();
        let mut old: Vec<(Time, u64)> = segments
            .filter(old)
            .map(|(i, s)| (s.written, i as u64))
            .collect();
        old.sort_unstable();
        old.into_iter().take(most).map(|(_, i)| i).collect()
    }

    /// What logs put into a segment.
    pub(super) fn pieces(&self, segment: u64) -> &[Piece] {
        self.all
            .get(segment as usize)
            .map_or(&[], |s| s.pieces.as_slice())
    }

    /// A segment is clean again (`nilfs_sufile_freev`).
    pub(super) fn release(&mut self, segment: u64) {
        assert_ne!(
            segment,
            self.current(),
            "the segment that is written to is released"
        );
        if let Some(s) = self.all.get_mut(segment as usize)
            && std::mem::take(&mut s.used)
        {
            *s = Segment::default();
            self.clean += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_fill_segments_in_turn_and_released_ones_come_again() {
        let mut s = Segments::new(0..20 * 2048 * 8, 2048, 5).expect("room");
        assert_eq!((s.clean(), s.room()), (19, 11 * 2048));
        assert_eq!((s.sector(), s.room_here()), (8, 2047));
        s.fill(2046, Time(1));
        assert!(s.advance());
        assert_eq!((s.sector(), s.clean()), (2048 * 8, 18));
        s.fill(2048, Time(2));
        assert_eq!(s.oldest(Time(5), 2), [0], "not the current one");
        assert!(s.advance());
        assert_eq!(s.oldest(Time(5), 2), [0, 1]);
        s.release(0);
        assert_eq!(s.clean(), 18);
        for _ in 3..20 {
            assert!(s.next_segment());
        }
        assert!(s.next_segment(), "the one that was released");
        assert_eq!(s.sector(), 8, "behind the superblock");
        assert!(!s.next_segment());
    }
}
