// SPDX-License-Identifier: MIT OR Apache-2.0
//! Split rings of virtio: descriptors, what is to be done, what is done.
//!
//! Source: Virtual I/O Device (VIRTIO) version 1.2, section 2.7.

use super::chain::{Chain, DESCRIPTOR_BYTES, chain};
use super::memory::{Memory, wrong};
use blklab_types::Error;

/// Most entries of a ring.
const ENTRIES_MAX: u32 = 1 << 15;

/// Where the parts of a ring are, as descriptors would say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RingAddresses {
    pub(crate) descriptors: u64,
    pub(crate) available: u64,
    pub(crate) used: u64,
}

/// A ring.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: u32,
    addresses: RingAddresses,
    /// The next entry to take.
    taken: u16,
    /// The next entry to give back.
    given_back: u16,
}

impl Ring {
    /// Sets its length.
    ///
    /// # Errors
    /// If it can have no such length.
    pub(crate) fn set_entries(&mut self, entries: u32) -> Result<(), Error> {
        if entries == 0 || entries > ENTRIES_MAX || !entries.is_power_of_two() {
            return Err(wrong(&format!(
                "a ring of {entries} entries; a power of two up to {ENTRIES_MAX} is possible"
            )));
        }
        self.entries = entries;
        Ok(())
    }

    /// Sets where it is.
    pub(crate) fn set_addresses(&mut self, addresses: RingAddresses) {
        self.addresses = addresses;
    }

    /// Sets the entry that it begins with.
    pub(crate) fn set_base(&mut self, base: u16) {
        self.taken = base;
        self.given_back = base;
    }

    /// The next entry that it would take.
    pub(crate) fn base(&self) -> u16 {
        self.taken
    }

    /// Takes what is new.
    ///
    /// # Errors
    /// If what the ring says cannot be.
    pub(crate) fn take(&mut self, memory: &Memory) -> Result<Vec<Chain>, Error> {
        if self.entries == 0 {
            return Err(wrong("a request on a ring that was not set up"));
        }
        let at = self.addresses.available;
        let index = word(memory, at.wrapping_add(2))?;
        let new = index.wrapping_sub(self.taken);
        if u32::from(new) > self.entries {
            return Err(wrong(&format!(
                "{new} requests at once on a ring of {} entries",
                self.entries
            )));
        }
        let mut chains = Vec::with_capacity(usize::from(new));
        for _ in 0..new {
            let slot = u32::from(self.taken) % self.entries;
            let head = word(memory, at.wrapping_add(4 + 2 * u64::from(slot)))?;
            chains.push(self.chain(memory, head)?);
            self.taken = self.taken.wrapping_add(1);
        }
        Ok(chains)
    }

    fn chain(&self, memory: &Memory, head: u16) -> Result<Chain, Error> {
        if u32::from(head) >= self.entries {
            return Err(wrong(&format!(
                "descriptor {head} of a ring of {} entries",
                self.entries
            )));
        }
        let mut table = vec![0; self.entries as usize * DESCRIPTOR_BYTES];
        memory.read(self.addresses.descriptors, &mut table)?;
        chain(memory, &table, head)
    }

    /// Gives back a request, whose buffers have got so many bytes.
    ///
    /// # Errors
    /// If the ring is not in memory.
    pub(crate) fn give_back(&mut self, memory: &Memory, head: u16, len: u32) -> Result<(), Error> {
        let at = self.addresses.used;
        let slot = u32::from(self.given_back) % self.entries;
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        entry[4..].copy_from_slice(&len.to_le_bytes());
        memory.write(at.wrapping_add(4 + 8 * u64::from(slot)), &entry)?;
        self.given_back = self.given_back.wrapping_add(1);
        // The entry is there before the index that says so.
        memory.write(at.wrapping_add(2), &self.given_back.to_le_bytes())
    }
}

/// A number of the ring.
fn word(memory: &Memory, at: u64) -> Result<u16, Error> {
    Ok(u16::from_le_bytes(memory.array(at)?))
}
