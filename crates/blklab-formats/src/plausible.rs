// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no kernel records. Such an event is given as it was read and counted,
//! so that nobody trusts what is computed from it.

use crate::ReadCounts;
use blklab_trace::{Action, Event};
use blklab_types::Time;

/// Seconds that blkparse can print: a C `int`, 68 years.
const SECONDS_MAX: u64 = i32::MAX as u64;
/// Sectors that a device can have: `loff_t` counts its bytes.
const SECTORS_MAX: u64 = 1 << 54;

/// Whether a trace can have this time. One that has not would put all events
/// after it out of order, so its record is not given.
pub(crate) fn is_time(time: Time) -> bool {
    time.0 / 1_000_000_000 <= SECONDS_MAX
}

/// Whether all numbers of an event without a count can be.
#[inline]
pub(crate) fn is_event(event: &Event) -> bool {
    // The nanoseconds of the last second are left to the closer look.
    let is_time = event.time.0 <= SECONDS_MAX * 1_000_000_000;
    let end = event.end_sector();
    is_time && (event.bytes == 0 || end <= SECTORS_MAX)
}

/// Counts an event that a record holds, or the record as damaged if a trace cannot have
/// its time; whether it is given.
pub(crate) fn admits(
    event: &Event,
    counts: &mut ReadCounts,
    place: impl FnOnce() -> String,
) -> bool {
    if !is_time(event.time) {
        counts.damaged += 1;
        counts.example(|| BAD_TIME.to_owned());
        return false;
    }
    check(event, counts, place);
    counts.events += 1;
    true
}

/// What is wrong with a time.
pub(crate) const BAD_TIME: &str = "time is beyond 68 years";

/// Counts an event whose numbers cannot be; `place` is where it was read.
#[inline]
pub(crate) fn check(event: &Event, counts: &mut ReadCounts, place: impl FnOnce() -> String) {
    let is_end_possible = event.end_sector() <= SECTORS_MAX;
    let problem = match event.action {
        Action::Unplug | Action::UnplugTimer if event.arg > u64::from(u32::MAX) => {
            "more than 4294967295 requests at an unplug"
        }
        _ if event.bytes > 0 && !is_end_possible => "sectors beyond the end of any device",
        _ => return,
    };
    counts.impossible += 1;
    counts.example(|| format!("{}: {problem}", place()));
}
