// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of tables with an I/O in each row: those of biosnoop and iosnoop, and those that
//! people's own scripts print, whose titles say what they are.

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Of the completion, in seconds or milliseconds.
    TimeS,
    TimeMs,
    TimeUs,
    TimeNs,
    StartS,
    EndS,
    Comm,
    Pid,
    Disk,
    Dev,
    /// Its name, or its number in either form.
    DiskOrDev,
    Major,
    Minor,
    Type,
    /// In a word, or as the kernel's letters.
    Operation,
    Sector,
    OffsetBytes,
    Bytes,
    Sectors,
    QueueMs,
    LatencyMs,
    LatencyS,
    LatencyUs,
    LatencyNs,
    /// Whether the I/O begins where the last one ended: a letter.
    Pattern,
    /// Anything else.
    Ignored,
}

impl Column {
    pub(super) fn titled(title: &[u8]) -> Option<Column> {
        Some(match title {
            b"TIME(s)" => Column::TimeS,
            b"TIME(ms)" => Column::TimeMs,
            b"STARTs" => Column::StartS,
            b"ENDs" => Column::EndS,
            b"COMM" => Column::Comm,
            b"PID" => Column::Pid,
            b"DISK" => Column::Disk,
            b"DEV" => Column::Dev,
            b"MAJOR" => Column::Major,
            b"MINOR" => Column::Minor,
            b"T" | b"TYPE" => Column::Type,
            b"SECTOR" | b"BLOCK" => Column::Sector,
            b"BYTES" => Column::Bytes,
            b"QUE(ms)" | b"QLAT(ms)" => Column::QueueMs,
            b"LAT(ms)" | b"LATms" => Column::LatencyMs,
            b"P" | b"PATTERN" => Column::Pattern,
            _ => return None,
        })
    }
}

/// So many columns of a table of somebody's own have to be known.
const KNOWN_MIN: usize = 4;

/// The columns of a line of titles that somebody chose, and whether commas separate them. Units
/// follow the names: `lat_us`, `time_ns`; without one, times are seconds and latencies are none.
pub(super) fn of_own_table(line: &[u8]) -> Option<(Vec<Column>, bool)> {
    let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii();
    let is_csv = line.contains(&b',');
    let is_between = |b: &u8| {
        if is_csv {
            *b == b','
        } else {
            b.is_ascii_whitespace()
        }
    };
    let titles = line.split(is_between).map(<[u8]>::trim_ascii);
    let titles = titles.filter(|title| is_csv || !title.is_empty());
    let columns: Vec<Column> = titles.map(own).collect();
    let has = |any: &[Column]| any.iter().any(|c| columns.contains(c));
    let known = columns.iter().filter(|c| **c != Column::Ignored).count();
    let is_whole = is_csv || known == columns.len();
    let has_latency = has(&[
        Column::LatencyS,
        Column::LatencyMs,
        Column::LatencyUs,
        Column::LatencyNs,
    ]);
    let is_table = known >= KNOWN_MIN && is_whole && has_latency && has(&[Column::Operation]);
    is_table.then_some((columns, is_csv))
}

/// What a title of somebody's own means.
fn own(title: &[u8]) -> Column {
    let title = title.trim_ascii_end().to_ascii_lowercase();
    let unit_at = title.iter().rposition(|b| matches!(b, b'_' | b'('));
    let (name, unit) = match unit_at {
        Some(at) => (
            &title[..at],
            title[at + 1..]
                .strip_suffix(b")")
                .unwrap_or(&title[at + 1..]),
        ),
        None => (&title[..], &b""[..]),
    };
    let unit = if matches!(
        unit,
        b"s" | b"sec" | b"ms" | b"us" | b"usec" | b"ns" | b"nsec"
    ) {
        unit
    } else {
        &b""[..]
    };
    let name = if unit.is_empty() { &title[..] } else { name };
    match (name, unit) {
        (b"time" | b"ts" | b"timestamp" | b"end", b"" | b"s" | b"sec") => Column::TimeS,
        (b"time" | b"ts" | b"timestamp" | b"end", b"ms") => Column::TimeMs,
        (b"time" | b"ts" | b"timestamp" | b"end", b"us" | b"usec") => Column::TimeUs,
        (b"time" | b"ts" | b"timestamp" | b"end", b"ns" | b"nsec") => Column::TimeNs,
        (b"start", b"" | b"s" | b"sec") => Column::StartS,
        (b"lat" | b"latency" | b"duration" | b"took", b"s" | b"sec") => Column::LatencyS,
        (b"lat" | b"latency" | b"duration" | b"took", b"ms") => Column::LatencyMs,
        (b"lat" | b"latency" | b"duration" | b"took", b"us" | b"usec") => Column::LatencyUs,
        (b"lat" | b"latency" | b"duration" | b"took", b"ns" | b"nsec") => Column::LatencyNs,
        (b"comm" | b"process" | b"command", b"") => Column::Comm,
        (b"pid" | b"tid", b"") => Column::Pid,
        (b"dev" | b"device" | b"disk", b"") => Column::DiskOrDev,
        (b"op" | b"rw" | b"type" | b"rwbs" | b"direction", b"") => Column::Operation,
        (b"sector" | b"lba", b"") => Column::Sector,
        (b"offset" | b"offset_bytes", b"") => Column::OffsetBytes,
        (b"bytes" | b"size" | b"len" | b"length", b"") => Column::Bytes,
        (b"sectors" | b"nr_sectors", b"") => Column::Sectors,
        _ => Column::Ignored,
    }
}
