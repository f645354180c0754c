// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a thread's statistics record: the fio options of that name.

use crate::LogOptions;

/// What to record.
#[derive(Clone, Debug)]
pub struct StatOptions {
    /// Keep a histogram of submission latency.
    pub slat_percentiles: bool,
    /// Keep a histogram of completion latency.
    pub clat_percentiles: bool,
    /// Keep a histogram of total latency.
    pub lat_percentiles: bool,
    /// Ignore submission latency.
    pub disable_slat: bool,
    /// Ignore completion latency, that of syncs too.
    pub disable_clat: bool,
    /// Ignore total latency.
    pub disable_lat: bool,
    /// Ignore the bandwidth of single I/Os (`disable_bw_measurement`); matters
    /// only with a bandwidth log of every I/O.
    pub disable_bw: bool,
    /// Time between bandwidth samples, ms; 500 if not set, or the window of the
    /// bandwidth log.
    pub bwavgtime_ms: Option<u64>,
    /// Time between IOPS samples, ms; likewise.
    pub iopsavgtime_ms: Option<u64>,
    /// The priorities of a job that uses several, to be told apart.
    pub ioprios: Vec<u16>,
    /// Log latencies (`write_lat_log`).
    pub lat_log: bool,
    /// Log bandwidth (`write_bw_log`).
    pub bw_log: bool,
    /// Log IOPS (`write_iops_log`).
    pub iops_log: bool,
    /// Log histograms (`write_hist_log`).
    pub hist_log: bool,
    /// How to log.
    pub log: LogOptions,
}

/// fio's defaults.
impl Default for StatOptions {
    fn default() -> Self {
        StatOptions {
            slat_percentiles: false,
            clat_percentiles: true,
            lat_percentiles: false,
            disable_slat: false,
            disable_clat: false,
            disable_lat: false,
            disable_bw: false,
            bwavgtime_ms: None,
            iopsavgtime_ms: None,
            ioprios: Vec::new(),
            lat_log: false,
            bw_log: false,
            iops_log: false,
            hist_log: false,
            log: LogOptions::default(),
        }
    }
}

impl StatOptions {
    /// Time between bandwidth samples, ms; 0 for none.
    pub(crate) fn bw_interval_ms(&self) -> u64 {
        interval_ms(self.bwavgtime_ms, self.bw_log, &self.log)
    }

    /// Time between IOPS samples, ms; 0 for none.
    pub(crate) fn iops_interval_ms(&self) -> u64 {
        interval_ms(self.iopsavgtime_ms, self.iops_log, &self.log)
    }
}

/// Time between samples of a rate. A log of every I/O replaces them (0); a log
/// of windows sets the time unless it was given.
fn interval_ms(given_ms: Option<u64>, logged: bool, log: &LogOptions) -> u64 {
    match (logged, given_ms) {
        (true, _) if log.avg_ms == 0 => 0,
        (true, None) => log.avg_ms,
        (_, given_ms) => given_ms.unwrap_or(500),
    }
}
