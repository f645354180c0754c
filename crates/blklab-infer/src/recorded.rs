// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace says about its processes.

use crate::device::{Command, DeviceFit};
use blklab_types::{BioFlags, Dev, Error, IoPrio, Op, Pid, Span};
use std::fmt;

/// Most bios of a trace: they are kept in memory, some 120 bytes each.
pub const BIOS_MAX: usize = 20_000_000;

/// The processes of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The device whose bios these are.
    pub dev: Dev,
    /// In the order of their first bios.
    pub processes: Vec<Process>,
    /// From the first bio to the end of the last one.
    pub length: Span,
    /// Bios without a completion: nothing can have waited for them.
    pub nr_unfinished: u64,
    /// Whether the trace shows plugs; if not, they are inferred.
    pub shows_plugs: bool,
    /// Digest of the events that it was made of.
    pub digest: u64,
    /// What was left out or inferred, in words.
    pub notes: Vec<String>,
    /// The commands of the device, in the order of their completions; of long traces the
    /// first four million.
    pub commands: Vec<Command>,
}

impl Recorded {
    /// All bios.
    pub fn nr_bios(&self) -> u64 {
        self.processes.iter().map(|p| p.bios.len() as u64).sum()
    }

    /// The lowest sector, and the one after the highest; none without bios that have data.
    pub fn sectors(&self) -> Option<(u64, u64)> {
        let bios = self.processes.iter().flat_map(|p| &p.bios);
        let with_data = bios.filter(|b| b.nr_sectors > 0);
        with_data.fold(None, |range, b| {
            let (low, high) = range.unwrap_or((b.sector, b.end()));
            Some((low.min(b.sector), high.max(b.end())))
        })
    }

    /// A law for the device that served the commands.
    ///
    /// # Errors
    /// If the trace shows too few of them from D to C, in a clause.
    pub fn device(&self) -> Result<DeviceFit, Error> {
        crate::device::fit(&self.commands)
    }

    /// Whether the trace shows completions, without which nobody can tell what a process
    /// waited for.
    pub fn has_completions(&self) -> bool {
        self.nr_unfinished < self.nr_bios()
    }
}

/// A process, and the bios that were queued in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: Pid,
    /// Its name, if the trace tells.
    pub name: Option<String>,
    /// Which of its bios it waits for.
    pub waiting: Waiting,
    /// In order of time.
    pub bios: Vec<Bio>,
    /// Which of them wait for bios of other processes, in their order: see
    /// [`link()`](crate::link()). None until somebody asks.
    pub links: Vec<Link>,
    /// Its I/O priority, which traces do not show: the default.
    pub prio: IoPrio,
    /// Its control group, which traces do not show either; empty: the root.
    pub group: String,
}

/// A bio that is submitted when one of another process has ended, as those of a journal's
/// thread are, and those of whoever waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The bio, by its place in its process.
    pub bio: usize,
    /// The other process, by its place in [`Recorded::processes`].
    pub process: usize,
    /// Its bio.
    pub of: usize,
    /// The pause after the end of that one.
    pub think: Span,
}

impl Process {
    /// Whether it has the name of a thread of the kernel that writes.
    pub fn is_kernel_thread(&self) -> bool {
        const NAMES: [&str; 9] = [
            "kworker",
            "flush-",
            "pdflush",
            "jbd2",
            "kjournald",
            "xfs",
            "btrfs",
            "loop",
            "md",
        ];
        let name = self.name.as_deref().unwrap_or("");
        NAMES.iter().any(|n| name.starts_with(n))
    }
}

/// How a process depends on its own bios.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// On none: it submits at times of its own, as flusher threads do, or the trace does not
    /// show that it waits.
    #[default]
    Free,
    /// It keeps at most so many under way, and submits when there are fewer: asynchronous
    /// engines.
    Depth(u32),
    /// When it waits, it waits until no more are under way than when it went on in the
    /// recording, mostly none: whoever reads or writes synchronously.
    Until,
    /// As [`Waiting::Until`], and its bios start at a rate: its pauses count from start to
    /// start.
    Paced,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiting::Free => f.write_str("waits for none of its bios"),
            Waiting::Depth(n) => write!(f, "keeps up to {n} bios under way"),
            Waiting::Until => f.write_str("waits for its bios"),
            Waiting::Paced => f.write_str("waits for its bios, starts them at a rate"),
        }
    }
}

/// A bio as it was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// When it was queued. Times count from the last multiple of 20 ms before the first bio
    /// of the trace: a whole number of ticks of every kernel.
    pub at: Span,
    /// Closed loop: the pause before it, after its process had submitted the one before and
    /// there was [`Bio::room`] for it. Of [`Waiting::Paced`], after the one before began.
    pub think: Span,
    /// First sector.
    pub sector: u64,
    /// From Q to C, [`u64::MAX`] ns if it has no C; see [`Bio::latency`].
    pub(crate) latency: Span,
    /// Closed loop: it waits until fewer than this many of the process's bios that are
    /// [`Marks::AWAITED`] are under way. 0: it waits for none.
    pub room: u32,
    /// Length in sectors; 0 for an empty flush or barrier.
    pub nr_sectors: u32,
    /// Direction; an empty flush is [`Op::Flush`].
    pub op: Op,
    /// Flags, as far as traces show them.
    pub flags: BioFlags,
    /// What else is known of it.
    pub marks: Marks,
}

impl Bio {
    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.nr_sectors))
    }

    /// From Q to C; none if it has no C.
    pub fn latency(&self) -> Option<Span> {
        Some(self.latency).filter(|l| l.ns() != u64::MAX)
    }

    /// Whether somebody waits for it: reads, and writes that say so.
    pub fn is_sync(&self) -> bool {
        let ordered = BioFlags::SYNC | BioFlags::FLUSH | BioFlags::FUA | BioFlags::BARRIER;
        matches!(self.op, Op::Read | Op::Flush) || self.flags.any(ordered)
    }
}

/// Marks of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// The last one under its task's plug; each bio, if there is none.
    pub const ENDS_PLUG: Marks = Marks(1);
    /// After it the task starts the device's queue (up to 2.6.38).
    pub const UNPLUGS: Marks = Marks(2);
    /// The process may wait for it.
    pub const AWAITED: Marks = Marks(4);
    /// It had to sleep for a request.
    pub const SLEPT: Marks = Marks(8);
    /// It waited: a bio of the process ended since the one before was submitted.
    pub const WOKE: Marks = Marks(16);

    /// It was submitted under a plug.
    pub const PLUGGED: Marks = Marks(32);

    /// Its submission waited for a request or tag, and the process submitted the next one as
    /// soon as it had it. The multi-queue path shows no S.
    pub const HELD: Marks = Marks(64);

    /// Whether all of `other` are set.
    pub fn has(self, other: Marks) -> bool {
        self.0 & other.0 == other.0
    }

    /// With these.
    #[must_use]
    pub fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// Without these.
    #[must_use]
    pub fn without(self, other: Marks) -> Marks {
        Marks(self.0 & !other.0)
    }
}

/// Why a trace cannot be run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CannotRepeat {
    /// It has no bio, for a reason in words.
    NoBios(String),
    /// Its bios are of several devices: each with the number of its bios.
    SeveralDevices(Vec<(Dev, u64)>),
    /// It has none of the chosen device: those that it has.
    NotThatDevice(Dev, Vec<(Dev, u64)>),
    /// It is several recordings, whose times begin anew.
    SeveralRecordings(u64),
    /// It has more than [`BIOS_MAX`].
    TooMany,
    /// Its times span more than a hundred years.
    TooLong,
}

impl fmt::Display for CannotRepeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |devices: &[(Dev, u64)]| {
            let shown = devices.iter().take(8);
            let shown = shown.map(|(d, n)| format!("{d} ({n})"));
            let mut text = shown.collect::<Vec<_>>().join(", ");
            if devices.len() > 8 {
                text.push_str(", …");
            }
            text
        };
        match self {
            CannotRepeat::NoBios(why) => write!(f, "{why}"),
            CannotRepeat::SeveralDevices(devices) => write!(
                f,
                "bios of several devices: {}; one can be repeated, choose it",
                list(devices)
            ),
            CannotRepeat::NotThatDevice(dev, devices) => write!(
                f,
                "no bios of device {dev}; there are those of {}",
                list(devices)
            ),
            CannotRepeat::SeveralRecordings(n) => write!(
                f,
                "{n} recordings one behind the other, each with its own times; give one of them"
            ),
            CannotRepeat::TooMany => {
                write!(f, "more than {BIOS_MAX} bios; cut the trace into parts")
            }
            CannotRepeat::TooLong => {
                f.write_str("its times span more than a hundred years; they are damaged")
            }
        }
    }
}

impl std::error::Error for CannotRepeat {}
