// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fuzz targets do with their inputs.
//!
//! ```text
//! corpora, regressions, samples ─► seeds ─┬─► libFuzzer (fuzz/fuzz_targets) ─┐
//!                                         └─► mutants of a seed (Mutants) ───┴─► Target::feed
//! ```
//!
//! A [`Target`] is one module and one row of [`TARGETS`]. It takes bytes of any content, and
//! panics where something is wrong with what it tries; what it refuses is no fault. It gives
//! a fingerprint of what it read, if it read something: by that a [`canary`] proves that a
//! fuzzer gets behind the target's parser and that a fault there is seen.
//!
//! Tests drive every target without a fuzzer: `docs/fuzzing.md` says how, and what it covers.

pub mod canary;
mod check;
mod contexts;
mod corpus;
mod devices;
mod disks;
mod experiments;
mod exports;
mod fio_jobs;
mod fio_results;
mod fits;
pub mod fuzzer;
mod iologs;
mod mutate;
mod reports;
mod run_directories;
mod runs;
mod saved_lines;
pub mod search;
mod sums;
mod tape;
mod to_fio;
mod traces;
mod well_formed;

pub use corpus::{Seed, seeds};
pub use mutate::Mutants;
pub use runs::run_twice;
pub use traces::every_format;

/// What is fed with bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its file in `fuzz/fuzz_targets` and of its folders.
    pub name: &'static str,
    /// Tries an input: a fingerprint of what was read, none if it was refused.
    pub feed: fn(&[u8]) -> Option<u64>,
    /// Samples of the project that it starts from beside its corpus.
    samples: fn() -> Vec<Seed>,
}

/// All targets.
pub const TARGETS: [Target; 18] = [
    traces::TRACE,
    traces::CTF,
    traces::COMPACT,
    iologs::TARGET,
    fio_jobs::TARGET,
    fio_results::TARGET,
    experiments::TARGET,
    devices::TARGET,
    disks::TARGET,
    sums::TARGET,
    contexts::TARGET,
    fits::TARGET,
    run_directories::TARGET,
    saved_lines::TARGET,
    exports::TARGET,
    reports::TARGET,
    to_fio::TARGET,
    runs::TARGET,
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> Target {
    let found = TARGETS.into_iter().find(|t| t.name == name);
    found.unwrap_or_else(|| panic!("no fuzz target {name}"))
}
