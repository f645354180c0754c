// SPDX-License-Identifier: MIT OR Apache-2.0
//! A planted fault, behind the parser of a target.
//!
//! An armed canary panics on one of [`ONE_OF`] inputs that are read, whichever they are, but
//! on none that is read as one of those that the target starts from: only who makes new
//! inputs that the parser takes, and several that read as different things, can find it. Inputs that
//! are refused never set it off.

use crate::Target;
use crate::corpus::seeds;
use crate::search::search;
use std::collections::BTreeSet;

/// Of so many inputs that are read, one has the fault.
pub const ONE_OF: u64 = 16;

/// What the planted fault says.
pub const SAYS: &str = "the planted fault";

/// A target with a fault.
#[derive(Clone, Debug)]
pub struct Canary {
    target: Target,
    /// What the seeds are read as.
    of_seeds: BTreeSet<u64>,
}

impl Canary {
    /// Plants it.
    pub fn armed(target: Target) -> Canary {
        let own = seeds(&target);
        let seen = own.iter().filter_map(|seed| (target.feed)(&seed.bytes));
        Canary {
            target,
            of_seeds: seen.collect(),
        }
    }

    /// Feeds the target.
    ///
    /// # Panics
    /// If the input has the fault, or is wrong without it.
    pub fn feed(&self, data: &[u8]) {
        let Some(seen) = (self.target.feed)(data) else {
            return;
        };
        let has_it = seen % ONE_OF == 0 && !self.of_seeds.contains(&seen);
        assert!(!has_it, "{SAYS} of {}", self.target.name);
    }

    /// Looks for it with this many mutants of the seeds: how many it took.
    ///
    /// # Panics
    /// If another fault is found.
    pub fn find(&self, runs: u64) -> Option<u64> {
        let found = search(&self.target, runs, |data| self.feed(data))?;
        let says = &found.says;
        assert!(says.contains(SAYS), "{}: {says}", self.target.name);
        Some(found.runs)
    }
}
