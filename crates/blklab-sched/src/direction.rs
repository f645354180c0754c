// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads or writes next: how deadline and mq-deadline begin a batch.

use blklab_block::List;
use blklab_trace::truth::Why;

/// The places of the directions in their tables: `Request::data_dir`.
pub(crate) const READ: usize = 0;
pub(crate) const WRITE: usize = 1;

/// What the others wait for while a batch of the direction runs.
pub(crate) const BATCH: [Why; 2] = [Why::ReadBatch, Why::WriteBatch];

/// Decisions that reads won while writes waited, since writes won last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Starved(i64);

impl Starved {
    /// The direction of the next batch: reads, unless they won `most` times
    /// while writes waited. None if nothing waits.
    pub(crate) fn choose_direction(&mut self, fifo: &[List; 2], most: i64) -> Option<usize> {
        let writes = !fifo[WRITE].is_empty();
        if !fifo[READ].is_empty() {
            if !writes {
                return Some(READ);
            }
            let before = self.0;
            self.0 = before.saturating_add(1);
            if before < most {
                return Some(READ);
            }
        } else if !writes {
            return None;
        }
        self.0 = 0;
        Some(WRITE)
    }
}
