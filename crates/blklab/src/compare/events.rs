// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where two event streams part.

use super::read::{Run, Side};
use crate::run_directory::EVENTS;
use blklab_formats::TraceFile;
use blklab_formats::blkparse::line_of;
use blklab_trace::{Event, Item, TraceSource as _};
use blklab_types::Error;
use serde::Serialize;

/// The first events that differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstDifference {
    /// How many were the same before them.
    pub same: u64,
    /// The event of the first stream, as blkparse prints it; none if it ends there.
    pub before: Option<String>,
    /// That of the second.
    pub after: Option<String>,
}

/// Where the events of the first runs of two sides part; none if they do not.
///
/// # Errors
/// If one cannot be read.
pub(super) fn first_difference(
    before: &Side,
    after: &Side,
) -> Result<Option<FirstDifference>, Error> {
    let mut inputs = [open(&before.runs[0])?, open(&after.runs[0])?];
    let mut same = 0;
    loop {
        let [a, b] = &mut inputs;
        let (a, b) = (next(a)?, next(b)?);
        match (a, b) {
            (None, None) => return Ok(None),
            (Some(a), Some(b)) if a == b => same += 1,
            (a, b) => {
                let line = |e: Event| {
                    let line = line_of(&e, same + 1, e.time.0, None, "");
                    line.replace(" [(null)]", "").trim().to_owned()
                };
                return Ok(Some(FirstDifference {
                    same,
                    before: a.map(line),
                    after: b.map(line),
                }));
            }
        }
    }
}

fn next(input: &mut TraceFile) -> Result<Option<Event>, Error> {
    loop {
        let item = input.next_item();
        match item.map_err(|e| Error::new(e.to_string()))? {
            Some(Item::Event(event)) => return Ok(Some(event)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

/// The trace of a run.
fn open(run: &Run) -> Result<TraceFile, Error> {
    let path = match run.experiment {
        Some(_) => run.path.join(EVENTS),
        None => run.path.clone(),
    };
    TraceFile::open_with(&path, run.columns.as_ref()).map_err(|e| Error::new(e.to_string()))
}
