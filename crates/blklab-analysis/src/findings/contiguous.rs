// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which requests lie next to each other, whatever their order.
//!
//! Several detectors look for a request that begins where another one ends. In most traces
//! few do, and to know which saves the others the search.

use super::request::Request;

/// Bits of the filter for a request: about one request in sixteen passes by chance.
const BITS_EACH: usize = 16;

/// Sectors that may be in a set: what passes is looked up, what does not is not there.
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn for_entries(n: usize) -> Filter {
        let bits = (n * BITS_EACH).next_power_of_two().max(64);
        Filter {
            bits: vec![0; bits / 64],
            shift: 64 - bits.trailing_zeros(),
        }
    }

    /// The word of a sector, and its bit there. The multiplier is 2^64 over the golden ratio.
    fn place(&self, sector: u64) -> (usize, u64) {
        let hash = sector.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    fn add(&mut self, sector: u64) {
        let (word, bit) = self.place(sector);
        self.bits[word] |= bit;
    }

    fn may_have(&self, sector: u64) -> bool {
        let (word, bit) = self.place(sector);
        self.bits[word] & bit != 0
    }
}

/// Marks the requests that begin where another one ends, and those that end where another one
/// begins; returns how many begin so.
pub(super) fn mark(requests: &mut [Request]) -> usize {
    let mut begins = Filter::for_entries(requests.len());
    for r in &*requests {
        begins.add(r.life.sector);
    }
    let followed = requests.iter().map(Request::end);
    let mut ends: Vec<u64> = followed.filter(|end| begins.may_have(*end)).collect();
    ends.sort_unstable();
    let mut may_end = Filter::for_entries(ends.len());
    for end in &ends {
        may_end.add(*end);
    }
    let mut met: Vec<u64> = Vec::new();
    let mut nr_behind = 0;
    for r in &mut *requests {
        let sector = r.life.sector;
        r.is_behind = may_end.may_have(sector) && ends.binary_search(&sector).is_ok();
        if r.is_behind {
            nr_behind += 1;
            met.push(sector);
        }
    }
    met.sort_unstable();
    for r in &mut *requests {
        let end = r.end();
        r.is_followed = begins.may_have(end) && met.binary_search(&end).is_ok();
    }
    nr_behind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::RequestLife;
    use blklab_trace::Rwbs;
    use blklab_types::Dev;

    fn request(sector: u64, sectors: u64) -> Request {
        let life = RequestLife {
            number: 0,
            dev: Dev::default(),
            pid: 7,
            rwbs: Rwbs::READ,
            sector,
            bytes: sectors * 512,
            get: None,
            insert: None,
            issue: None,
            complete: None,
            error: 0,
            nr_bios: 1,
            nr_back_merges: 0,
            nr_front_merges: 0,
            nr_absorbed: 0,
            nr_silent_merges: 0,
            nr_requeues: 0,
        };
        Request::new(&life)
    }

    #[test]
    fn neighbours_are_found_whatever_their_order() {
        let mut random = 7_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005) + 1;
            (random >> 33) % below
        };
        for (n, range) in [(0, 1), (1, 8), (300, 200), (300, 1 << 40), (5000, 40_000)] {
            let mut all: Vec<Request> = (0..n).map(|_| request(next(range), next(9))).collect();
            let nr_behind = mark(&mut all);
            for r in &all {
                let sector = r.life.sector;
                assert_eq!(r.is_behind, all.iter().any(|o| o.end() == sector));
                assert_eq!(r.is_followed, all.iter().any(|o| o.life.sector == r.end()));
            }
            assert_eq!(nr_behind, all.iter().filter(|r| r.is_behind).count());
        }
    }
}
