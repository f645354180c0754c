// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where and how much a random job of fio 1.24 reads or writes.
//!
//! Offsets: of N blocks of the smallest size, block `floor((N - 1) u)`; if it
//! was used already, up to four more draws, then the first free block from the
//! start of a random 64-block word of the map on (ten tries), then the first
//! free one of the file. N counts the blocks of the file, not of `size`, which
//! only says how many bytes the job moves.
//! Lengths: `1 + floor(max u)`, at least the smallest, rounded up to it if it
//! is a power of two; the smallest where the file ends before.
//!
//! Sources: the trace of a reader with `size=2048k filesize=30m` under fio 1.24
//! (its 84 reads begin at the blocks that these rules give for job number 2,
//! over all of its 30 MiB), and the number of reads of 270 such readers.
//!
//! Left out: fio 1.24's own choice between reads and writes of mixed jobs and
//! of lengths with `bssplit`, which are 3.33's. Its lengths are seeded by the
//! system's entropy, of which the experiment's seed takes the place.

use super::build::NoRoom;
use super::files::File;
use crate::job::Job;
use crate::rng48::{Rng48, share};
use crate::seeds::{Seeds, Use};

/// Draws for a free block before the map is searched.
const DRAWS_MAX: u32 = 5;
/// Searches of the map from a random place.
const SEARCHES_MAX: u32 = 10;
/// Blocks of one word of the map.
const WORD_BLOCKS: u64 = 64;

/// The generators of a job.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    offset: Rng48,
    length: Rng48,
}

impl Draws {
    pub(super) fn new(job: &Job, seeds: &Seeds) -> Draws {
        let random = job.entropy.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Draws {
            offset: Rng48::new(seeds.seed(Use::Offset)),
            length: Rng48::new(random ^ random >> 32),
        }
    }

    /// A block of the first `count` ones.
    pub(super) fn block(&mut self, file: &File, count: u64) -> Result<u64, NoRoom> {
        let Some(last) = count.checked_sub(1) else {
            return Err(NoRoom);
        };
        let mut drawn = self.offset.draw();
        let Some(map) = &file.map else {
            return Ok(share(drawn, last));
        };
        for draw in 1..=DRAWS_MAX {
            let block = share(drawn, last);
            if !map.is_set(block) {
                return Ok(block);
            }
            if draw < DRAWS_MAX {
                drawn = self.offset.draw();
            }
        }
        let last_word = count.div_ceil(WORD_BLOCKS) - 1;
        for _ in 0..SEARCHES_MAX {
            if let Some(block) = map.first_free(share(drawn, last_word) * WORD_BLOCKS) {
                return Ok(block);
            }
            drawn = self.offset.draw();
        }
        map.first_free(0).ok_or(NoRoom)
    }

    /// A length from `min` to `max` at `offset` of a file.
    pub(super) fn length(&mut self, (min, max): (u64, u64), aligned: bool, room: u64) -> u64 {
        let mut length = (1 + share(self.length.draw(), max)).max(min);
        if aligned && min.is_power_of_two() {
            length = length.next_multiple_of(min);
        }
        if length > room { min } else { length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_4k_to_44k_are_equally_likely() {
        let mut draws = Draws {
            offset: Rng48::new(0),
            length: Rng48::new(1),
        };
        let mut seen = [0_u32; 12];
        for _ in 0..110_000 {
            let length = draws.length((4096, 45056), true, u64::MAX);
            assert_eq!(length % 4096, 0);
            seen[(length / 4096) as usize] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(
            seen[1..].iter().all(|n| (9_500..10_500).contains(n)),
            "{seen:?}"
        );
        assert_eq!(draws.length((4096, 4096), true, 100), 4096);
    }
}
