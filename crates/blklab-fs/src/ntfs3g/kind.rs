// SPDX-License-Identifier: MIT OR Apache-2.0
//! NTFS-3G.

use super::{NtfsCosts, NtfsOptions};
use crate::kind::{Kind, Mounting, numbers, switch};
use blklab_types::{Span, Unit};

/// NTFS-3G.
pub(crate) const NTFS_3G: Kind<NtfsOptions> = Kind {
    name: "ntfs-3g",
    summary: "NTFS in a user-space daemon behind FUSE (2008)",
    page: Some("ntfs-3g"),
    options: &[
        switch(
            "big_writes",
            "0",
            "a message carries up to 32 pages of a write instead of one, from 2.6.27 on",
        ),
        switch("noatime", "0", "reads do not change access times"),
        numbers(
            "timeout_ms",
            (0, 3_600_000),
            Unit::Ms,
            "1000",
            "how long the kernel caches a name and its attributes",
        ),
    ],
    choose: options,
    ..Kind::PLAIN
};

/// The options of a volume.
fn options(m: &Mounting<'_>) -> NtfsOptions {
    let mut o = NtfsOptions::default();
    o.big_writes = m.number("big_writes") == Some(1);
    o.atime = m.number("noatime") != Some(1);
    o.timeout = m.number("timeout_ms").map_or(o.timeout, Span::from_ms);
    o.costs = NtfsCosts::default().map(|t| (m.cpu_time)(t));
    o
}
