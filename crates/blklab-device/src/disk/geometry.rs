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
//! every other strip takes the surfaces in reverse.
//!
//! Left out: spare sectors, slips and remapped defects.

use super::seek::SeekTable;

/// One zone as described: tracks with equally many sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ZoneSpec {
    pub(crate) first_cylinder: u32,
    /// Tracks in use; those that the cylinders have beyond that hold spares.
    pub(crate) tracks: u64,
    pub(crate) track_sectors: u32,
    pub(crate) track_skew_ns: u32,
    pub(crate) cylinder_skew_ns: u32,
    /// Angle of the first sector; if open, it follows the zone before like the
    /// next cylinder.
    pub(crate) first_angle_ns: Option<u32>,
}

/// The order of tracks along the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All surfaces of a cylinder, then the next cylinder.
    Classic,
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

#[derive(Clone, Copy, Debug)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    tracks: u64,
    track_sectors: u32,
    /// Angle of the first sector of the zone.
    base_ns: u64,
    /// Angle by which a track is behind the one before, by kind of switch.
    skew_ns: [u64; 3],
    /// Time of a switch, including the wait for the first sector.
    gap_ns: [u64; 3],
    /// The same for the first track of the next zone.
    leave_ns: u64,
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
        let switch_ns = [head_switch_ns, step_ns, strip_ns].map(u64::from);
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
                let angle_ns = base_ns + geometry.revolution_ns - last_base_ns;
                let skew_ns = angle_ns % geometry.revolution_ns;
                before.leave_ns = gap_ns(skew_ns, switch_ns[zone_switch], geometry.revolution_ns);
            }
            let zone = Zone {
                first_sector,
                first_cylinder: spec.first_cylinder,
                tracks: spec.tracks,
                track_sectors: spec.track_sectors,
                base_ns,
                skew_ns,
                gap_ns: [0, 1, 2].map(|i| gap_ns(skew_ns[i], switch_ns[i], geometry.revolution_ns)),
                leave_ns: 0,
            };
            let last_ns = base_ns + geometry.skew_sum_ns(&zone, spec.tracks.saturating_sub(1));
            last_base_ns = last_ns % geometry.revolution_ns;
            first_sector += spec.tracks * u64::from(spec.track_sectors);
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
            Layout::Classic => 0,
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
        let angle_ns =
            zone.base_ns + self.skew_sum_ns(zone, track) + self.offset_ns(zone, at.sector);
        Place {
            cylinder: zone.first_cylinder + cylinder as u32,
            surface: surface as u32,
            angle_ns: (angle_ns % self.revolution_ns) as u32,
        }
    }

    /// Time from the begin of `sector` under the head to the end of the `n`th
    /// sector from it, with the switches between.
    pub(crate) fn transfer_ns(&self, sector: u64, n: u64) -> u64 {
        let mut at = self.find(sector);
        let (mut left, mut time_ns) = (n, 0);
        loop {
            let zone = &self.zones[at.zone];
            let here = left.min(u64::from(zone.track_sectors) - at.sector);
            time_ns += self.offset_ns(zone, at.sector + here) - self.offset_ns(zone, at.sector);
            left -= here;
            if left == 0 {
                return time_ns;
            }
            time_ns += self.step(&mut at);
        }
    }

    /// The sector up to which the medium has passed after `time_ns`, if it runs
    /// on from `sector`, but no further than `limit`. The inverse of
    /// [`Geometry::transfer_ns`].
    pub(crate) fn passed(&self, sector: u64, time_ns: u64, limit: u64) -> u64 {
        let mut at = self.find(sector);
        let (mut here, mut left_ns) = (sector, time_ns);
        while here < limit {
            let zone = &self.zones[at.zone];
            let track_sectors = u64::from(zone.track_sectors);
            let begin_ns = self.offset_ns(zone, at.sector);
            let track_ns = self.revolution_ns - begin_ns;
            if left_ns < track_ns {
                let until_ns = begin_ns + left_ns;
                let mut passed = until_ns * track_sectors / self.revolution_ns;
                while self.offset_ns(zone, passed + 1) <= until_ns {
                    passed += 1;
                }
                return limit.min(here + passed.saturating_sub(at.sector));
            }
            here += track_sectors - at.sector;
            left_ns -= track_ns;
            let gap_ns = self.step(&mut at);
            if left_ns < gap_ns {
                break;
            }
            left_ns -= gap_ns;
        }
        here.min(limit)
    }

    /// Time between the end of the sector before `sector` and its own begin: a
    /// switch if it is the first one of its track, else nothing.
    pub(crate) fn gap_before_ns(&self, sector: u64) -> u64 {
        let Some(before) = sector
            .checked_sub(1)
            .filter(|_| sector < self.capacity_sectors)
        else {
            return 0;
        };
        let at = self.find(sector);
        if at.sector > 0 {
            0
        } else {
            self.step(&mut self.find(before))
        }
    }

    /// The sector after the last one of the track of `sector`.
    pub(crate) fn track_end(&self, sector: u64) -> u64 {
        let at = self.find(sector);
        sector - at.sector + u64::from(self.zones[at.zone].track_sectors)
    }

    /// The sector after the last one of the cylinder of `sector` in a classic
    /// layout, of the run on one surface in a serpentine one.
    pub(crate) fn cylinder_end(&self, sector: u64) -> u64 {
        let at = self.find(sector);
        let tracks = match self.layout {
            Layout::Classic => self.surfaces,
            Layout::Serpentine(tracks) => u64::from(tracks),
        };
        let track_sectors = u64::from(self.zones[at.zone].track_sectors);
        sector - at.sector + (tracks - at.track % tracks) * track_sectors
    }

    fn find(&self, sector: u64) -> OnTrack {
        let zone = self
            .zones
            .partition_point(|z| z.first_sector <= sector)
            .saturating_sub(1);
        let z = &self.zones[zone];
        let (offset, track_sectors) = (sector - z.first_sector, u64::from(z.track_sectors));
        OnTrack {
            zone,
            track: offset / track_sectors,
            sector: offset % track_sectors,
        }
    }

    /// Goes to the next track; says how long that takes.
    fn step(&self, at: &mut OnTrack) -> u64 {
        at.track += 1;
        at.sector = 0;
        let zone = &self.zones[at.zone];
        if at.track == zone.tracks && at.zone + 1 < self.zones.len() {
            at.zone += 1;
            at.track = 0;
            return zone.leave_ns;
        }
        zone.gap_ns[self.switch_to(at.track) as usize]
    }

    /// How the first track of a zone follows the last of the one before.
    fn zone_switch(&self) -> Switch {
        match self.layout {
            Layout::Classic => Switch::Cylinder,
            Layout::Serpentine(_) => Switch::Strip,
        }
    }

    fn switch_to(&self, track: u64) -> Switch {
        match self.layout {
            Layout::Classic if track.is_multiple_of(self.surfaces) => Switch::Cylinder,
            Layout::Classic => Switch::Head,
            Layout::Serpentine(tracks) => {
                let tracks = u64::from(tracks);
                match track % (tracks * self.surfaces) {
                    0 => Switch::Strip,
                    rest if rest % tracks == 0 => Switch::Head,
                    _ => Switch::Cylinder,
                }
            }
        }
    }

    /// Skew of track number `track` of a zone against its first.
    fn skew_sum_ns(&self, zone: &Zone, track: u64) -> u64 {
        let [head, cylinder, strip] = zone.skew_ns;
        match self.layout {
            Layout::Classic => {
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
