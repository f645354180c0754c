// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of MQSim.

use super::fields::{scaled, words};
use super::{ASKED, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};
use blklab_trace::Rwbs;

/// The row of the format `mqsim`.
pub(crate) static FORMAT: Format = format_of_rows!("mqsim", "MQSim: asked; read", KIND);

static KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| mqsim(rows, line).map(Said::Io),
    example: "no row, as in 938513000 4 264719034 16 0",
};

/// MQSim: arrival in ns, device, sector, sectors, 1 for a read.
fn mqsim(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    let ([at, disk, sector, size, kind], more) = words(line)?;
    let rwbs = one_reads(kind).filter(|_| !more)?;
    let (sector, size, at) = (decimal(sector)?, decimal(size)?, scaled(at, 1)?);
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

fn one_reads(word: &[u8]) -> Option<Rwbs> {
    match word {
        b"1" => Some(Rwbs::READ),
        b"0" => Some(Rwbs::WRITE),
        _ => None,
    }
}
