// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of DiskSim, measured and in its own form.

use super::fields::{letter, seconds, words};
use super::{ASKED, ASKED_AND_DONE, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};
use blklab_trace::Rwbs;

/// The row of the format `disksim-validate`.
pub(crate) static DISKSIM_VALIDATE_FORMAT: Format = format_of_rows!(
    "disksim-validate",
    "DiskSim's measured requests: asked and answered; read",
    DISKSIM_VALIDATE_KIND
);

static DISKSIM_VALIDATE_KIND: RowKind = RowKind {
    recorded: ASKED_AND_DONE,
    row: |rows, line| disksim_validate(rows, line).map(Said::Io),
    example: "no row, as in R Hit 3962268 12 6657.0 64047.0",
};

/// The row of the format `disksim`.
pub(crate) static DISKSIM_FORMAT: Format =
    format_of_rows!("disksim", "DiskSim ASCII: asked; read", DISKSIM_KIND);

static DISKSIM_KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| disksim(rows, line).map(Said::Io),
    example: "no row, as in 13.191135 30 0 5 1",
};

/// DiskSim's measured requests: direction, cache, sector, sectors, response and time
/// to the next request in microseconds.
fn disksim_validate(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([kind, cache, sector, size, took, next], more) = words(line)?;
    let rwbs = letter(kind).filter(|_| !more && matches!(cache, b"Hit" | b"Miss"))?;
    let (sector, size) = (decimal(sector)?, decimal(size)?);
    let us = |word| i64::try_from(seconds(word)? / 1_000_000).ok();
    let (took, next) = (us(took)?, us(next)?);
    let place = Place {
        dev: rows.disks.named(b"disk"),
        rwbs,
        sector,
        bytes: size.checked_mul(512)?,
    };
    let queue = rows.now_ns;
    rows.now_ns = queue.checked_add(next)?;
    rows.io(&place, queue, Some(took))
}

/// DiskSim ASCII: arrival in ms, device, sector, sectors, flags of which the lowest
/// means a read.
fn disksim(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([at, disk, sector, size, flags], more) = words(line)?;
    let at = seconds(at).filter(|_| !more)? / 1000;
    let (sector, size, flags) = (decimal(sector)?, decimal(size)?, decimal(flags)?);
    decimal(disk)?;
    let place = Place {
        dev: rows.disks.named(disk),
        rwbs: if flags & 1 == 1 {
            Rwbs::READ
        } else {
            Rwbs::WRITE
        },
        sector,
        bytes: size.checked_mul(512)?,
    };
    let queue = rows.since_first(at)?;
    rows.io(&place, queue, None)
}
