// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Tencent CBS.

use super::fields::{comma_fields, scaled};
use super::{ASKED, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};
use blklab_trace::Rwbs;

/// The row of the format `tencent`.
pub(crate) static FORMAT: Format =
    format_of_rows!("tencent", "Tencent CBS: asked, in seconds; read", KIND);

static KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| tencent(rows, line).map(Said::Io),
    example: "no row, as in 1538323200,42932745,136,0,1283",
};

/// Tencent CBS: Timestamp,Offset,Size,IOType,VolumeID, seconds and sectors; 0 reads.
fn tencent(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([at, sector, size, kind, disk], more) = comma_fields(line)?;
    let rwbs = zero_reads(kind).filter(|_| !more)?;
    let (sector, size) = (decimal(sector)?, decimal(size)?);
    // Seconds since 1970, of this century.
    let at = scaled(at, 1_000_000_000).filter(|_| at.len() >= 9)?;
    decimal(disk)?;
    let place = Place {
        dev: rows.disks.named(disk),
        rwbs,
        sector,
        bytes: size.checked_mul(512)?,
    };
    let queue = rows.since_first(at)?;
    rows.io(&place, queue, None)
}

fn zero_reads(word: &[u8]) -> Option<Rwbs> {
    match word {
        b"0" => Some(Rwbs::READ),
        b"1" => Some(Rwbs::WRITE),
        _ => None,
    }
}
