// SPDX-License-Identifier: MIT OR Apache-2.0
//! ReiserFS.

use blklab_experiment::Experiment;
use blklab_fs::{Atime, DataMode, ExtFeatures, ReiserOptions, Tails, barrier};

/// The options of a volume.
pub(super) fn options(e: &Experiment) -> ReiserOptions {
    let spec = &e.filesystem;
    let features = ExtFeatures::of_release(e.kernel.numbers());
    let mut o = ReiserOptions::new(features);
    if spec.option("data") == Some("writeback") {
        o.data = DataMode::Writeback;
    }
    o.tails = match spec.option("tails") {
        Some("on") => Tails::On,
        Some("off") => Tails::Off,
        _ => o.tails,
    };
    o.barrier = barrier(spec.number("barrier") == Some(1), features);
    o.atime = match spec.option("atime") {
        Some("strict") => Atime::Strict,
        Some("relative") => Atime::Relative,
        Some("never") => Atime::Never,
        _ => o.atime,
    };
    let age = spec.number("max_age_s").and_then(|n| n.try_into().ok());
    o.max_age_s = age.unwrap_or(o.max_age_s);
    o
}
