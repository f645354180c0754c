// SPDX-License-Identifier: MIT OR Apache-2.0
//! What single options choose from.

/// Direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// From the file.
    Read = 0,
    /// To the file.
    Write = 1,
    /// Blocks given up.
    Trim = 2,
}

/// One value per direction.
pub type PerDir<T> = [T; 3];

/// What a job does: fio's `rw`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Reads.
    pub reads: bool,
    /// Writes.
    pub writes: bool,
    /// Trims.
    pub trims: bool,
    /// Offsets are random.
    pub random: bool,
}

impl Pattern {
    /// A mixture of reads and writes.
    pub fn is_mixed(self) -> bool {
        self.reads && self.writes
    }

    /// Every block is trimmed and then written.
    pub fn is_trimwrite(self) -> bool {
        self.trims && self.writes
    }

    /// fio's word for it.
    pub fn name(self) -> &'static str {
        match (self.reads, self.writes, self.trims, self.random) {
            (true, true, _, false) => "rw",
            (true, true, _, true) => "randrw",
            (true, false, _, false) => "read",
            (true, false, _, true) => "randread",
            (false, true, true, false) => "trimwrite",
            (false, true, true, true) => "randtrimwrite",
            (false, true, false, false) => "write",
            (false, true, false, true) => "randwrite",
            (false, false, _, false) => "trim",
            (false, false, _, true) => "randtrim",
        }
    }

    pub(crate) fn from_keyword(word: &str) -> Pattern {
        let kind = word.strip_prefix("rand").unwrap_or(word);
        let mixed = matches!(kind, "rw" | "readwrite");
        Pattern {
            reads: mixed || kind == "read",
            writes: mixed || kind == "write" || kind == "trimwrite",
            trims: kind.starts_with("trim"),
            random: word.starts_with("rand"),
        }
    }
}

/// What happens between the steps of `rw=randX:N`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Go on sequentially.
    #[default]
    Sequential,
    /// The same offset again.
    Identical,
}

/// Source of uniform random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generator {
    /// 32-bit Tausworthe.
    #[default]
    Tausworthe,
    /// A shift register that visits every block once.
    Lfsr,
    /// 64-bit Tausworthe.
    Tausworthe64,
}

/// One entry of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneSplit {
    /// Share of the accesses, in percent.
    pub access_percent: u32,
    /// Size of the zone: percent, or bytes for the absolute form.
    pub size: u64,
}

/// How blocks are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every block alike.
    #[default]
    Random,
    /// Zipf with theta and centre.
    Zipf {
        /// Exponent.
        theta: f64,
        /// Where the most popular block is, 0 to 1; by seed if not given.
        center: Option<f64>,
    },
    /// Pareto with power and centre.
    Pareto {
        /// Power.
        power: f64,
        /// Where the most popular block is, 0 to 1; by seed if not given.
        center: Option<f64>,
    },
    /// Normal.
    Normal {
        /// Deviation in percent of the range.
        deviation_percent: f64,
        /// Where the middle is, 0 to 1.
        center: Option<f64>,
    },
    /// Zones with sizes in percent.
    Zoned(Vec<ZoneSplit>),
    /// Zones with sizes in bytes.
    ZonedAbs(Vec<ZoneSplit>),
}

/// How the next file is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FileService {
    /// One after another.
    #[default]
    RoundRobin,
    /// One file to its end, then the next.
    Sequential,
    /// Any, alike.
    Random,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this power.
    Pareto(f64),
    /// Normal with this deviation in percent.
    Normal(f64),
}

impl FileService {
    /// Whether files are never finished.
    pub fn is_non_uniform(self) -> bool {
        matches!(
            self,
            FileService::Zipf(_) | FileService::Pareto(_) | FileService::Normal(_)
        )
    }
}

/// One length of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeSplit {
    /// Length in bytes.
    pub bytes: u64,
    /// Share in percent.
    pub percent: u32,
}

/// What counts for `thinktime_blocks`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkCount {
    /// Completed I/Os.
    #[default]
    Complete,
    /// Issued I/Os.
    Issue,
}

/// How a rate is spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly.
    #[default]
    Linear,
    /// Exponential gaps.
    Poisson,
}

/// Zones of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// None.
    #[default]
    None,
    /// A window that moves over the file.
    Strided,
    /// A zoned block device (not modelled).
    Zbd,
}

/// The `sync` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncWrites {
    /// Plain writes.
    #[default]
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// The `fadvise_hint` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadviseHint {
    /// No advice.
    None,
    /// By what the job does.
    #[default]
    ByPattern,
    /// Random.
    Random,
    /// Sequential.
    Sequential,
}

/// The `fallocate` option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallocate {
    /// No allocation in advance.
    None,
    /// The filesystem's own way, if it has one.
    #[default]
    Native,
    /// posix_fallocate.
    Posix,
    /// fallocate that keeps the size.
    KeepSize,
    /// ftruncate only.
    Truncate,
}

/// What ends with a job under `exitall`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// The jobs of its group.
    #[default]
    Group,
    /// All running jobs; the next stonewall goes on.
    Stonewall,
    /// Everything.
    All,
}

/// Which errors a job survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContinueOnError {
    /// Those of reads.
    pub reads: bool,
    /// Those of writes, trims and syncs.
    pub writes: bool,
    /// Those of verification.
    pub verify: bool,
}

/// I/O priority of part of a job's requests (`cmdprio*` of some engines).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmdPrio {
    /// Share of the requests with that priority.
    pub percentage: PerDir<u32>,
    /// Their class: 1 real time, 2 best effort, 3 idle.
    pub class: PerDir<u32>,
    /// Their level.
    pub level: PerDir<u32>,
    /// Shares by length (`cmdprio_bssplit`), shortest first.
    pub splits: PerDir<Vec<PrioSplit>>,
}

impl CmdPrio {
    /// Refuses what fio refuses when the job starts.
    ///
    /// # Errors
    /// fio's message.
    pub(crate) fn check(&self, job: &str) -> Result<(), String> {
        let percentage = self.percentage.iter().any(|&percent| percent != 0);
        if percentage && self.splits.iter().any(|list| !list.is_empty()) {
            return Err(format!(
                "{job}: cmdprio_percentage and cmdprio_bssplit options are mutually exclusive"
            ));
        }
        for list in &self.splits {
            for split in list {
                let same = list.iter().filter(|other| other.bytes == split.bytes);
                if same.map(|other| other.percent).sum::<u32>() > 100 {
                    return Err(format!(
                        "fio: cmdprio_bssplit total percentage for bs: {} exceeds 100",
                        split.bytes
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Requests of one length that get a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioSplit {
    /// Their length in bytes.
    pub bytes: u64,
    /// Their share in percent.
    pub percent: u32,
    /// Class and level, if given.
    pub priority: Option<(u32, u32)>,
}
