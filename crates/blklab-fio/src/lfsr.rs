// SPDX-License-Identifier: MIT OR Apache-2.0
//! A shift register that visits every block of a range once.
//!
//! Source: maximal-length taps from the Xilinx table (application note
//! XAPP 052 and its 64-bit extension) in Galois form with XNOR, as fio 3.33
//! uses them.

/// The taps by width, from width 3.
#[rustfmt::skip]
const TAPS: [&[u8]; 61] = [
    &[3, 2], &[4, 3], &[5, 3], &[6, 5], &[7, 6], &[8, 6, 5, 4], &[9, 5], &[10, 7], &[11, 9], &[12, 6, 4, 1],
    &[13, 4, 3, 1], &[14, 5, 3, 1], &[15, 14], &[16, 15, 13, 4], &[17, 14], &[18, 11], &[19, 6, 2, 1], &[20, 17],
    &[21, 19], &[22, 21], &[23, 18], &[24, 23, 22, 17], &[25, 22], &[26, 6, 2, 1], &[27, 5, 2, 1], &[28, 25],
    &[29, 27], &[30, 6, 4, 1], &[31, 28], &[32, 31, 29, 1], &[33, 20], &[34, 27, 2, 1], &[35, 33], &[36, 25],
    &[37, 5, 4, 3, 2, 1], &[38, 6, 5, 1], &[39, 35], &[40, 38, 21, 19], &[41, 38], &[42, 41, 20, 19],
    &[43, 42, 38, 37], &[44, 43, 18, 17], &[45, 44, 42, 41], &[46, 45, 26, 25], &[47, 42], &[48, 47, 21, 20],
    &[49, 40], &[50, 49, 24, 23], &[51, 50, 36, 35], &[52, 49], &[53, 52, 38, 37], &[54, 53, 18, 17], &[55, 31],
    &[56, 55, 35, 34], &[57, 50], &[58, 39], &[59, 58, 38, 37], &[60, 59], &[61, 60, 46, 45], &[62, 61, 6, 5],
    &[63, 62],
];

/// A register over the blocks of one file.
#[derive(Clone, Debug)]
pub struct Lfsr {
    value: u64,
    mask: u64,
    top: u64,
    all: u64,
    blocks: u64,
    delivered: u64,
    fresh: bool,
}

impl Lfsr {
    /// A register over that many blocks; `None` if the seed cannot be used or
    /// there are more than 2^63 blocks.
    pub fn new(blocks: u64, seed: u64) -> Option<Lfsr> {
        let width = (3..64).find(|&width| (1u64 << width) > blocks)?;
        let taps = TAPS[width - 3];
        let all = (1u64 << width) - 1;
        let mut lfsr = Lfsr {
            value: 0,
            mask: taps.iter().map(|&tap| 1u64 << (tap - 1)).sum(),
            top: 1 << (width - 1),
            all,
            blocks,
            delivered: 0,
            fresh: true,
        };
        lfsr.restart(seed);
        (lfsr.value != all).then_some(lfsr)
    }

    /// Starts over.
    pub fn restart(&mut self, seed: u64) {
        self.value = seed & self.all;
        self.delivered = 0;
    }

    /// The next block; `None` when all have been delivered.
    pub fn draw(&mut self) -> Option<u64> {
        if self.delivered >= self.blocks {
            return None;
        }
        self.delivered += 1;
        if std::mem::take(&mut self.fresh) {
            self.step();
        }
        loop {
            self.step();
            if self.value < self.blocks {
                return Some(self.value);
            }
        }
    }

    fn step(&mut self) {
        let even = self.value & 1 == 0;
        self.value = (self.value >> 1) | self.top;
        if even {
            self.value ^= self.mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sequence() {
        let mut lfsr = Lfsr::new(100, 0xb189_9bed).expect("usable seed");
        let drawn: Vec<u64> = (0..8).map_while(|_| lfsr.draw()).collect();
        assert_eq!(drawn, [27, 77, 19, 73, 18, 41, 84, 10]);
    }

    #[test]
    fn every_block_once() {
        for blocks in 1..600 {
            let mut lfsr = Lfsr::new(blocks, 1).expect("usable seed");
            let mut drawn: Vec<u64> = std::iter::from_fn(|| lfsr.draw()).collect();
            drawn.sort_unstable();
            assert!(drawn.iter().copied().eq(0..blocks), "{blocks} blocks");
        }
    }

    #[test]
    fn a_seed_of_all_ones_cannot_start() {
        assert!(Lfsr::new(100, 0x7f).is_none());
        assert!(Lfsr::new(100, 0x7e).is_some());
    }
}
