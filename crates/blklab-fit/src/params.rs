// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of flash drives that a fit looks for, and the loads that they show in.

use crate::cell::{Cell, State};
use blklab_types::Op;

/// How the value of a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Microseconds, to the nanosecond.
    Us,
    /// 10^6 bytes per second.
    MbPerS,
    /// A whole number.
    Count,
    /// Bytes, in whole pages of 4 KiB.
    Bytes,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// The value as the device takes it, and the number that it is then.
    pub(crate) fn written(self, value: f64) -> (String, f64) {
        let text = match self {
            Unit::Us => format!("{value:.3}"),
            Unit::MbPerS => format!("{value:.1}"),
            Unit::Percent => format!("{value:.2}"),
            Unit::Count => format!("{:.0}", value.round()),
            Unit::Bytes => format!("{:.0}", (value / 4096.0).round() * 4096.0),
        };
        let number = text.parse().expect("a number was written");
        (text, number)
    }

    /// The least change that is one.
    pub(crate) fn grain(self) -> f64 {
        match self {
            Unit::Us => 0.001,
            Unit::MbPerS => 0.1,
            Unit::Percent => 0.01,
            Unit::Count => 1.0,
            Unit::Bytes => 4096.0,
        }
    }
}

/// What loads a parameter shows in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShowsIn {
    /// All.
    All,
    /// Those with reads.
    Reads,
    /// Those with reads of more than 4 KiB.
    LargeReads,
    /// Those with writes.
    Writes,
    /// Those with writes that replace data.
    Replacing,
    /// Those with reads, and those with writes that replace data: moves read as well.
    ReadsOrReplacing,
}

impl ShowsIn {
    pub(crate) fn shows_in(self, cell: &Cell) -> bool {
        let replaces = cell.state == State::Used && cell.has(Op::Write);
        match self {
            ShowsIn::All => true,
            ShowsIn::Reads => cell.has(Op::Read),
            ShowsIn::LargeReads => cell.has_large_reads(),
            ShowsIn::Writes => cell.has(Op::Write),
            ShowsIn::Replacing => replaces,
            ShowsIn::ReadsOrReplacing => cell.has(Op::Read) || replaces,
        }
    }
}

/// A parameter that may be looked for.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) shows_in: ShowsIn,
    /// Least and largest value.
    pub(crate) range: (f64, f64),
    /// Where to begin if the drive that is begun with has none of it, or 0.
    pub(crate) begin: Option<f64>,
}

const fn param(
    name: &'static str,
    unit: Unit,
    shows_in: ShowsIn,
    range: (f64, f64),
    begin: Option<f64>,
) -> Param {
    Param {
        name,
        unit,
        shows_in,
        range,
        begin,
    }
}

const US: (f64, f64) = (0.05, 100_000.0);
const RATE: (f64, f64) = (20.0, 50_000.0);

/// All of them.
#[rustfmt::skip]
pub(crate) const ALL: &[Param] = &[
    param("command_us", Unit::Us, ShowsIn::All, US, None),
    param("read_overhead_us", Unit::Us, ShowsIn::Reads, US, None),
    param("read_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    param("read_middle_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    param("read_slow_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    param("channel_mb_per_s", Unit::MbPerS, ShowsIn::All, RATE, None),
    param("link_mb_per_s", Unit::MbPerS, ShowsIn::All, RATE, None),
    param("read_slots", Unit::Count, ShowsIn::Reads, (1.0, 65_536.0), None),
    param("read_large_us", Unit::Us, ShowsIn::LargeReads, US, Some(5.0)),
    param("read_large_overhead_us", Unit::Us, ShowsIn::LargeReads, US, Some(20.0)),
    param("read_large_mb_per_s", Unit::MbPerS, ShowsIn::LargeReads, RATE, Some(4000.0)),
    param("write_overhead_us", Unit::Us, ShowsIn::Writes, US, None),
    param("write_command_us", Unit::Us, ShowsIn::Replacing, US, None),
    param("program_us", Unit::Us, ShowsIn::Writes, US, None),
    param("buffer_bytes", Unit::Bytes, ShowsIn::Writes, (262_144.0, 1e9), None),
    param("erase_us", Unit::Us, ShowsIn::Replacing, US, None),
    param("spare_pct", Unit::Percent, ShowsIn::Replacing, (1.0, 400.0), None),
    param("filled_pct", Unit::Percent, ShowsIn::Replacing, (1.0, 100.0), None),
    param("suspend_program_us", Unit::Us, ShowsIn::Replacing, US, None),
    param("suspend_erase_us", Unit::Us, ShowsIn::Replacing, US, None),
    param("gc_burst_bytes", Unit::Bytes, ShowsIn::Replacing, (65_536.0, 1e9), None),
    param("gc_dies", Unit::Count, ShowsIn::Replacing, (1.0, 4096.0), None),
];

/// A parameter by its name; there is one.
pub(crate) fn named(name: &str) -> &'static Param {
    let found = ALL.iter().find(|p| p.name == name);
    found.expect("a name of the table")
}
