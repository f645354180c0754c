// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of Florida International University.

use super::fields::{letter, scaled, words};
use super::{ASKED, Place, RowKind, Rows, Said, format_of_rows};
use crate::format::Format;
use crate::text::{Io, decimal};

/// The row of the format `fiu`.
pub(crate) static FORMAT: Format = format_of_rows!(
    "fiu",
    "Florida International University: asked, with processes; read",
    KIND
);

static KIND: RowKind = RowKind {
    recorded: ASKED,
    row: |rows, line| fiu(rows, line).map(Said::Io),
    example: "no row, as in 0 4892 syslogd 904265560 8 W 6 0 531e779e",
};

/// Digits of the digest of the data, at least: samples that people mail have it shortened.
const DIGEST_DIGITS_MIN: usize = 8;

/// FIU: ns, pid, process, sector, sectors, W or R, major, minor, MD5. Without the digest of the data
/// it may be anybody's columns, of DTrace for example, where lengths are in bytes.
fn fiu<'a>(rows: &mut Rows, line: &'a [u8]) -> Option<Io<'a>> {
    let (fields, _) = words(line)?;
    let [at, pid, comm, sector, size, kind, major, minor, digest] = fields;
    let is_digest = digest.len() >= DIGEST_DIGITS_MIN && digest.iter().all(u8::is_ascii_hexdigit);
    if !is_digest {
        return None;
    }
    let rwbs = letter(kind).filter(|_| kind.len() == 1)?;
    let (sector, size, at) = (decimal(sector)?, decimal(size)?, scaled(at, 1)?);
    let place = Place {
        dev: blklab_types::Dev {
            major: decimal(major)?.try_into().ok()?,
            minor: decimal(minor)?.try_into().ok()?,
        },
        rwbs,
        sector,
        bytes: size.checked_mul(512)?,
    };
    let pid = decimal(pid)?.try_into().ok()?;
    let queue = rows.since_first(at)?;
    let mut io: Io<'a> = rows.io(&place, queue, None)?;
    io.event.pid = pid;
    io.comm = Some(comm);
    Some(io)
}
