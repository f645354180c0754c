// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's log of I/Os, as `write_iolog` writes it.
//!
//! Format: fio 3.33 writes version 3, one line per event: microseconds since
//! the job's start, file, action, and for I/Os offset and length in bytes.
//! Syncs carry their request record's last offset and length 0.

use crate::run::{Io, IoOp};
use std::io::{self, Write};

/// A writer of one job's log. Times come from the caller.
#[derive(Debug)]
pub struct IologWriter<W> {
    out: W,
}

impl<W: Write> IologWriter<W> {
    /// Begins a log with its header and the job's files, in order.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new<'a>(
        out: W,
        time_us: u64,
        files: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<IologWriter<W>> {
        let mut writer = IologWriter { out };
        writeln!(writer.out, "fio version 3 iolog")?;
        for file in files {
            writer.add(time_us, file)?;
        }
        Ok(writer)
    }

    /// A file that was not known at the beginning.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add(&mut self, time_us: u64, file: &str) -> io::Result<()> {
        self.action(time_us, file, "add")
    }

    fn action(&mut self, time_us: u64, file: &str, action: &str) -> io::Result<()> {
        writeln!(self.out, "{time_us} {file} {action}")
    }

    /// A file was opened.
    ///
    /// # Errors
    /// Those of the output.
    pub fn open(&mut self, time_us: u64, file: &str) -> io::Result<()> {
        self.action(time_us, file, "open")
    }

    /// A file was closed.
    ///
    /// # Errors
    /// Those of the output.
    pub fn close(&mut self, time_us: u64, file: &str) -> io::Result<()> {
        self.action(time_us, file, "close")
    }

    /// An I/O was handed to the engine.
    ///
    /// # Errors
    /// Those of the output.
    pub fn io(&mut self, time_us: u64, file: &str, io: &Io) -> io::Result<()> {
        self.transfer(time_us, file, io.op, io.logged_offset, io.length)
    }

    /// An I/O by its parts, in bytes. A sync has length 0, whatever is given.
    ///
    /// # Errors
    /// Those of the output.
    pub fn transfer(
        &mut self,
        time_us: u64,
        file: &str,
        op: IoOp,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        let length = if op.dir().is_some() { length } else { 0 };
        let name = op.name();
        writeln!(self.out, "{time_us} {file} {name} {offset} {length}")
    }

    /// The output, once the log is complete.
    pub fn into_inner(self) -> W {
        self.out
    }
}
