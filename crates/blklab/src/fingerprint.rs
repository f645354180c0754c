// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is kept of a run's events and messages to tell later whether another gave
//! the same, and why.

use blklab_trace::{Action, Digest, Event};
use blklab_types::Pid;

/// A sum over the events that every scheduler has: Q, D and C, without what a
/// scheduler may add to them. Events of one instant may come in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Takes an event.
    pub(crate) fn event(&mut self, e: &Event) {
        let pid = match e.action {
            Action::Queue => e.pid,
            // Whoever happens to run the queue.
            Action::Issue | Action::Complete => 0,
            _ => return,
        };
        let mut digest = Digest::default();
        digest.event(&Event {
            pid,
            cpu: 0,
            arg: 0,
            ..*e
        });
        self.0 = self.0.wrapping_add(digest.value());
    }
}

/// Processes whose queues a scheduler has merged, by its own messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedQueues(Vec<Pid>);

impl MergedQueues {
    /// The processes.
    pub(crate) fn pids(&self) -> &[Pid] {
        &self.0
    }

    /// Reads a message: BFQ's `bfq1002S merging with queue 1001` (5.0 to 6.18,
    /// block/bfq-iosched.c). A queue that several share has no number.
    pub(crate) fn message(&mut self, text: &str) {
        let Some((from, into)) = text.split_once(" merging with queue ") else {
            return;
        };
        let from = from.trim_start_matches("bfq");
        let from = from.trim_end_matches(|c: char| !c.is_ascii_digit());
        for pid in [from, into].iter().filter_map(|t| t.parse().ok()) {
            if !self.0.contains(&pid) {
                self.0.push(pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_of_queues_are_read_from_messages() {
        let mut merged = MergedQueues::default();
        for text in [
            "bfq1002S merging with queue 1001",
            "bfq1003S merging with queue 18446744073709551615",
            "bfqSHARED-S merging with queue 1001",
            "bfq1009S scheduling merge with queue 1004",
            "bfq select_queue: no queue returned",
        ] {
            merged.message(text);
        }
        assert_eq!(merged.pids(), [1002, 1001, 1003]);
    }
}
