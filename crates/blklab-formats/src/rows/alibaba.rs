// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Alibaba Cloud.

use super::fields::{comma_fields, letter, scaled};
use super::{ASKED, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};

/// The row of the format `alibaba`.
pub(crate) static FORMAT: Format = format_of_rows!(
    "alibaba",
    "Alibaba Cloud 2020: asked, in microseconds; read",
    KIND
);

static KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| alibaba(rows, line).map(Said::Io),
    example: "no row, as in 419,W,8792731648,16384,1577808144360767",
};

/// Alibaba 2020: `device_id,opcode,offset,length,timestamp`, bytes and microseconds.
fn alibaba(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([disk, kind, offset, size, at], more) = comma_fields(line)?;
    let rwbs = letter(kind).filter(|_| !more)?;
    let (offset, size, at) = (decimal(offset)?, decimal(size)?, scaled(at, 1000)?);
    decimal(disk)?;
    let dev = rows.disks.named(disk);
    let queue = rows.since_first(at)?;
    rows.io(&Place::at_byte(dev, rwbs, offset, size), queue, None)
}
