// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's own logs, versions 2 and 3.
//!
//! ```text
//! fio version 2 iolog          fio version 3 iolog
//! /dev/sda add                 0 /dev/sda add
//! /dev/sda open                12 /dev/sda open
//! /dev/sda read 0 4096         105 /dev/sda read 0 4096
//! /dev/sda wait 1500 0         1500000 /dev/sda sync 0 0
//! ```
//!
//! Times of version 3 are microseconds. A head may come again within a log:
//! several jobs that name one `write_iolog` file append to it.

use super::{Act, Builder, Replay, problem};
use crate::error::Problem;
use crate::io_op::IoOp;
use crate::settings::{ReplayOptions, Skip};
use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

/// Longest line, as in fio.
const LINE_BYTES_MAX: u64 = 4096;
/// Longest name of a file, as in fio.
const NAME_BYTES_MAX: usize = 256;
const HEAD: &str = "fio version ";

/// Reads a log; `log` is its name in messages.
///
/// # Errors
/// The first line that is wrong.
pub fn read(
    input: &mut dyn BufRead,
    log: &str,
    options: &ReplayOptions,
) -> Result<Replay, Problem> {
    let mut lines = Lines {
        input,
        buffer: Vec::new(),
        line: 0,
    };
    let version = match lines.next(log)? {
        Some((_, head)) => version_of(log, head)?,
        None => return Err(problem(log, 0, "the log is empty")),
    };
    let mut parser = Parser {
        builder: Builder::new(log, options),
        version,
        files: BTreeMap::new(),
        last: None,
        waits: 0,
        left_out: BTreeMap::new(),
    };
    while let Some((line, text)) = lines.next(log)? {
        parser.line(text, line)?;
    }
    parser.finish(lines.line)
}

/// The lines of a log, in one buffer.
struct Lines<'a> {
    input: &'a mut dyn BufRead,
    buffer: Vec<u8>,
    line: u32,
}

impl Lines<'_> {
    /// The next line and its number.
    fn next(&mut self, log: &str) -> Result<Option<(u32, &str)>, Problem> {
        self.buffer.clear();
        self.line = self.line.saturating_add(1);
        let fail = |what: String| Err(problem(log, self.line, what));
        let mut limited = (&mut *self.input).take(LINE_BYTES_MAX);
        match limited.read_until(b'\n', &mut self.buffer) {
            Err(e) => return fail(format!("cannot be read: {e}")),
            Ok(0) => {
                self.line -= 1;
                return Ok(None);
            }
            Ok(_) => {}
        }
        if self.buffer.len() as u64 == LINE_BYTES_MAX && self.buffer.last() != Some(&b'\n') {
            return fail(format!("a line of more than {LINE_BYTES_MAX} bytes"));
        }
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Ok(Some((self.line, text))),
            Err(_) => fail("not text".to_owned()),
        }
    }
}

fn version_of(log: &str, head: &str) -> Result<u32, Problem> {
    let fail = |what: &str| Err(problem(log, 1, what));
    match head.strip_prefix(HEAD).map(|rest| rest.get(..7)) {
        Some(Some("2 iolog")) => Ok(2),
        Some(Some("3 iolog")) => Ok(3),
        Some(_) => fail("not a version that fio 3.33 replays: 2 and 3 are"),
        None => fail(
            "not an iolog that fio 3.33 replays: the first line is 'fio version 2 iolog' or \
             'fio version 3 iolog' (version 1 has none), or the file is a blktrace of version 7",
        ),
    }
}

struct Parser<'a> {
    builder: Builder<'a>,
    version: u32,
    files: BTreeMap<String, u32>,
    /// The file of the line before.
    last: Option<u32>,
    waits: u64,
    /// What fio does not replay: action and number of lines.
    left_out: BTreeMap<&'static str, u64>,
}

impl Parser<'_> {
    fn line(&mut self, text: &str, line: u32) -> Result<(), Problem> {
        let mut words = text.split_ascii_whitespace();
        let Some(first) = words.next() else {
            return Ok(());
        };
        if text.starts_with(HEAD) && version_of("", text) == Ok(self.version) {
            return Ok(());
        }
        let (time, name) = match (self.version, words.clone().next()) {
            (2, _) => (None, first),
            (_, None) => return self.short(line),
            (_, Some(name)) => {
                words.next();
                (Some(self.number("time", first, line)?), name)
            }
        };
        let Some(action) = words.next() else {
            return self.short(line);
        };
        if name.len() > NAME_BYTES_MAX {
            let what = format!("a file name of more than {NAME_BYTES_MAX} bytes");
            return self.builder.fail(line, what);
        }
        let delay_us = time.map_or(0, |time| self.builder.stall(time));
        let name = match &self.builder.options.redirect {
            Some(redirect) => redirect.as_str(),
            None => name,
        };
        if let "add" | "open" | "close" = action {
            return self.file_action(name, action, delay_us, line);
        }
        let Some(op) = self.operation(action, line)? else {
            return Ok(());
        };
        let (Some(offset), Some(length)) = (words.next(), words.next()) else {
            let what = format!("'{action}' has an offset and a length behind it");
            return self.builder.fail(line, what);
        };
        let offset = self.number("offset", offset, line)?;
        let length = self.number("length", length, line)?;
        if length > u64::from(u32::MAX) {
            let what = format!("length {length} is more than {}", u32::MAX);
            return self.builder.fail(line, what);
        }
        match op {
            Operation::Wait if self.builder.options.no_stall => Ok(()),
            Operation::Wait => {
                self.waits += 1;
                self.builder.push(line, 0, Act::Until { ms: offset })
            }
            Operation::Io(op) => {
                let file = self.file(name, line)?;
                self.builder.io(op, file, (offset, length), delay_us, line)
            }
        }
    }

    fn short<T>(&self, line: u32) -> Result<T, Problem> {
        let what = match self.version {
            2 => "expected 'FILE ACTION' or 'FILE ACTION OFFSET LENGTH'",
            _ => "expected 'TIME FILE ACTION' or 'TIME FILE ACTION OFFSET LENGTH'",
        };
        self.builder.fail(line, what)
    }

    fn number(&self, what: &str, text: &str, line: u32) -> Result<u64, Problem> {
        match text.parse() {
            Ok(number) if !text.starts_with('+') => Ok(number),
            _ => {
                let text: String = text.chars().take(40).collect();
                let message = format!("{what} '{text}' is not a number of 64 bits");
                self.builder.fail(line, message)
            }
        }
    }

    /// The operation of an action; `None` for those that fio passes over.
    fn operation(&mut self, action: &str, line: u32) -> Result<Option<Operation>, Problem> {
        let op = match action {
            "read" => IoOp::Read,
            "write" => IoOp::Write,
            "sync" => IoOp::Sync,
            "datasync" => IoOp::Datasync,
            "wait" if self.version == 2 => return Ok(Some(Operation::Wait)),
            "wait" => return self.leave_out("wait"),
            "trim" => return self.leave_out("trim"),
            "sync_file_range" => return self.leave_out("sync_file_range"),
            _ => {
                let action: String = action.chars().take(40).collect();
                let message = format!(
                    "no action is called '{action}': add, open, close, read, write, sync, \
                     datasync, trim, wait"
                );
                return self.builder.fail(line, message);
            }
        };
        Ok(Some(Operation::Io(op)))
    }

    fn leave_out(&mut self, action: &'static str) -> Result<Option<Operation>, Problem> {
        *self.left_out.entry(action).or_default() += 1;
        Ok(None)
    }

    fn file_action(
        &mut self,
        name: &str,
        action: &str,
        delay_us: u64,
        line: u32,
    ) -> Result<(), Problem> {
        if action == "add" {
            if !self.files.contains_key(name) {
                let file = self.builder.add_file(name, line)?;
                self.files.insert(name.to_owned(), file);
            }
            return self.builder.push(line, delay_us, Act::Add);
        }
        let file = self.file(name, line)?;
        match action {
            "open" => self.builder.open(file, delay_us, line),
            _ => self.builder.close(file, delay_us, line),
        }
    }

    fn file(&mut self, name: &str, line: u32) -> Result<u32, Problem> {
        let is_last = |file: &u32| self.builder.out.files[*file as usize].name == name;
        let known = self.last.filter(is_last);
        match known.or_else(|| self.files.get(name).copied()) {
            Some(file) => {
                self.last = Some(file);
                Ok(file)
            }
            None => {
                let what = format!("{name} is not known: 'add' comes first");
                self.builder.fail(line, what)
            }
        }
    }

    fn finish(mut self, lines: u32) -> Result<Replay, Problem> {
        let [reads, writes, _] = self.builder.out.count;
        if reads == 0 && writes == 0 && self.waits == 0 {
            let what = "nothing to replay: fio asks for a read, a write or a wait";
            return self.builder.fail(lines, what);
        }
        if self.builder.options.skip != Skip::default() {
            let note = "replay_skip leaves nothing out: fio 3.33 honours it for blktraces only";
            self.builder.out.notes.push(note.to_owned());
        }
        for (action, count) in &self.left_out {
            let lines = if *count == 1 { "line" } else { "lines" };
            self.builder.out.notes.push(format!(
                "{count} {lines} '{action}' left out: fio 3.33 passes over them in version {}",
                self.version
            ));
        }
        Ok(self.builder.finish())
    }
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait,
    Io(IoOp),
}

#[cfg(test)]
mod tests;
