// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a reader found, and what it could not use.

/// Counts of one reading. Everything that did not become an item of the
/// stream is in here; all zero but the first five means a flawless trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Events given.
    pub events: u64,
    /// Messages given.
    pub messages: u64,
    /// Names of processes given.
    pub processes: u64,
    /// Records or lines without meaning for analysis: timestamps, summaries,
    /// comments.
    pub notes: u64,
    /// Events of other parts of the kernel, or that say what other events say.
    pub other_events: u64,
    /// Events that the recorder lost: by gaps in the sequence numbers, or by its
    /// own word.
    pub lost: u64,
    /// Places where events were lost.
    pub gaps: u64,
    /// Sequence numbers that went back: the recording began anew, or its
    /// records were put together in another order.
    pub restarts: u64,
    /// Events that were recorded earlier than the one before them.
    pub backwards: u64,
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
    /// The first few damaged or unknown places, in words.
    pub examples: Vec<String>,
}

/// Examples kept; the counts go on.
const EXAMPLES_MAX: usize = 8;

impl ReadCounts {
    /// Whether the trace is whole: nothing lost, damaged, unknown or missing.
    pub fn is_clean(&self) -> bool {
        self.lost == 0
            && self.restarts == 0
            && self.backwards == 0
            && self.unknown == 0
            && self.damaged == 0
            && self.impossible == 0
            && self.elided == 0
            && self.missing == 0
            && !self.truncated
    }

    pub(crate) fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(text());
        }
    }
}
