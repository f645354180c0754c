// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of the Storage Performance Council.

use super::fields::{comma_fields, letter, seconds};
use super::{ASKED, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};

/// The row of the format `spc`.
pub(crate) static FORMAT: Format =
    format_of_rows!("spc", "Storage Performance Council: asked; read", KIND);

static KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| spc(rows, line).map(Said::Io),
    example: "no row, as in 0,20941264,8192,W,0.551706",
};

/// SPC: ASU,LBA,Size,Opcode,Timestamp and more, sectors, bytes, seconds.
fn spc(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([asu, sector, size, kind, at], _) = comma_fields(line)?;
    let rwbs = letter(kind).filter(|_| kind.len() == 1)?;
    let (sector, bytes, at) = (decimal(sector)?, decimal(size)?, seconds(at)?);
    decimal(asu)?;
    let place = Place {
        dev: rows.disks.named(&[b"ASU", asu].concat()),
        rwbs,
        sector,
        bytes,
    };
    let queue = rows.since_first(at)?;
    rows.io(&place, queue, None)
}
