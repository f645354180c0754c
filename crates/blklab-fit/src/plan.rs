// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of a cell is run.

use crate::cell::{Cell, Seen};
use crate::drive::{Drive, number};
use crate::load::Length;
use blklab_types::Op;

/// How exactly cells are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effort {
    /// A quarter of the commands: to find where to look.
    Coarse,
    /// What tells one drive from another.
    Fine,
    /// As much as the rarest figures need.
    Whole,
}

/// Commands that it takes for a quantile: so many beyond it.
const BEYOND: f64 = 8.0;

/// Pages of 4 KiB of a read up to which all commands of a load are run.
const PAGES_SEEN: f64 = 4.0;

/// Most slots of a write buffer that are filled before a load.
const SLOTS_MAX: f64 = 30_000.0;

/// How long a cell is run against a drive.
pub(crate) fn length(cell: &Cell, drive: &Drive, effort: Effort) -> Length {
    let seconds = seconds(cell, effort);
    let buffer_bytes = number("buffer_bytes", drive.get("buffer_bytes")).unwrap_or(0.0);
    let buffer_slots = if cell.has(Op::Write) {
        (buffer_bytes / 4096.0).min(SLOTS_MAX)
    } else {
        0.0
    };
    Length {
        buffer_slots: buffer_slots as u64,
        writes_per_s: writes_per_s(cell),
        seconds,
        commands_max: (seconds * cell.per_s().max(1.0) * 2.5) as u64,
    }
}

/// How many residuals a cell has.
pub(crate) fn nr_residuals(cell: &Cell, effort: Effort) -> usize {
    let seconds = seconds(cell, effort);
    let shown = |s: &Seen| 1 + quantiles(s, seconds).count();
    cell.seen.iter().map(shown).sum()
}

/// Writes of 4 KiB per second that were measured.
fn writes_per_s(cell: &Cell) -> f64 {
    let slots = |s: &Seen| f64::from(cell.streams[s.stream].bytes[1]) / 4096.0;
    let writes = cell.seen.iter().filter(|s| s.op == Op::Write);
    writes.map(|s| s.per_s * slots(s)).sum()
}

/// Seconds of a cell that count.
fn seconds(cell: &Cell, effort: Effort) -> f64 {
    let per_s = cell.per_s().max(1.0);
    let rarest = cell.seen.iter().map(|s| s.per_s).fold(f64::MAX, f64::min);
    let usual = if cell.has(Op::Write) {
        // Garbage is collected in rounds: several must be seen.
        28_000.0
    } else if effort == Effort::Whole {
        10_000.0
    } else {
        // A large read is many reads of the flash.
        let largest = cell.streams.iter().map(|s| s.bytes[0]).max();
        let pages = f64::from(largest.unwrap_or(0)) / 4096.0;
        10_000.0 * (PAGES_SEEN / pages.max(1.0)).min(1.0)
    };
    let enough = 1_500.0 * per_s / rarest.max(1.0);
    let share = match effort {
        Effort::Coarse => 0.25,
        Effort::Fine | Effort::Whole => 1.0,
    };
    share * f64::max(usual, enough).min(200_000.0) / per_s
}

/// The quantiles that so many seconds show.
pub(crate) fn quantiles(seen: &Seen, seconds: f64) -> impl Iterator<Item = (f64, f64)> + use<'_> {
    let nr = seen.per_s * seconds;
    let shown = move |(part, _): &(f64, f64)| nr * part.min(1.0 - part) >= BEYOND;
    seen.quantiles.iter().copied().filter(shown)
}
