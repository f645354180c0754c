// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of `blklab recommend`.

use super::PlainFormat;
use clap::Args;
use std::path::PathBuf;

const NOTES: &str = "\
It tries what the kernel offers: schedulers and their tunables, nr_requests,
write-back throttling, dirty limits, read-ahead, io.max, io.latency, io.cost and
weights of control groups, and what other jobs could do themselves. Then it
combines what helps, and runs the best with other seeds (random offsets, the
device), so that the answer has an interval.

  --for  [read|write|trim|sync] p50|p95|p99|p99.9|max|mean|bandwidth|iops [of JOB]
  --keep FIGURE >= N % (of what it is now), FIGURE >= 100m, FIGURE <= 10ms

Without --keep all other jobs keep half of their bandwidth. The answer may be
to leave it as it is.

Examples:
  blklab recommend examples/wal-beside-backup.fio --fs ext4 --memory 1g
  blklab recommend examples/random-read.fio --for 'read p99'
  blklab recommend results --max-runs 30       a run directory";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct RecommendArgs {
    /// A fio job file, an experiment file, a built-in scenario, a run directory, or a trace
    /// (whose processes run in closed loop on the device that --device names)
    #[arg(value_name = "JOB|RUN|TRACE")]
    pub(crate) file: PathBuf,
    /// What is to become better [default: the p99.9 of the job that is worst off, of its
    /// syncs where jobs sync]
    #[arg(long = "for", value_name = "FIGURE")]
    pub(crate) goal: Option<String>,
    /// What must not become worse; several: all of them [default: all others keep 50 % of
    /// their bandwidth]
    #[arg(long, value_name = "FIGURE>=BOUND")]
    pub(crate) keep: Vec<String>,
    /// Runs at most, 20 or more
    #[arg(long, value_name = "N", default_value_t = 120)]
    pub(crate) max_runs: usize,
    /// Seeds with which the best are run, 2 or more
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) repeat: u32,
    /// Run every combination of up to N things of different kinds, too (2 if no N is given),
    /// and say how far their best is ahead of the answer: hundreds of runs, thousands with 3
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true,
        default_missing_value = "2", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) exhaustive: Option<u8>,
    /// Run the answer on another target, too: kernel
    #[arg(long, value_name = "TARGET")]
    pub(crate) confirm: Option<String>,
    /// Kernel, as blklab run takes it
    #[arg(long, value_name = "V")]
    pub(crate) kernel: Option<String>,
    /// I/O scheduler of today [default: the file's, else the kernel's]
    #[arg(long, value_name = "NAME")]
    pub(crate) sched: Option<String>,
    /// Device and its parameters, as blklab run takes it
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) device: Option<String>,
    /// md array of such devices, as blklab run takes it
    #[arg(long, value_name = "LEVEL:N[,K=V…]")]
    pub(crate) md: Option<String>,
    /// Filesystem that holds the files, as blklab run takes it
    #[arg(long, value_name = "NAME[,K=V…]")]
    pub(crate) fs: Option<String>,
    /// A setting of today: see blklab list tunables
    #[arg(long, value_name = "KEY=V")]
    pub(crate) set: Vec<String>,
    /// Memory of the machine, e.g. 2g [default: the file's, else 8g]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Seed of the first repetition [default: the file's, else 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Only these sections of the job file
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    /// This one of the configurations that the file compares
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// Runs side by side [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// All that was tried, not only the best
    #[arg(long, short = 'v')]
    pub(crate) verbose: bool,
    /// How to show it
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_enum, default_value_t = PlainFormat::Table)]
    pub(crate) output_format: PlainFormat,
}
