// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `/proc/sys/vm/block_dump` had kernels up to 5.12 write to their log: a line for each
//! bio that is submitted (`submit_bio`, block/blk-core.c).
//!
//! ```text
//! [  423.112299] kjournald(988): WRITE block 99120 on sda1 (8 sectors)
//! ```
//!
//! That is Q with process, direction and place; places are those in the partition. Kernels
//! before 2.6.37 say no length: one sector is taken. Inodes that become dirty are counted as
//! other events.

use crate::disks::Disks;
use crate::format::{Format, Reader, begins_with};
use crate::input::Input;
use crate::source::Source;
use crate::text::{
    Dialect, Line, Rest, TextReader, decimal, length, unlogged, unquoted, without_content,
};
use crate::{FormatError, ReadCounts, plausible};
use blklab_trace::{Action, Actions, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, Time};
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "block_dump",
    summary: "lines of vm.block_dump in the log of a kernel up to 5.12; read",
    has_printed_times: false,
    says_losses: false,
    says_flags: false,
    dialect: None,
    recognises: |input| begins_with(input, BlockDump::default),
    open: |input, _| Ok(Box::new(BlockDumpReader::from_input(input))),
};

impl Reader for BlockDumpReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.header()
    }
}

/// Reads lines of block_dump in a kernel's log.
#[derive(Debug)]
pub struct BlockDumpReader<R>(TextReader<R, BlockDump>);

impl<R: Read> BlockDumpReader<R> {
    /// Reads from `inner`; `name` is for errors.
    pub fn new(inner: R, name: &str) -> BlockDumpReader<R> {
        BlockDumpReader::from_input(Input::new(inner, name))
    }

    /// As [`BlockDumpReader::new`].
    pub(crate) fn from_input(input: Input<R>) -> BlockDumpReader<R> {
        BlockDumpReader(TextReader::new(input, BlockDump::default()))
    }

    /// What was found so far; complete after the last item.
    pub fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }

    /// The disks; complete after the last item.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.0.header()
    }
}

impl<R: Read> TraceSource for BlockDumpReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

/// Lines of block_dump.
#[derive(Debug)]
struct BlockDump {
    disks: Disks,
    /// For lines without one.
    last_time: Time,
}

impl Default for BlockDump {
    fn default() -> BlockDump {
        BlockDump {
            disks: Disks::new(Actions::new(&[Action::Queue])),
            last_time: Time::ZERO,
        }
    }
}

impl Dialect for BlockDump {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if let Some(said) = without_content(line) {
            return said;
        }
        let (time, said) = unlogged(line);
        let Some(bio) = bio(said.trim_ascii()) else {
            return match task(said.trim_ascii()) {
                Some((_, _, b"dirtied inode", _)) => Line::OtherEvent(b"dirtied inode"),
                _ => Line::Other("no bio, as in fio(42): WRITE block 2048 on sda1 (8 sectors)"),
            };
        };
        if time.is_some_and(|time| !plausible::is_time(time)) {
            return Line::Damaged(plausible::BAD_TIME);
        }
        self.last_time = time.unwrap_or(self.last_time);
        Line::Event {
            event: Event {
                time: self.last_time,
                sector: bio.sector,
                arg: 0,
                bytes: bio.bytes,
                pid: bio.pid,
                dev: self.disks.named(bio.disk),
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
                rwbs: bio.rwbs,
                action: Action::Queue,
            },
            sequence: None,
            comm: Some(bio.comm),
            has_time: time.is_some(),
            is_whole: true,
        }
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(&self.disks.header).filter(|h| !h.devices.is_empty())
    }
}

/// What a line says.
struct Bio<'a> {
    comm: &'a [u8],
    pid: u32,
    rwbs: Rwbs,
    sector: u64,
    bytes: u32,
    disk: &'a [u8],
}

/// `COMM(PID): WORD WORD REST`: process, what it did, and the rest.
fn task(text: &[u8]) -> Option<(&[u8], u32, &[u8], Rest<'_>)> {
    let at = memchr::memmem::find(text, b"): ")?;
    let open = text[..at].iter().rposition(|b| *b == b'(')?;
    let pid = decimal(&text[open + 1..at])?.try_into().ok()?;
    let said = &text[at + 3..];
    let mut rest = Rest(said);
    let (first, second) = (rest.word().len(), rest.word().len());
    let did = said.get(..first + 1 + second)?;
    Some((text[..open].trim_ascii(), pid, did, rest))
}

fn bio(text: &[u8]) -> Option<Bio<'_>> {
    let (comm, pid, did, mut rest) = task(text)?;
    let rwbs = match did {
        b"READ block" => Rwbs::READ,
        b"WRITE block" => Rwbs::WRITE,
        _ => return None,
    };
    let sector = decimal(rest.word())?;
    if rest.word() != b"on" {
        return None;
    }
    let disk = rest.word();
    let nr_sectors = if rest.take(b'(') { rest.number()? } else { 1 };
    let bytes = length(nr_sectors)?;
    Some(Bio {
        comm,
        pid,
        rwbs,
        sector,
        bytes,
        disk: Some(disk).filter(|name| !name.is_empty())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        match BlockDump::default().parse(line.as_bytes()) {
            Line::Event {
                event,
                comm,
                has_time,
                ..
            } => {
                let comm = String::from_utf8_lossy(comm.unwrap_or_default()).into_owned();
                format!("{event} {comm} {has_time}")
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn lines_of_a_log() {
        let event = "8,1 0 423.112299000 988 Q W 99120 + 8 kjournald true";
        let said = "kjournald(988): WRITE block 99120 on sda1 (8 sectors)";
        assert_eq!(shown(&format!("[  423.112299] {said}")), event);
        let syslog = format!("Jan  2 03:04:05 host kernel: [  423.112299] {said}");
        assert_eq!(shown(&syslog), event);
        assert_eq!(
            shown("Jan  2 03:04:05 host kernel: my (bin)(9): READ block 8 on dm-0"),
            "0,1 0 0.000000000 9 Q R 8 + 1 my (bin) false"
        );
        let dirtied = "[  423.1] bash(1188): dirtied inode 2345 (foo) on sda1";
        assert!(shown(dirtied).starts_with("OtherEvent"));
        for prose in [
            "fio(1234): asked for a block",
            "write(3): WRITE block x on sda",
            "[  423.1] sd 0:0:0:0: [sda] Attached SCSI disk",
        ] {
            assert!(
                shown(prose).starts_with("Other(\"no bio"),
                "{}",
                shown(prose)
            );
        }
    }
}
