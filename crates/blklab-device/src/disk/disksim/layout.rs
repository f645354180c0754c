// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout model G1 of DiskSim: zones, spares, slips, order of surfaces.
//!
//! Source: the manual of DiskSim 4.0, "LBN-to-PBN mapping scheme" and "Sparing
//! scheme used".

use super::super::spares::Spares;
use super::{Block, DeviceError, Layout, Value, ZoneSpec};

/// Where spares are, by the number of the sparing scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// 0, 7: none, or at the end of the disk.
    Disk,
    /// 1: whole tracks at the end of zones; slips are tracks too.
    ZoneTracks,
    /// 2 to 6, 8 to 10: in regions.
    Regions {
        region: Region,
        front: bool,
        for_slips: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Track,
    Cylinders(u64),
    Zone,
}

/// The block that describes a part of the model, which must be of one kind.
pub(super) fn part<'b, 'a>(
    model: &'b Block<'a>,
    key: &str,
    kind: &str,
) -> Result<&'b Block<'a>, DeviceError> {
    let found = model.block(key).filter(|b| b.kind == kind);
    found.ok_or_else(|| model.bad(key, &format!("a block of kind {kind}")))
}

/// The zones and the order of their tracks.
pub(super) fn zones(
    model: &Block<'_>,
    surfaces: u32,
    capacity: u64,
    revolution_ns: u32,
) -> Result<(Vec<ZoneSpec>, Layout), DeviceError> {
    let layout = part(model, "Layout Model", "dm_layout_g1")?;
    let order = match layout.opt("LBN-to-PBN mapping scheme")?.unwrap_or(0.0) as i64 {
        0 => Layout::Classic,
        1 => Layout::Alternating { in_zone: true },
        2 => Layout::Alternating { in_zone: false },
        _ => return Err(layout.bad("LBN-to-PBN mapping scheme", "0, 1 or 2")),
    };
    let scheme = scheme(layout)?;
    let mut zones: Vec<ZoneSpec> = Vec::new();
    for value in layout.list("Zones") {
        let Value::Block(zone) = value else {
            return Err(layout.bad("Zones", "a list of blocks 'dm_layout_g1_zone { … }'"));
        };
        let previous = zones.last().map(|z| (z, z.tracks / u64::from(surfaces)));
        let from = previous.map_or(0, |(z, cylinders)| u64::from(z.first_cylinder) + cylinders);
        zones.push(zone_of(zone, scheme, from, surfaces, revolution_ns)?);
    }
    if zones.is_empty() {
        return Err(layout.bad("Zones", "a list of blocks 'dm_layout_g1_zone { … }'"));
    }
    fit(model, zones, capacity).map(|zones| (zones, order))
}

fn scheme(layout: &Block<'_>) -> Result<Scheme, DeviceError> {
    let range = layout.opt("Rangesize for sparing")?.unwrap_or(1.0);
    let range = range.clamp(1.0, 1e6) as u64;
    let regions = |region, front, for_slips| Scheme::Regions {
        region,
        front,
        for_slips,
    };
    Ok(
        match layout.opt("Sparing scheme used")?.unwrap_or(0.0) as i64 {
            0 | 7 => Scheme::Disk,
            1 => Scheme::ZoneTracks,
            2 => regions(Region::Cylinders(1), false, true),
            3 => regions(Region::Track, false, true),
            4 => regions(Region::Cylinders(1), false, false),
            5 => regions(Region::Cylinders(1), true, true),
            6 => regions(Region::Cylinders(1), true, false),
            8 => regions(Region::Cylinders(range), false, true),
            9 => regions(Region::Zone, false, true),
            10 => regions(Region::Zone, false, false),
            _ => return Err(layout.bad("Sparing scheme used", "0 to 10")),
        },
    )
}

/// One zone, which begins at cylinder `from` or later.
fn zone_of(
    zone: &Block<'_>,
    scheme: Scheme,
    from: u64,
    surfaces: u32,
    revolution_ns: u32,
) -> Result<ZoneSpec, DeviceError> {
    let first = zone.within("First cylinder number", from as f64, 4e6)? as u64;
    let last = zone.within("Last cylinder number", first as f64, 4e6)? as u64;
    let spt = zone.within("Blocks per track", 1.0, 1e6)? as u64;
    let tracks = (last - first + 1) * u64::from(surfaces);
    let skew_ns = |key| -> Result<u32, DeviceError> {
        let sectors = zone.opt(key)?.unwrap_or(0.0);
        if !(-1e6..=1e6).contains(&sectors) {
            return Err(zone.bad(key, "-1000000 to 1000000 sectors"));
        }
        Ok((sectors.rem_euclid(spt as f64) * f64::from(revolution_ns) / spt as f64).round() as u32)
    };
    let spares = spares(zone, scheme, tracks, spt, u64::from(surfaces))?;
    let whole_tracks = match scheme {
        Scheme::ZoneTracks => zone.opt("Number of spares")?.unwrap_or(0.0).max(0.0) as u64,
        _ => 0,
    };
    let places = tracks.saturating_sub(whole_tracks) * spt;
    Ok(ZoneSpec {
        first_cylinder: first as u32,
        tracks,
        track_sectors: spt as u32,
        track_skew_ns: skew_ns("Skew for track switch")?,
        cylinder_skew_ns: skew_ns("Skew for cylinder switch")?,
        first_angle_ns: Some(skew_ns("Offset of first block")? % revolution_ns),
        sectors: Some(spares.addresses(places)),
        spares,
    })
}

fn spares(
    zone: &Block<'_>,
    scheme: Scheme,
    tracks: u64,
    spt: u64,
    surfaces: u64,
) -> Result<Spares, DeviceError> {
    let count = |key| -> Result<u64, DeviceError> {
        match zone.opt(key)? {
            Some(_) => Ok(zone.within(key, 0.0, 1e12)? as u64),
            None => Ok(0),
        }
    };
    let unit = if scheme == Scheme::ZoneTracks { spt } else { 1 };
    let mut slips: Vec<(u64, u64)> = Vec::new();
    for slip in zone.numbers("slips")? {
        let at = (slip.max(0.0) as u64).saturating_mul(unit);
        slips.push((at, unit));
    }
    slips.sort_unstable();
    // The n-th slip is given by its place; so many addresses are before it.
    let mut spares = Spares {
        front_empty: count("Empty space at zone front")?,
        slips,
        slips_use_spares: scheme == Scheme::ZoneTracks,
        ..Spares::default()
    };
    if let Scheme::Regions {
        region,
        front,
        for_slips,
    } = scheme
    {
        let number = count("Number of spares")?;
        spares.region = match region {
            Region::Track => spt,
            Region::Cylinders(n) => n * surfaces * spt,
            Region::Zone => tracks * spt,
        };
        if number >= spares.region {
            let expected = format!("fewer than the {} of their region", spares.region);
            return Err(zone.bad("Number of spares", &expected));
        }
        (spares.region_front, spares.region_end) = if front { (number, 0) } else { (0, number) };
        spares.slips_use_spares = for_slips;
    }
    Ok(spares)
}

/// Lets the zones hold the block count. What the description of spares leaves
/// short, the last zone takes from its own.
fn fit(
    model: &Block<'_>,
    mut zones: Vec<ZoneSpec>,
    capacity: u64,
) -> Result<Vec<ZoneSpec>, DeviceError> {
    let places = |z: &ZoneSpec| z.tracks * u64::from(z.track_sectors);
    let most: u64 = zones.iter().map(places).sum();
    if capacity > most {
        return Err(model.bad("Block count", &format!("at most the {most} of all zones")));
    }
    zones.retain(|z| z.sectors != Some(0));
    let held: u64 = zones.iter().filter_map(|z| z.sectors).sum();
    if let Some(last) = zones.last_mut() {
        let sectors = last.sectors.unwrap_or(0);
        last.sectors = Some(sectors + capacity.saturating_sub(held));
    } else {
        return Err(model.bad("Block count", "zones with room for data"));
    }
    Ok(zones)
}
