// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms of completion latency over time: `write_hist_log`.
//!
//! One line per interval and direction: `time ms, direction, block size`, then the
//! I/Os by column since the direction's last line, as fio 3.33 prints them.

use std::fmt::{self, Write as _};

use crate::{Ddir, LatencyHist, LogOptions};

/// One line of a histogram log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistRow {
    /// Time since the start of the job, ms.
    pub time_ms: u64,
    /// Direction.
    pub dir: Ddir,
    /// Size of the I/O that ended the interval.
    pub bytes: u64,
    /// I/Os by column since the previous row of this direction.
    pub counts: Box<[u64]>,
}

/// Histograms of completion latency over time.
#[derive(Clone, Debug)]
pub struct HistLog {
    options: LogOptions,
    rows: Vec<HistRow>,
    before: [LatencyHist; 3],
    last_ms: [u64; 3],
}

impl HistLog {
    /// An empty log.
    pub fn new(options: LogOptions) -> HistLog {
        HistLog {
            options,
            rows: Vec::new(),
            before: Default::default(),
            last_ms: [0; 3],
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> &[HistRow] {
        &self.rows
    }

    /// To be called after each I/O was counted in `hist`, the histogram of its
    /// direction. Adds a row when an interval has passed since the last one.
    pub fn on_io(&mut self, time_ms: u64, dir: Ddir, bytes: u64, hist: &LatencyHist) {
        let interval_ms = self.options.hist_ms;
        let last_ms = &mut self.last_ms[dir.idx()];
        if *last_ms == 0 {
            *last_ms = time_ms;
        }
        let passed = time_ms.saturating_sub(*last_ms);
        if interval_ms == 0 || passed < interval_ms {
            return;
        }
        *last_ms = time_ms - (passed - interval_ms);
        let before = &mut self.before[dir.idx()];
        let stride = 1 << self.options.hist_coarseness.min(6);
        let columns = hist.columns(stride).zip(before.columns(stride));
        let counts = columns.map(|(now, then)| now.saturating_sub(then));
        self.rows.push(HistRow {
            time_ms,
            dir,
            bytes,
            counts: counts.collect(),
        });
        before.clone_from(hist);
    }
}

/// The text of the log file.
impl fmt::Display for HistLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let time_ms = row.time_ms + self.options.epoch_ms;
            write!(f, "{time_ms}, {}, {}", row.dir.idx(), row.bytes)?;
            row.counts.iter().try_for_each(|n| write!(f, ", {n}"))?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_differences() {
        let mut log = HistLog::new(LogOptions {
            hist_ms: 100,
            hist_coarseness: 6,
            ..LogOptions::default()
        });
        let mut hist = LatencyHist::default();
        for time_ms in [1, 50, 101, 150, 202] {
            hist.add(70);
            log.on_io(time_ms, Ddir::Write, 4096, &hist);
        }
        let counts: Vec<_> = log
            .rows()
            .iter()
            .map(|r| (r.time_ms, r.counts[1]))
            .collect();
        assert_eq!(counts, [(101, 3), (202, 2)]);
        let text = log.to_string();
        assert!(text.starts_with("101, 1, 4096, 0, 3, 0, "), "{text}");
        assert_eq!(
            text.lines().next().map(|l| l.split(", ").count()),
            Some(3 + 29)
        );
    }
}
