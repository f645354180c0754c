// SPDX-License-Identifier: MIT OR Apache-2.0
//! blktrace's events as a log: each bio that was queued becomes an I/O on the
//! device's file.
//!
//! The caller knows the byte layout and gives the events in the order in which
//! the file has them. Discards become trims, whatever has the flush category a
//! sync (its data, if it has any, included: so does fio), the rest reads and
//! writes. Unless the job says how many requests are in flight, the trace does:
//! the most bios queued and not merged between two completions, 1024 at most.

use super::{Builder, Replay, problem};
use crate::error::Problem;
use crate::io_op::IoOp;
use crate::settings::ReplayOptions;
use blklab_types::Error;
use std::collections::BTreeMap;

/// Where blktrace's sectors begin.
const SECTOR_BYTES: u64 = 512;
/// Most requests in flight that a trace shows: stacked devices may show no
/// completions.
const DEPTH_MAX: u32 = 1024;

/// What happened to a bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// Q.
    Queue,
    /// M or F.
    Merge,
    /// C.
    Complete,
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// What happened.
    pub kind: TraceKind,
    /// When.
    pub time_ns: u64,
    /// Major number of the device.
    pub major: u32,
    /// Its minor number.
    pub minor: u32,
    /// Whether it writes or discards.
    pub writes: bool,
    /// Whether it discards.
    pub discards: bool,
    /// Whether it has the category of flushes.
    pub flushes: bool,
    /// First sector, of 512 bytes.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
}

/// The events of a trace, or why it cannot be read on.
pub type TraceEvents<'a> = Box<dyn Iterator<Item = Result<TraceEvent, Error>> + 'a>;

/// Makes a log of a trace; `log` is its name in messages.
///
/// # Errors
/// What is wrong with the trace.
pub fn read(
    events: TraceEvents<'_>,
    log: &str,
    options: &ReplayOptions,
) -> Result<Replay, Problem> {
    let mut reader = Reader {
        builder: Builder::new(log, options),
        devices: BTreeMap::new(),
        depth: Depth::default(),
        syncs: 0,
    };
    let mut record: u32 = 0;
    for event in events {
        record = record.saturating_add(1);
        let event = event.map_err(|e| problem(log, 0, e.what))?;
        reader.depth.event(&event);
        if event.kind == TraceKind::Queue {
            reader.queued(event, record)?;
        }
    }
    reader.finish()
}

struct Reader<'a> {
    builder: Builder<'a>,
    devices: BTreeMap<(u32, u32), u32>,
    depth: Depth,
    syncs: u64,
}

impl Reader<'_> {
    fn queued(&mut self, event: TraceEvent, record: u32) -> Result<(), Problem> {
        let delay_us = self.builder.stall(event.time_ns) / 1000;
        let skip = self.builder.options.skip;
        let align = u64::from(self.builder.options.align).max(1);
        let length = u64::from(event.bytes).next_multiple_of(align);
        let op = match (event.discards, event.flushes, event.writes) {
            (true, _, _) if skip.trims => return Ok(()),
            (true, _, _) => IoOp::Trim,
            (_, true, _) if skip.syncs => return Ok(()),
            (_, true, _) => IoOp::Sync,
            (_, _, true) => IoOp::Write,
            (_, _, false) => IoOp::Read,
        };
        // The file is opened even if what comes next is skipped.
        let file = self.file(&event, record)?;
        let offset = event.sector.checked_mul(SECTOR_BYTES);
        match op {
            IoOp::Write if skip.writes => Ok(()),
            IoOp::Read if skip.reads => Ok(()),
            IoOp::Sync => {
                self.syncs += 1;
                self.builder.io(op, file, (0, 0), delay_us, record)
            }
            _ if length == 0 => Ok(()),
            _ => {
                let offset = offset.unwrap_or(u64::MAX);
                self.builder
                    .io(op, file, (offset, length), delay_us, record)
            }
        }
    }

    /// The file of an event's device; its first event opens it.
    fn file(&mut self, event: &TraceEvent, record: u32) -> Result<u32, Problem> {
        let redirect = self.builder.options.redirect.as_ref();
        let device = redirect.map_or((event.major, event.minor), |_| (0, 0));
        if let Some(&file) = self.devices.get(&device) {
            return Ok(file);
        }
        let name = match redirect {
            Some(name) => name.clone(),
            None => device_name(event.major, event.minor),
        };
        let file = self.builder.add_file(&name, record)?;
        self.devices.insert(device, file);
        self.builder.open(file, 0, record)?;
        Ok(file)
    }

    fn finish(mut self) -> Result<Replay, Problem> {
        if self.builder.out.count == [0; 3] && self.syncs == 0 {
            let what = "nothing to replay: the trace has no Q event of the block layer";
            return self.builder.fail(0, what);
        }
        if !self.builder.options.chunked {
            for file in self.devices.values() {
                self.builder.close(*file, 0, 0)?;
            }
            self.builder.out.depth = Some(self.depth.found(&self.builder.out.count));
        }
        Ok(self.builder.finish())
    }
}

/// The depth that a trace shows, by direction: reads, writes (discards too).
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    now: [i64; 2],
    most: [i64; 2],
}

impl Depth {
    fn event(&mut self, event: &TraceEvent) {
        let at = usize::from(event.writes || event.discards);
        match event.kind {
            TraceKind::Queue => self.now[at] += 1,
            TraceKind::Merge => self.now[at] -= 1,
            TraceKind::Complete => {
                self.most[at] = self.most[at].max(self.now[at]);
                self.now[at] = 0;
            }
        }
    }

    fn found(&self, count: &[u64; 3]) -> u32 {
        let depth = |at: usize| match self.most[at] {
            0 => i64::from(count[at] > 0),
            most => most,
        };
        let most = depth(0).max(depth(1)).max(i64::from(count[2] > 0));
        most.clamp(1, i64::from(DEPTH_MAX)) as u32
    }
}

/// The name of a device. fio looks it up in /dev by number; where the number
/// does not say it (Documentation/admin-guide/devices.txt), this is udev's
/// name by number.
fn device_name(major: u32, minor: u32) -> String {
    let disk = match major {
        8 => minor / 16,
        65..=71 => (major - 64) * 16 + minor / 16,
        _ => return format!("/dev/block/{major}:{minor}"),
    };
    if minor > 255 {
        return format!("/dev/block/{major}:{minor}");
    }
    let letter = |n: u32| char::from(b'a' + n as u8);
    let letters = match disk {
        0..=25 => letter(disk).to_string(),
        _ => format!("{}{}", letter(disk / 26 - 1), letter(disk % 26)),
    };
    match minor % 16 {
        0 => format!("/dev/sd{letters}"),
        partition => format!("/dev/sd{letters}{partition}"),
    }
}

#[cfg(test)]
mod tests;
