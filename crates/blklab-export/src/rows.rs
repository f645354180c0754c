// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of each table, and their columns.

use crate::columns::{Column, Value};
use blklab_analysis::lifecycle::{BioLife, Merge, RequestLife};
use blklab_trace::{Action, Event};
use blklab_types::{SECTOR_BYTES, Time};
use std::sync::Arc;

/// An event or a message.
#[derive(Clone, Debug)]
pub struct EventRow {
    pub(crate) recording: u64,
    pub(crate) number: u64,
    pub(crate) event: Event,
    pub(crate) process: Option<Arc<str>>,
    pub(crate) text: Option<Arc<str>>,
}

/// A bio, or a part of one that was split.
#[derive(Clone, Debug)]
pub struct BioRow {
    pub(crate) recording: u64,
    pub(crate) bio: BioLife,
    pub(crate) process: Option<Arc<str>>,
}

/// A request: what the device was asked for at once.
#[derive(Clone, Debug)]
pub struct IoRow {
    pub(crate) recording: u64,
    pub(crate) request: RequestLife,
    /// When the first of its bios was queued, if the trace shows it.
    pub(crate) queue: Option<Time>,
    pub(crate) process: Option<Arc<str>>,
}

/// The time between two things of which both are known, and the first was first.
fn between(from: Option<Time>, until: Option<Time>) -> Value<'static> {
    match (from, until) {
        (Some(from), Some(until)) => Value::Number(until.since(from).ns()),
        _ => Value::Absent,
    }
}

impl EventRow {
    fn value_if(&self, actions: &[Action], value: impl Into<Value<'static>>) -> Value<'static> {
        if actions.contains(&self.event.action) {
            value.into()
        } else {
            Value::Absent
        }
    }
}

/// Columns of the table of events, in the order of the trace.
pub static EVENT_COLUMNS: [Column<EventRow>; 18] = [
    Column::number(
        "recording",
        "which recording of the trace, from 1",
        |r: &EventRow| r.recording.into(),
    ),
    Column::number(
        "number",
        "number of the event in the trace, from 1",
        |r: &EventRow| r.number.into(),
    ),
    Column::number("time_ns", "when", |r: &EventRow| r.event.time.into()),
    Column::number("cpu", "CPU", |r: &EventRow| u64::from(r.event.cpu).into()),
    Column::text("device", "major,minor", |r: &EventRow| {
        Value::Device(r.event.dev)
    }),
    Column::number("pid", "task; 0 in interrupts", |r: &EventRow| {
        u64::from(r.event.pid).into()
    }),
    Column::text("process", "its name", |r: &EventRow| {
        r.process.as_deref().into()
    })
    .optional(),
    Column::text("action", "blkparse's letters", |r: &EventRow| {
        r.event.action.letters().into()
    }),
    Column::text(
        "rwbs",
        "direction and flags, blkparse's letters",
        |r: &EventRow| Value::Letters(r.event.rwbs),
    ),
    Column::number("sector", "first sector", |r: &EventRow| {
        r.event.sector.into()
    }),
    Column::number("sectors", "length in sectors", |r: &EventRow| {
        r.event.nr_sectors().into()
    }),
    Column::number("bytes", "length in bytes", |r: &EventRow| {
        u64::from(r.event.bytes).into()
    }),
    Column::number("error", "errno of C, 0 for success", |r: &EventRow| {
        r.value_if(&[Action::Complete], u64::from(r.event.error))
    })
    .optional(),
    Column::number(
        "requests",
        "requests on the list, of U and UT",
        |r: &EventRow| r.value_if(&[Action::Unplug, Action::UnplugTimer], r.event.arg),
    )
    .optional(),
    Column::number(
        "split_sector",
        "where the rest begins, of X",
        |r: &EventRow| r.value_if(&[Action::Split], r.event.arg),
    )
    .optional(),
    Column::text("from_device", "the device above, of A", |r: &EventRow| {
        r.value_if(&[Action::Remap], Value::Device(r.event.from_dev))
    })
    .optional(),
    Column::number("from_sector", "the sector there, of A", |r: &EventRow| {
        r.value_if(&[Action::Remap], r.event.arg)
    })
    .optional(),
    Column::text("message", "text of m", |r: &EventRow| {
        r.text.as_deref().into()
    })
    .optional(),
];

/// Columns of the table of bios, in order of their completion.
pub static BIO_COLUMNS: [Column<BioRow>; 21] = [
    Column::number(
        "recording",
        "which recording of the trace, from 1",
        |r: &BioRow| r.recording.into(),
    ),
    Column::text("device", "major,minor", |r: &BioRow| {
        Value::Device(r.bio.dev)
    }),
    Column::number("pid", "who queued it", |r: &BioRow| {
        u64::from(r.bio.pid).into()
    }),
    Column::text("process", "its name", |r: &BioRow| {
        r.process.as_deref().into()
    })
    .optional(),
    Column::text("rwbs", "direction and flags as queued", |r: &BioRow| {
        Value::Letters(r.bio.rwbs)
    }),
    Column::number("sector", "first sector", |r: &BioRow| r.bio.sector.into()),
    Column::number("bytes", "length", |r: &BioRow| {
        u64::from(r.bio.bytes).into()
    }),
    Column::number(
        "part",
        "1 for a part of a split bio, else 0",
        |r: &BioRow| u64::from(r.bio.is_part).into(),
    ),
    Column::number(
        "request",
        "its request: column request of ios",
        |r: &BioRow| r.bio.request.into(),
    )
    .optional(),
    Column::number("queue_ns", "Q", |r: &BioRow| r.bio.queue.into()),
    Column::number("sleep_ns", "the first S", |r: &BioRow| r.bio.sleep.into()).optional(),
    Column::number("get_ns", "G, if it began a request", |r: &BioRow| {
        r.bio.get.into()
    })
    .optional(),
    Column::number("merge_ns", "M or F", |r: &BioRow| {
        r.bio.merge.map(|(time, _)| time).into()
    })
    .optional(),
    Column::text("merge", "back or front", |r: &BioRow| {
        let word = |merge| match merge {
            Merge::Back => "back",
            Merge::Front => "front",
        };
        r.bio.merge.map(|(_, merge)| word(merge)).into()
    })
    .optional(),
    Column::number(
        "insert_ns",
        "the last I of the request it began",
        |r: &BioRow| r.bio.insert.into(),
    )
    .optional(),
    Column::number("issue_ns", "the last D of its request", |r: &BioRow| {
        r.bio.issue.into()
    })
    .optional(),
    Column::number("complete_ns", "C", |r: &BioRow| r.bio.complete.into()).optional(),
    Column::number("error", "errno, 0 for success", |r: &BioRow| {
        r.bio.complete.map(|_| u64::from(r.bio.error)).into()
    })
    .optional(),
    Column::number("q2d_ns", "from Q to D", |r: &BioRow| {
        between(Some(r.bio.queue), r.bio.issue)
    })
    .optional(),
    Column::number("d2c_ns", "from D to C", |r: &BioRow| {
        between(r.bio.issue, r.bio.complete)
    })
    .optional(),
    Column::number("q2c_ns", "from Q to C", |r: &BioRow| {
        between(Some(r.bio.queue), r.bio.complete)
    })
    .optional(),
];

/// Columns of the table of I/Os: requests, in order of their completion.
pub static IO_COLUMNS: [Column<IoRow>; 22] = [
    Column::number(
        "recording",
        "which recording of the trace, from 1",
        |r: &IoRow| r.recording.into(),
    ),
    Column::number("request", "its number in the trace, from 0", |r: &IoRow| {
        r.request.number.into()
    }),
    Column::text("device", "major,minor", |r: &IoRow| {
        Value::Device(r.request.dev)
    }),
    Column::number("pid", "who began it", |r: &IoRow| {
        u64::from(r.request.pid).into()
    }),
    Column::text("process", "its name", |r: &IoRow| {
        r.process.as_deref().into()
    })
    .optional(),
    Column::text(
        "rwbs",
        "direction and flags at its latest event",
        |r: &IoRow| Value::Letters(r.request.rwbs),
    ),
    Column::number("sector", "first sector", |r: &IoRow| {
        r.request.sector.into()
    }),
    Column::number("sectors", "length in sectors", |r: &IoRow| {
        (r.request.bytes / SECTOR_BYTES).into()
    }),
    Column::number("queue_ns", "Q of its first bio", |r: &IoRow| r.queue.into()).optional(),
    Column::number("get_ns", "G", |r: &IoRow| r.request.get.into()).optional(),
    Column::number("insert_ns", "the last I", |r: &IoRow| {
        r.request.insert.into()
    })
    .optional(),
    Column::number("issue_ns", "the last D", |r: &IoRow| r.request.issue.into()).optional(),
    Column::number("complete_ns", "the last C", |r: &IoRow| {
        r.request.complete.into()
    })
    .optional(),
    Column::number("error", "errno, 0 for success", |r: &IoRow| {
        r.request
            .complete
            .map(|_| u64::from(r.request.error))
            .into()
    })
    .optional(),
    Column::number("bios", "bios in it", |r: &IoRow| {
        u64::from(r.request.nr_bios).into()
    }),
    Column::number("back_merges", "bios merged behind", |r: &IoRow| {
        u64::from(r.request.nr_back_merges).into()
    }),
    Column::number("front_merges", "bios merged in front", |r: &IoRow| {
        u64::from(r.request.nr_front_merges).into()
    }),
    Column::number("absorbed", "requests that it absorbed", |r: &IoRow| {
        u64::from(r.request.nr_absorbed).into()
    }),
    Column::number("requeues", "times it was given back", |r: &IoRow| {
        u64::from(r.request.nr_requeues).into()
    }),
    Column::number("i2d_ns", "from I to D", |r: &IoRow| {
        between(r.request.insert, r.request.issue)
    })
    .optional(),
    Column::number("d2c_ns", "from D to C", |r: &IoRow| {
        between(r.request.issue, r.request.complete)
    })
    .optional(),
    Column::number("q2c_ns", "from the first Q to C", |r: &IoRow| {
        between(r.queue, r.request.complete)
    })
    .optional(),
];
