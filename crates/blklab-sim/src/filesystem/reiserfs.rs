// SPDX-License-Identifier: MIT OR Apache-2.0
//! ReiserFS.

use super::{atime, flag, number};
use blklab_experiment::Experiment;
use blklab_fs::{Barrier, DataMode, ExtFeatures, ReiserOptions, Tails};

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
    o.barrier = Barrier::new(flag(spec, "barrier", false), features.flush_fua);
    o.atime = atime(spec, o.atime);
    o.max_age_s = number(spec, "max_age_s", o.max_age_s);
    o
}
