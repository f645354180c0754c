// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks described in the files of DiskSim 4.0.
//!
//! A disk of the DiskSim distribution (or one that its extraction tool DIXtrac
//! has measured) is a `.diskspecs` file with the controller's parameters, a
//! `.model` file with geometry and mechanics, a `.seek` file with measured seek
//! times unless an equation is used, and a `.parv` file with the system around
//! it, of which only the time per sector on the slowest bus is used. The texts
//! are handed in; reading files is the caller's business.
//!
//! Taken over: rotation, zones (tracks, skews, angle of the first block), seeks,
//! settling, head switch, overheads by kind of command and of the one before,
//! segments and read-ahead, write caching, bus. Left out: the places of spare
//! sectors, slips and defects (a zone simply ends earlier), the order of surfaces
//! in reversed cylinders, partial hits, disconnection, and command queueing.

use super::geometry::{Geometry, Layout, ZoneSpec};
use super::mechanism::Mechanism;
use super::params::cylinders;
use super::read_cache::{PrefetchStop, ReadCache, ReadCacheSpec};
use super::seek::{SeekCurve, SeekTable};
use super::select::{Policy, Selection};
use super::write_cache::{ReadPriority, WriteCache, WriteCacheSpec};
use super::{Disk, Overheads, Parts};
use crate::device::Device;
use crate::error::DeviceError;

/// The texts of a disk's files.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskSimFiles<'a> {
    /// `NAME.diskspecs`.
    pub diskspecs: &'a str,
    /// `NAME.model`; empty if `diskspecs` contains it.
    pub model: &'a str,
    /// `NAME.seek`; empty if the model uses an equation.
    pub seek: &'a str,
    /// `NAME.parv`; may be empty.
    pub system: &'a str,
}

/// Builds a disk from DiskSim's files.
///
/// # Errors
///
/// If a parameter that is needed is missing or has no possible value.
pub fn build_disksim(
    files: &DiskSimFiles<'_>,
    queue_depth: u32,
) -> Result<Box<dyn Device>, DeviceError> {
    let controller = File {
        name: "diskspecs",
        text: files.diskspecs,
    };
    let text = if files.model.is_empty() {
        files.diskspecs
    } else {
        files.model
    };
    let model = File {
        name: "model",
        text,
    };
    let read_ahead = controller.number("Maximum read-ahead (blks)")? as u64;
    let segment_sectors = controller.number("Segment size (in blks)")?.clamp(1.0, 1e9) as u64;
    let segments = controller
        .number("Number of buffer segments")?
        .clamp(1.0, 1024.0) as u32;
    let prefetch = controller.number("Buffer continuous read")? as u32;
    let fast_write_level = controller.number("Fast write level")? as u32;
    let write_segments = controller
        .number("Maximum number of write segments")?
        .clamp(1.0, 1024.0) as u32;
    let bus = File {
        name: "parv",
        text: files.system,
    }
    .largest("Read block transfer time")?;
    let bus_ms = controller.number("Bulk sector transfer time")?.max(bus);
    let parts = Parts {
        mech: mechanism(&model, files.seek, controller.on("Immediate buffer read")?)?,
        overheads: overheads(&controller, fast_write_level)?,
        bus_ns: ns(bus_ms),
        selection: Selection {
            policy: Policy::Fcfs,
            age_limit_ns: 0,
            read_bias: 1024,
        },
        cache: ReadCache::new(ReadCacheSpec {
            segments,
            segment_sectors,
            read_ahead_sectors: if prefetch == 0 {
                0
            } else {
                read_ahead.min(segment_sectors)
            },
            stop: match prefetch {
                1 => PrefetchStop::Track,
                2 => PrefetchStop::Cylinder,
                _ => PrefetchStop::Segment,
            },
        }),
        prefetch_min_sectors: controller.number("Minimum read-ahead (blks)")? as u64,
        resume_read_ahead: controller.on("Read-ahead on idle hit")?,
        writes: WriteCache::new(WriteCacheSpec {
            limit_sectors: if fast_write_level > 0 {
                segment_sectors * u64::from(write_segments)
            } else {
                0
            },
            max_ranges: write_segments,
            piece_sectors: segment_sectors,
            high_pct: 75,
            low_pct: 25,
            age_ns: 0,
            read_priority: ReadPriority::Mixed(1),
            serves_reads: controller.on("Allow read hits on write data")?,
        }),
    };
    Ok(Box::new(Disk::new(parts, queue_depth)))
}

/// At fast write level 1 only writes that append to the last one count as hits;
/// they are taken for misses here, as most are.
fn overheads(controller: &File<'_>, fast_write_level: u32) -> Result<Overheads, DeviceError> {
    let scale = controller.number("Time scale for overheads")?;
    let each = controller.number("Per-request overhead time")?;
    let pair = |kind: &str, completion: &str| -> Result<[u64; 2], DeviceError> {
        let more = each + controller.number(completion)?;
        let after = |what| controller.number(&format!("{kind} over. after {what}"));
        Ok([after("read")?, after("write")?].map(|ms| ns((ms + more) * scale)))
    };
    let write_hit = if fast_write_level == 1 {
        "Write miss"
    } else {
        "Write hit"
    };
    Ok(Overheads {
        read_hit_ns: pair("Read hit", "Read completion overhead")?,
        read_miss_ns: pair("Read miss", "Read completion overhead")?,
        write_hit_ns: pair(write_hit, "Write completion overhead")?,
        write_miss_ns: pair("Write miss", "Write completion overhead")?,
    })
}

fn mechanism(model: &File<'_>, seek: &str, zero_latency: bool) -> Result<Mechanism, DeviceError> {
    let rpm = model.number("Rotation speed (in rpms)")?;
    if !(300.0..=100_000.0).contains(&rpm) {
        return Err(model.bad("Rotation speed (in rpms)", "300 to 100000"));
    }
    let revolution_ns = (60e9 / rpm).round() as u32;
    let surfaces = model.number("Number of data surfaces")?.clamp(1.0, 256.0) as u32;
    let capacity = model.number("Block count")? as u64;
    let zones = zones(model, surfaces, capacity, revolution_ns)?;
    let cylinders = cylinders(&zones, surfaces);
    let table = SeekTable::new(&seek_curve(model, seek)?, cylinders);
    let head_switch_ns = ns(model.number("Head switch time")?) as u32;
    // Some files correct measured seeks of reads by a negative settling time.
    let settle_ms = model.number("Add. write settling delay")?;
    let settle_ns = (settle_ms.clamp(-100.0, 100.0) * 1e6).round() as i32;
    let geometry = Geometry::new(
        &zones,
        Layout::Classic,
        surfaces,
        revolution_ns,
        capacity,
        &table,
        head_switch_ns,
    );
    Ok(Mechanism::new(
        geometry,
        table,
        revolution_ns,
        head_switch_ns,
        settle_ns,
        zero_latency,
    ))
}

/// The zones, each with as large a part of its tracks in use as the capacity is
/// of all sectors; the last one takes what rounding leaves over.
fn zones(
    model: &File<'_>,
    surfaces: u32,
    capacity: u64,
    revolution_ns: u32,
) -> Result<Vec<ZoneSpec>, DeviceError> {
    let all = |key| model.all(key);
    let (first, last) = (all("First cylinder number")?, all("Last cylinder number")?);
    let (spt, angle) = (all("Blocks per track")?, all("Offset of first block")?);
    let (head, cylinder) = (
        all("Skew for track switch")?,
        all("Skew for cylinder switch")?,
    );
    let columns = [&last, &spt, &angle, &head, &cylinder];
    if first.is_empty() || columns.iter().any(|c| c.len() != first.len()) {
        return Err(model.bad("Zones", "six parameters of each zone: first and last cylinder, blocks per track, offset of first block, and both skews"));
    }
    let tracks = |i: usize| (last[i] - first[i] + 1.0).max(1.0) * f64::from(surfaces);
    let before = |i: usize| if i == 0 { -1.0 } else { last[i - 1] };
    let ok = |i: usize| {
        let tracks = (1.0..=1e6).contains(&spt[i]);
        tracks && first[i] > before(i) && last[i] >= first[i] && last[i] < 4e6
    };
    if !(0..first.len()).all(ok) {
        return Err(model.bad(
            "Zones",
            "a block or more per track, cylinders in ascending order",
        ));
    }
    let raw: f64 = (0..first.len()).map(|i| tracks(i) * spt[i]).sum();
    let share = capacity as f64 / raw;
    if share > 1.0 || capacity == 0 {
        return Err(model.bad("Block count", &format!("1 to the {raw} of all zones")));
    }
    let mut zones: Vec<ZoneSpec> = (0..first.len())
        .map(|i| {
            let skew_ns =
                |sectors: f64| (sectors * f64::from(revolution_ns) / spt[i]).round() as u32;
            ZoneSpec {
                first_cylinder: first[i] as u32,
                tracks: (tracks(i) * share).round() as u64,
                track_sectors: spt[i] as u32,
                track_skew_ns: skew_ns(head[i]),
                cylinder_skew_ns: skew_ns(cylinder[i]),
                first_angle_ns: Some(skew_ns(angle[i]) % revolution_ns),
            }
        })
        .collect();
    let held: u64 = zones
        .iter()
        .map(|z| z.tracks * u64::from(z.track_sectors))
        .sum();
    if let Some(zone) = zones.last_mut() {
        zone.tracks += capacity
            .saturating_sub(held)
            .div_ceil(u64::from(zone.track_sectors));
    }
    zones.retain(|zone| zone.tracks > 0);
    Ok(zones)
}

/// Measured times, or the equation of the HP laboratories: `V2 + V3*sqrt(d)`
/// below V1 cylinders, `V4 + V5*d` from there on.
fn seek_curve(model: &File<'_>, seek: &str) -> Result<SeekCurve, DeviceError> {
    let measured = seek_table(seek)?;
    if !measured.is_empty() {
        return Ok(SeekCurve::Table(measured));
    }
    let short = model.list("First ten seek times");
    let [limit, a_ms, b_ms, c_ms, e_ms] = match model.list("HPL seek equation values")[..] {
        [limit, a, b, c, e, ..] if e != 0.0 => [limit, a, b, c, e],
        _ => {
            return Err(model.bad(
                "HPL seek equation values",
                "an equation, or a file of seek times",
            ));
        }
    };
    let long = SeekCurve::ThreePart {
        a_ms,
        b_ms,
        limit: limit as u32,
        c_ms,
        e_ms,
    };
    if short.len() < 10
        || !model
            .text_of("Seek type")
            .is_some_and(|t| t.contains("plus10"))
    {
        return Ok(long);
    }
    let cylinders = model.number("Number of cylinders")?.min(4e6) as u32;
    let first = short.iter().zip(1..).map(|(ms, d)| (d, *ms));
    let rest = (short.len() as u32 + 1..cylinders).map(|d| (d, long.ms(d)));
    Ok(SeekCurve::Table(first.chain(rest).collect()))
}

/// Lines of `distance, ms`; anything before the first is a heading.
fn seek_table(text: &str) -> Result<Vec<(u32, f64)>, DeviceError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some((distance, ms)) = line.split_once(',') else {
            continue;
        };
        let point = (distance.trim().parse(), ms.trim().parse());
        let (Ok(distance), Ok(ms)) = point else {
            return Err(bad_line(
                i + 1,
                format!("'{}': expected 'distance, milliseconds'", line.trim()),
            ));
        };
        let rising = points.last().is_none_or(|last| last.0 < distance);
        if !rising || !(0.0..=1000.0).contains(&ms) {
            return Err(bad_line(
                i + 1,
                format!(
                    "'{}': expected rising distances and 0 to 1000 ms",
                    line.trim()
                ),
            ));
        }
        points.push((distance, ms));
    }
    Ok(points)
}

fn bad_line(line: usize, reason: String) -> DeviceError {
    DeviceError::BadFile { line, reason }
}

/// Nanoseconds of a time in milliseconds; none below zero.
fn ns(ms: f64) -> u64 {
    (ms.clamp(0.0, 1000.0) * 1e6).round() as u64
}

/// A parameter file: lines of `key = value`. The nesting does not matter, since
/// no key means two things.
struct File<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> File<'a> {
    /// Number of the line, key and value of every line that assigns something.
    fn assignments(&self) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
        self.text.lines().enumerate().filter_map(|(i, line)| {
            let line = line.split('#').next().unwrap_or_default();
            let (key, value) = line.split_once('=')?;
            Some((
                i + 1,
                key.trim(),
                value.trim().trim_end_matches(',').trim_end(),
            ))
        })
    }

    fn text_of(&self, key: &str) -> Option<&'a str> {
        self.assignments()
            .find(|(_, k, _)| *k == key)
            .map(|(_, _, value)| value)
    }

    /// Every value of a key that must be a number.
    fn all(&self, key: &str) -> Result<Vec<f64>, DeviceError> {
        let number = |(line, _, value): (usize, &str, &'a str)| {
            let number: Option<f64> = value.parse().ok();
            number
                .filter(|v| v.is_finite() && v.abs() < 1e15)
                .ok_or_else(|| {
                    bad_line(
                        line,
                        format!("{} file: {key} = {value}: expected a number", self.name),
                    )
                })
        };
        self.assignments()
            .filter(|(_, k, _)| *k == key)
            .map(number)
            .collect()
    }

    fn number(&self, key: &str) -> Result<f64, DeviceError> {
        self.all(key)?
            .first()
            .copied()
            .ok_or_else(|| self.bad(key, "a number"))
    }

    /// The largest value of a key, 0 if there is none.
    fn largest(&self, key: &str) -> Result<f64, DeviceError> {
        Ok(self.all(key)?.into_iter().fold(0.0, f64::max))
    }

    fn on(&self, key: &str) -> Result<bool, DeviceError> {
        Ok(self.number(key)? != 0.0)
    }

    /// The numbers of a list in brackets, over several lines; empty if there is
    /// none.
    fn list(&self, key: &str) -> Vec<f64> {
        let lines = self
            .text
            .lines()
            .map(|line| line.split('#').next().unwrap_or_default());
        let text: Vec<&str> = lines.skip_while(|line| !line.contains(key)).collect();
        let text = text.join(" ");
        let inside = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let numbers = inside.map_or("", |(numbers, _)| numbers);
        numbers
            .split(',')
            .filter_map(|n| n.trim().parse().ok())
            .collect()
    }

    fn bad(&self, key: &str, expected: &str) -> DeviceError {
        bad_line(0, format!("{} file: {key}: expected {expected}", self.name))
    }
}
