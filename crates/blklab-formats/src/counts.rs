// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader found, and what it could not use.

use blklab_types::{Time, visible};

/// More than this no trace lacks, whatever a file says: sums of some counts stay numbers.
pub(crate) const COUNT_MAX: u64 = 1 << 60;

/// Counts of one reading. Everything that did not become an item of the
/// stream is in here; all zero but the first seven means a flawless trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Events given.
    pub events: u64,
    /// Messages given.
    pub messages: u64,
    /// Names of processes given.
    pub processes: u64,
    /// Events of other parts of the kernel given.
    pub kernel_events: u64,
    /// Stacks of tasks given.
    pub stacks: u64,
    /// Records or lines without meaning for analysis: timestamps, summaries,
    /// comments.
    pub notes: u64,
    /// Events of other parts of the kernel that are none of [`blklab_trace::POINTS`], or
    /// that say what other events say.
    pub other_events: u64,
    /// Events that the recorder lost: by gaps in the sequence numbers, or by its
    /// own word.
    pub lost: u64,
    /// Places where events were lost.
    pub gaps: u64,
    /// Sequence numbers that went back: the recording began anew, or its
    /// records were put together in another order.
    pub restarts: u64,
    /// Events whose numbers are missing in a text: whoever printed it had asked
    /// for some kinds only, whoever quoted it left them out, or the recorder lost
    /// them.
    pub left_out: u64,
    /// Recordings that begin behind the first one.
    pub new_recordings: u64,
    /// Events that stood behind later ones in a text and were put in their place.
    pub reordered: u64,
    /// Events that are given behind later ones.
    pub backwards: u64,
    /// Events that are more than ten days later than the one before.
    pub jumps: u64,
    /// Events without a time of their own: they have that of the one before.
    pub untimed: u64,
    /// Seconds added to all times, since some were before 0.
    pub shift_s: u64,
    /// Records of another CPU than the file that has them.
    pub other_cpu: u64,
    /// Lines that are no part of a trace: prose around it.
    pub foreign: u64,
    /// Records or lines that are whole but of a kind that has no event:
    /// driver data, unknown actions.
    pub unknown: u64,
    /// Records or lines that make no sense.
    pub damaged: u64,
    /// Events whose numbers no kernel records: sectors beyond the end of any
    /// device, more requests at an unplug than there can be.
    pub impossible: u64,
    /// Places where whoever quoted the trace left lines out (`...`).
    pub elided: u64,
    /// Bytes passed over: those of damaged records, and of a record that the
    /// end of the file cuts.
    pub skipped_bytes: u64,
    /// Events that are known to be missing at the end: the writer counted
    /// them, the file does not have them.
    pub missing: u64,
    /// Whether the file ends inside a record, or without its end mark.
    pub truncated: bool,
    /// Whether this is a copy of a trace whose format could not say what was lost.
    pub unsaid: bool,
    /// The first few damaged or unknown places, in words.
    pub examples: Vec<String>,
    /// How many of the other events have which name, in order of their first.
    pub other_names: Vec<(String, u64)>,
    /// Where the recorder's numbers of events do not go on from the one before, or do not
    /// begin with 1: the first few thousand such places.
    pub numbered: Vec<Numbered>,
}

/// Counts that a copy keeps of its original, in the order in which `events.blk` has them
/// (`docs/trace-format.md`).
pub(crate) type Lacks = [u64; 13];

/// An event by the number that its recorder gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The CPU, each of which numbers its own events.
    pub cpu: u16,
    /// When it was.
    pub time: Time,
    /// Its number.
    pub sequence: u32,
}

/// Places kept at which numbers do not go on.
const NUMBERED_MAX: usize = 4096;

/// Ten days without an event: a bad time, more likely than a pause.
const JUMP_NS: u64 = 10 * 24 * 3600 * 1_000_000_000;

/// Examples kept; the counts go on.
const EXAMPLES_MAX: usize = 8;
/// Names of events of other parts of the kernel that are counted one by one.
const OTHER_NAMES_MAX: usize = 512;

impl ReadCounts {
    /// Whether the trace is whole: nothing lost, damaged, unknown or missing.
    pub fn is_clean(&self) -> bool {
        self.lost == 0
            && self.restarts == 0
            && self.left_out == 0
            && self.backwards == 0
            && self.jumps == 0
            && self.untimed == 0
            && self.foreign == 0
            && self.unknown == 0
            && self.damaged == 0
            && self.impossible == 0
            && self.elided == 0
            && self.missing == 0
            && !self.truncated
    }

    /// What the original of a copy lacked, as the copy keeps it: what reading the copy does not
    /// find again.
    pub(crate) fn lacks(&self) -> Lacks {
        [
            self.lost,
            self.gaps,
            self.restarts,
            self.left_out,
            self.untimed,
            self.foreign,
            self.unknown,
            self.damaged,
            self.elided,
            self.missing,
            self.skipped_bytes,
            self.truncated.into(),
            self.unsaid.into(),
        ]
    }

    /// Adds what the original of a copy lacked.
    pub(crate) fn add_lacks(&mut self, lacks: Lacks) {
        let [counts @ .., truncated, unsaid] = lacks;
        let own = [
            &mut self.lost,
            &mut self.gaps,
            &mut self.restarts,
            &mut self.left_out,
            &mut self.untimed,
            &mut self.foreign,
            &mut self.unknown,
            &mut self.damaged,
            &mut self.elided,
            &mut self.missing,
            &mut self.skipped_bytes,
        ];
        for (own, count) in own.into_iter().zip(counts) {
            *own = own.saturating_add(count).min(COUNT_MAX);
        }
        self.truncated |= truncated > 0;
        self.unsaid |= unsaid > 0;
    }

    /// Notes an event whose number does not follow the one before.
    #[cold]
    pub(crate) fn number(&mut self, numbered: Numbered) {
        if self.numbered.len() < NUMBERED_MAX {
            self.numbered.push(numbered);
        }
    }

    /// Compares the time of an event with that of the one given before.
    #[inline]
    pub(crate) fn check_time(&mut self, last: &mut Time, time: Time) {
        self.backwards += u64::from(time < *last);
        // The first one may be any.
        let is_jump = time.since(*last).ns() > JUMP_NS && last.0 > 0;
        self.jumps += u64::from(is_jump);
        *last = time;
    }

    /// Counts an event of another part of the kernel.
    pub(crate) fn other_event(&mut self, name: &[u8]) {
        self.other_events += 1;
        let name = String::from_utf8_lossy(name);
        let name = visible(&name);
        let names = &mut self.other_names;
        if let Some(known) = names.iter_mut().find(|n| n.0 == name) {
            known.1 += 1;
        } else if names.len() < OTHER_NAMES_MAX {
            names.push((name.into_owned(), 1));
        }
    }

    pub(crate) fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(visible(&text()).into_owned());
        }
    }
}
