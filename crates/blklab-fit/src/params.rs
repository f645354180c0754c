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

const fn of(
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
    of("command_us", Unit::Us, ShowsIn::All, US, None),
    of("read_overhead_us", Unit::Us, ShowsIn::Reads, US, None),
    of("read_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    of("read_middle_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    of("read_slow_us", Unit::Us, ShowsIn::ReadsOrReplacing, US, None),
    of("channel_mb_per_s", Unit::MbPerS, ShowsIn::All, RATE, None),
    of("link_mb_per_s", Unit::MbPerS, ShowsIn::All, RATE, None),
    of("read_slots", Unit::Count, ShowsIn::Reads, (1.0, 65_536.0), None),
    of("read_large_us", Unit::Us, ShowsIn::LargeReads, US, Some(5.0)),
    of("read_large_overhead_us", Unit::Us, ShowsIn::LargeReads, US, Some(20.0)),
    of("read_large_mb_per_s", Unit::MbPerS, ShowsIn::LargeReads, RATE, Some(4000.0)),
    of("write_overhead_us", Unit::Us, ShowsIn::Writes, US, None),
    of("write_command_us", Unit::Us, ShowsIn::Replacing, US, None),
    of("program_us", Unit::Us, ShowsIn::Writes, US, None),
    of("buffer_bytes", Unit::Bytes, ShowsIn::Writes, (262_144.0, 1e9), None),
    of("erase_us", Unit::Us, ShowsIn::Replacing, US, None),
    of("spare_pct", Unit::Percent, ShowsIn::Replacing, (1.0, 400.0), None),
    of("filled_pct", Unit::Percent, ShowsIn::Replacing, (1.0, 100.0), None),
    of("suspend_program_us", Unit::Us, ShowsIn::Replacing, US, None),
    of("suspend_erase_us", Unit::Us, ShowsIn::Replacing, US, None),
    of("gc_burst_bytes", Unit::Bytes, ShowsIn::Replacing, (65_536.0, 1e9), None),
    of("gc_dies", Unit::Count, ShowsIn::Replacing, (1.0, 4096.0), None),
];

/// A parameter by its name; there is one.
pub(crate) fn named(name: &str) -> &'static Param {
    let found = ALL.iter().find(|p| p.name == name);
    found.expect("a name of the table")
}
