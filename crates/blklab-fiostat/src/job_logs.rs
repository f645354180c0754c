// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logs a thread keeps, and their rows.

use crate::{Completion, HistLog, IoLog, LogKind, LogOptions, LogRow, StatOptions};

/// The logs of one thread; those not asked for are `None`.
#[derive(Clone, Debug, Default)]
pub struct JobLogs {
    /// Submission latency.
    pub slat: Option<IoLog>,
    /// Completion latency.
    pub clat: Option<IoLog>,
    /// Total latency.
    pub lat: Option<IoLog>,
    /// Bandwidth.
    pub bw: Option<IoLog>,
    /// IOPS.
    pub iops: Option<IoLog>,
    /// Histograms of completion latency.
    pub clat_hist: Option<HistLog>,
}

impl JobLogs {
    pub(crate) fn new(options: &StatOptions) -> JobLogs {
        let log = |on: bool, kind| on.then(|| IoLog::new(kind, options.log.clone()));
        let rate_log = |on: bool, kind, given_ms: Option<u64>| {
            let window_ms = options.log.avg_ms.min(given_ms.unwrap_or(u64::MAX));
            let windowed = LogOptions {
                avg_ms: window_ms,
                ..options.log.clone()
            };
            on.then(|| IoLog::new(kind, windowed))
        };
        JobLogs {
            slat: log(options.lat_log && !options.disable_slat, LogKind::Slat),
            clat: log(options.lat_log && !options.disable_clat, LogKind::Clat),
            lat: log(options.lat_log && !options.disable_lat, LogKind::Lat),
            bw: rate_log(options.bw_log, LogKind::Bw, options.bwavgtime_ms),
            iops: rate_log(options.iops_log, LogKind::Iops, options.iopsavgtime_ms),
            clat_hist: options.hist_log.then(|| HistLog::new(options.log.clone())),
        }
    }

    /// The text of each log, by kind.
    pub fn texts(&self) -> Vec<(LogKind, String)> {
        let logs = [&self.slat, &self.clat, &self.lat, &self.bw, &self.iops];
        let logs = logs
            .into_iter()
            .flatten()
            .map(|l| (l.kind(), l.to_string()));
        let hist = self
            .clat_hist
            .iter()
            .map(|h| (LogKind::ClatHist, h.to_string()));
        logs.chain(hist).collect()
    }

    pub(crate) fn finish(&mut self, time_ms: u64) {
        let logs = [
            &mut self.slat,
            &mut self.clat,
            &mut self.lat,
            &mut self.bw,
            &mut self.iops,
        ];
        logs.into_iter()
            .flatten()
            .for_each(|log| log.finish(time_ms));
    }
}

/// The row of an I/O in a log.
pub(crate) fn row(done: &Completion, value: u64, now_ns: u64, start_ns: u64) -> LogRow {
    let issued_ns = done.now_ns.saturating_sub(done.clat_ns);
    LogRow {
        time_ms: ms_between(start_ns, now_ns),
        value,
        max: None,
        dir: done.dir,
        bytes: done.bytes,
        offset: done.offset,
        ioprio: done.ioprio,
        issue_ns: issued_ns.saturating_sub(start_ns),
    }
}

/// Milliseconds from one time to another, cut.
pub(crate) fn ms_between(start_ns: u64, end_ns: u64) -> u64 {
    end_ns.saturating_sub(start_ns) / 1_000_000
}
