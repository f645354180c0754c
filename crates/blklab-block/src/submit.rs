// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a submitter and a queue say to each other on either path.

use crate::pending::Pending;
use crate::{Cx, Effect, events};
use blklab_trace::truth::Kind;

/// "Operation not supported": the error of ordered writes that a queue cannot do, and
/// of discards of a device that has none.
pub(crate) const EOPNOTSUPP: u16 = 95;

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// The queue has it (or it finished, see the effects).
    Done,
    /// The task sleeps for a request. When [`Effect::Wake`] names it, it goes
    /// on with [`crate::Queue::resume`].
    Sleeps(Pending),
    /// The bio has its request, whose processor time the task has first; then it goes on
    /// with [`crate::Queue::resume`].
    Pays(Pending),
    /// The task would have to sleep, and does not ([`BioFlags::NOWAIT`]): nobody has the
    /// bio, and nobody is told of its end.
    ///
    /// [`BioFlags::NOWAIT`]: blklab_types::BioFlags::NOWAIT
    Refused,
}

/// What a task sleeps for that is to go on with [`crate::Queue::resume`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepsFor {
    /// A request: all that there may be are in use (tags, from 5.0 on).
    Request,
    /// Fewer writes under way: write-back throttling.
    WriteBack,
    /// Fewer bios of its control group under way, for the sake of a sibling's
    /// `io.latency`.
    GroupLatency,
    /// Its control group's share of the device's time (`io.cost`).
    GroupCost,
}

impl Pending {
    /// The bio finished (`bio_endio`): its truth record, and the word to the
    /// simulation.
    pub(crate) fn end(&self, cx: &mut Cx<'_>, error: u16) {
        assert!(cx.now >= self.queued, "a bio ends before it was queued");
        let waited = cx.now.since(self.queued).0;
        events::bio_truth(cx, Kind::BioDone, &self.bio, waited);
        cx.ask(Effect::BioDone {
            completion: self.bio.completion,
            error,
        });
    }
}
