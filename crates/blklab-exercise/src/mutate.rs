// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs made of seeds: the same ones every time, for tests without a fuzzer.

use crate::{Seed, Target, seeds};
use blklab_types::SplitMix64;

/// Changes of a seed, at most.
const CHANGES_MAX: u64 = 4;
/// A mutant is no longer than this.
const BYTES_MAX: usize = 64 * 1024;
/// Numbers at which something may go wrong.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "7",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "0.000001",
    "1e308",
    "NaN",
];
/// Texts likewise: control characters, the mark of UTF-8, what would turn the direction of
/// writing, what is no UTF-8.
const TEXTS: [&[u8]; 9] = [
    b"\0",
    b"\x1b[2J",
    b"\n",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\xff",
    b"<b>&\"'",
    b"=,;:",
];

/// Draws mutants of a target's seeds.
pub struct Mutants {
    random: SplitMix64,
    seeds: Vec<Seed>,
}

impl Mutants {
    /// Of all seeds that hold something.
    pub fn new(target: &Target, stream: u64) -> Mutants {
        let mut seeds = seeds(target);
        seeds.retain(|seed| !seed.bytes.is_empty());
        Mutants {
            random: SplitMix64(stream << 32),
            seeds,
        }
    }

    /// The next one.
    pub fn draw(&mut self) -> Vec<u8> {
        let mut bytes = self.seed().to_vec();
        // Most have few changes: more parsers take them.
        let most = self.random.below(CHANGES_MAX) + 1;
        for _ in 0..=self.random.below(most) {
            self.change(&mut bytes);
        }
        bytes.truncate(BYTES_MAX);
        bytes
    }

    fn seed(&mut self) -> &[u8] {
        let place = self.random.below(self.seeds.len() as u64) as usize;
        &self.seeds[place].bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.below(bytes.len() as u64 + 1) as usize;
        match self.random.below(9) {
            0 | 1 => self.change_digit(bytes, at),
            2 => self.change_number(bytes, at),
            3 => {
                let bit = self.random.below(8);
                bytes
                    .iter_mut()
                    .skip(at)
                    .take(1)
                    .for_each(|b| *b ^= 1 << bit);
            }
            4 => {
                let value = [0, 1, 0x7f, 0x80, 0xff][self.random.below(5) as usize];
                bytes.iter_mut().skip(at).take(1).for_each(|b| *b = value);
            }
            5 => {
                let end = at + self.random.below(64) as usize;
                drop(bytes.drain(at..end.min(bytes.len())));
            }
            6 => self.move_line(bytes, at),
            7 => {
                let text = TEXTS[self.random.below(TEXTS.len() as u64) as usize];
                drop(bytes.splice(at..at, text.iter().copied()));
            }
            _ => self.splice(bytes, at),
        }
    }

    /// The first digit from here on becomes another.
    fn change_digit(&mut self, bytes: &mut [u8], at: usize) {
        let digit = b'0' + self.random.below(10) as u8;
        let found = bytes.iter_mut().skip(at).find(|b| b.is_ascii_digit());
        found.into_iter().for_each(|b| *b = digit);
    }

    /// The first number from here on becomes one of those above.
    fn change_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let number = NUMBERS[self.random.below(NUMBERS.len() as u64) as usize];
        let is_digit = |b: &u8| b.is_ascii_digit();
        let Some(begin) = bytes.iter().skip(at).position(is_digit) else {
            return;
        };
        let begin = at + begin;
        let length = bytes.iter().skip(begin).take_while(|b| is_digit(b)).count();
        drop(bytes.splice(begin..begin + length, number.bytes()));
    }

    /// A line is there twice, or not at all, or the end is cut off behind it.
    fn move_line(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let begin = bytes[..at].iter().rposition(|b| *b == b'\n');
        let begin = begin.map_or(0, |n| n + 1);
        let end = bytes[at..].iter().position(|b| *b == b'\n');
        let end = end.map_or(bytes.len(), |n| at + n + 1);
        match self.random.below(3) {
            0 => {
                let line = bytes[begin..end].to_vec();
                drop(bytes.splice(end..end, line));
            }
            1 => drop(bytes.drain(begin..end)),
            _ => bytes.truncate(end),
        }
    }

    /// What is behind here comes from another seed.
    fn splice(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let (from, length) = (self.random.next_u64(), self.random.below(256) as usize);
        let other = self.seed();
        let from = (from % other.len() as u64) as usize;
        let part = other[from..(from + length).min(other.len())].to_vec();
        let end = (at + part.len()).min(bytes.len());
        drop(bytes.splice(at..end, part));
    }
}
