// SPDX-License-Identifier: MIT OR Apache-2.0
//! The trace of QEMU's NVMe device, as its log back end prints it
//! (`-trace 'pci_nvme*'`, hw/nvme/trace-events of QEMU 7.2).
//!
//! ```text
//! 3301@1700000100.100100:pci_nvme_io_cmd cid 770 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'
//! 3301@1700000100.100110:pci_nvme_read cid 770 nsid 1 nlb 8 count 4096 lba 0x100
//! 3301@1700000100.112310:pci_nvme_enqueue_req_completion cid 770 cqid 1 dw0 0x0 dw1 0x0 status 0x0
//! ```
//!
//! A command is I/O from D, when the device takes it from its queue, to C. Who asked for it in the
//! guest the device does not know: it is QEMU's, as a whole. Blocks are of `count / nlb` bytes.

use crate::disks::Disks;
use crate::format::{Format, Reader, begins_with};
use crate::kernel::{EIO, TextFields};
use crate::source::Source;
use crate::text::{Dialect, Io, Line, TextReader, decimal, unquoted, without_content};
use crate::{FormatError, ReadCounts, fields::Fields, plausible};
use blklab_trace::{Action, Actions, Event, Item, Rwbs, TraceHeader, TraceSource};
use blklab_types::{Dev, Pid, SECTOR_BYTES, Time};
use std::collections::BTreeMap;
use std::io::Read;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "qemu-nvme",
    summary: "the trace of QEMU's NVMe device (pci_nvme events with times); read",
    has_printed_times: false,
    says_losses: false,
    says_flags: false,
    dialect: Some(|| Box::new(QemuNvme::default())),
    recognises: |input| begins_with(input, QemuNvme::default),
    open: |input, others| {
        let reader = TextReader::new(input, QemuNvme::default());
        Ok(Box::new(QemuReader(reader.with_others(others))))
    },
};

/// Commands followed at a time.
const OPEN_MAX: usize = 1 << 16;

/// Reads the trace of QEMU's NVMe device.
#[derive(Debug)]
struct QemuReader<R>(TextReader<R, QemuNvme>);

impl<R: Read> TraceSource for QemuReader<R> {
    type Error = FormatError;

    fn next_item(&mut self) -> Result<Option<Item<'_>>, FormatError> {
        self.0.next_item()
    }
}

impl Reader for QemuReader<Source> {
    fn counts(&self) -> &ReadCounts {
        self.0.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        self.0.header()
    }
}

/// A command that the device has.
#[derive(Clone, Copy, Debug)]
struct Command {
    issue_ns: i64,
    rwbs: Rwbs,
    nsid: u64,
    sector: u64,
    bytes: u32,
}

/// Lines of QEMU.
#[derive(Debug)]
struct QemuNvme {
    disks: Disks,
    /// By queue and identifier.
    open: BTreeMap<(u64, u64), Command>,
}

impl Default for QemuNvme {
    fn default() -> QemuNvme {
        QemuNvme {
            disks: Disks::new(Actions::new(&[Action::Issue, Action::Complete])),
            open: BTreeMap::new(),
        }
    }
}

impl Dialect for QemuNvme {
    fn parse<'a>(&mut self, line: &'a [u8]) -> Line<'a> {
        let line = unquoted(line);
        if let Some(said) = without_content(line) {
            return said;
        }
        let Some(Said {
            pid,
            time_ns,
            name,
            fields,
        }) = said(line)
        else {
            return Line::Other("no event, as in 3301@1700000100.100100:pci_nvme_io_cmd cid 7 ...");
        };
        if !plausible::is_time(Time(time_ns.unsigned_abs())) {
            return Line::Damaged(plausible::BAD_TIME);
        }
        self.named(pid, time_ns, name, &TextFields(fields))
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(&self.disks.header)
    }
}

impl QemuNvme {
    fn named<'a>(
        &mut self,
        pid: Pid,
        time_ns: i64,
        name: &'a [u8],
        f: &TextFields<'a>,
    ) -> Line<'a> {
        let fits = match name {
            b"pci_nvme_io_cmd" => self.begin(time_ns, f),
            b"pci_nvme_read" | b"pci_nvme_write" => self.place(f),
            b"pci_nvme_enqueue_req_completion" => {
                return match self.end(pid, time_ns, f) {
                    Some(Some(io)) => Line::Io(io),
                    Some(None) => note(),
                    None => Line::Damaged("a completion without cid, cqid or status"),
                };
            }
            _ => return Line::OtherEvent(name),
        };
        fits.map_or(Line::Damaged("an event without its fields"), |()| note())
    }

    fn begin(&mut self, issue_ns: i64, f: &TextFields<'_>) -> Option<()> {
        let key = (f.number("sqid")?, f.number("cid")?);
        let rwbs = match f.number("opc")? {
            0 => Rwbs::FLUSH,
            1 | 8 => Rwbs::WRITE,
            2 => Rwbs::READ,
            9 => Rwbs::DISCARD,
            _ => return Some(()),
        };
        let command = Command {
            issue_ns,
            rwbs,
            nsid: f.number("nsid")?,
            sector: 0,
            bytes: if rwbs == Rwbs::FLUSH {
                0
            } else {
                SECTOR_BYTES as u32
            },
        };
        if self.open.len() < OPEN_MAX {
            self.open.insert(key, command);
        }
        Some(())
    }

    /// Says where the latest command of an identifier is: this event names no queue.
    fn place(&mut self, f: &TextFields<'_>) -> Option<()> {
        let cid = f.number("cid")?;
        let (nlb, count, lba) = (f.number("nlb")?, f.number("count")?, f.number("lba")?);
        let own = self.open.iter_mut().filter(|((_, id), _)| *id == cid);
        if let Some((_, command)) = own.max_by_key(|(_, c)| c.issue_ns) {
            command.sector = lba.checked_mul(count / nlb.max(1))? / SECTOR_BYTES;
            command.bytes = u32::try_from(count).ok()?;
        }
        Some(())
    }

    /// The I/O of a command that ends; none inside if its beginning is not shown.
    fn end(&mut self, pid: Pid, end_ns: i64, f: &TextFields<'_>) -> Option<Option<Io<'static>>> {
        let key = (f.number("cqid")?, f.number("cid")?);
        let status = f.number("status")?;
        let Some(command) = self.open.remove(&key) else {
            return Some(None);
        };
        let disk = format!("nvme n{}", command.nsid);
        Some(Some(Io {
            event: Event {
                time: Time::ZERO,
                sector: command.sector,
                arg: 0,
                bytes: command.bytes,
                pid,
                dev: self.disks.named(disk.as_bytes()),
                from_dev: Dev::default(),
                error: if status == 0 { 0 } else { EIO },
                cpu: 0,
                rwbs: command.rwbs,
                action: Action::Issue,
            },
            sequence: None,
            times: [None, None, Some(command.issue_ns), Some(end_ns)],
            comm: Some(b"qemu"),
            has_time: true,
        }))
    }
}

fn note() -> Line<'static> {
    Line::Note {
        begins_summary: false,
    }
}

/// What a line says.
struct Said<'a> {
    pid: Pid,
    time_ns: i64,
    name: &'a [u8],
    fields: &'a [u8],
}

/// `PID@SECONDS.MICROSECONDS:NAME FIELDS`.
fn said(line: &[u8]) -> Option<Said<'_>> {
    let at = line.iter().position(|b| *b == b'@')?;
    let pid = decimal(&line[..at])?.try_into().ok()?;
    let rest = &line[at + 1..];
    let colon = rest.iter().position(|b| *b == b':')?;
    let time = crate::text::time(&rest[..colon])?;
    let said = &rest[colon + 1..];
    let end = said.iter().position(u8::is_ascii_whitespace);
    let (name, fields) = said.split_at(end.unwrap_or(said.len()));
    let is_name = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_';
    if name.is_empty() || !name.iter().all(is_name) {
        return None;
    }
    Some(Said {
        pid,
        time_ns: i64::try_from(time.0).ok()?,
        name,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_where_they_are_completed() {
        let mut lines = QemuNvme::default();
        let mut parse = |line: &str| match lines.parse(line.as_bytes()) {
            Line::Io(io) => {
                let [_, _, issue, complete] = io.times;
                let (e, took) = (io.event, complete.zip(issue).map(|(c, d)| c - d));
                format!(
                    "{} {} + {} error {} {took:?}",
                    e.rwbs, e.sector, e.bytes, e.error
                )
            }
            Line::Note { .. } => "note".to_owned(),
            Line::OtherEvent(name) => String::from_utf8_lossy(name).into_owned(),
            line => format!("{line:?}"),
        };
        let begin = "77@1700000001.000100:pci_nvme_io_cmd cid 9 nsid 0x1 sqid 2 opc 0x1 opname 'W'";
        assert_eq!(parse(begin), "note");
        let place = "77@1700000001.000110:pci_nvme_write cid 9 nsid 1 nlb 2 count 8192 lba 0x10";
        assert_eq!(parse(place), "note");
        assert_eq!(
            parse("77@1700000001.000300:pci_nvme_rw_cb cid 9 blk 'd'"),
            "pci_nvme_rw_cb"
        );
        let other = "77@1700000001.0004:pci_nvme_enqueue_req_completion cid 9 cqid 1 status 0x0";
        assert_eq!(parse(other), "note");
        let end = "77@1700000001.000500:pci_nvme_enqueue_req_completion cid 9 cqid 2 status 0x2";
        assert_eq!(parse(end), "W 128 + 8192 error 5 Some(400000)");
        assert!(parse("user@host: see pci_nvme_read").starts_with("Other"));
    }
}
