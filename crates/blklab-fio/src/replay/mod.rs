// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded I/O that a job replays (`read_iolog`): fio's own logs, versions 2
//! and 3, and blktrace's events.
//!
//! ```text
//! log ─► text ──┐
//!               ├─► Builder ─► Replay (packed entries) ─► JobRun
//! trace ► trace ┘
//! ```
//!
//! Behaviour of fio 3.33 (iolog.c, blktrace.c, and the program run beside
//! this), which differs from its manual page:
//!
//! - `wait` of version 2 is in milliseconds since fio's start, not in
//!   microseconds since the last one.
//! - Trims of a text log are left out ("bad ddir: 2"); those of blktrace are
//!   replayed. So are lines of `sync_file_range`, and `wait` in version 3.
//! - `replay_skip` counts for blktraces only. What it leaves out takes its pause
//!   along.
//! - A pause lasts from the issue of the previous I/O.
//! - Neither `size`, `io_size`, `number_ios`, `loops` nor rates bound a replay;
//!   `runtime` does, but does not cut a pause short.
//! - Merging of traces does not work in 3.33 (the merged file is empty): it is
//!   done here as documented.
//!
//! Where fio goes on behind a bad line, or ends by an assertion (I/O on a file
//! that is not open), the log is refused with the line.
//!
//! Units: bytes, microseconds.

pub mod merge;
mod packed;
pub mod text;
pub mod trace;

pub use packed::Cursor;

use crate::error::Problem;
use crate::io_op::IoOp;
use crate::settings::{Dir, PerDir, ReplayOptions};
use blklab_types::Place;
use packed::Packer;
use std::sync::Arc;

/// Most files of a log.
pub const LOG_FILES_MAX: usize = 1 << 16;
/// Longest sum of a log's pauses: 100 years.
const PAUSES_MAX_US: u64 = 100 * 365 * 86_400 * 1_000_000;
/// Largest offset, as the kernel's `loff_t`.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// What a replaying job does next, and how long after its last issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Pause since the last issue.
    pub delay_us: u64,
    /// What then.
    pub act: Act,
}

/// One line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing: a file has been named.
    Add,
    /// Open a file.
    Open {
        /// Index of the file.
        file: u32,
    },
    /// Close a file.
    Close {
        /// Index of the file.
        file: u32,
    },
    /// Wait until this time after the start of the run.
    Until {
        /// Milliseconds.
        ms: u64,
    },
    /// Issue an I/O.
    Io {
        /// Operation.
        op: IoOp,
        /// Index of the file.
        file: u32,
        /// First byte.
        offset: u64,
        /// Length; what a log says of syncs means nothing.
        length: u64,
    },
}

/// A file that a log names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayFile {
    /// Its name.
    pub name: String,
    /// End of the I/O that reaches furthest.
    pub end_bytes: u64,
    /// Line or record of that I/O.
    pub end_line: u32,
    /// Whether it is read, so that it must have contents.
    pub is_read: bool,
}

/// A log, ready to be replayed.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Name of the log.
    pub log: String,
    /// Its files, in the order in which they are named.
    pub files: Vec<ReplayFile>,
    /// Number of I/Os per direction.
    pub count: PerDir<u64>,
    /// Length of the longest I/O per direction.
    pub longest: PerDir<u64>,
    /// Sum of all lengths.
    pub bytes: u64,
    /// Requests in flight that a trace shows.
    pub depth: Option<u32>,
    /// What a reader should know.
    pub notes: Vec<String>,
    packed: Arc<[u8]>,
}

impl Replay {
    /// The entries from the beginning.
    pub fn entries(&self) -> Cursor {
        Cursor::new(Arc::clone(&self.packed))
    }
}

/// A problem of a line of a log.
fn problem(log: &str, line: u32, message: impl Into<String>) -> Problem {
    Problem {
        place: Place {
            file: log.to_owned(),
            line,
        },
        message: message.into(),
        hint: None,
    }
}

/// Collects the entries of a log.
struct Builder<'a> {
    options: &'a ReplayOptions,
    out: Replay,
    packer: Packer,
    /// How often each file has been opened and not closed.
    opened: Vec<u32>,
    last_time: u64,
    pauses_us: u64,
}

impl<'a> Builder<'a> {
    fn new(log: &str, options: &'a ReplayOptions) -> Builder<'a> {
        Builder {
            options,
            out: Replay {
                log: log.to_owned(),
                ..Replay::default()
            },
            packer: Packer::default(),
            opened: Vec::new(),
            last_time: 0,
            pauses_us: 0,
        }
    }

    fn fail<T>(&self, line: u32, message: impl Into<String>) -> Result<T, Problem> {
        Err(problem(&self.out.log, line, message))
    }

    /// The pause before an entry of this time, in the time's unit: since the
    /// entry before, unless that one was at 0.
    fn stall(&mut self, time: u64) -> u64 {
        let last = std::mem::replace(&mut self.last_time, time);
        let pause = time.saturating_sub(last);
        match self.options.time_scale {
            _ if last == 0 || self.options.no_stall => 0,
            100 => pause,
            percent => (pause as f64 * (100.0 / f64::from(percent))) as u64,
        }
    }

    /// The index of a file, which is added if it is new.
    fn add_file(&mut self, name: &str, line: u32) -> Result<u32, Problem> {
        if self.out.files.len() >= LOG_FILES_MAX {
            return self.fail(line, format!("more than {LOG_FILES_MAX} files"));
        }
        self.opened.push(0);
        self.out.files.push(ReplayFile {
            name: name.to_owned(),
            end_bytes: 0,
            end_line: 0,
            is_read: false,
        });
        Ok(self.out.files.len() as u32 - 1)
    }

    fn push(&mut self, line: u32, delay_us: u64, act: Act) -> Result<(), Problem> {
        self.pauses_us = self.pauses_us.saturating_add(delay_us);
        if self.pauses_us > PAUSES_MAX_US {
            return self.fail(line, "the pauses up to here exceed 100 years");
        }
        self.packer.push(&Entry { delay_us, act });
        Ok(())
    }

    /// Opens a file. Several that are redirected to one open it once.
    fn open(&mut self, file: u32, delay_us: u64, line: u32) -> Result<(), Problem> {
        let opened = &mut self.opened[file as usize];
        *opened += 1;
        let act = match *opened {
            1 => Act::Open { file },
            _ if self.options.redirect.is_some() => Act::Add,
            _ => {
                let name = &self.out.files[file as usize].name;
                return self.fail(line, format!("{name} is open already"));
            }
        };
        self.push(line, delay_us, act)
    }

    fn close(&mut self, file: u32, delay_us: u64, line: u32) -> Result<(), Problem> {
        let opened = &mut self.opened[file as usize];
        let act = match *opened {
            1 => Act::Close { file },
            _ => Act::Add,
        };
        *opened = opened.saturating_sub(1);
        self.push(line, delay_us, act)
    }

    fn io(
        &mut self,
        op: IoOp,
        file: u32,
        (offset, length): (u64, u64),
        delay_us: u64,
        line: u32,
    ) -> Result<(), Problem> {
        let name = &self.out.files[file as usize].name;
        if self.opened[file as usize] == 0 {
            return self.fail(line, format!("{name} is not open"));
        }
        if op.dir().is_some() && length == 0 {
            return self.fail(line, format!("a {} of 0 bytes", op.name()));
        }
        let align = u64::from(self.options.align).max(1);
        let offset = offset / u64::from(self.options.scale).max(1);
        let offset = offset - offset % align;
        let end = match offset.checked_add(length) {
            Some(end) if end <= OFFSET_MAX => end,
            _ => return self.fail(line, format!("offset {offset} is beyond {OFFSET_MAX}")),
        };
        if let Some(dir) = op.dir() {
            self.count(dir, file, length, end, line);
        }
        self.push(
            line,
            delay_us,
            Act::Io {
                op,
                file,
                offset,
                length,
            },
        )
    }

    fn count(&mut self, dir: Dir, file: u32, length: u64, end: u64, line: u32) {
        self.out.count[dir as usize] += 1;
        let longest = &mut self.out.longest[dir as usize];
        *longest = length.max(*longest);
        self.out.bytes = self.out.bytes.saturating_add(length);
        let file = &mut self.out.files[file as usize];
        file.is_read |= dir == Dir::Read;
        if end > file.end_bytes && dir != Dir::Trim {
            file.end_bytes = end;
            file.end_line = line;
        }
    }

    fn finish(mut self) -> Replay {
        self.out.packed = self.packer.finish();
        self.out
    }
}
