// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seed of every generator of a job.
//!
//! Source: fio 3.33. A job has a table of 21 seeds, filled from `randseed` and
//! the thread number; by default the one for offsets is then replaced by a
//! constant times the thread number, so that the offsets of a job do not
//! depend on `randseed`.

use crate::rng::Rng;
use crate::settings::{Generator, Settings};

/// What a seed is for: the index in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Use {
    BlockSizeRead = 0,
    BlockSizeWrite = 1,
    BlockSizeTrim = 2,
    ReadWriteMix = 4,
    NextFile = 5,
    Offset = 6,
    FileSize = 7,
    SequentialOrRandom = 10,
    StartDelay = 13,
    PoissonRead = 15,
    Zone = 16,
    PoissonWrite = 17,
    PoissonTrim = 18,
    Priority = 19,
}

/// Number of seeds.
const COUNT: usize = 21;
/// The golden ratio prime of 32 bits that spreads seeds.
const SPREAD: u64 = 0x9e37_0001;
/// Seed of offsets, times the thread number.
const OFFSET_SEED: u64 = 0xb189_9bed;

/// A job's table of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds([u64; COUNT]);

impl Seeds {
    /// The table for a new job. Without repetition and without a seed of its
    /// own, fio takes entropy from the system: `entropy` stands for that.
    pub(crate) fn new(settings: &Settings, thread: u32, entropy: u64) -> Seeds {
        let given = settings.is_given("randseed");
        let base = if !settings.randrepeat && !given {
            entropy
        } else {
            settings.randseed
        };
        let mut spread = (0..4).fold(base, |seed, _| seed.wrapping_mul(SPREAD));
        let mut seeds = Seeds([0; COUNT]);
        for (at, seed) in seeds.0.iter_mut().enumerate() {
            *seed = spread
                .wrapping_mul(u64::from(thread))
                .wrapping_add(at as u64);
            spread = spread.wrapping_mul(SPREAD);
        }
        seeds.reseed(settings, thread);
        seeds
    }

    /// What happens to the table at set-up and before every repeated pass.
    pub(crate) fn reseed(&mut self, settings: &Settings, thread: u32) {
        let offset = OFFSET_SEED.wrapping_mul(u64::from(thread));
        if settings.allrandrepeat {
            for (at, seed) in self.0.iter_mut().enumerate() {
                *seed = offset.wrapping_add(at as u64);
            }
        }
        if settings.rw.random && settings.randrepeat {
            self.0[Use::Offset as usize] = offset;
        }
    }

    /// The seed for a use.
    pub fn seed(&self, usage: Use) -> u64 {
        self.0[usage as usize]
    }
}

/// The generators of a job.
#[derive(Clone, Debug)]
pub(crate) struct Generators {
    pub(crate) block_size: [Rng; 3],
    pub(crate) mix: Rng,
    pub(crate) next_file: Rng,
    pub(crate) offset: Rng,
    pub(crate) file_size: Rng,
    pub(crate) percentage: [Rng; 3],
    pub(crate) zone: Rng,
    pub(crate) poisson: [Rng; 3],
    pub(crate) priority: Rng,
}

impl Generators {
    pub(crate) fn new(seeds: &Seeds, settings: &Settings) -> Generators {
        let wide = settings.random_generator == Generator::Tausworthe64;
        let narrow = |usage| Rng::new(seeds.seed(usage), false);
        let sized = |usage| Rng::new(seeds.seed(usage), wide);
        let write = if settings.verify {
            Use::BlockSizeRead
        } else {
            Use::BlockSizeWrite
        };
        let trim = if settings.rw.is_trimwrite() {
            write
        } else {
            Use::BlockSizeTrim
        };
        Generators {
            block_size: [sized(Use::BlockSizeRead), sized(write), sized(trim)],
            mix: narrow(Use::ReadWriteMix),
            next_file: sized(Use::NextFile),
            offset: sized(Use::Offset),
            file_size: sized(Use::FileSize),
            percentage: std::array::from_fn(|_| narrow(Use::SequentialOrRandom)),
            zone: narrow(Use::Zone),
            poisson: [
                narrow(Use::PoissonRead),
                narrow(Use::PoissonWrite),
                narrow(Use::PoissonTrim),
            ],
            priority: narrow(Use::Priority),
        }
    }
}

/// The generator of start delays.
pub(crate) fn start_delay_generator(seeds: &Seeds, settings: &Settings) -> Rng {
    Rng::new(
        seeds.seed(Use::StartDelay),
        settings.random_generator == Generator::Tausworthe64,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_table() {
        let seeds = Seeds::new(&Settings::default(), 1, 0);
        assert_eq!(seeds.0[0], 0x5278_0a68_adbc_0089);
        assert_eq!(seeds.0[1], 0x2a2f_6621_592b_008a);
        assert_eq!(seeds.0[4], 0x22b5_8261_5b78_008d);
    }

    #[test]
    fn random_jobs_replace_the_seed_of_offsets() {
        let mut settings = Settings::default();
        settings.rw.random = true;
        assert_eq!(Seeds::new(&settings, 1, 0).seed(Use::Offset), 0xb189_9bed);
        settings.randrepeat = false;
        settings.given.insert("randseed");
        assert_ne!(Seeds::new(&settings, 1, 0).seed(Use::Offset), 0xb189_9bed);
    }
}
