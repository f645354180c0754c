// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as fio's log of I/Os, for `read_iolog`.

use blklab_fio::iolog::IologWriter;
use blklab_fio::run::IoOp;
use blklab_formats::FormatError;
use blklab_trace::{Action, Event, Rwbs, TraceHeader, TraceSink};
use blklab_types::{Dev, Op, SECTOR_BYTES, Time};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Devices that are written; a trace with more is none of a machine.
const DEVICES_MAX: usize = 4096;

/// `off_t` is signed.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// Writes what was asked for (Q) as version 3 of fio's iolog, times from the first I/O
/// on.
///
/// A device is called by the name that the trace has for it, else `/dev/block/MAJOR:MINOR`.
/// Bios that another device of the trace passed on (md, dm: A) are left out, since
/// replaying the upper one makes them anew; commands passed through are left out, too, and
/// so is what lies beyond the offsets that a file can have.
pub struct IologExport<W: Write> {
    log: IologWriter<W>,
    names: BTreeMap<Dev, String>,
    /// Devices that were opened in the log.
    opened: BTreeMap<Dev, String>,
    /// Devices that had a Q of their own.
    queued_to: Vec<Dev>,
    /// By CPU: the bio that was just passed down, whose Q comes next.
    passed_down: HashMap<u16, (Dev, u64)>,
    first: Option<Time>,
    last_us: u64,
    /// Added to the times of the current recording.
    offset_us: u64,
    error: Option<io::Error>,
}

impl<W: Write> IologExport<W> {
    /// Writes to `inner`, beginning with the version.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn new(inner: W, header: &TraceHeader) -> Result<IologExport<W>, FormatError> {
        let log = IologWriter::new(inner, 0, []).map_err(failed)?;
        let name = |(dev, name): &(Dev, String)| (*dev, file_of(name));
        Ok(IologExport {
            log,
            names: header.devices.iter().map(name).collect(),
            opened: BTreeMap::new(),
            queued_to: Vec::new(),
            passed_down: HashMap::new(),
            first: None,
            last_us: 0,
            offset_us: 0,
            error: None,
        })
    }

    /// Closes the files and returns what was written to.
    ///
    /// # Errors
    /// The first error since the start.
    pub fn finish(mut self) -> Result<W, FormatError> {
        if let Some(e) = self.error {
            return Err(failed(e));
        }
        for file in self.opened.values() {
            self.log.close(self.last_us, file).map_err(failed)?;
        }
        let mut inner = self.log.into_inner();
        inner.flush().map_err(failed)?;
        Ok(inner)
    }

    fn queue(&mut self, event: &Event) -> io::Result<()> {
        if self.passed_down.remove(&event.cpu) == Some((event.dev, event.sector)) {
            return Ok(());
        }
        if !self.queued_to.contains(&event.dev) {
            if self.queued_to.len() == DEVICES_MAX {
                return Ok(());
            }
            self.queued_to.push(event.dev);
        }
        let Some((op, offset)) = asked(event) else {
            return Ok(());
        };
        let first = *self.first.get_or_insert(event.time);
        let us = self.offset_us + event.time.since(first).ns() / 1000;
        self.last_us = self.last_us.max(us);
        let us = self.last_us;
        if !self.opened.contains_key(&event.dev) {
            let Dev { major, minor } = event.dev;
            let made_up = || format!("/dev/block/{major}:{minor}");
            let file = self.names.remove(&event.dev).unwrap_or_else(made_up);
            self.log.add(us, &file)?;
            self.log.open(us, &file)?;
            self.opened.insert(event.dev, file);
        }
        let file = &self.opened[&event.dev];
        self.log
            .transfer(us, file, op, offset, u64::from(event.bytes))
    }
}

/// What fio would do for a bio, and where; none if it has nothing of the kind.
fn asked(event: &Event) -> Option<(IoOp, u64)> {
    let op = op(event)?;
    // Flushes are of the whole device, whatever sector the kernel gives them.
    if event.bytes == 0 {
        return Some((op, 0));
    }
    let offset = event.sector.checked_mul(SECTOR_BYTES)?;
    let end = offset.checked_add(u64::from(event.bytes))?;
    (end <= OFFSET_MAX).then_some((op, offset))
}

fn op(event: &Event) -> Option<IoOp> {
    match event.rwbs.op()? {
        Op::Flush => Some(IoOp::Sync),
        _ if event.bytes == 0 && event.rwbs.has(Rwbs::FLUSH) => Some(IoOp::Sync),
        _ if event.bytes == 0 => None,
        op => Some(op.into()),
    }
}

/// The file of a device that a trace calls so. A log has blanks between its words.
fn file_of(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_whitespace() { '_' } else { c })
        .collect();
    if name.starts_with('/') {
        name
    } else {
        format!("/dev/{name}")
    }
}

fn failed(source: io::Error) -> FormatError {
    FormatError::Io {
        doing: "write an iolog".into(),
        source,
    }
}

impl<W: Write> TraceSink for IologExport<W> {
    fn event(&mut self, event: &Event) {
        if self.error.is_some() || event.rwbs.has(Rwbs::PC) {
            return;
        }
        match event.action {
            Action::Remap if self.queued_to.contains(&event.from_dev) => {
                self.passed_down
                    .insert(event.cpu, (event.dev, event.sector));
            }
            Action::Queue => self.error = self.queue(event).err(),
            _ => {}
        }
    }

    /// The next one follows a second later.
    fn new_recording(&mut self) {
        self.passed_down.clear();
        self.first = None;
        self.offset_us = self.last_us + 1_000_000;
    }
}
