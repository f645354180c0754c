// SPDX-License-Identifier: MIT OR Apache-2.0
//! The array's own bios while members work on them.

use blklab_types::{Bio, Completion, Slab};

/// A place in the table, reused after the bio is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u32);

impl Slot {
    /// Of the part that a member gets.
    pub(super) fn part_on(self, member: u32) -> Completion {
        Completion::Array {
            slot: self.0,
            member,
        }
    }
}

/// What became of the parts of a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Errors {
    /// Parts that it had.
    pub(super) parts: u32,
    /// Parts that failed.
    pub(super) failed: u32,
    /// The last error, 0 if there was none.
    pub(super) last: u16,
}

#[derive(Clone, Copy, Debug)]
struct Master {
    bio: Bio,
    /// Parts that members have not finished.
    left: u32,
    errors: Errors,
}

blklab_types::impl_id!(Slot(u32));

/// The bios on their way.
#[derive(Debug, Default)]
pub(super) struct Masters {
    all: Slab<Slot, Master>,
}

impl Masters {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a bio that is done when so many parts are.
    pub(super) fn insert(&mut self, bio: Bio, parts: u32) -> Slot {
        self.all.insert(Master {
            bio,
            left: parts,
            errors: Errors {
                parts,
                ..Errors::default()
            },
        })
    }

    /// The bio in a slot.
    pub(super) fn get(&self, slot: Slot) -> &Bio {
        &self.all[slot].bio
    }

    /// Gives a bio up.
    pub(super) fn remove(&mut self, slot: Slot) -> Bio {
        self.all.remove(slot).bio
    }

    /// A part is done; whom to tell of the bio, if it was the last one.
    pub(super) fn part_done(&mut self, slot: Slot, error: u16) -> Option<(Completion, Errors)> {
        let master = &mut self.all[slot];
        master.left -= 1;
        if error != 0 {
            master.errors.failed += 1;
            master.errors.last = error;
        }
        if master.left > 0 {
            return None;
        }
        let done = (master.bio.completion, master.errors);
        self.all.remove(slot);
        Some(done)
    }
}
