// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio reported in a measured case, and how far that moves by itself.
//!
//! `results/ID.json` holds the figures per job and direction. Beside the
//! folder `results`, `variation.csv` says between which values a job's figures
//! lay when only fio's random seed or the boot changed, and `stability.csv`
//! gives the largest relative spread over a case's jobs.

use crate::conform::table::{Row, rows};
use blklab_types::Error;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest file read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Directions of fio's results.
pub(super) const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// What is compared, per job and direction.
pub(super) const FIGURES: [&str; 6] = [
    "group_bandwidth_kib_s",
    "group_iops",
    "fio_clat_p50_us",
    "fio_clat_p95_us",
    "fio_clat_p99_us",
    "clat_max_us",
];

/// One direction of one job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Direction {
    /// read, write or trim.
    pub(super) rw: &'static str,
    /// The values of [`FIGURES`]; none if fio gave none.
    pub(super) values: [Option<f64>; 6],
}

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) directions: Vec<Direction>,
}

/// Reads a text file.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    use std::io::Read as _;
    let shown = path.display().to_string();
    let fail = |what: String| Error::new(what).in_file(&shown);
    let file = std::fs::File::open(path).map_err(|e| fail(format!("cannot read: {e}")))?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|e| fail(format!("cannot read: {e}")))?;
    Ok(text)
}

/// The jobs of a result in fio's order.
pub(super) fn jobs(path: &Path) -> Result<Vec<Job>, Error> {
    let shown = path.display().to_string();
    let text = read(path)?;
    let json: Value = serde_json::from_str(&text).map_err(|e| {
        let line = e.line();
        Error {
            line: Some(line),
            ..Error::new(format!("not JSON: {e}")).in_file(&shown)
        }
    })?;
    let Some(jobs) = json["jobs"].as_array() else {
        let what = "no list 'jobs': not a measured result";
        return Err(Error::new(what).in_file(&shown));
    };
    Ok(jobs.iter().map(job).collect())
}

fn job(value: &Value) -> Job {
    let direction = |rw: &'static str| {
        let d = value.get(rw)?;
        let clat = |key: &str| d["clat"][key].as_f64();
        Some(Direction {
            rw,
            values: [
                d["bw_kib"].as_f64(),
                d["iops"].as_f64(),
                clat("p50_us"),
                clat("p95_us"),
                clat("p99_us"),
                clat("max_us"),
            ],
        })
    };
    Job {
        name: value["job"].as_str().unwrap_or_default().to_owned(),
        directions: DIRECTIONS.into_iter().filter_map(direction).collect(),
    }
}

/// A case, the place of a job in it, and a direction.
type JobKey = (String, usize, String);

/// Smallest and largest value of each of [`COLUMNS`] over the reference.
type Ranges = [Option<[f64; 2]>; 4];

/// How far the figures of measured cases move by themselves.
#[derive(Clone, Debug, Default)]
pub struct Variation {
    jobs: BTreeMap<JobKey, Ranges>,
    /// Of a case: relative spread of IOPS, mean latency and p99 over its jobs.
    cases: BTreeMap<String, [f64; 3]>,
}

/// Columns of `variation.csv` that are used.
const COLUMNS: [&str; 4] = ["iops", "lat_p50_us", "lat_p99_us", "lat_max_us"];

impl Variation {
    /// Reads `variation.csv` and `stability.csv` of a folder; nothing is known
    /// if they are not there.
    ///
    /// # Errors
    /// If one of them is there and makes no sense.
    pub fn read(dir: &Path) -> Result<Variation, Error> {
        let mut all = Variation::default();
        let path = dir.join("variation.csv");
        if path.is_file() {
            for row in table(&path, &["case", "n", "rw"])? {
                let n = row.number("n")? as usize;
                let key = (row.text("case"), n, row.text("rw"));
                let mut ranges = [None; 4];
                for (range, column) in ranges.iter_mut().zip(COLUMNS) {
                    *range = row.range(column)?;
                }
                all.jobs.insert(key, ranges);
            }
        }
        let path = dir.join("stability.csv");
        if path.is_file() {
            let columns = ["case", "job_iops", "job_lat_mean", "job_lat_p99"];
            for row in table(&path, &columns)? {
                let spreads = [
                    row.number(columns[1])?,
                    row.number(columns[2])?,
                    row.number(columns[3])?,
                ];
                all.cases.insert(row.text("case"), spreads);
            }
        }
        Ok(all)
    }

    /// The ratios to the measured value that a figure may have: 0.75 to 1.25,
    /// or what lies beyond in the case's own band. That is the range of the
    /// job's runs, widened on either side by its own width, and 1 plus and
    /// minus the largest spread over the case's jobs, whichever goes further.
    /// Bandwidth has the band of IOPS, p95 the wider one of p50 and p99.
    pub(super) fn band(&self, case: &str, n: usize, rw: &str, figure: usize) -> [f64; 2] {
        let mut band = [1.0 - TOLERANCE, 1.0 + TOLERANCE];
        let mut include = |[low, high]: [f64; 2]| {
            band = [band[0].min(low.max(0.0)), band[1].max(high)];
        };
        let columns: &[usize] = match figure {
            0 | 1 => &[0],
            2 => &[1],
            3 => &[1, 2],
            4 => &[2],
            _ => &[3],
        };
        if let Some(ranges) = self.jobs.get(&(case.to_owned(), n, rw.to_owned())) {
            for [low, high] in columns.iter().filter_map(|c| ranges[*c]) {
                let width = high - low;
                include([low - width, high + width]);
            }
        }
        if let Some([iops, mean, p99]) = self.cases.get(case) {
            let spread = match figure {
                0 | 1 => *iops,
                2 => *mean,
                _ => p99.max(*mean),
            };
            include([1.0 - spread, 1.0 + spread]);
        }
        band
    }
}

/// A figure agrees that is no further off.
const TOLERANCE: f64 = 0.25;

impl Row {
    fn text(&self, column: &str) -> String {
        self.fields.get(column).cloned().unwrap_or_default()
    }

    fn number(&self, column: &str) -> Result<f64, Error> {
        let text = self.text(column);
        text.parse().map_err(|_| Error {
            file: Some(self.file.clone()),
            line: Some(self.line),
            ..Error::new(format!("{column} = '{text}': expected a number"))
        })
    }

    /// Smallest and largest value over the reference.
    fn range(&self, column: &str) -> Result<Option<[f64; 2]>, Error> {
        if self.text(column).is_empty() {
            return Ok(None);
        }
        let reference = self.number(column)?;
        let low = self.number(&format!("{column}_min"))?;
        let high = self.number(&format!("{column}_max"))?;
        Ok((reference > 0.0).then(|| [low / reference, high / reference]))
    }
}

/// The rows of a CSV file that has these columns.
fn table(path: &Path, needed: &[&str]) -> Result<Vec<Row>, Error> {
    rows(&path.display().to_string(), &read(path)?, needed, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variation(jobs: &str, cases: &str) -> Result<Variation, Error> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("variation.csv"), jobs).unwrap();
        std::fs::write(dir.path().join("stability.csv"), cases).unwrap();
        Variation::read(dir.path())
    }

    const HEAD: &str = "case,n,rw,iops,iops_min,iops_max,lat_p50_us,lat_p50_us_min,\
                        lat_p50_us_max,lat_p99_us,lat_p99_us_min,lat_p99_us_max,lat_max_us,\
                        lat_max_us_min,lat_max_us_max\n";

    #[test]
    fn a_band_is_the_range_of_the_runs_and_its_width_on_either_side() {
        let jobs = format!("{HEAD}a,1,read,100,50,100,10,10,12,20,20,20,,,\n");
        let cases = "case,job_iops,job_lat_mean,job_lat_p99\nb,0.5,2,0\n";
        let v = variation(&jobs, cases).unwrap();
        assert_eq!(v.band("a", 1, "read", 1), [0.0, 1.5]);
        assert_eq!(v.band("a", 1, "read", 0), [0.0, 1.5], "bandwidth");
        assert_eq!(v.band("a", 1, "read", 2), [0.75, 1.4]);
        assert_eq!(v.band("a", 1, "read", 3), [0.75, 1.4], "p95");
        assert_eq!(v.band("a", 1, "read", 4), [0.75, 1.25]);
        assert_eq!(v.band("a", 1, "read", 5), [0.75, 1.25], "nothing known");
        assert_eq!(v.band("a", 0, "read", 1), [0.75, 1.25], "another job");
        assert_eq!(v.band("b", 0, "read", 1), [0.5, 1.5]);
        assert_eq!(v.band("b", 0, "read", 2), [0.0, 3.0]);
    }

    #[test]
    fn tables_that_make_no_sense_are_refused_with_their_line() {
        let refused = |jobs: &str| {
            let e = variation(jobs, "case,job_iops,job_lat_mean,job_lat_p99\n");
            let text = e.unwrap_err().to_string();
            text.split_once(".csv").unwrap().1.to_owned()
        };
        assert_eq!(refused("case,n\n"), ": no column 'rw'");
        assert_eq!(refused("case,n,rw\na,1\n"), ":2: 2 fields instead of 3");
        assert_eq!(
            refused("case,n,rw\na,x,read\n"),
            ":2: n = 'x': expected a number"
        );
    }
}
