// SPDX-License-Identifier: MIT OR Apache-2.0
//! Units of metrics.

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count or a share: without unit.
    One,
    /// Bytes.
    Bytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// Hundredths.
    Percent,
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
    /// Bytes per second.
    BytesPerS,
    /// 2^10 bytes per second.
    KibPerS,
    /// 10^6 bytes per second.
    MbPerS,
    /// 2^20 bytes per second.
    MibPerS,
    /// Events per second.
    PerS,
}

/// What a unit measures: units of one kind convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Count,
    Bytes,
    Sectors,
    Share,
    Time,
    ByteRate,
    Rate,
}

impl Unit {
    /// All of them.
    pub const ALL: [Unit; 13] = [
        Unit::One,
        Unit::Bytes,
        Unit::Sectors,
        Unit::Percent,
        Unit::Ns,
        Unit::Us,
        Unit::Ms,
        Unit::S,
        Unit::BytesPerS,
        Unit::KibPerS,
        Unit::MbPerS,
        Unit::MibPerS,
        Unit::PerS,
    ];

    /// Kind, end of names, text, and how much of the kind's smallest it is.
    fn row(self) -> (Kind, &'static str, &'static str, f64) {
        match self {
            Unit::One => (Kind::Count, "", "1", 1.0),
            // These say their unit in the name itself.
            Unit::Bytes => (Kind::Bytes, "", "B", 1.0),
            Unit::Sectors => (Kind::Sectors, "", "sectors", 1.0),
            Unit::PerS => (Kind::Rate, "", "1/s", 1.0),
            Unit::Percent => (Kind::Share, "percent", "%", 1.0),
            Unit::Ns => (Kind::Time, "ns", "ns", 1.0),
            Unit::Us => (Kind::Time, "us", "us", 1e3),
            Unit::Ms => (Kind::Time, "ms", "ms", 1e6),
            Unit::S => (Kind::Time, "s", "s", 1e9),
            Unit::BytesPerS => (Kind::ByteRate, "bytes_per_s", "B/s", 1.0),
            Unit::KibPerS => (Kind::ByteRate, "kib_s", "KiB/s", 1024.0),
            Unit::MbPerS => (Kind::ByteRate, "mb_s", "MB/s", 1e6),
            Unit::MibPerS => (Kind::ByteRate, "mib_s", "MiB/s", 1_048_576.0),
        }
    }

    /// What names of metrics in this unit end with, after a line below; empty if
    /// nothing.
    pub fn suffix(self) -> &'static str {
        self.row().1
    }

    /// As people write it; 1 for counts.
    pub fn text(self) -> &'static str {
        self.row().2
    }

    /// Whether values in one of both can be said in the other.
    pub fn converts_to(self, other: Unit) -> bool {
        self.row().0 == other.row().0
    }

    /// A value in this unit, in another of the same kind.
    pub fn convert(self, value: f64, to: Unit) -> f64 {
        let (from, to) = (self.row().3, to.row().3);
        if to >= from {
            value / (to / from)
        } else {
            value * (from / to)
        }
    }
}
