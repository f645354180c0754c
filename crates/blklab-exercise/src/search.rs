// SPDX-License-Identifier: MIT OR Apache-2.0
//! Targets driven without a fuzzer, with the same mutants every time.

use crate::{Mutants, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// No small input takes so long, even where a dozen tests run beside.
const TAKES_MAX: Duration = Duration::from_secs(20);

/// An input that is wrong.
#[derive(Clone, Debug)]
pub struct Found {
    /// Mutants until then, itself among them.
    pub runs: u64,
    /// The input.
    pub bytes: Vec<u8>,
    /// What it says.
    pub says: String,
}

/// Feeds `runs` mutants of the target's seeds, the same every time: the first that is wrong.
pub fn search(target: &Target, runs: u64, feed: impl Fn(&[u8])) -> Option<Found> {
    let mut mutants = Mutants::new(target, 0);
    (1..=runs).find_map(|run| {
        let bytes = mutants.draw();
        let says = fault(|| feed(&bytes))?;
        Some(Found {
            runs: run,
            bytes,
            says,
        })
    })
}

/// What is wrong with an input: a panic, or that it takes too long.
pub fn fault(feed: impl FnOnce()) -> Option<String> {
    let begin = Instant::now();
    match catch_unwind(AssertUnwindSafe(feed)) {
        Ok(()) => {
            let took = begin.elapsed();
            (took > TAKES_MAX).then(|| format!("it takes {} s", took.as_secs()))
        }
        Err(thrown) => {
            let text = thrown.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| thrown.downcast_ref::<&str>().copied());
            Some(text.unwrap_or("a panic without words").to_owned())
        }
    }
}
