// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of MSR Cambridge.

use super::fields::{comma_fields, letter, scaled};
use super::{ASKED_AND_DONE, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};

/// The row of the format `msr`.
pub(crate) static FORMAT: Format = format_of_rows!(
    "msr",
    "MSR Cambridge: asked and answered, in 100 ns; read",
    KIND
);

static KIND: RowKind = RowKind {
    recorded: ASKED_AND_DONE,
    row: |rows, line| msr(rows, line).map(Said::Io),
    example: "no row, as in 128166372003061629,hm,0,Write,7014912,4096,26",
};

/// MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime, times
/// in 100 ns (Windows file time), lengths in bytes.
fn msr(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([at, host, disk, kind, offset, size, took], more) = comma_fields(line)?;
    let rwbs = letter(kind).filter(|_| kind.len() > 1 && !more)?;
    let (offset, size) = (decimal(offset)?, decimal(size)?);
    let took = i64::try_from(scaled(took, 100)?).ok()?;
    let at = scaled(at, 100)?;
    decimal(disk)?;
    let dev = rows.disks.named(&[host, b"_", disk].concat());
    let queue = rows.since_first(at)?;
    rows.io(&Place::at_byte(dev, rwbs, offset, size), queue, Some(took))
}
