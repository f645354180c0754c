// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who is told that a bio has ended.

use crate::TaskId;

/// A submitter's own number of a bio.
///
/// It is packed to four bytes so that it, and with it the [`Completion`] of each
/// bio, takes no more room than two words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(Rust, packed(4))]
pub struct BioKey(u64);

impl BioKey {
    /// The bio of that number.
    pub fn new(number: u64) -> BioKey {
        BioKey(number)
    }

    /// The number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Who is told that a bio has ended, and by which name he knows it: the kernel's
/// `bi_end_io` and `bi_private`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Completion {
    /// Nobody.
    #[default]
    Nobody,
    /// A task that counts its bios. Another may have submitted this one for it.
    Task(TaskId),
    /// The submitter, who knows the bio by this key: the page cache.
    Submitter(BioKey),
    /// The array in front of the queue, which waits for a part of one of its bios.
    Array {
        /// The array's place for its bio.
        slot: u32,
        /// The member that has the part.
        member: u32,
    },
    /// The multi-queue path, which split a larger bio.
    Split {
        /// The queue's place for the whole bio.
        chain: u32,
    },
}

// Bios are copied all the time: they stay as small as with a bare number.
const _: () = assert!(size_of::<Completion>() == 12 && align_of::<Completion>() == 4);
