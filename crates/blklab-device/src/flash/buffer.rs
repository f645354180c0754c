// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write buffer: slots of 4 KiB, gathered into units that a die programs at
//! once, in order of arrival.
//!
//! A write to a slot that is in the buffer already takes a second slot: data on
//! their way are not replaced. Memory is that of the buffer's slots.

use super::pages::Pages;
use std::ops::Range;

/// A unit, open or on its way to the flash.
#[derive(Clone, Copy, Debug)]
struct Unit {
    /// Units are numbered in the order in which they were begun.
    no: u64,
    /// Slots filled; 0 when it is not in use.
    slots: u32,
    /// Those among them that do not continue a stream.
    random: u32,
}

/// A unit that is ready to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) unit: u32,
    pub(super) slots: u32,
    pub(super) random: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Buffer {
    unit_slots: u32,
    free_slots: u32,
    units: Vec<Unit>,
    /// Pages of all units, `unit_slots` for each.
    pages_of: Vec<u64>,
    unused: Vec<u32>,
    open: Option<u32>,
    begun: u64,
    pages: Pages,
}

impl Buffer {
    pub(super) fn new(slots: u32, unit_slots: u32) -> Buffer {
        let units = (slots / unit_slots) as usize + 1;
        Buffer {
            unit_slots,
            free_slots: slots,
            units: Vec::with_capacity(units),
            pages_of: Vec::with_capacity(units * unit_slots as usize),
            unused: Vec::with_capacity(units),
            open: None,
            begun: 0,
            pages: Pages::for_slots(slots),
        }
    }

    pub(super) fn free_slots(&self) -> u32 {
        self.free_slots
    }

    /// Whether a page (of 4 KiB) is in the buffer.
    pub(super) fn holds(&self, page: u64) -> bool {
        self.pages.holds(page)
    }

    /// Number of the unit that the next slot goes into.
    pub(super) fn next_no(&self) -> u64 {
        self.open
            .map_or(self.begun, |open| self.units[open as usize].no)
    }

    /// Puts a page into a free slot; hands out the unit if it is full.
    pub(super) fn put(&mut self, page: u64, random: bool) -> Option<Ready> {
        let open = match self.open {
            Some(open) => open,
            None => self.begin(),
        };
        let unit = &mut self.units[open as usize];
        self.pages_of[(open * self.unit_slots + unit.slots) as usize] = page;
        unit.slots += 1;
        unit.random += u32::from(random);
        self.free_slots -= 1;
        self.pages.add(page);
        if unit.slots == self.unit_slots {
            self.close()
        } else {
            None
        }
    }

    fn begin(&mut self) -> u32 {
        let unit = Unit {
            no: self.begun,
            slots: 0,
            random: 0,
        };
        let open = self.unused.pop().unwrap_or_else(|| {
            self.units.push(unit);
            let filled = self.pages_of.len() + self.unit_slots as usize;
            self.pages_of.resize(filled, 0);
            self.units.len() as u32 - 1
        });
        self.units[open as usize] = unit;
        self.begun += 1;
        self.open = Some(open);
        open
    }

    /// Hands out the open unit, full or not.
    pub(super) fn close(&mut self) -> Option<Ready> {
        let unit = self.open.take()?;
        let Unit { slots, random, .. } = self.units[unit as usize];
        Some(Ready {
            unit,
            slots,
            random,
        })
    }

    /// Units of these numbers that are not in the flash.
    pub(super) fn count(&self, of: &Range<u64>) -> u32 {
        let counts = |u: &&Unit| u.slots > 0 && of.contains(&u.no);
        self.units.iter().filter(counts).count() as u32
    }

    /// A unit is in the flash: its slots are free. Returns its number.
    pub(super) fn programmed(&mut self, unit: u32) -> u64 {
        let Unit { no, slots, .. } = self.units[unit as usize];
        let first = (unit * self.unit_slots) as usize;
        for page in &self.pages_of[first..first + slots as usize] {
            self.pages.remove(*page);
        }
        self.units[unit as usize].slots = 0;
        self.free_slots += slots;
        self.unused.push(unit);
        no
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_gather_into_units() {
        let mut buffer = Buffer::new(8, 2);
        assert_eq!(buffer.next_no(), 0);
        assert_eq!(buffer.put(7, true), None);
        assert!(buffer.holds(7) && !buffer.holds(8));
        let full = buffer.put(8, false);
        let expected = Ready {
            unit: 0,
            slots: 2,
            random: 1,
        };
        assert_eq!(full, Some(expected));
        assert_eq!((buffer.next_no(), buffer.free_slots()), (1, 6));
        buffer.put(7, false);
        assert_eq!(buffer.count(&(0..2)), 2);
        assert_eq!(buffer.close().map(|r| r.slots), Some(1));
        assert_eq!(buffer.programmed(0), 0);
        assert!(buffer.holds(7), "the second copy is still there");
        assert_eq!(buffer.programmed(1), 1);
        assert!(!buffer.holds(7));
        assert_eq!((buffer.free_slots(), buffer.count(&(0..9))), (8, 0));
        assert_eq!(buffer.close(), None);
    }
}
