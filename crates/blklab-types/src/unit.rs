// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the number of a tunable, a setting or a parameter counts.

use std::fmt;

/// Unit in which a tunable, a setting or a parameter is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Count,
    /// Seconds.
    S,
    /// Hundredths of a second, as in `/proc/sys/vm/*_centisecs`.
    Centisecs,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// Picoseconds.
    Ps,
    /// Bytes.
    Bytes,
    /// KiB.
    KiB,
    /// MiB.
    MiB,
    /// GiB.
    GiB,
    /// Sectors of 512 bytes.
    Sectors,
    /// Blocks of a filesystem, of 4 KiB.
    Blocks,
    /// So many in a second.
    PerS,
    /// Bytes in a second.
    BytesPerS,
    /// Millions of bytes in a second.
    MbPerS,
    /// MiB in a second.
    MibPerS,
    /// Revolutions in a minute.
    Rpm,
    /// Hundredths of a whole.
    Percent,
    /// 0 or 1.
    Bool,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Count => "count",
            Unit::S => "s",
            Unit::Centisecs => "cs",
            Unit::Ms => "ms",
            Unit::Us => "us",
            Unit::Ns => "ns",
            Unit::Ps => "ps",
            Unit::Bytes => "bytes",
            Unit::KiB => "KiB",
            Unit::MiB => "MiB",
            Unit::GiB => "GiB",
            Unit::Sectors => "sectors",
            Unit::Blocks => "blocks",
            Unit::PerS => "per second",
            Unit::BytesPerS => "B/s",
            Unit::MbPerS => "MB/s",
            Unit::MibPerS => "MiB/s",
            Unit::Rpm => "rpm",
            Unit::Percent => "percent",
            Unit::Bool => "0|1",
        })
    }
}
