// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of I/Os that jobs replay: fio's text as it is, blktrace's records
//! translated.

use blklab_fio::parse::Recording;
use blklab_fio::replay::trace::{TraceEvent, TraceKind};
use blklab_formats::blktrace::{BlktraceReader, is_magic};
use blklab_trace::{Action, Event, Item, Rwbs, TraceSource as _};
use blklab_types::Error;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

/// Opens a log, whose format is recognised by its first bytes.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn open(path: &Path) -> Result<Recording<'static>, Error> {
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::new("not a regular file"));
    }
    let file = File::open(path).map_err(unreadable)?;
    let mut input = BufReader::with_capacity(64 * 1024, file);
    if !is_magic(input.fill_buf().map_err(unreadable)?) {
        return Ok(Recording::Log(Box::new(input)));
    }
    let name = path.display().to_string();
    Ok(Recording::Trace(Box::new(Events {
        reader: BlktraceReader::from_stream(input, &name),
        over: false,
    })))
}

fn unreadable(e: io::Error) -> Error {
    Error::new(e.to_string()).of_kind(e.kind().into())
}

/// The events that a replay is made from.
struct Events {
    reader: BlktraceReader<BufReader<File>>,
    over: bool,
}

impl Iterator for Events {
    type Item = Result<TraceEvent, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            match self.reader.next_item() {
                Ok(Some(Item::Event(event))) => {
                    if let Some(event) = translated(&event) {
                        return Some(Ok(event));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.over = true;
                    // A record that is cut off at the end is not missed.
                    let counts = self.reader.counts();
                    let example = counts.examples.first().cloned();
                    return (counts.damaged > 0)
                        .then(|| Err(Error::new(example.unwrap_or_default())));
                }
                Err(e) => {
                    self.over = true;
                    return Some(Err(Error::new(e.to_string())));
                }
            }
        }
        None
    }
}

fn translated(event: &Event) -> Option<TraceEvent> {
    let kind = match event.action {
        Action::Queue => TraceKind::Queue,
        Action::BackMerge | Action::FrontMerge => TraceKind::Merge,
        Action::Complete => TraceKind::Complete,
        _ => return None,
    };
    let rwbs = event.rwbs;
    Some(TraceEvent {
        kind,
        time_ns: event.time.0,
        major: u32::from(event.dev.major),
        minor: u32::from(event.dev.minor),
        writes: rwbs.has(Rwbs::WRITE),
        discards: rwbs.has(Rwbs::DISCARD),
        flushes: rwbs.has(Rwbs::FLUSH) || rwbs.has(Rwbs::BARRIER),
        sector: event.sector,
        bytes: event.bytes,
    })
}
