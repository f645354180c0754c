// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slowest request of a trace, in a sentence: in a short excerpt it is what is asked about.

use crate::findings::finding::{counted, time_text};
use crate::findings::slow::Life;
use crate::findings::sums::parts_text;
use crate::findings::whole::Whole;

/// Where the time of the slowest went, what was there beside it, what the others take.
pub(super) fn words(life: &Life, whole: &Whole<'_>) -> String {
    let took = life.whole_ns.unwrap_or(0);
    let place = match life.sectors {
        0 => life.rwbs.clone(),
        n => format!("{} {} + {n}", life.rwbs, life.sector),
    };
    let parts = parts_text(
        [
            life.get_ns,
            life.plug_ns,
            life.idle_ns,
            life.ahead_ns,
            life.alone_ns.saturating_add(life.behind_ns),
            life.flush_ns,
        ],
        [
            "for a request or tag (Q-G)",
            "on a plug (G-I)",
            "in the scheduler while the device was idle",
            "in the scheduler while it was busy",
            "at the device (D-C)",
            "for a flush of the cache",
        ],
    );
    let mut text = format!(
        "{place} of {} on {} took {}{}",
        whole.who(life.pid),
        life.dev,
        time_text(took),
        if parts.is_empty() {
            String::new()
        } else {
            format!(": {parts}")
        },
    );
    if let Some(depth) = life.depth_at_issue {
        text += &beside_it(depth, whole);
    }
    text += &others(life, whole);
    if let Some(beside) = life.beside.first() {
        text += &format!(
            "; {} of that: {}",
            time_text(beside.overlap_ns),
            beside.what
        );
    }
    text + "."
}

/// What the device had when a request came there. Where events are missing it may have had more.
fn beside_it(depth: u32, whole: &Whole<'_>) -> String {
    let is_all = whole.reading.lost + whole.reading.elided == 0;
    let of_shown = if is_all { "" } else { " of what is shown" };
    let had = match depth {
        0 => format!("nothing else{of_shown}"),
        n => format!("{}{of_shown}", counted(u64::from(n), "others")),
    };
    format!("; the device had {had} when it came there")
}

/// What other requests of the device take that somebody waits for.
fn others(life: &Life, whole: &Whole<'_>) -> String {
    let took = life.whole_ns.unwrap_or(0);
    let waited = whole.disk(life.dev).waited;
    let nr = waited.requests.saturating_sub(1);
    if nr == 0 {
        return "; what the device takes otherwise is not shown, so it is not known whether that is \
                long"
            .to_owned();
    }
    let mean = waited.waited_ns.saturating_sub(took) / nr;
    format!("; the other {nr} take {} on average", time_text(mean))
}
