// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bios of a process, one by one.

use crate::process::{Io, flag_set};
use blklab_types::{BioFlags, Op, Time};

/// The next bio of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextBio {
    /// Direction.
    pub op: Op,
    /// Flags.
    pub flags: BioFlags,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub nr_sectors: u32,
    /// Replaces the process's think time before this bio.
    pub think_ns: Option<u64>,
    /// Not before this time (scripts).
    pub at: Option<Time>,
}

/// Position in a process's I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    idx: u64,
}

impl Cursor {
    /// The next bio without taking it; `None` at the end.
    pub fn peek(&self, io: &Io) -> Option<NextBio> {
        let i = usize::try_from(self.idx).ok()?;
        let plain = |op, flags, sector, nr_sectors| NextBio {
            op,
            flags,
            sector,
            nr_sectors,
            think_ns: None,
            at: None,
        };
        match io {
            Io::Sequential {
                rw,
                flags,
                start,
                nsect,
                count,
            } => (self.idx < *count).then(|| {
                plain(
                    rw.op(),
                    flag_set(flags),
                    start + self.idx * u64::from(*nsect),
                    *nsect,
                )
            }),
            Io::List {
                rw,
                flags,
                nsect,
                sectors,
            } => sectors
                .get(i)
                .map(|&s| plain(rw.op(), flag_set(flags), s, *nsect)),
            Io::Mixed { ops } => ops.get(i).map(|op| NextBio {
                think_ns: op.4,
                ..plain(op.0.op(), flag_set(&op.1), op.2, op.3)
            }),
            Io::Script { ops } => ops.get(i).map(|op| NextBio {
                at: Some(Time(op.t_ns)),
                ..plain(op.rw.op(), flag_set(&op.flags), op.sector, op.nsect)
            }),
        }
    }

    /// Goes on behind the bio that [`Cursor::peek`] showed.
    pub fn advance(&mut self) {
        self.idx += 1;
    }
}

/// Largest sector (exclusive) that a process touches; `None` on overflow.
pub(crate) fn end_sector(io: &Io) -> Option<u64> {
    let end = |s: u64, n: u32| s.checked_add(u64::from(n));
    match io {
        Io::Sequential {
            start,
            nsect,
            count,
            ..
        } => start.checked_add(count.checked_mul(u64::from(*nsect))?),
        Io::List { nsect, sectors, .. } => sectors
            .iter()
            .try_fold(0, |m: u64, &s| Some(m.max(end(s, *nsect)?))),
        Io::Mixed { ops } => ops
            .iter()
            .try_fold(0, |m: u64, o| Some(m.max(end(o.2, o.3)?))),
        Io::Script { ops } => ops
            .iter()
            .try_fold(0, |m: u64, o| Some(m.max(end(o.sector, o.nsect)?))),
    }
}

impl Io {
    /// The sector after the last one touched; `None` if it overflows.
    pub fn end_sector(&self) -> Option<u64> {
        end_sector(self)
    }

    /// Largest bio in sectors.
    pub fn largest_nr_sectors(&self) -> u32 {
        match self {
            Io::Sequential { nsect, .. } | Io::List { nsect, .. } => *nsect,
            Io::Mixed { ops } => ops.iter().map(|o| o.3).max().unwrap_or(0),
            Io::Script { ops } => ops.iter().map(|o| o.nsect).max().unwrap_or(0),
        }
    }
}
