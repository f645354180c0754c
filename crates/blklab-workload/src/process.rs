// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes as experiment files describe them.

use blklab_types::{BioFlags, IoPrio, Op, Pid, PrioClass};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One process.
///
/// A closed-loop process submits while fewer than `depth` bios are
/// outstanding, unplugs as `unplug` says, waits as `refill` says, pauses
/// `think_ns` and starts again. A process with a script follows its
/// timetable. It exits right after its last completion.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Name shown in traces (`comm`).
    pub name: String,
    /// Process id shown in traces.
    pub pid: Pid,
    /// When it starts.
    #[serde(default)]
    pub start_ns: u64,
    /// Class of its I/O priority: none, rt, be, idle.
    #[serde(default)]
    pub ioprio_class: Class,
    /// Level of its I/O priority, 0 (best) to 7.
    #[serde(default = "default_level")]
    pub ioprio_level: u8,
    /// Control group that it is in; the root if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Most bios outstanding.
    #[serde(default = "one")]
    pub depth: u32,
    /// Pause after a wait.
    #[serde(default)]
    pub think_ns: u64,
    /// CPU time between two submissions of a burst.
    #[serde(default)]
    pub gap_ns: u64,
    /// When it submits again.
    #[serde(default)]
    pub refill: Refill,
    /// When it unplugs the queue.
    #[serde(default)]
    pub unplug: UnplugWhen,
    /// What it submits.
    pub io: Io,
}

fn default_level() -> u8 {
    4
}

fn one() -> u32 {
    1
}

impl Process {
    /// Its I/O priority.
    pub fn ioprio(&self) -> IoPrio {
        let class = match self.ioprio_class {
            Class::None => return IoPrio::default(),
            Class::Rt => PrioClass::RealTime,
            Class::Be => PrioClass::BestEffort,
            Class::Idle => PrioClass::Idle,
        };
        IoPrio {
            class,
            level: self.ioprio_level,
        }
    }
}

/// Class of an I/O priority, as experiment files spell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Not set.
    #[default]
    None,
    /// Real time.
    Rt,
    /// Best effort.
    Be,
    /// Idle.
    Idle,
}

/// When a process submits again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Refill {
    /// As soon as one bio is done.
    #[default]
    One,
    /// When all are done.
    All,
}

/// When a process unplugs the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnplugWhen {
    /// Before it waits, when something was submitted.
    #[default]
    OnWait,
    /// After every submission.
    Each,
    /// Never: threshold, timer, completions and sleepers do it.
    Never,
}

/// Direction as experiment files spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// Read.
    Read,
    /// Write.
    Write,
}

impl Rw {
    /// The operation.
    pub fn op(self) -> Op {
        match self {
            Rw::Read => Op::Read,
            Rw::Write => Op::Write,
        }
    }
}

/// Flag of a bio as experiment files spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flag {
    /// Synchronous write.
    Sync,
    /// No idling after it.
    Noidle,
    /// Metadata.
    Meta,
    /// Unplug at once (2.6.29 to 2.6.38; before, sync does).
    Unplug,
    /// Read-ahead.
    Ahead,
    /// Ordered write (to 2.6.36).
    Barrier,
    /// Flush the cache first (2.6.37 and later).
    Flush,
    /// Through to the medium.
    Fua,
}

/// The set of some flags.
pub(crate) fn flag_set(flags: &[Flag]) -> BioFlags {
    flags.iter().fold(BioFlags::NONE, |set, flag| {
        set | match flag {
            Flag::Sync => BioFlags::SYNC,
            Flag::Noidle => BioFlags::NOIDLE,
            Flag::Meta => BioFlags::META,
            Flag::Unplug => BioFlags::UNPLUG,
            Flag::Ahead => BioFlags::AHEAD,
            Flag::Barrier => BioFlags::BARRIER,
            Flag::Flush => BioFlags::FLUSH,
            Flag::Fua => BioFlags::FUA,
        }
    })
}

/// What a process submits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "pattern", rename_all = "lowercase", deny_unknown_fields)]
pub enum Io {
    /// `count` bios of `nsect` sectors from `start` upward.
    Sequential {
        /// Direction.
        rw: Rw,
        /// Flags of each bio.
        #[serde(default)]
        flags: Vec<Flag>,
        /// First sector.
        start: u64,
        /// Sectors per bio.
        nsect: u32,
        /// Number of bios.
        count: u64,
    },
    /// One bio of `nsect` sectors at each of `sectors`, in this order.
    List {
        /// Direction.
        rw: Rw,
        /// Flags of each bio.
        #[serde(default)]
        flags: Vec<Flag>,
        /// Sectors per bio.
        nsect: u32,
        /// First sector of each bio.
        sectors: Vec<u64>,
    },
    /// `[rw, flags, sector, nsect, think_ns]`; a number in the last place
    /// replaces the pause before that bio.
    Mixed {
        /// The bios.
        ops: Vec<MixedOp>,
    },
    /// `[t_ns, rw, flags, sector, nsect]`: submitted at `t_ns`, or later if
    /// the process still waits for a request.
    Script {
        /// The timetable, in order of time.
        ops: Vec<ScriptOp>,
    },
}

/// One bio of a mixed process.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct MixedOp(
    pub Rw,
    pub Vec<Flag>,
    pub u64,
    pub u32,
    #[serde(default)] pub Option<u64>,
);

/// One line of a timetable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOp {
    /// When.
    pub t_ns: u64,
    /// Direction.
    pub rw: Rw,
    /// Flags.
    pub flags: Vec<Flag>,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub nsect: u32,
}

/// As it is read: a row.
impl Serialize for ScriptOp {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        (self.t_ns, self.rw, &self.flags, self.sector, self.nsect).serialize(s)
    }
}

impl<'de> Deserialize<'de> for ScriptOp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<ScriptOp, D::Error> {
        struct Row;
        impl<'de> Visitor<'de> for Row {
            type Value = ScriptOp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row [t_ns, rw, flags, sector, nsect]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut s: A) -> Result<ScriptOp, A::Error> {
                let short = |n| de::Error::invalid_length(n, &"5 values");
                let op = ScriptOp {
                    t_ns: s.next_element()?.ok_or_else(|| short(0))?,
                    rw: s.next_element()?.ok_or_else(|| short(1))?,
                    flags: s.next_element()?.ok_or_else(|| short(2))?,
                    sector: s.next_element()?.ok_or_else(|| short(3))?,
                    nsect: s.next_element()?.ok_or_else(|| short(4))?,
                };
                match s.next_element::<de::IgnoredAny>()? {
                    Some(_) => Err(de::Error::invalid_length(6, &"5 values")),
                    None => Ok(op),
                }
            }
        }
        d.deserialize_seq(Row)
    }
}
