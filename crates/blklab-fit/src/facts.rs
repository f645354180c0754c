// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measurements as CSV: what is published of a drive is seldom fio's own files.
//!
//! A row is a direction of a job, and rows of one `cell` ran side by side:
//!
//! ```text
//! cell,job,state,ioengine,rw,bs,iodepth,numjobs,direction,iops,p50_us,p99_us
//! qd8,reader,used,io_uring,randread,4k,8,1,read,113033,64.8,123.4
//! ```
//!
//! `rw`, `bs`, `iodepth`, `numjobs`, `ioengine`, `rwmixread` are fio's options and may be left
//! out or empty, as may `job` and `state`. Any column `pN_us` is the Nth percentile of the
//! completion latency. `slat_us` and `cpu_us` are the mean time of a submission, and the
//! processor's time of a command.

use crate::cell::{Cell, HostTimes, Seen};
use crate::fio::{Measured, WAKE_NS, state_of};
use crate::options::Options;
use blklab_types::{Error, Op};
use std::collections::BTreeMap;

/// Columns that are known beside percentiles.
const COLUMNS: [&str; 14] = [
    "cell",
    "job",
    "state",
    "ioengine",
    "rw",
    "bs",
    "iodepth",
    "numjobs",
    "rwmixread",
    "direction",
    "iops",
    "slat_us",
    "cpu_us",
    "notes",
];

/// A row by its columns, with its line.
struct Row<'a> {
    values: BTreeMap<&'a str, String>,
    line: Option<u64>,
}

impl Row<'_> {
    fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Result<Option<f64>, Error> {
        let text = self.get(name);
        if text.is_empty() {
            return Ok(None);
        }
        match text.parse::<f64>() {
            Ok(v) if v.is_finite() && v > 0.0 => Ok(Some(v)),
            _ => Err(self.wrong(&format!("{name}={text}: expected a number above 0"))),
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(what).on_line(self.line)
    }
}

/// The part of a column `p99_us` or `p99.9_us` (also `p999_us`).
fn part_of(column: &str) -> Option<f64> {
    let digits = column.strip_prefix('p')?.strip_suffix("_us")?;
    let percent: f64 = match digits.split_at_checked(2) {
        Some((whole, rest)) if !digits.contains('.') && !rest.is_empty() => {
            format!("{whole}.{rest}").parse().ok()?
        }
        _ => digits.parse().ok()?,
    };
    // 99.9 is 0.999, as fio's percentiles are, and not the next number.
    let part = (percent * 1e6).round() / 1e8;
    (part > 0.0 && part < 1.0).then_some(part)
}

/// Reads such a file. `wake_ns` is what kernel and wake-up add to each command; without it,
/// 5 µs if a kernel was there.
///
/// # Errors
/// If it is not such a file: with the line.
pub fn parse(name: &str, text: &str, wake_ns: Option<u64>) -> Result<Measured, Error> {
    read(text, wake_ns).map_err(|e| e.in_file(name))
}

fn read(text: &str, wake_ns: Option<u64>) -> Result<Measured, Error> {
    let of_csv = |e: &csv::Error| {
        let line = e.position().map(csv::Position::line);
        let what = match e.kind() {
            csv::ErrorKind::UnequalLengths {
                expected_len, len, ..
            } => {
                format!("{len} columns where the first line has {expected_len}")
            }
            _ => e.to_string(),
        };
        Error::new(what).on_line(line)
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let head = reader.headers().map_err(|e| of_csv(&e))?.clone();
    for needed in ["cell", "direction", "iops"] {
        if !head.iter().any(|h| h == needed) {
            return Err(Error::new(format!(
                "no column '{needed}'; expected cell, rw, bs, iodepth, direction, iops, p50_us, p99_us …"
            ))
            .on_line(Some(1)));
        }
    }
    if let Some(other) = head
        .iter()
        .find(|h| !COLUMNS.contains(h) && part_of(h).is_none())
    {
        return Err(Error::new(format!(
            "unknown column '{other}'; expected {}, or percentiles as p99_us",
            COLUMNS.join(", ")
        ))
        .on_line(Some(1)));
    }
    let mut cells: Vec<Cell> = Vec::new();
    // The job of each stream, by cell.
    let mut jobs: Vec<Vec<String>> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| of_csv(&e))?;
        let values = head.iter().zip(record.iter());
        let row = Row {
            values: values.map(|(k, v)| (k, v.to_owned())).collect(),
            line: record.position().map(csv::Position::line),
        };
        let place = match cells.iter().position(|c| c.name == row.get("cell")) {
            Some(place) => place,
            None => {
                cells.push(Cell {
                    name: row.get("cell").to_owned(),
                    state: state(&row)?,
                    streams: Vec::new(),
                    seen: Vec::new(),
                });
                jobs.push(Vec::new());
                cells.len() - 1
            }
        };
        add(&mut cells[place], &mut jobs[place], &row, wake_ns)?;
    }
    Ok(Measured {
        cells,
        left_out: Vec::new(),
    })
}

fn state(row: &Row<'_>) -> Result<crate::State, Error> {
    match row.get("state") {
        "" => Ok(state_of(row.get("cell")).unwrap_or_default()),
        "fresh" => Ok(crate::State::Fresh),
        "used" => Ok(crate::State::Used),
        other => Err(row.wrong(&format!("state={other}: expected fresh or used"))),
    }
}

fn add(
    cell: &mut Cell,
    jobs: &mut Vec<String>,
    row: &Row<'_>,
    wake_ns: Option<u64>,
) -> Result<(), Error> {
    let op = match row.get("direction") {
        "read" => Op::Read,
        "write" => Op::Write,
        other => {
            return Err(row.wrong(&format!("direction={other}: expected read or write")));
        }
    };
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    for name in ["ioengine", "rw", "bs", "iodepth", "numjobs", "rwmixread"] {
        if !row.get(name).is_empty() {
            options.insert(name.to_owned(), row.get(name).to_owned());
        }
    }
    options
        .entry("ioengine".to_owned())
        .or_insert_with(|| "io_uring".to_owned());
    options.insert("direct".to_owned(), "1".to_owned());
    let options = Options(options);
    let ns = |name: &str| Ok::<u64, Error>((row.number(name)?.unwrap_or(0.0) * 1e3) as u64);
    let (submit_ns, cpu_ns) = (ns("slat_us")?, ns("cpu_us")?);
    let usual_ns = if options.bypasses_kernel() {
        0
    } else {
        WAKE_NS
    };
    let stream = options.stream(HostTimes {
        wake_ns: wake_ns.unwrap_or(usual_ns),
        reap_ns: cpu_ns.saturating_sub(submit_ns),
        submit_ns,
    });
    let stream = stream.map_err(|what| row.wrong(&what))?;
    if !stream.has(op) {
        return Err(row.wrong(&format!(
            "direction={}: rw={} has none",
            row.get("direction"),
            row.get("rw")
        )));
    }
    let place = match jobs.iter().position(|j| j == row.get("job")) {
        Some(place) => place,
        None => {
            jobs.push(row.get("job").to_owned());
            cell.streams.push(stream);
            jobs.len() - 1
        }
    };
    if cell.seen.iter().any(|s| s.stream == place && s.op == op) {
        return Err(row.wrong("a second row for this direction of the job"));
    }
    let per_s = row.number("iops")?;
    let per_s = per_s.ok_or_else(|| row.wrong("iops is empty: expected a number above 0"))?;
    let mut quantiles = Vec::new();
    for column in row.values.keys() {
        if let (Some(part), Some(us)) = (part_of(column), quantile(row, column)?) {
            quantiles.push((part, us));
        }
    }
    quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    cell.seen.push(Seen {
        stream: place,
        op,
        per_s,
        quantiles,
    });
    Ok(())
}

fn quantile(row: &Row<'_>, column: &str) -> Result<Option<f64>, Error> {
    match part_of(column) {
        Some(_) => row.number(column),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "cell,job,rw,bs,iodepth,direction,iops,p50_us,p99.9_us\n";

    #[test]
    fn rows_of_a_cell_run_side_by_side() {
        let text = format!(
            "{HEAD}both,r,randread,4k,1,read,1890,131,3405\nboth,w,randwrite,4k,128,write,127000,481,\n"
        );
        let cells = parse("f.csv", &text, None).expect("is read").cells;
        assert_eq!(cells.len(), 1);
        assert_eq!(
            (cells[0].streams[1].depth, cells[0].streams[1].read_pct),
            (128, 0)
        );
        assert_eq!(cells[0].seen[0].quantiles, [(0.5, 131.0), (0.999, 3405.0)]);
        assert_eq!(cells[0].seen[1].quantiles, [(0.5, 481.0)]);
        assert_eq!(cells[0].streams[0].host.wake_ns, 5_000);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let told = |rows: &str| {
            let e = parse("f.csv", &format!("{HEAD}{rows}"), None).expect_err("refused");
            e.to_string()
        };
        assert_eq!(
            told("a,r,randread,4k,1,read,-5,1,2\n"),
            "f.csv:2: iops=-5: expected a number above 0"
        );
        assert_eq!(
            told("a,r,randread,4k,1,write,5,1,2\n"),
            "f.csv:2: direction=write: rw=randread has none"
        );
        assert!(told("a,r,randread,4k\n").starts_with("f.csv:2: 4 columns"));
        let e = parse("f.csv", "cell,direction,iops,p5o_us\n", None).expect_err("refused");
        assert!(
            e.to_string()
                .starts_with("f.csv:1: unknown column 'p5o_us'"),
            "{e}"
        );
    }

    #[test]
    fn percentiles_are_written_with_or_without_a_point() {
        assert_eq!(part_of("p50_us"), Some(0.5));
        assert_eq!(part_of("p999_us"), Some(0.999));
        assert_eq!(part_of("p99.9_us"), Some(0.999));
        assert_eq!(part_of("p_us"), None);
    }
}
