// SPDX-License-Identifier: MIT OR Apache-2.0
//! ReiserFS.

use super::{ReiserOptions, Tails};
use crate::jbd::{Barrier, DataMode};
use crate::kind::{ATIME, BARRIER, Kind, Mounting, numbers, words};
use crate::vfs::VfsFeatures;
use blklab_types::Unit;

/// ReiserFS 3.6.
pub(crate) const REISERFS: Kind<ReiserOptions> = Kind {
    name: "reiserfs",
    summary: "ReiserFS 3.6: one tree, tails, journal",
    page: Some("reiserfs"),
    options: &[
        words(
            "data",
            &["ordered", "writeback"],
            "ordered",
            "whether data of new blocks are written before their transaction commits",
        ),
        words(
            "tails",
            &["on", "small", "off"],
            "small",
            "which files keep their last partial block in the tree; off: none (notail)",
        ),
        BARRIER,
        ATIME,
        numbers(
            "max_age_s",
            (1, 3600),
            Unit::S,
            "30",
            "age at which a transaction accepts no more handles",
        ),
    ],
    choose: options,
    ..Kind::PLAIN
};

/// The options of a volume.
fn options(m: &Mounting<'_>) -> ReiserOptions {
    let vfs = VfsFeatures::of(m.kernel);
    let mut o = ReiserOptions::new(vfs);
    if m.option("data") == Some("writeback") {
        o.data = DataMode::Writeback;
    }
    o.tails = match m.option("tails") {
        Some("on") => Tails::On,
        Some("off") => Tails::Off,
        _ => o.tails,
    };
    o.barrier = Barrier::new(m.flag("barrier", false), vfs.flush_fua);
    o.atime = m.atime(o.atime);
    o.max_age_s = m.number_or("max_age_s", o.max_age_s);
    o
}
