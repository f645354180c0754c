// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sectors of a zone that hold no data: where addresses skip places.
//!
//! A zone is cut into regions (tracks, cylinders, ranges of cylinders, or all of
//! it) with spares at the front or at the end of each. A *slip* is a bad place
//! that was passed over when the addresses were given out: what follows it is
//! one place further on, up to the end of the region if that is where the spare
//! comes from, else up to the end of the zone. The places before `front_empty`
//! belong to the drive.
//!
//! ```text
//! places     | 0 1 2 3 4 5 6 7 | 8 9 ...      region of 8, 2 spares at its end,
//! addresses  | 0 1 x 2 3 4 5 . | 6 7 ...      the place of address 2 slipped
//! ```
//!
//! Source: the manual of DiskSim 4.0 (parameters of layout model G1).
//! Left out: remapped sectors, which keep their old place here.

/// Places and addresses are both counted from the begin of the zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spares {
    /// Places at the front that are not for data.
    pub(crate) front_empty: u64,
    /// Size of a region; 0 if no region has spares.
    pub(crate) region: u64,
    /// Spares at the front and at the end of each region.
    pub(crate) region_front: u64,
    pub(crate) region_end: u64,
    /// Addresses in front of which something was slipped, in ascending order,
    /// and how many places.
    pub(crate) slips: Vec<(u64, u64)>,
    /// Slips use up the spares of their region.
    pub(crate) slips_use_spares: bool,
}

impl Spares {
    /// Whether every place holds data.
    pub(crate) fn is_empty(&self) -> bool {
        self.front_empty == 0 && self.spare_per_region() == 0 && self.slips.is_empty()
    }

    fn spare_per_region(&self) -> u64 {
        if self.region == 0 {
            0
        } else {
            self.region_front + self.region_end
        }
    }

    /// Places for data in a region.
    fn usable(&self) -> u64 {
        self.region.saturating_sub(self.spare_per_region()).max(1)
    }

    /// How many places for data lie before a place, slips not counted.
    fn usable_before(&self, place: u64) -> u64 {
        if self.spare_per_region() == 0 {
            return place;
        }
        let inside = (place % self.region).saturating_sub(self.region_front);
        place / self.region * self.usable() + inside.min(self.usable())
    }

    /// How many addresses fit into a zone of so many places.
    pub(crate) fn addresses(&self, places: u64) -> u64 {
        let slipped = if self.slips_use_spares {
            0
        } else {
            self.slips.iter().map(|(_, n)| n).sum()
        };
        let whole = self.usable_before(places);
        whole.saturating_sub(self.usable_before(self.front_empty) + slipped)
    }

    /// The place of an address.
    pub(crate) fn place(&self, address: u64) -> u64 {
        let usable = self.usable_before(self.front_empty);
        let slipped = |since: u64| -> u64 {
            let from = self.slips.partition_point(|(at, _)| *at < since);
            let to = self.slips.partition_point(|(at, _)| *at <= address);
            self.slips[from.min(to)..to].iter().map(|(_, n)| n).sum()
        };
        if self.spare_per_region() == 0 {
            return address + usable + slipped(0);
        }
        if !self.slips_use_spares {
            let slot = address + usable + slipped(0);
            return slot / self.usable() * self.region + self.region_front + slot % self.usable();
        }
        let slot = address + usable;
        let region = slot / self.usable();
        let region_begin = (region * self.usable()).saturating_sub(usable);
        let inside = slot % self.usable() + slipped(region_begin).min(self.region_end);
        region * self.region + self.region_front + inside
    }

    /// The first address whose place is this one or a later one.
    pub(crate) fn address_from(&self, place: u64) -> u64 {
        let slips: u64 = self.slips.iter().map(|(_, n)| n).sum();
        let most = self
            .usable_before(place)
            .saturating_sub(self.usable_before(self.front_empty))
            + 1;
        let (mut low, mut high) = (most.saturating_sub(slips + 2), most);
        while self.place(high) < place {
            high += self.usable().min(1 << 20);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.place(middle) < place {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}
