// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs over time: `write_lat_log`, `write_bw_log`, `write_iops_log`.
//!
//! Rows are kept in memory and printed line by line as fio 3.33 prints them:
//! `time ms, value, direction, block size[, offset], priority[, issue time ns]`.
//! The issue time and the window value `both` come from later versions. Left
//! out: compression. Times are milliseconds since the start of the job.

use std::fmt::{self, Write as _};

use crate::{Ddir, IoStat};

/// What a log records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Submission latency, ns.
    Slat,
    /// Completion latency, ns.
    Clat,
    /// Total latency, ns.
    Lat,
    /// Bandwidth, KiB/s.
    Bw,
    /// I/Os per second, or 1 for each I/O.
    Iops,
    /// Histograms of completion latency.
    ClatHist,
}

impl LogKind {
    /// The part of the file name that says what is in it.
    pub fn name(self) -> &'static str {
        match self {
            LogKind::Slat => "slat",
            LogKind::Clat => "clat",
            LogKind::Lat => "lat",
            LogKind::Bw => "bw",
            LogKind::Iops => "iops",
            LogKind::ClatHist => "clat_hist",
        }
    }
}

/// Name of a log file: `PREFIX_KIND.N.log`, or `PREFIX_KIND.log` without a job
/// number (`per_job_logs=0`). Numbers count from 1.
pub fn log_file_name(prefix: &str, kind: LogKind, job_number: Option<u32>) -> String {
    let kind = kind.name();
    match job_number {
        Some(n) => format!("{prefix}_{kind}.{n}.log"),
        None => format!("{prefix}_{kind}.log"),
    }
}

/// What one row stands for when `log_avg_msec` is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogWindow {
    /// The mean of the window, rounded.
    #[default]
    Average,
    /// The largest value in the window (`log_max_value=1`).
    Max,
    /// The mean, then the largest.
    Both,
}

/// Options shared by the logs of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Window, ms; 0 logs every I/O (`log_avg_msec`).
    pub avg_ms: u64,
    /// What a window is reduced to.
    pub window: LogWindow,
    /// Print the offset (`log_offset`).
    pub offset: bool,
    /// Print the priority as a number, not only whether it is real-time
    /// (`log_prio`).
    pub prio: bool,
    /// Print the issue time (`log_issue_time`).
    pub issue_time: bool,
    /// Added to every time, ms (`log_unix_epoch`, `log_alternate_epoch`).
    pub epoch_ms: u64,
    /// Time between histograms, ms; 0 logs none (`log_hist_msec`).
    pub hist_ms: u64,
    /// Each step halves the number of columns, 0 to 6 (`log_hist_coarseness`).
    pub hist_coarseness: u32,
}

/// One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Time since the start of the job, ms.
    pub time_ms: u64,
    /// The value; its unit depends on the log.
    pub value: u64,
    /// The largest value of the window, with [`LogWindow::Both`].
    pub max: Option<u64>,
    /// Direction.
    pub dir: Ddir,
    /// Size of the I/O; 0 for a window.
    pub bytes: u64,
    /// Offset in the file; 0 for a window.
    pub offset: u64,
    /// Priority; 0 for a window.
    pub ioprio: u16,
    /// Issue time since the start of the job, ns; 0 for a window.
    pub issue_ns: u64,
}

impl LogRow {
    /// A row that stands for a span of time, not for one I/O.
    pub(crate) fn of_window(time_ms: u64, value: u64, dir: Ddir) -> LogRow {
        LogRow {
            time_ms,
            value,
            max: None,
            dir,
            bytes: 0,
            offset: 0,
            ioprio: 0,
            issue_ns: 0,
        }
    }
}

/// A log in memory.
#[derive(Clone, Debug)]
pub struct IoLog {
    kind: LogKind,
    options: LogOptions,
    rows: Vec<LogRow>,
    windows: [IoStat; 3],
    window_start_ms: [u64; 3],
}

impl IoLog {
    /// An empty log.
    pub fn new(kind: LogKind, options: LogOptions) -> IoLog {
        IoLog {
            kind,
            options,
            rows: Vec::new(),
            windows: [IoStat::default(); 3],
            window_start_ms: [0; 3],
        }
    }

    /// What is logged.
    pub fn kind(&self) -> LogKind {
        self.kind
    }

    /// Rows so far.
    pub fn rows(&self) -> &[LogRow] {
        &self.rows
    }

    /// Whether every I/O has its own row.
    pub fn is_per_io(&self) -> bool {
        self.options.avg_ms == 0
    }

    /// Takes in one value: as a row of its own, or into its window. A window
    /// ends with the first value at or after its end.
    pub fn add(&mut self, row: LogRow) {
        if self.is_per_io() {
            self.rows.push(row);
            return;
        }
        let dir = row.dir.idx();
        self.windows[dir].add(row.value);
        let in_window = row.time_ms.saturating_sub(self.window_start_ms[dir]);
        if in_window >= self.options.avg_ms {
            self.flush(row.dir, row.time_ms);
            self.window_start_ms[dir] = row.time_ms - row.time_ms % self.options.avg_ms;
        }
    }

    /// Ends the log: unfinished windows become rows.
    pub fn finish(&mut self, time_ms: u64) {
        for dir in Ddir::ALL {
            self.flush(dir, time_ms);
        }
    }

    fn flush(&mut self, dir: Ddir, time_ms: u64) {
        let window = std::mem::take(&mut self.windows[dir.idx()]);
        if window.samples == 0 {
            return;
        }
        let mean = (window.mean + 0.5) as u64;
        let (value, max) = match self.options.window {
            LogWindow::Average => (mean, None),
            LogWindow::Max => (window.max, None),
            LogWindow::Both => (mean, Some(window.max)),
        };
        let row = LogRow::of_window(time_ms, value, dir);
        self.rows.push(LogRow { max, ..row });
    }

    fn write_row(&self, row: &LogRow, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        write!(f, "{}, {}", row.time_ms + options.epoch_ms, row.value)?;
        if let Some(max) = row.max {
            write!(f, ", {max}")?;
        }
        write!(f, ", {}, {}", row.dir.idx(), row.bytes)?;
        if options.offset {
            write!(f, ", {}", row.offset)?;
        }
        if options.prio {
            write!(f, ", 0x{:04x}", row.ioprio)?;
        } else {
            write!(f, ", {}", u8::from(is_realtime(row.ioprio)))?;
        }
        if options.issue_time {
            write!(f, ", {}", row.issue_ns)?;
        }
        f.write_char('\n')
    }
}

/// The text of the log file.
impl fmt::Display for IoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.iter().try_for_each(|row| self.write_row(row, f))
    }
}

fn is_realtime(ioprio: u16) -> bool {
    ioprio >> 13 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time_ms: u64, value: u64, dir: Ddir) -> LogRow {
        LogRow {
            time_ms,
            value,
            max: None,
            dir,
            bytes: 4096,
            offset: 12_288,
            ioprio: 0x2004,
            issue_ns: 777,
        }
    }

    fn check(options: LogOptions, rows: &[(u64, u64, Ddir)], expected: &str) {
        let mut log = IoLog::new(LogKind::Clat, options);
        rows.iter().for_each(|&(t, v, dir)| log.add(row(t, v, dir)));
        log.finish(999);
        assert_eq!(log.to_string(), expected);
    }

    #[test]
    fn a_row_for_each_io() {
        let rows = [(0, 129_097, Ddir::Read), (3, 30_847, Ddir::Write)];
        check(
            LogOptions::default(),
            &rows,
            "0, 129097, 0, 4096, 1\n3, 30847, 1, 4096, 1\n",
        );
        let all = LogOptions {
            offset: true,
            prio: true,
            issue_time: true,
            epoch_ms: 1000,
            ..LogOptions::default()
        };
        check(
            all,
            &rows[..1],
            "1000, 129097, 0, 4096, 12288, 0x2004, 777\n",
        );
    }

    #[test]
    fn a_row_for_each_window_and_direction() {
        let rows = [
            (10, 100, Ddir::Read),
            (49, 201, Ddir::Read),
            (51, 300, Ddir::Read),
            (99, 7, Ddir::Write),
            (100, 400, Ddir::Read),
        ];
        let windowed = |window| LogOptions {
            avg_ms: 50,
            window,
            ..LogOptions::default()
        };
        let average = "51, 200, 0, 0, 0\n99, 7, 1, 0, 0\n100, 400, 0, 0, 0\n";
        check(windowed(LogWindow::Average), &rows, average);
        let max = "51, 300, 0, 0, 0\n99, 7, 1, 0, 0\n100, 400, 0, 0, 0\n";
        check(windowed(LogWindow::Max), &rows, max);
        let both = "51, 200, 300, 0, 0, 0\n99, 7, 7, 1, 0, 0\n100, 400, 400, 0, 0, 0\n";
        check(windowed(LogWindow::Both), &rows, both);
    }

    #[test]
    fn unfinished_windows_end_with_the_job() {
        let options = LogOptions {
            avg_ms: 5000,
            ..LogOptions::default()
        };
        let rows = [(10, 100, Ddir::Trim), (49, 301, Ddir::Trim)];
        check(options, &rows, "999, 201, 2, 0, 0\n");
    }

    #[test]
    fn file_names() {
        assert_eq!(
            log_file_name("A", LogKind::ClatHist, Some(2)),
            "A_clat_hist.2.log"
        );
        assert_eq!(log_file_name("A", LogKind::Bw, None), "A_bw.log");
    }
}
