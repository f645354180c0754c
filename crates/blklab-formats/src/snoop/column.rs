// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of tables with an I/O in each row: those of biosnoop and iosnoop, and those that
//! people's own scripts print, whose titles say what they are.

use blklab_types::Error;

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Of the completion, in seconds or milliseconds.
    TimeS,
    TimeMs,
    TimeUs,
    TimeNs,
    /// Of the day: `17:58:57.814`.
    TimeOfDay,
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
            b"TIMESTAMP" => Column::TimeOfDay,
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

/// The titles of a table whose rows have none: `time comm pid dev op sector bytes lat_us`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(pub(super) Vec<Column>);

/// Titles that are known, as they are told to who gives another.
const TITLES: [&str; 15] = [
    "time", "start", "comm", "pid", "dev", "op", "sector", "offset", "bytes", "sectors", "lat_s",
    "lat_ms", "lat_us", "lat_ns", "-",
];

/// A column that is passed over.
const PASSED_OVER: &str = "-";

impl Columns {
    /// Reads titles, with blanks or commas between them.
    ///
    /// # Errors
    /// If a title is none that is known, is there twice, or if one is missing without which
    /// nothing can be said.
    pub fn parse(titles: &str) -> Result<Columns, Error> {
        let is_between = |c: char| c.is_whitespace() || c == ',';
        let titles = titles.split(is_between).filter(|title| !title.is_empty());
        let mut columns = Vec::new();
        for title in titles {
            let column = own(title.as_bytes());
            if column == Column::Ignored && title != PASSED_OVER {
                return Err(Error::new(unknown(title)));
            }
            if column != Column::Ignored && columns.contains(&column) {
                let what = format!("{}: there is one already", blklab_types::shown(title));
                return Err(Error::new(what));
            }
            columns.push(column);
        }
        let has = |any: &[Column]| columns.iter().any(|c| any.contains(c));
        let missing = if !has(&LATENCIES) {
            "no column says how long an I/O took: lat_s, lat_ms, lat_us or lat_ns"
        } else if !has(&[Column::Operation]) {
            "no column says what an I/O does: op"
        } else {
            return Ok(Columns(columns));
        };
        Err(Error::new(missing))
    }
}

/// What is wrong with a title.
fn unknown(title: &str) -> String {
    let lower = title.to_ascii_lowercase();
    if ["lat", "latency", "duration", "took"].contains(&lower.as_str()) {
        return format!(
            "{title}: its unit is missing: {title}_s, {title}_ms, {title}_us or {title}_ns"
        );
    }
    blklab_types::no_such("column", title, &TITLES)
}

const LATENCIES: [Column; 4] = [
    Column::LatencyS,
    Column::LatencyMs,
    Column::LatencyUs,
    Column::LatencyNs,
];

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
    let is_said = has(&LATENCIES) && has(&[Column::Operation]);
    let is_table = known >= KNOWN_MIN && is_whole && is_said;
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
