// SPDX-License-Identifier: MIT OR Apache-2.0
//! What may be asked, with its arguments. An argument that there is not is refused.

use schemars::JsonSchema;
use serde::Deserialize;

/// A call of a tool.
#[derive(Clone, Debug)]
pub enum Call {
    /// Why it was slow.
    Why(WhyCall),
    /// Statistics.
    Stats(StatsCall),
    /// The slowest I/Os.
    Slow(SlowCall),
    /// Remedies and changes, tried.
    WhatIf(WhatIfCall),
    /// An experiment.
    Run(RunCall),
}

/// Why I/O was slow.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyCall {
    /// A trace of any kind that blklab reads, a run directory, or a job file that is run first.
    pub file: String,
    /// A file of key=value lines, or a copy of /sys/block/DEVICE: what is known of the machine.
    pub context: Option<String>,
    /// The kernel's release, as in 6.12.
    pub kernel: Option<String>,
    /// The I/O scheduler.
    pub sched: Option<String>,
    /// Titles of the columns of a table without titles: time comm pid dev op sector bytes lat_us.
    pub columns: Option<String>,
    /// At most so many findings.
    pub limit: Option<u32>,
}

/// Statistics of a trace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatsCall {
    /// A trace, or a run directory.
    pub file: String,
    /// Titles of the columns of a table without titles.
    pub columns: Option<String>,
}

/// The slowest I/Os of a trace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowCall {
    /// A trace, or a run directory.
    pub file: String,
    /// How many; 10 if it is left out.
    pub count: Option<u16>,
    /// A file of key=value lines, or a copy of /sys/block/DEVICE: what is known of the machine.
    pub context: Option<String>,
    /// Titles of the columns of a table without titles.
    pub columns: Option<String>,
}

/// Changes, tried in the model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfCall {
    /// A trace, a run directory, or a job file that is run first.
    pub file: String,
    /// What to change, as in sched=bfq,set=read_ahead_kb=512; each finding's remedy if it is left
    /// out.
    pub changes: Option<String>,
    /// A file of key=value lines, or a copy of /sys/block/DEVICE: what is known of the machine.
    pub context: Option<String>,
    /// The kernel's release, as in 6.12.
    pub kernel: Option<String>,
}

/// An experiment, whose run directory is written.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCall {
    /// A fio job file, or an experiment file.
    pub job: String,
    /// The run directory to write, which must not be there.
    pub out: String,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The I/O scheduler.
    pub sched: Option<String>,
    /// The device, with its parameters, as in sata-7200-2008,rpm=5400.
    pub device: Option<String>,
    /// The filesystem.
    pub fs: Option<String>,
    /// Settings, each KEY=VALUE.
    #[serde(default)]
    pub set: Vec<String>,
}
