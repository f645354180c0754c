// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is not the cause, as the figures of a trace say.

use crate::findings::areas::{Area, Part};
use crate::findings::finding::{counted, time_text};
use crate::findings::slow::Life;
use crate::findings::sums::percent;
use crate::findings::whole::{DiskSum, Whole};
use blklab_trace::Action;
use blklab_types::Dev;
use serde::Serialize;

/// What has less than this part of all waiting, in per cent.
const TOTAL_MAX_PERCENT: u64 = 10;

/// And, where it is longest, less than this part of the slowest request.
const WORST_MAX_PERCENT: u64 = 20;

/// A part of the way is judged if it is shown for so many of ten requests.
const SHOWN_OF_TEN: u64 = 9;

/// What is not the cause on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuledOut {
    /// The device.
    #[serde(serialize_with = "crate::stats::dev_text")]
    pub dev: Dev,
    /// What: `the scheduler (I-D)`.
    pub what: &'static str,
    /// The figure that says so, in words.
    pub figure: String,
    /// The longest there, ns.
    pub worst_ns: u64,
    /// All of it, ns.
    pub total_ns: u64,
    /// The events of the longest, by their numbers from 1.
    pub events: Vec<u64>,
}

/// What the trace rules out.
pub(super) fn ruled_out(slowest: Option<&Life>, whole: &Whole<'_>) -> Vec<RuledOut> {
    let mut all = Vec::new();
    for (dev, sum) in &whole.sums.disks {
        // What the slowest of all is explained by counts on its own device alone.
        let slowest_ns = match slowest.filter(|life| life.dev == *dev) {
            Some(life) => life.whole_ns.unwrap_or(0),
            None => sum.waited.worst_ns,
        };
        if sum.waited.requests == 0 {
            continue;
        }
        for area in Area::ALL {
            let is_said = area != Area::Flush || are_flushes_short(sum, slowest_ns, whole);
            let part = sum.areas.part(area);
            if is_said && is_out(part, sum, slowest_ns) {
                all.push(out(*dev, area, part, sum));
            }
        }
        all.extend(no_errors(*dev, sum, whole));
    }
    all
}

/// Whether flushes are shown to take little, whoever waits for them: that no request waits for one
/// says nothing where a flush has no request of its own behind it.
fn are_flushes_short(sum: &DiskSum, slowest_ns: u64, whole: &Whole<'_>) -> bool {
    let (_, total_ns) = sum.flushes;
    let is_little = percent(total_ns, sum.waited.waited_ns) < TOTAL_MAX_PERCENT;
    whole.are_flags_said && is_little && percent(sum.flush_worst_ns, slowest_ns) < WORST_MAX_PERCENT
}

fn is_out(part: &Part, sum: &DiskSum, slowest_ns: u64) -> bool {
    let is_shown = part.shown * 10 >= sum.waited.requests * SHOWN_OF_TEN;
    let is_small = percent(part.total_ns, sum.waited.waited_ns) < TOTAL_MAX_PERCENT;
    is_shown && is_small && percent(part.worst_ns, slowest_ns) < WORST_MAX_PERCENT
}

fn out(dev: Dev, area: Area, part: &Part, sum: &DiskSum) -> RuledOut {
    let figure = match part.worst_ns {
        0 if area == Area::Flush => format!("no request of {} waits for one", part.shown),
        0 => format!("none of {} waits there", counted(part.shown, "requests")),
        worst => format!(
            "{} the longest of {}, {} % of all waiting",
            time_text(worst),
            part.shown,
            percent(part.total_ns, sum.waited.waited_ns)
        ),
    };
    RuledOut {
        dev,
        what: area.what(),
        figure,
        worst_ns: part.worst_ns,
        total_ns: part.total_ns,
        events: part.events.clone(),
    }
}

/// That no I/O failed and none was given back, where completions say it.
fn no_errors(dev: Dev, sum: &DiskSum, whole: &Whole<'_>) -> Option<RuledOut> {
    let completions = sum.nr(Action::Complete);
    let is_clean = sum.nr_errors == 0 && sum.nr(Action::Requeue) == 0;
    let is_shown = whole.are_flags_said && completions > 0;
    (is_clean && is_shown).then(|| RuledOut {
        dev,
        what: "errors and requeues",
        figure: format!("none in {}", counted(completions, "completions")),
        worst_ns: 0,
        total_ns: 0,
        events: Vec::new(),
    })
}
