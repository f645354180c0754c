// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of kinds of rows, and those of research traces.

use super::fields::{comma_fields, words};
use super::{Place, Rows, Said, fio};
use crate::text::{Io, decimal, time};
use blklab_trace::{Action, Rwbs};

/// A kind of rows.
pub struct RowKind {
    /// Its name.
    pub name: &'static str,
    /// What an event of such a trace shows that was really observed.
    pub(super) recorded: &'static [Action],
    /// Takes a row apart; none if it is none of this kind.
    pub(super) row: for<'a> fn(&mut Rows, &'a [u8]) -> Option<Said<'a>>,
    /// What a row looks like, for those that do not.
    pub(super) example: &'static str,
}

impl std::fmt::Debug for RowKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const ASKED: &[Action] = &[Action::Queue];
const ASKED_AND_DONE: &[Action] = &[Action::Queue, Action::Complete];

/// All kinds, the most particular first.
pub static KINDS: [RowKind; 10] = [
    RowKind {
        name: "fio-iolog",
        recorded: ASKED,
        row: fio::iolog,
        example: "no row, as in 872 /dev/sda write 0 16384",
    },
    RowKind {
        name: "msr",
        recorded: ASKED_AND_DONE,
        row: |rows, line| msr(rows, line).map(Said::Io),
        example: "no row, as in 128166372003061629,hm,0,Write,7014912,4096,26",
    },
    RowKind {
        name: "alibaba",
        recorded: ASKED,
        row: |rows, line| alibaba(rows, line).map(Said::Io),
        example: "no row, as in 419,W,8792731648,16384,1577808144360767",
    },
    RowKind {
        name: "spc",
        recorded: ASKED,
        row: |rows, line| spc(rows, line).map(Said::Io),
        example: "no row, as in 0,20941264,8192,W,0.551706",
    },
    RowKind {
        name: "fio-lat-log",
        recorded: ASKED_AND_DONE,
        row: |rows, line| fio::lat_log(rows, line).map(Said::Io),
        example: "no row, as in 12, 83456, 0, 4096, 8192",
    },
    RowKind {
        name: "tencent",
        recorded: ASKED,
        row: |rows, line| tencent(rows, line).map(Said::Io),
        example: "no row, as in 1538323200,42932745,136,0,1283",
    },
    RowKind {
        name: "fiu",
        recorded: ASKED,
        row: |rows, line| fiu(rows, line).map(Said::Io),
        example: "no row, as in 0 4892 syslogd 904265560 8 W 6 0 531e779e",
    },
    RowKind {
        name: "disksim-validate",
        recorded: ASKED_AND_DONE,
        row: |rows, line| disksim_validate(rows, line).map(Said::Io),
        example: "no row, as in R Hit 3962268 12 6657.0 64047.0",
    },
    RowKind {
        name: "disksim",
        recorded: ASKED,
        row: |rows, line| disksim(rows, line).map(Said::Io),
        example: "no row, as in 13.191135 30 0 5 1",
    },
    RowKind {
        name: "mqsim",
        recorded: ASKED,
        row: |rows, line| mqsim(rows, line).map(Said::Io),
        example: "no row, as in 938513000 4 264719034 16 0",
    },
];

/// Ns of a decimal number of seconds, however many digits it has.
fn seconds(word: &[u8]) -> Option<i128> {
    let point = word.iter().position(|b| *b == b'.')?;
    let end = word.len().min(point + 10);
    let is_number = word[end..].iter().all(u8::is_ascii_digit);
    let ns = time(&word[..end]).filter(|_| is_number)?;
    Some(ns.0.into())
}

/// Ns of a number without a point, times its unit.
fn scaled(word: &[u8], unit_ns: i128) -> Option<i128> {
    Some(i128::from(decimal(word)?) * unit_ns)
}

fn letter(word: &[u8]) -> Option<Rwbs> {
    match word {
        b"R" | b"r" | b"Read" => Some(Rwbs::READ),
        b"W" | b"w" | b"Write" => Some(Rwbs::WRITE),
        _ => None,
    }
}

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

fn one_reads(word: &[u8]) -> Option<Rwbs> {
    match word {
        b"1" => Some(Rwbs::READ),
        b"0" => Some(Rwbs::WRITE),
        _ => None,
    }
}

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

/// FIU: ns, pid, process, sector, sectors, W or R, major, minor, MD5.
fn fiu<'a>(rows: &mut Rows, line: &'a [u8]) -> Option<Io<'a>> {
    let ([at, pid, comm, sector, size, kind, major, minor], _) = words(line)?;
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
