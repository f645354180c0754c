// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a result says about a job besides its statistics: names and the options
//! that decide how it is printed.

/// Whether directions are reported apart (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnifiedRw {
    /// Apart.
    #[default]
    None,
    /// As one, named `mixed`.
    Mixed,
    /// Apart, and as one.
    Both,
}

/// Which percentiles to print.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileOptions {
    /// The percentiles, 0 < p <= 100, in any order.
    pub list: Vec<f64>,
    /// Decimals of the percentiles in text (`percentile_precision`, from the
    /// longest number in `percentile_list`; 2 with the default list).
    pub precision: usize,
    /// For submission latency.
    pub slat: bool,
    /// For completion latency.
    pub clat: bool,
    /// For total latency.
    pub lat: bool,
}

impl Default for PercentileOptions {
    fn default() -> Self {
        PercentileOptions {
            list: vec![
                1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5,
                99.9, 99.95, 99.99,
            ],
            precision: 2,
            slat: false,
            clat: true,
            lat: false,
        }
    }
}

impl PercentileOptions {
    /// The percentiles in rising order, as they are printed.
    pub(crate) fn sorted(&self) -> Vec<f64> {
        let mut list = self.list.clone();
        list.sort_by(f64::total_cmp);
        list
    }

    /// Name of the latency that is told apart by priority.
    pub(crate) fn prio_latency(&self) -> &'static str {
        if self.lat { "lat" } else { "clat" }
    }
}

/// How amounts and rates are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// 1024 or 1000 (`kb_base`).
    pub kb_base: u64,
    /// Rates in bits (`unit_base=1`) instead of bytes.
    pub bits: bool,
    /// `significant_figures`.
    pub significant_figures: usize,
}

impl Default for Units {
    fn default() -> Self {
        Units {
            kb_base: 1024,
            bits: false,
            significant_figures: 4,
        }
    }
}

/// Outcome of `latency_target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Queue depth found, or the `iodepth` of the job.
    pub depth: u32,
    /// `latency_target`, ns.
    pub target_ns: u64,
    /// `latency_window`, µs.
    pub window_us: u64,
    /// `latency_percentile`.
    pub percentile: f64,
}

impl Default for LatencyTarget {
    fn default() -> Self {
        LatencyTarget {
            depth: 1,
            target_ns: 0,
            window_us: 0,
            percentile: 100.0,
        }
    }
}

/// What a result says about a job besides its statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobInfo {
    /// Job name.
    pub name: String,
    /// `description`; empty if there is none.
    pub description: String,
    /// Group number, from 0.
    pub group_id: u32,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `unified_rw_reporting`.
    pub unified: UnifiedRw,
    /// Process id.
    pub pid: u32,
    /// The section's options as written, in order. Those without a value do not
    /// appear in JSON, as in fio.
    pub options: Vec<(String, String)>,
    /// Percentiles to print.
    pub percentiles: PercentileOptions,
    /// Units to print.
    pub units: Units,
    /// Latency target and queue depth.
    pub latency: LatencyTarget,
    /// Error number that ended the job; 0 for none.
    pub error: i32,
    /// What the error was.
    pub error_text: String,
    /// `continue_on_error` is on: the error counts are printed.
    pub continue_on_error: bool,
    /// Number of errors met.
    pub errors: u64,
    /// Number of the first error.
    pub first_error: i32,
    /// What the first error means.
    pub first_error_text: String,
}
