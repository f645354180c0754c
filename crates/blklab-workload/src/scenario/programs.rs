// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of scenarios that are no fio jobs.

use super::Scenario;
use crate::compilebench::bench::Plan;
use blklab_engine::Stream;

/// What runs in place of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// cat of many files.
    Cat(Cat),
    /// The benchmark of PVFS2.
    PvfsBench(PvfsBench),
    /// compilebench.
    Compile(Compile),
}

/// `cat` of small files: per file its inode is looked up, it is opened, read
/// in pieces to its end, and closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cat {
    /// Number of files.
    pub files: u64,
    /// Mean size.
    pub mean_bytes: u64,
    /// Median size.
    pub median_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Cold blocks of the inode table.
    pub inode_blocks: u64,
    /// Cold blocks of the directory.
    pub directory_blocks: u64,
    /// Bytes of disk over which the files are spread, at random distances.
    pub spread_bytes: u64,
}

impl Cat {
    /// What lies between two of its files on average, in bytes.
    pub fn gap_bytes(&self) -> u64 {
        let each = self.spread_bytes / self.files.max(1);
        each.saturating_sub(self.mean_bytes)
    }
}

/// How the benchmark of PVFS2 writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PvfsMode {
    /// `lio_listio` of glibc.
    Glibc,
    /// PVFS2's own replacement.
    Alt,
    /// One pwrite after another.
    Pwrite,
}

/// compilebench: its phases, then trees that are read and looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compile {
    /// Its phases.
    pub plan: Plan,
    /// Initial trees that are read afterwards.
    pub reads: u64,
    /// Initial trees that are looked at afterwards.
    pub stats: u64,
    /// Bytes of its buffer.
    pub buffer_bytes: u64,
    /// Processor time of its interpreter per file, ns.
    pub file_cost_ns: u64,
}

/// Sequential writes of which some are outstanding, each a list of regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PvfsBench {
    /// How it writes.
    pub mode: PvfsMode,
    /// Operations.
    pub ops: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// Operations outstanding.
    pub depth: u32,
    /// Operations that the storage layer has in progress.
    pub limit: u32,
    /// Regions of each.
    pub regions: u64,
    /// Most threads of glibc.
    pub threads_max: u32,
    /// How glibc tells that an operation is done.
    pub notify: Notification,
}

/// How the end of an asynchronous operation is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Notification {
    /// Not at all: whoever wants to know asks.
    #[default]
    None,
    /// By a signal.
    Signal,
    /// By a new thread that runs a function: one per completion.
    Thread,
}

impl Scenario {
    /// The programs that stand for jobs, by the name of their section.
    pub fn programs(&self) -> Vec<(&'static str, Program)> {
        match self.spec().name {
            "dd+cat" => vec![("cat", Program::Cat(self.cat()))],
            "pvfs-bench" => vec![("pvfs-bench", Program::PvfsBench(self.pvfs()))],
            "compilebench" => vec![("compilebench", Program::Compile(self.compile()))],
            _ => Vec::new(),
        }
    }

    fn compile(&self) -> Compile {
        let plan = Plan {
            initial: self.number("initial"),
            runs: self.number("runs"),
            ordering: self.number("ordering") != 0,
            sync: self.number("sync") != 0,
            seed: self.number("seed"),
        };
        Compile {
            plan,
            reads: self.number("reads").min(plan.initial),
            stats: self.number("stats").min(plan.initial),
            buffer_bytes: self.number("buffer"),
            file_cost_ns: self.number("file_cost_us") * 1000,
        }
    }

    fn cat(&self) -> Cat {
        Cat {
            files: self.number("files"),
            mean_bytes: self.number("mean"),
            median_bytes: self.number("median"),
            read_bytes: self.number("read_bs"),
            inode_blocks: self.number("inode_blocks"),
            directory_blocks: self.number("directory_blocks"),
            spread_bytes: self.number("spread"),
        }
    }

    fn pvfs(&self) -> PvfsBench {
        let mode = match self.word("mode") {
            "pwrite" => PvfsMode::Pwrite,
            "alt-aio" => PvfsMode::Alt,
            _ => PvfsMode::Glibc,
        };
        let small = |name| u32::try_from(self.number(name)).unwrap_or(u32::MAX);
        PvfsBench {
            mode,
            ops: self.number("ops"),
            bytes: self.number("bs"),
            depth: small("depth"),
            limit: small("limit"),
            regions: self.number("regions").min(self.number("bs")),
            threads_max: small("aio_threads"),
            notify: match self.word("notify") {
                "none" => Notification::None,
                "signal" => Notification::Signal,
                _ => Notification::Thread,
            },
        }
    }
}

/// Sizes of files with that mean and median, spread log-normally: the middle of
/// each of `files` equal shares of the distribution, in an order drawn by `seed`.
pub fn etc_sizes(cat: &Cat, seed: u64) -> Vec<u64> {
    let median = cat.median_bytes.max(1) as f64;
    let sigma = (2.0 * (cat.mean_bytes as f64 / median).ln())
        .max(0.0)
        .sqrt();
    let n = cat.files;
    let mut sizes: Vec<u64> = (0..n)
        .map(|i| {
            let share = (i as f64 + 0.5) / n as f64;
            (median * (sigma * normal_quantile(share)).exp()).round() as u64
        })
        .collect();
    let mut draw = Stream::named(seed, "sizes of /etc");
    for i in (1..sizes.len()).rev() {
        sizes.swap(i, draw.below(i as u64 + 1) as usize);
    }
    sizes
}

/// The standard normal distribution's quantile, by bisection of its
/// distribution function.
fn normal_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_share(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// Share of a standard normal distribution below `x`. Source: Abramowitz and
/// Stegun, Handbook of Mathematical Functions, 26.2.17 (error below 1e-7).
fn normal_share(x: f64) -> f64 {
    const B: [f64; 5] = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let poly = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let above = density * poly;
    if x >= 0.0 { 1.0 - above } else { above }
}
