// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of the block layer as lttng-modules names and fills them, in text or binary
//! (`include/instrumentation/events/block.h` of lttng-modules 2.x).

use crate::fields::Fields;
use crate::text::{length, rwbs};
use crate::tracepoints::{Kind, Kinds, place};
use blklab_trace::{Action, Event, Rwbs};
use blklab_types::{Dev, Time};

/// What an event of the block layer says; none if its fields do not fit, or if it is a
/// plug of a task of which nothing is known.
pub(crate) fn event(
    kind: Kind,
    time: Time,
    cpu: u16,
    pid: u32,
    fields: &impl Fields,
    kinds: &Kinds,
) -> Option<Event> {
    let (Kind::Bio(action) | Kind::Request(action) | Kind::Done(action) | Kind::Plug(action)) =
        kind;
    let mut event = Event {
        time,
        sector: 0,
        arg: 0,
        bytes: 0,
        pid: if pid == 0 {
            fields.number("tid").unwrap_or(0) as u32
        } else {
            pid
        },
        dev: fields.device("dev").unwrap_or_default(),
        from_dev: Dev::default(),
        error: 0,
        cpu,
        rwbs: Rwbs::NONE,
        action,
    };
    if let Kind::Plug(_) = kind {
        event.dev = kinds.plugged(event.pid)?;
        event.arg = fields.number("nr_rq").unwrap_or(0);
        return Some(event);
    }
    event.rwbs = flags(fields)?;
    let sector = fields.number("sector")?;
    match action {
        Action::Split => {
            (event.sector, event.arg) = (sector, fields.number("new_sector")?);
            let front = event.arg.checked_sub(sector);
            event.bytes = front.and_then(length).unwrap_or(0);
            return Some(event);
        }
        Action::Remap => {
            event.from_dev = fields.device("old_dev")?;
            event.arg = fields.number("old_sector")?;
        }
        _ => {}
    }
    let bytes = length(fields.number("nr_sector")?)?;
    let command_bytes = fields.number("bytes").unwrap_or(0) as u32;
    place(&mut event, sector, bytes, command_bytes);
    if action == Action::Complete {
        let code = fields.error("error").or_else(|| fields.error("errors"));
        event.error = code.unwrap_or(Some(0))?;
    }
    Some(event)
}

/// Flags of `rwbs`.
const FLAGS: [(u64, Rwbs); 10] = [
    (1, Rwbs::WRITE),
    (2, Rwbs::DISCARD),
    (4, Rwbs::READ),
    (8, Rwbs::AHEAD),
    (0x10, Rwbs::BARRIER),
    (0x20, Rwbs::SYNC),
    (0x40, Rwbs::META),
    // The operation of a flush.
    (0x100, Rwbs::FLUSH),
    (0x200, Rwbs::FUA),
    (0x400, Rwbs::FLUSH),
];

/// As bits, or in the kernel's letters.
fn flags(fields: &impl Fields) -> Option<Rwbs> {
    let Some(bits) = fields.number("rwbs") else {
        return rwbs(fields.text("rwbs")?);
    };
    let set = FLAGS.iter().filter(|(bit, _)| bits & bit != 0);
    let mut all = set.fold(Rwbs::NONE, |all, (_, flag)| all.with(*flag));
    if all.has(Rwbs::DISCARD) {
        all.0 &= !Rwbs::WRITE.0;
    }
    Some(all)
}
