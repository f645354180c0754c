// SPDX-License-Identifier: MIT OR Apache-2.0
//! Targets driven by libFuzzer.

use crate::canary::Canary;
use crate::corpus::{folder_of, seeds};
use crate::{Target, target};
use std::sync::OnceLock;

/// Set to 1, targets of libFuzzer have the planted fault.
pub const CANARY: &str = "BLKLAB_FUZZ_CANARY";

/// What a fuzz target of libFuzzer feeds.
#[derive(Debug)]
pub struct Fed {
    target: Target,
    canary: Option<Canary>,
}

static FED: OnceLock<Fed> = OnceLock::new();

/// Begins: writes the seeds into libFuzzer's corpus, and plants the fault if that is wished.
///
/// # Panics
/// If they cannot be written.
pub fn begin(name: &str) {
    let target = target(name);
    let folder = folder_of("corpus", name);
    std::fs::create_dir_all(&folder).expect("the corpus can be written");
    for seed in seeds(&target) {
        std::fs::write(folder.join(&seed.name), &seed.bytes).expect("the corpus can be written");
    }
    let is_wished = std::env::var_os(CANARY).is_some_and(|v| v == "1");
    let canary = is_wished.then(|| Canary::armed(target));
    FED.set(Fed { target, canary }).expect("it begins once");
}

/// Feeds the target that began.
///
/// # Panics
/// If something is wrong with the input, or none began.
pub fn feed(data: &[u8]) {
    let fed = FED.get().expect("a target begins before it is fed");
    match &fed.canary {
        Some(canary) => canary.feed(data),
        None => drop((fed.target.feed)(data)),
    }
}
