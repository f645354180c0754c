// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a sector is: zones, layout, skew.
//!
//! Angles are nanoseconds of the revolution. Sector `s` of a track of `spt`
//! sectors whose first sector is at angle `base` begins at
//! `base + floor(s * revolution / spt)`; the first sector of the next track
//! along the addresses is the skew further on than the end of this one:
//!
//! ```text
//! track k     |  0   1   2   3   4   5 |
//! track k+1          |  0   1   2   3   4   5 |
//!              ──────► skew: time for the switch
//! ```
//!
//! Layouts: `classic` fills a cylinder surface by surface; `serpentine` runs a
//! strip of cylinders inwards on one surface, outwards on the next, and so on;
//! every other strip takes the surfaces in reverse. `alternating` is classic
//! with the surfaces of every other cylinder in reverse, so that the head stays
//! where it is when the cylinder changes.
//!
//! Addresses need not fill a zone: see [`Spares`]. Left out: remapped defects.

use super::seek::SeekTable;
use super::spares::Spares;

/// One zone as described: tracks with equally many sectors.
#[derive(Clone, Debug)]
pub(crate) struct ZoneSpec {
    pub(crate) first_cylinder: u32,
    pub(crate) tracks: u64,
    pub(crate) track_sectors: u32,
    pub(crate) track_skew_ns: u32,
    pub(crate) cylinder_skew_ns: u32,
    /// Angle of the first sector; if open, it follows the zone before like the
    /// next cylinder.
    pub(crate) first_angle_ns: Option<u32>,
    /// Addresses in the zone; all of its places if open.
    pub(crate) sectors: Option<u64>,
    pub(crate) spares: Spares,
}

/// The order of tracks along the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All surfaces of a cylinder, then the next cylinder.
    Classic,
    /// The same, with the surfaces in reverse in every second cylinder of a
    /// zone, or in every odd cylinder of the disk.
    Alternating { in_zone: bool },
    /// Strips of so many cylinders.
    Serpentine(u32),
}

/// Where a sector is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) cylinder: u32,
    pub(crate) surface: u32,
    /// When it passes the head, in the revolution.
    pub(crate) angle_ns: u32,
}

#[derive(Clone, Debug)]
struct Zone {
    first_sector: u64,
    /// The sector after its last one.
    end_sector: u64,
    first_cylinder: u32,
    tracks: u64,
    track_sectors: u32,
    /// Angle of the first sector of the zone.
    base_ns: u64,
    /// Angle by which a track is behind the one before, by kind of switch.
    skew_ns: [u64; 3],
    /// Time of a switch, including the wait for the first sector.
    gap_ns: [u64; 3],
    /// Time of a switch alone, by kind, and to the next zone.
    switch_ns: [u64; 3],
    leave_switch_ns: u64,
    /// Where addresses skip places; none if they never do.
    spares: Option<Spares>,
}

/// Kinds of switches from one track to the next.
#[derive(Clone, Copy)]
enum Switch {
    Head = 0,
    Cylinder = 1,
    Strip = 2,
}

/// A track: its zone and its number in it, and a sector on it.
#[derive(Clone, Copy)]
struct OnTrack {
    zone: usize,
    track: u64,
    sector: u64,
}

/// The map from addresses to places.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    zones: Vec<Zone>,
    layout: Layout,
    surfaces: u64,
    revolution_ns: u64,
    capacity_sectors: u64,
}

impl Geometry {
    /// Lays out `zones` until `capacity_sectors` are placed. Switches take what
    /// `seek` and `head_switch_ns` say; where the skew is too small for that, a
    /// revolution is lost, as on a real disk.
    pub(crate) fn new(
        zones: &[ZoneSpec],
        layout: Layout,
        surfaces: u32,
        revolution_ns: u32,
        capacity_sectors: u64,
        seek: &SeekTable,
        head_switch_ns: u32,
    ) -> Geometry {
        let mut geometry = Geometry {
            zones: Vec::with_capacity(zones.len()),
            layout,
            surfaces: u64::from(surfaces),
            revolution_ns: u64::from(revolution_ns),
            capacity_sectors,
        };
        let step_ns = seek.ns(1).max(head_switch_ns);
        let strip_ns = match layout {
            Layout::Serpentine(tracks) if surfaces.is_multiple_of(2) => seek.ns(tracks),
            _ => step_ns,
        };
        let cylinder_ns = match layout {
            Layout::Alternating { .. } => seek.ns(1),
            _ => step_ns,
        };
        let switch_ns = [head_switch_ns, cylinder_ns, strip_ns].map(u64::from);
        let zone_switch = geometry.zone_switch() as usize;
        let (mut first_sector, mut last_base_ns) = (0, 0);
        for spec in zones {
            let skew_ns = [
                u64::from(spec.track_skew_ns),
                u64::from(spec.cylinder_skew_ns),
                u64::from(spec.cylinder_skew_ns.max(strip_ns)),
            ];
            let base_ns = match (spec.first_angle_ns, geometry.zones.last_mut()) {
                (Some(angle_ns), _) => u64::from(angle_ns),
                (None, Some(before)) => last_base_ns + before.skew_ns[zone_switch],
                (None, None) => 0,
            } % geometry.revolution_ns;
            if let Some(before) = geometry.zones.last_mut() {
                let surfaces = geometry.surfaces;
                let cylinders = before.tracks.div_ceil(surfaces).max(1) as u32;
                let last = before.first_cylinder.saturating_add(cylinders - 1);
                let distance = spec.first_cylinder.saturating_sub(last);
                before.leave_switch_ns = u64::from(seek.ns(distance)).max(switch_ns[zone_switch]);
            }
            let places = spec.tracks * u64::from(spec.track_sectors);
            let sectors = spec.sectors.unwrap_or(places);
            let zone = Zone {
                first_sector,
                end_sector: first_sector + sectors,
                first_cylinder: spec.first_cylinder,
                tracks: spec.tracks,
                track_sectors: spec.track_sectors,
                base_ns,
                skew_ns,
                gap_ns: [0, 1, 2].map(|i| gap_ns(skew_ns[i], switch_ns[i], geometry.revolution_ns)),
                switch_ns,
                leave_switch_ns: 0,
                spares: (!spec.spares.is_empty()).then(|| spec.spares.clone()),
            };
            let last_ns = base_ns + geometry.skew_sum_ns(&zone, spec.tracks.saturating_sub(1));
            last_base_ns = last_ns % geometry.revolution_ns;
            first_sector += sectors;
            geometry.zones.push(zone);
        }
        geometry
    }

    pub(crate) fn capacity_sectors(&self) -> u64 {
        self.capacity_sectors
    }

    /// By how many cylinders the order of addresses may differ from that of
    /// cylinders.
    pub(crate) fn disorder_cylinders(&self) -> u32 {
        match self.layout {
            Layout::Classic | Layout::Alternating { .. } => 0,
            Layout::Serpentine(tracks) => tracks,
        }
    }

    /// Where a sector is.
    pub(crate) fn place(&self, sector: u64) -> Place {
        let at = self.find(sector);
        let zone = &self.zones[at.zone];
        let (surfaces, track) = (self.surfaces, at.track);
        let (cylinder, surface) = match self.layout {
            Layout::Classic => (track / surfaces, track % surfaces),
            Layout::Alternating { in_zone } => {
                let (cylinder, step) = (track / surfaces, track % surfaces);
                let before = if in_zone { 0 } else { zone.first_cylinder };
                let reversed = (cylinder + u64::from(before)) % 2 == 1;
                (cylinder, if reversed { surfaces - 1 - step } else { step })
            }
            Layout::Serpentine(strip_tracks) => {
                let strip_tracks = u64::from(strip_tracks);
                let (strip, rest) = (
                    track / (strip_tracks * surfaces),
                    track % (strip_tracks * surfaces),
                );
                let (pass, step) = (rest / strip_tracks, rest % strip_tracks);
                let inwards = pass % 2 == 0;
                let column = if inwards {
                    step
                } else {
                    strip_tracks - 1 - step
                };
                let surface = if strip % 2 == 0 {
                    pass
                } else {
                    surfaces - 1 - pass
                };
                (strip * strip_tracks + column, surface)
            }
        };
        Place {
            cylinder: zone.first_cylinder + cylinder as u32,
            surface: surface as u32,
            angle_ns: self.angle_ns(&at, at.sector) as u32,
        }
    }

    /// When place `sector` of a track passes the head, in the revolution.
    fn angle_ns(&self, at: &OnTrack, sector: u64) -> u64 {
        let zone = &self.zones[at.zone];
        let skew_ns = self.skew_sum_ns(zone, at.track);
        (zone.base_ns + skew_ns + self.offset_ns(zone, sector)) % self.revolution_ns
    }

    /// Time from the begin of `sector` under the head to the end of the `n`th
    /// sector from it, with the switches between.
    pub(crate) fn transfer_ns(&self, sector: u64, n: u64) -> u64 {
        let mut at = self.find(sector);
        let (mut sector, mut left, mut time_ns) = (sector, n, 0);
        while left > 0 {
            let zone = &self.zones[at.zone];
            let here = left.min(self.on_track(&at, sector));
            let end = self.end_of_run(&at, sector, here);
            time_ns += self.offset_ns(zone, end) - self.offset_ns(zone, at.sector);
            left -= here;
            sector += here;
            if left > 0 {
                time_ns += self.step(&mut at, end, sector);
            }
        }
        time_ns
    }

    /// The sector up to which the medium has passed after `time_ns`, if it runs
    /// on from `sector`, but no further than `limit`. The inverse of
    /// [`Geometry::transfer_ns`].
    pub(crate) fn passed(&self, sector: u64, time_ns: u64, limit: u64) -> u64 {
        let mut at = self.find(sector);
        let (mut sector, mut left_ns) = (sector, time_ns);
        while sector < limit {
            let zone = &self.zones[at.zone];
            let here = self.on_track(&at, sector);
            let end = self.end_of_run(&at, sector, here);
            let begin_ns = self.offset_ns(zone, at.sector);
            let track_ns = self.offset_ns(zone, end) - begin_ns;
            if left_ns < track_ns {
                return limit.min(self.passed_on_track(&at, sector, here, begin_ns + left_ns));
            }
            sector += here;
            left_ns -= track_ns;
            if sector >= limit {
                break;
            }
            let gap_ns = self.step(&mut at, end, sector);
            if left_ns < gap_ns {
                break;
            }
            left_ns -= gap_ns;
        }
        sector.min(limit)
    }

    /// The sector after the last of `n` from `sector` on (one track) that has
    /// passed when the head is at `until_ns` from the begin of the track.
    fn passed_on_track(&self, at: &OnTrack, sector: u64, n: u64, until_ns: u64) -> u64 {
        let zone = &self.zones[at.zone];
        let mut passed = until_ns * u64::from(zone.track_sectors) / self.revolution_ns;
        while self.offset_ns(zone, passed + 1) <= until_ns {
            passed += 1;
        }
        let Some(spares) = &zone.spares else {
            return sector + passed.saturating_sub(at.sector);
        };
        let place = at.track * u64::from(zone.track_sectors) + passed;
        let reached = zone.first_sector + spares.address_from(place);
        reached.clamp(sector, sector + n)
    }

    /// Time between the end of the sector before `sector` and its own begin: a
    /// switch if it is the first one of its track, else nothing unless places
    /// are skipped.
    pub(crate) fn gap_before_ns(&self, sector: u64) -> u64 {
        let Some(before) = sector
            .checked_sub(1)
            .filter(|_| sector < self.capacity_sectors)
        else {
            return 0;
        };
        let (at, mut last) = (self.find(sector), self.find(before));
        if at.zone == last.zone && at.track == last.track {
            let zone = &self.zones[at.zone];
            return self.offset_ns(zone, at.sector) - self.offset_ns(zone, last.sector + 1);
        }
        let end = last.sector + 1;
        self.step(&mut last, end, sector)
    }

    /// The first sector of the track of `sector`.
    pub(crate) fn track_begin(&self, sector: u64) -> u64 {
        let at = self.find(sector);
        self.first_of_track(&at, at.track).min(sector)
    }

    /// The sector after the last one of the track of `sector`.
    pub(crate) fn track_end(&self, sector: u64) -> u64 {
        sector + self.on_track(&self.find(sector), sector)
    }

    /// The sector after the last one of the cylinder of `sector` in a classic
    /// layout, of the run on one surface in a serpentine one.
    pub(crate) fn cylinder_end(&self, sector: u64) -> u64 {
        let at = self.find(sector);
        let tracks = match self.layout {
            Layout::Classic | Layout::Alternating { .. } => self.surfaces,
            Layout::Serpentine(tracks) => u64::from(tracks),
        };
        let track = at.track - at.track % tracks + tracks;
        self.first_of_track(&at, track).max(sector + 1)
    }

    /// The first sector on track `track` of the zone of `at` or behind it.
    fn first_of_track(&self, at: &OnTrack, track: u64) -> u64 {
        let zone = &self.zones[at.zone];
        let place = track * u64::from(zone.track_sectors);
        let address = zone
            .spares
            .as_ref()
            .map_or(place, |s| s.address_from(place));
        let last = at.zone + 1 == self.zones.len();
        let end_sector = if last { u64::MAX } else { zone.end_sector };
        (zone.first_sector + address).min(end_sector)
    }

    /// How many sectors from `sector`, which is at `at`, are on its track.
    fn on_track(&self, at: &OnTrack, sector: u64) -> u64 {
        let zone = &self.zones[at.zone];
        if zone.spares.is_none() {
            return u64::from(zone.track_sectors) - at.sector;
        }
        self.first_of_track(at, at.track + 1)
            .saturating_sub(sector)
            .max(1)
    }

    /// The place on its track after the last of `n` sectors from `sector` on.
    fn end_of_run(&self, at: &OnTrack, sector: u64, n: u64) -> u64 {
        if self.zones[at.zone].spares.is_none() || n <= 1 {
            return at.sector + n;
        }
        self.find(sector + n - 1).sector + 1
    }

    fn find(&self, sector: u64) -> OnTrack {
        let zone = self
            .zones
            .partition_point(|z| z.first_sector <= sector)
            .saturating_sub(1);
        let z = &self.zones[zone];
        let (address, track_sectors) = (sector - z.first_sector, u64::from(z.track_sectors));
        let place = z.spares.as_ref().map_or(address, |s| s.place(address));
        OnTrack {
            zone,
            track: place / track_sectors,
            sector: place % track_sectors,
        }
    }

    /// Goes on from place `end` of a track to `sector` on the next one; says
    /// how long that takes.
    fn step(&self, at: &mut OnTrack, end: u64, sector: u64) -> u64 {
        let zone = &self.zones[at.zone];
        let leaves = sector >= zone.end_sector && at.zone + 1 < self.zones.len();
        if zone.spares.is_none() && !leaves {
            at.track += 1;
            at.sector = 0;
            return zone.gap_ns[self.switch_to(at.track) as usize];
        }
        let next = self.find(sector);
        let switch_ns = if leaves {
            zone.leave_switch_ns
        } else {
            zone.switch_ns[self.switch_to(next.track) as usize]
        };
        let from_ns = self.angle_ns(at, end);
        let skew_ns = self.angle_ns(&next, next.sector) + self.revolution_ns - from_ns;
        *at = next;
        gap_ns(skew_ns % self.revolution_ns, switch_ns, self.revolution_ns)
    }

    /// How the first track of a zone follows the last of the one before.
    fn zone_switch(&self) -> Switch {
        match self.layout {
            Layout::Classic | Layout::Alternating { .. } => Switch::Cylinder,
            Layout::Serpentine(_) => Switch::Strip,
        }
    }

    fn switch_to(&self, track: u64) -> Switch {
        match self.layout {
            Layout::Serpentine(tracks) => self.serpentine_switch(track, u64::from(tracks)),
            _ if track.is_multiple_of(self.surfaces) => Switch::Cylinder,
            _ => Switch::Head,
        }
    }

    fn serpentine_switch(&self, track: u64, tracks: u64) -> Switch {
        match track % (tracks * self.surfaces) {
            0 => Switch::Strip,
            rest if rest % tracks == 0 => Switch::Head,
            _ => Switch::Cylinder,
        }
    }

    /// Skew of track number `track` of a zone against its first.
    fn skew_sum_ns(&self, zone: &Zone, track: u64) -> u64 {
        let [head, cylinder, strip] = zone.skew_ns;
        match self.layout {
            Layout::Classic | Layout::Alternating { .. } => {
                let (cylinders, heads) = (track / self.surfaces, track % self.surfaces);
                cylinders * ((self.surfaces - 1) * head + cylinder) + heads * head
            }
            Layout::Serpentine(tracks) => {
                let tracks = u64::from(tracks);
                let run = (tracks - 1) * cylinder;
                let strips = track / (tracks * self.surfaces);
                let rest = track % (tracks * self.surfaces);
                let per_strip = self.surfaces * run + (self.surfaces - 1) * head + strip;
                strips * per_strip + rest / tracks * (run + head) + rest % tracks * cylinder
            }
        }
    }

    /// Angle of a sector against the first of its track.
    fn offset_ns(&self, zone: &Zone, sector: u64) -> u64 {
        sector * self.revolution_ns / u64::from(zone.track_sectors)
    }
}

/// Time from the end of one track to the begin of the next, given the angle
/// between the two and the time of the switch.
fn gap_ns(skew_ns: u64, switch_ns: u64, revolution_ns: u64) -> u64 {
    skew_ns + switch_ns.saturating_sub(skew_ns).div_ceil(revolution_ns) * revolution_ns
}
