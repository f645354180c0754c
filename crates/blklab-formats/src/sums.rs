// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of sums, means and histograms, and logs, which have no single I/Os and still show something.
//! They are recognised where traces are; what they show is another crate's.

/// What made the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SumsKind {
    /// `iostat -x`, as text or JSON.
    Iostat,
    /// `/proc/diskstats`, once or several times.
    Diskstats,
    /// `io.stat` of control groups.
    IoStat,
    /// `io.pressure`, `/proc/pressure/io`.
    Pressure,
    /// A histogram of latencies or sizes: biolatency, bitesize, bpftrace.
    Histogram,
    /// A report of huatuo's iotracing.
    Huatuo,
    /// Percentiles of Rezolus.
    Rezolus,
    /// `zpool iostat -l`.
    Zpool,
    /// The output of btt.
    Btt,
    /// What fio prints of its jobs, as text or JSON.
    Fio,
    /// Times of calls: ext4slower and its kin, `strace -T`, ioping.
    Calls,
    /// `pidstat -d`, biotop.
    Processes,
    /// A kernel's log: hung tasks, stacks, what drivers say.
    KernelLog,
}

/// Most bytes of such a text that are read: days of iostat.
pub const SUMS_BYTES_MAX: usize = 16 << 20;

/// The text of a table of sums.
#[derive(Clone, Debug)]
pub struct Sums {
    /// What made it.
    pub kind: SumsKind,
    /// The whole text, or its first [`SUMS_BYTES_MAX`].
    pub text: String,
    /// It is longer than what was read.
    pub is_cut: bool,
}
