// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arm and spindle: how long it takes to get to a place, and to pass over data.
//!
//! ```text
//! access = move + wait + transfer
//! move   = 0 on the same track, else max(seek, head switch if the surface
//!          differs) + settling if it is a write
//! wait   = until the first sector passes, from the actual angle at that time
//! ```
//!
//! Settling applies to the move to the first sector; switches during a transfer
//! are covered by the skew.

use super::geometry::{Geometry, Place};
use super::seek::SeekTable;

/// The angle of the spindle at one moment, for many questions at that moment.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    angle_ns: u32,
}

/// What an access is to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) place: Place,
    /// The sector there, and how many from it on.
    pub(crate) sector: u64,
    pub(crate) n: u64,
    pub(crate) write: bool,
    /// How long the data of a write takes to arrive from now on.
    pub(crate) data_ns: u64,
    /// The move takes no less.
    pub(crate) least_move_ns: u64,
}

/// An access to the medium, in absolute times (ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The first wanted sector begins to pass.
    pub(crate) first_ns: u64,
    /// The last one has passed.
    pub(crate) end_ns: u64,
}

/// The moving parts.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub(crate) geometry: Geometry,
    pub(crate) seek: SeekTable,
    pub(crate) revolution_ns: u32,
    pub(crate) head_switch_ns: u32,
    /// Added to the move before a write; below zero if reads settle longer.
    pub(crate) write_settle_ns: i32,
    /// Begin a read at whatever wanted sector comes first.
    pub(crate) zero_latency: bool,
    head: Place,
}

impl Mechanism {
    pub(crate) fn new(
        geometry: Geometry,
        seek: SeekTable,
        revolution_ns: u32,
        head_switch_ns: u32,
        write_settle_ns: i32,
        zero_latency: bool,
    ) -> Mechanism {
        let head = Place::default();
        Mechanism {
            geometry,
            seek,
            revolution_ns,
            head_switch_ns,
            write_settle_ns,
            zero_latency,
            head,
        }
    }

    /// The cylinder under the heads.
    pub(crate) fn head_cylinder(&self) -> u32 {
        self.head.cylinder
    }

    pub(crate) fn moment(&self, now_ns: u64) -> Moment {
        Moment {
            angle_ns: (now_ns % u64::from(self.revolution_ns)) as u32,
        }
    }

    fn move_ns(&self, place: &Place, write: bool) -> u32 {
        let same_surface = place.surface == self.head.surface;
        let distance = place.cylinder.abs_diff(self.head.cylinder);
        if distance == 0 && same_surface {
            return 0;
        }
        let switch_ns = if same_surface { 0 } else { self.head_switch_ns };
        let settle_ns = if write { self.write_settle_ns } else { 0 };
        let move_ns = self.seek.ns(distance).max(switch_ns);
        move_ns.saturating_add_signed(settle_ns)
    }

    /// Move and wait until `place` is under the head. Cost: one table look-up
    /// and one division.
    pub(crate) fn positioning_ns(&self, moment: Moment, place: &Place, write: bool) -> u32 {
        let move_ns = self.move_ns(place, write);
        let arrival_ns = (moment.angle_ns + move_ns) % self.revolution_ns;
        let ahead_ns = place.angle_ns + self.revolution_ns - arrival_ns;
        let wait_ns = if ahead_ns >= self.revolution_ns {
            ahead_ns - self.revolution_ns
        } else {
            ahead_ns
        };
        move_ns + wait_ns
    }

    /// Goes to the place of an access and passes over its sectors. A write whose
    /// data comes slower than the medium takes it waits, revolution by
    /// revolution, until it cannot run dry.
    pub(crate) fn access(&mut self, now_ns: u64, wanted: &Wanted) -> Access {
        let &Wanted {
            ref place,
            sector,
            n,
            write,
            data_ns,
            least_move_ns,
        } = wanted;
        let now_ns = now_ns + least_move_ns.saturating_sub(u64::from(self.move_ns(place, write)));
        let moment = self.moment(now_ns);
        let transfer_ns = self.geometry.transfer_ns(sector, n);
        let move_ns = u64::from(self.move_ns(place, write));
        let wait_ns = u64::from(self.positioning_ns(moment, place, write)) - move_ns;
        let revolution_ns = u64::from(self.revolution_ns);
        let inside = wait_ns + transfer_ns > revolution_ns;
        let one_track = sector + n <= self.geometry.track_end(sector);
        self.moved_to(sector + n);
        let arrival_ns = now_ns + move_ns;
        if self.zero_latency && !write && inside && one_track {
            return Access {
                first_ns: arrival_ns,
                end_ns: arrival_ns + revolution_ns,
            };
        }
        let short_ns = data_ns
            .saturating_sub(transfer_ns)
            .saturating_sub(move_ns + wait_ns);
        let lost_ns = short_ns.div_ceil(revolution_ns) * revolution_ns;
        let first_ns = arrival_ns + wait_ns + lost_ns;
        Access {
            first_ns,
            end_ns: first_ns + transfer_ns,
        }
    }

    /// The head is on the track of the sector before `end`.
    pub(crate) fn moved_to(&mut self, end: u64) {
        self.head = self.geometry.place(end.saturating_sub(1));
    }
}
