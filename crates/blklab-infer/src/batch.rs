// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which bios a process submitted under one plug.
//!
//! From 2.6.39 on a task has a plug of its own. P follows the bio whose request is the
//! first in it; U, UT when the task falls asleep, or without a scheduler the task's next
//! D, empties it. A P with no bio in between says that the block layer emptied a full plug
//! and goes on with it.
//!
//! Up to 2.6.38 the device has the plug: anybody's U starts it, and the timer (UT). Then U
//! comes from tasks that never plugged, and that is how such a trace is known.

use crate::recorded::Marks;
use crate::seen::{Own, Seen};
use blklab_trace::Action;
use blklab_types::Span;

/// Bios that a process queues within this time are one batch, where the trace shows no
/// plugs: a bio takes one to ten us of processor time on the machines of either end of the
/// two decades.
const AT_ONCE: Span = Span(20_000);

/// No plug of a task lasts longer between two bios: a task that sleeps empties it.
const PLUG_MAX: Span = Span(1_000_000);

/// Of so many U events one may come from a task whose P was before the trace began.
const STRANGE_SHARE: u64 = 50;

/// The plugs of a trace.
#[derive(Debug, Default)]
pub(crate) struct Plugs {
    /// Of each process, by its place.
    own: Vec<OwnPlug>,
    /// Processes that queued bios since the device was started.
    since: Vec<usize>,
    /// U events, and those of tasks without a plug.
    nr_unplugs: u64,
    nr_strange: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct OwnPlug {
    holds: bool,
    /// It was emptied, and nothing was queued since.
    just_emptied: bool,
    /// It is in [`Plugs::since`].
    since: bool,
}

impl Plugs {
    fn plug(&mut self, place: usize) -> &mut OwnPlug {
        if self.own.len() <= place {
            self.own.resize(place + 1, OwnPlug::default());
        }
        &mut self.own[place]
    }

    /// The process is about to queue a bio: whether its plug holds something.
    pub(crate) fn queued(&mut self, place: usize, processes: &mut [Own]) -> bool {
        let own = self.plug(place);
        own.just_emptied = false;
        let was_plugged = own.holds;
        if !std::mem::replace(&mut own.since, true) {
            self.since.push(place);
        }
        // The one before was under no plug.
        if !was_plugged && let Some(before) = processes[place].bios.last_mut() {
            before.marks = before.marks.with(Marks::ENDS_PLUG);
        }
        was_plugged
    }

    /// An event of a process, if it queued anything before.
    pub(crate) fn event(&mut self, action: Action, place: Option<usize>, processes: &mut [Own]) {
        if matches!(action, Action::Unplug | Action::UnplugTimer) {
            self.nr_unplugs += 1;
            let holds = place.is_some_and(|p| self.plug(p).holds);
            self.nr_strange += u64::from(!holds);
            self.start_device(action, place, processes);
        }
        let Some(place) = place else {
            return;
        };
        let last = processes[place].bios.last_mut();
        let own = self.plug(place);
        if action == Action::Plug {
            own.holds = true;
            if let Some(bio) = last {
                bio.marks = bio.marks.with(Marks::PLUGGED);
                if own.just_emptied {
                    bio.marks = bio.marks.without(Marks::ENDS_PLUG);
                }
            }
        } else if own.holds {
            own.holds = false;
            own.just_emptied = true;
            if let Some(bio) = last {
                bio.marks = bio.marks.with(Marks::ENDS_PLUG);
            }
        }
    }

    /// The device's plug ends, if there is one.
    fn start_device(&mut self, action: Action, by: Option<usize>, processes: &mut [Own]) {
        for place in self.since.drain(..) {
            self.own[place].since = false;
            if let Some(bio) = processes[place].bios.last_mut() {
                bio.device_plug = bio.device_plug.with(Marks::ENDS_PLUG);
            }
        }
        if action == Action::Unplug
            && let Some(place) = by
            && let Some(bio) = processes[place].bios.last_mut()
        {
            bio.device_plug = bio.device_plug.with(Marks::UNPLUGS).with(Marks::ENDS_PLUG);
        }
    }

    /// Whether the plug is the device's.
    pub(crate) fn are_of_device(&self) -> bool {
        self.nr_strange * STRANGE_SHARE > self.nr_unplugs
    }
}

/// Decides where the plugs of a process begin and end, when all of its bios are known.
pub(crate) fn settle(bios: &mut [Seen], shows_plugs: bool, of_device: bool) {
    // Whether the one before is of the same batch.
    let mut goes_on = false;
    for i in 0..bios.len() {
        let bio = bios[i];
        let gap = bios
            .get(i + 1)
            .map(|next| next.time.since(bio.returned.min(next.time)));
        let started = Marks::ENDS_PLUG.with(Marks::UNPLUGS);
        let mut marks = match (shows_plugs, of_device) {
            (true, true) => bio.device_plug,
            // What is not plugged, or no longer, is started at once.
            (true, false) if bio.marks.has(Marks::ENDS_PLUG) => bio.marks.with(Marks::UNPLUGS),
            (true, false) => bio.marks,
            (false, _) => {
                let ends = gap.is_none_or(|gap| gap > AT_ONCE);
                let marks = if ends { started } else { Marks::PLUGGED };
                if goes_on {
                    marks.with(Marks::PLUGGED)
                } else {
                    marks
                }
            }
        };
        if bio.marks.has(Marks::SLEPT) {
            marks = marks.with(Marks::SLEPT);
        }
        if gap.is_none_or(|gap| gap > PLUG_MAX) {
            let starts = !(shows_plugs && of_device);
            marks = marks.with(if starts { started } else { Marks::ENDS_PLUG });
        }
        goes_on = !marks.has(Marks::ENDS_PLUG);
        bios[i].marks = marks;
    }
}
