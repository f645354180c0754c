// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's own logs: what a job asked for (`write_iolog`), and how long it took
//! (`write_lat_log`). Places are offsets in files.

use super::fields::comma_fields;
use super::{ASKED, ASKED_AND_DONE, Place, RowKind, Rows, Said, format_of_rows, open};
use crate::FormatError;
use crate::format::Format;
use crate::text::{Io, decimal};
use blklab_trace::Rwbs;

/// The row of the format `fio-iolog`.
pub(crate) static IOLOG_FORMAT: Format = format_of_rows!(
    "fio-iolog",
    "NAME.iolog: what a fio job asked for, version 2, 3 (written); read",
    IOLOG_KIND
);

static IOLOG_KIND: RowKind = RowKind {
    recorded: ASKED,
    row: iolog,
    example: "no row, as in 872 /dev/sda write 0 16384",
};

/// The row of the format `fio-lat-log`.
pub(crate) static LAT_LOG_FORMAT: Format = Format {
    open: |mut input, _| {
        if let Some(other) = other_log(&input.name.clone(), input.fill(SAMPLE_BYTES)?) {
            return Err(FormatError::Foreign {
                input: input.name,
                what: other,
                instead: "of fio's logs only NAME_lat, NAME_clat and NAME_slat have latencies, a row \
                          for each I/O (write_lat_log without log_avg_msec)",
                sums: None,
            });
        }
        open(input, &LAT_LOG_KIND)
    },
    ..format_of_rows!(
        "fio-lat-log",
        "fio's latency log (write_lat_log), with offsets by log_offset; read",
        LAT_LOG_KIND
    )
};

/// What is looked at of a log to tell which it is.
const SAMPLE_BYTES: usize = 4096;

/// What parts of a name fio gives to logs with the same columns that have no latencies
/// (HOWTO of fio 3.33, `write_bw_log`, `write_iops_log`, `write_hist_log`).
const OTHER_LOGS: [(&str, &str); 3] = [
    (
        "_bw.",
        "fio's log of bandwidth (write_bw_log, KiB per second)",
    ),
    ("_iops.", "fio's log of IOPS (write_iops_log)"),
    ("_hist.", "fio's log of histograms (write_hist_log)"),
];

/// No memory moves so many bytes in a nanosecond: what claims to is no latency.
const BYTES_PER_NS_MAX: u64 = 100;

/// Which other log of fio this is, by its name or because its values are no latencies.
fn other_log(name: &str, head: &[u8]) -> Option<&'static str> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let by_name = OTHER_LOGS.iter().find(|(part, _)| file.contains(part));
    if let Some((_, what)) = by_name {
        return Some(what);
    }
    let (mut rows, mut too_fast, mut without_length) = (0_u64, 0, 0);
    for line in head.split(|b| *b == b'\n') {
        let Some(([_, took, _, size], _)) = comma_fields(line) else {
            continue;
        };
        if let (Some(took), Some(size)) = (decimal(took), decimal(size)) {
            rows += 1;
            too_fast += u64::from(size > took.saturating_mul(BYTES_PER_NS_MAX));
            without_length += u64::from(size == 0);
        }
    }
    // Who averages has no length of an I/O (`__add_stat_to_log`, stat.c of fio 3.33).
    if rows > 0 && without_length == rows {
        return Some(
            "a log of fio whose rows are means of an interval (log_avg_msec), not single I/Os",
        );
    }
    (rows > 0 && too_fast * 2 > rows)
        .then_some("a log of fio whose values are no latencies (bandwidth or IOPS)")
}

static LAT_LOG_KIND: RowKind = RowKind {
    recorded: ASKED_AND_DONE,
    row: |rows, line| lat_log(rows, line).map(Said::Io),
    example: "no row, as in 12, 83456, 0, 4096, 8192",
};

/// `fio version 2 iolog`, then FILE ACTION [OFFSET LENGTH], where `wait` counts
/// microseconds; or `fio version 3 iolog`, then TIME FILE ACTION [OFFSET LENGTH],
/// with microseconds since the job began (HOWTO of fio 3.33, "Trace file format").
fn iolog<'a>(rows: &mut Rows, line: &'a [u8]) -> Option<Said<'a>> {
    if let Some(rest) = line.strip_prefix(b"fio version ") {
        let version = rest.strip_suffix(b" iolog").and_then(decimal)?;
        rows.version = Some(
            u32::try_from(version)
                .ok()
                .filter(|v| (2..=3).contains(v))?,
        );
        return Some(Said::Nothing);
    }
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    // A part of a log of version 3 is told by its times.
    let time_us = match rows.version {
        Some(2) => None,
        _ => Some(decimal(fields.next()?)?),
    };
    let (file, action) = (fields.next()?, fields.next()?);
    let mut number = || fields.next().and_then(decimal);
    let rwbs = match action {
        b"add" | b"open" | b"close" => return Some(Said::Nothing),
        b"wait" => {
            let wait_ns = number()?.checked_mul(1000)?;
            rows.now_ns = rows.now_ns.checked_add(i64::try_from(wait_ns).ok()?)?;
            return Some(Said::Nothing);
        }
        b"read" => Rwbs::READ,
        b"write" => Rwbs::WRITE,
        b"trim" => Rwbs::DISCARD,
        b"sync" | b"datasync" => Rwbs::FLUSH,
        _ => return None,
    };
    let (offset, bytes) = match rwbs {
        Rwbs::FLUSH => (0, 0),
        _ => (number()?, number()?),
    };
    let queue = match time_us {
        Some(us) => i64::try_from(us.checked_mul(1000)?).ok()?,
        None => rows.now_ns,
    };
    let dev = rows.disks.named(file);
    let mut io = rows.io(&Place::at_byte(dev, rwbs, offset, bytes), queue, None)?;
    io.has_time = time_us.is_some() || rows.now_ns > 0;
    Some(Said::Io(io))
}

/// A line of `write_lat_log`: ms of the completion, ns that it took, direction,
/// length, and with `log_offset` where. Without, I/Os that overlap are told
/// apart by their order only.
fn lat_log(rows: &mut Rows, line: &[u8]) -> Option<Io<'static>> {
    // Research traces have no spaces.
    if !line.windows(2).any(|w| w == b", ") {
        return None;
    }
    let ([at, took, kind, size], more) = comma_fields(line)?;
    let rwbs = match kind {
        b"0" => Rwbs::READ,
        b"1" => Rwbs::WRITE,
        b"2" => Rwbs::DISCARD,
        _ => return None,
    };
    let offset = if more {
        comma_fields::<5>(line).and_then(|(fields, _)| decimal(fields[4]))?
    } else {
        0
    };
    let (at, took, size) = (decimal(at)?, decimal(took)?, decimal(size)?);
    let end = i64::try_from(at.checked_mul(1_000_000)?).ok()?;
    let took = i64::try_from(took).ok()?;
    let dev = rows.disks.named(b"job");
    let place = Place::at_byte(dev, rwbs, offset, size);
    rows.io(&place, end.checked_sub(took)?, Some(took))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_without_latencies_are_told() {
        let rows = b"500, 610, 0, 131072, 0\n1000, 615, 0, 131072, 0\n";
        assert!(other_log("a/job_bw.1.log", rows).is_some_and(|w| w.contains("bandwidth")));
        assert!(other_log("job_iops.log", rows).is_some_and(|w| w.contains("IOPS")));
        assert!(other_log("job_clat_hist.1.log", rows).is_some());
        // By their values, if a name says nothing.
        assert!(other_log("standard input", rows).is_some_and(|w| w.contains("no latencies")));
        // Means, of whatever: rows without a length.
        let means = b"505, 800, 0, 0, 0\n505, 807, 1, 0, 0\n1005, 800, 0, 0, 0\n";
        assert!(other_log("standard input", means).is_some_and(|w| w.contains("log_avg_msec")));
        assert!(other_log("job_clat.1.log", means).is_some_and(|w| w.contains("log_avg_msec")));
        let latencies = b"500, 61000, 0, 131072, 0\n1000, 950, 0, 512, 0\n";
        assert_eq!(other_log("job_clat.1.log", latencies), None);
        assert_eq!(other_log("bw_test/job_lat.1.log", latencies), None);
    }
}
