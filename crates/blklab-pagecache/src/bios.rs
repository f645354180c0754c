// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bios in flight.

use crate::slab::Slab;
use blklab_types::BioKey;

/// The bios in flight by key, each with what its end completes. A key is not used
/// again.
#[derive(Clone, Debug)]
pub struct Bios<W>(Slab<W>);

impl<W> Default for Bios<W> {
    fn default() -> Bios<W> {
        Bios(Slab::default())
    }
}

impl<W> Bios<W> {
    /// Notes a bio that is about to be submitted.
    pub fn insert(&mut self, work: W) -> BioKey {
        BioKey::new(self.0.insert(work))
    }

    /// Whether a bio is still in flight.
    pub fn is_in_flight(&mut self, key: BioKey) -> bool {
        self.0.get_mut(key.number()).is_some()
    }

    /// A bio ended: what that completes; none if it is not in flight.
    pub(crate) fn remove(&mut self, key: BioKey) -> Option<W> {
        self.0.remove(key.number())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.0.iter()
    }

    /// Places that [`Bios::iter`] looks at.
    pub(crate) fn nr_places(&self) -> usize {
        self.0.nr_places()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
