// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job's options about statistics and logs, as the recording side and the
//! result formats want them.

use blklab_fio::job::{Job, io_prio};
use blklab_fio::run::priorities;
use blklab_fiostat::{
    JobInfo, LatencyTarget, LogOptions, LogWindow, PercentileOptions, StatOptions, UnifiedRw, Units,
};
use blklab_types::Time;

/// Options that change only what is reported.
struct Reporting<'a>(&'a Job);

impl Reporting<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.settings.reporting.get(name).map(String::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.number(name).map_or(default, |n| n != 0)
    }
}

/// The priorities that are told apart: the job's own, then those of its requests.
fn ioprios(job: &Job) -> Vec<u16> {
    let of_requests = priorities(&job.settings.cmdprio);
    if of_requests.is_empty() {
        return Vec::new();
    }
    let mut all = vec![job.ioprio().value()];
    for (class, level) in of_requests {
        let value = io_prio(class, level).value();
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

/// What is added to the times of a job's logs: when it started, by the clock that
/// it asks for.
fn log_epoch_ms(r: &Reporting<'_>, start: Time, epoch_ms: u64) -> u64 {
    let alternate = r.flag("log_alternate_epoch", false);
    let realtime = r.number("log_alternate_epoch_clock_id").unwrap_or(0) == 0;
    if r.flag("log_unix_epoch", false) || (alternate && realtime) {
        epoch_ms + start.0 / 1_000_000
    } else if alternate {
        start.0 / 1_000_000
    } else {
        0
    }
}

/// What to record of a job that starts then, by a clock that begins so many milliseconds
/// after 1970.
pub fn stat_options(job: &Job, start: Time, epoch_ms: u64) -> StatOptions {
    let r = Reporting(job);
    let reduce = r.flag("gtod_reduce", false);
    StatOptions {
        slat_percentiles: r.flag("slat_percentiles", false),
        clat_percentiles: r.flag("clat_percentiles", true),
        lat_percentiles: r.flag("lat_percentiles", false),
        disable_slat: reduce || r.flag("disable_slat", false),
        disable_clat: reduce || r.flag("disable_clat", false),
        disable_lat: reduce || r.flag("disable_lat", false),
        disable_bw: reduce || r.flag("disable_bw_measurement", false),
        bwavgtime_ms: r.number("bwavgtime"),
        iopsavgtime_ms: r.number("iopsavgtime"),
        ioprios: ioprios(job),
        lat_log: r.text("write_lat_log").is_some(),
        bw_log: r.text("write_bw_log").is_some(),
        iops_log: r.text("write_iops_log").is_some(),
        hist_log: r.text("write_hist_log").is_some(),
        log: LogOptions {
            avg_ms: r.number("log_avg_msec").unwrap_or(0),
            window: if r.flag("log_max_value", false) {
                LogWindow::Max
            } else {
                LogWindow::Average
            },
            offset: r.flag("log_offset", false),
            prio: r.flag("log_prio", false),
            issue_time: false,
            epoch_ms: log_epoch_ms(&r, start, epoch_ms),
            hist_ms: r.number("log_hist_msec").unwrap_or(0),
            hist_coarseness: r.number("log_hist_coarseness").unwrap_or(0) as u32,
        },
    }
}

/// What a result says about a job. `depth` is the queue depth that the job
/// ended with.
pub fn job_info(job: &Job, pid: u32, depth: u32) -> JobInfo {
    let r = Reporting(job);
    let s = &job.settings;
    JobInfo {
        name: job.name.clone(),
        description: s.description.clone().unwrap_or_default(),
        group_id: job.group,
        group_reporting: r.flag("group_reporting", false),
        unified: match r.text("unified_rw_reporting") {
            Some("mixed" | "1") => UnifiedRw::Mixed,
            Some("both" | "2") => UnifiedRw::Both,
            _ => UnifiedRw::None,
        },
        pid,
        options: job
            .options
            .iter()
            .filter_map(|(k, v)| Some(((*k).to_owned(), v.clone()?)))
            .collect(),
        percentiles: percentiles(&r),
        units: Units {
            kb_base: u64::from(s.kb_base),
            bits: r.text("unit_base") == Some("1"),
            significant_figures: r.number("significant_figures").unwrap_or(4) as usize,
        },
        latency: LatencyTarget {
            depth,
            target_ns: s.latency_target_us * 1000,
            window_us: s.latency_window_us,
            percentile: s.latency_percentile,
        },
        ..JobInfo::default()
    }
}

fn percentiles(r: &Reporting<'_>) -> PercentileOptions {
    let mut p = PercentileOptions {
        slat: r.flag("slat_percentiles", false),
        clat: r.flag("clat_percentiles", true),
        lat: r.flag("lat_percentiles", false),
        ..PercentileOptions::default()
    };
    if let Some(list) = r.text("percentile_list") {
        let words: Vec<&str> = list.split(':').map(str::trim).collect();
        p.list = words.iter().filter_map(|w| w.parse().ok()).collect();
        let decimals = |w: &&str| w.split_once('.').map_or(0, |(_, d)| d.len());
        p.precision = words.iter().map(decimals).max().unwrap_or(0);
    }
    p
}
