// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of the rotating disk, and how they become a disk.

use super::bus::{Bus, BusSpec};
use super::geometry::{Geometry, Layout, ZoneSpec};
use super::mechanism::Mechanism;
use super::overheads::Overheads;
use super::read_cache::{PrefetchStop, ReadCache, ReadCacheSpec, WriteSegments};
use super::seek::{SeekCurve, SeekTable};
use super::select::{Policy, Selection};
use super::shingles::{ShingleSpec, Shingles};
use super::spares::Spares;
use super::write_cache::{ReadPriority, WriteCache, WriteCacheSpec};
use super::{Disk, Parts};
use crate::device::Device;
use crate::error::DeviceError;
use crate::param::{Kind, ParamInfo, Values, param};
use blklab_types::{SECTOR_BYTES, Unit};

const MS: u64 = 1_000_000;
const TIME_MS: Kind = Kind::Time {
    unit_ns: MS,
    max_ns: 1_000 * MS,
};
const LONG_MS: Kind = Kind::Time {
    unit_ns: MS,
    max_ns: 3_600_000 * MS,
};
const COEFFICIENT: Kind = Kind::Real {
    min: -1000.0,
    max: 1000.0,
};
const FRACTION: Kind = Kind::Real {
    min: 0.0,
    max: 0.95,
};
const PER_CENT: Kind = Kind::Count { min: 0, max: 100 };

/// Largest number of cylinders (it is the size of a table).
const MAX_CYLINDERS: u64 = 4_000_000;

/// The defaults are those of a 3.5 inch 7200 rpm SATA disk of 500 GB, 2008.
#[rustfmt::skip]
pub(crate) const PARAMS: &[ParamInfo] = &[
    // Geometry.
    param("capacity_sectors", Kind::Sectors { min: 10_000, max: 1 << 36 }, "976773168", "size of the disk"),
    param("rpm", Kind::Count { min: 1_000, max: 60_000 }, "7200", "revolutions per minute").in_unit(Unit::Rpm),
    param("surfaces", Kind::Count { min: 1, max: 64 }, "4", "recording surfaces (heads)"),
    param("zones", Kind::Count { min: 1, max: 256 }, "16", "zones of equally many cylinders"),
    param("track_outer_sectors", Kind::Count { min: 8, max: 100_000 }, "1709", "sectors per track of the outermost zone (rate in B/s * 60 / (rpm * 512))").in_unit(Unit::Sectors),
    param("track_inner_sectors", Kind::Count { min: 8, max: 100_000 }, "846", "sectors per track of the innermost zone").in_unit(Unit::Sectors),
    param("cylinders", Kind::Count { min: 2, max: MAX_CYLINDERS }, "", "cylinders; if given, the zones between are adjusted to fill the capacity, otherwise their tracks shrink evenly and the capacity determines the number of cylinders"),
    param("layout", Kind::Choice(&["classic", "serpentine"]), "classic", "classic: cylinder by cylinder; serpentine: strips inwards and outwards, surface by surface"),
    param("strip_cylinders", Kind::Count { min: 1, max: 4096 }, "32", "serpentine: cylinders in a strip"),
    param("head_skew", FRACTION, "0.10", "skew from one surface to the next, in revolutions"),
    param("cylinder_skew", FRACTION, "0.10", "skew from one cylinder to the next, in revolutions"),
    // Mechanics.
    param("seek_curve", Kind::Choice(&["data_sheet", "three_part", "table"]), "data_sheet", "data_sheet: through seek_min, seek_avg and seek_max; three_part: a + b*sqrt(d) and c + e*d; table: measured"),
    param("seek_min_ms", TIME_MS, "0.8", "data_sheet: one cylinder"),
    param("seek_avg_ms", TIME_MS, "8.5", "data_sheet: mean of random seeks"),
    param("seek_max_ms", TIME_MS, "18", "data_sheet: all cylinders"),
    param("seek_a", COEFFICIENT, "0.8", "three_part: a in ms").in_unit(Unit::Ms),
    param("seek_b", COEFFICIENT, "0.03", "three_part: b in ms per square root of a cylinder").in_unit(Unit::Ms),
    param("seek_limit_cylinders", Kind::Count { min: 0, max: MAX_CYLINDERS }, "10000", "three_part: distance from which c + e*d applies"),
    param("seek_c", COEFFICIENT, "3", "three_part: c in ms").in_unit(Unit::Ms),
    param("seek_e", COEFFICIENT, "0.0001", "three_part: e in ms per cylinder").in_unit(Unit::Ms),
    param("seek_table", Kind::Text, "", "table: distance:ms pairs in ascending order, as in 1:0.8 100:1.0 10000:3.5; straight lines between"),
    param("head_switch_ms", TIME_MS, "0.8", "to another surface of the same cylinder; no seek to another surface takes less"),
    param("write_settle_ms", TIME_MS, "1.0", "added to the seek before a write"),
    param("zero_latency", Kind::Switch, "off", "a read within one track begins at whichever of its sectors passes the head first"),
    // Controller.
    param("overhead_read_hit_ms", TIME_MS, "0.15", "command overhead of a read that is in the buffer"),
    param("overhead_read_miss_ms", TIME_MS, "0.15", "command overhead of a read from the medium"),
    param("overhead_write_hit_ms", TIME_MS, "0.15", "command overhead of a write into the cache, and of a flush"),
    param("overhead_write_miss_ms", TIME_MS, "0.15", "command overhead of a write to the medium"),
    param("bus_mb_per_s", Kind::Real { min: 0.1, max: 100_000.0 }, "200", "effective rate of the bus in 10^6 B/s").in_unit(Unit::MbPerS),
    param("read_mark", Kind::Real { min: 0.0, max: 1.0 }, "0", "share of a read that is in the buffer when it begins to cross the bus; 0: the first sector"),
    // Buffer.
    param("buffer_bytes", Kind::Bytes { min: 4096, max: 1 << 40 }, "16MiB", "size of the buffer"),
    param("segments", Kind::Count { min: 1, max: 1024 }, "32", "read segments it is divided into"),
    param("read_ahead_sectors", Kind::Sectors { min: 0, max: 1 << 24 }, "", "how far the drive reads ahead of the host; a whole segment if not given"),
    param("read_ahead_after", Kind::Count { min: 0, max: 1000 }, "0", "reads that continue the one before until the drive reads ahead; 0: it always does"),
    param("prefetch_min_sectors", Kind::Sectors { min: 0, max: 1 << 24 }, "0", "read-ahead that a pending command cannot interrupt"),
    param("prefetch_stop", Kind::Choice(&["segment", "track", "cylinder"]), "segment", "where read-ahead ends: when the segment is full, or at the end of the track or cylinder before"),
    param("partial_hits", Kind::Switch, "off", "a read whose begin is in the buffer takes that from there"),
    param("reads_make_room", Kind::Switch, "off", "what the host has read makes room for all of the read-ahead"),
    param("write_segments", Kind::Choice(&["apart", "void", "keep"]), "apart", "writes and read segments: apart: writes take none; void: a write takes one, which is empty afterwards; keep: a write takes one, whose data can be read"),
    param("read_ahead_resume", Kind::Switch, "on", "an idle drive resumes read-ahead when hits have consumed half of it"),
    // Write cache.
    param("write_cache", Kind::Switch, "on", "complete writes when they are in the buffer"),
    param("dirty_limit_bytes", Kind::Bytes { min: 0, max: 1 << 40 }, "", "most dirty data; half of the buffer if not given"),
    param("max_dirty_ranges", Kind::Count { min: 1, max: 65_536 }, "512", "most dirty ranges; adjacent writes are one"),
    param("destage_sectors", Kind::Sectors { min: 1, max: 1 << 24 }, "1024", "most sectors written to the medium in one piece"),
    param("destage_window", Kind::Count { min: 1, max: 65_536 }, "65536", "how many of the dirty ranges begun first the next one is chosen from, by shortest positioning time; 1: in the order of writing"),
    param("destage_high_pct", PER_CENT, "75", "destaging is due above this share of the limits …").in_unit(Unit::Percent),
    param("destage_low_pct", PER_CENT, "25", "… until below this").in_unit(Unit::Percent),
    param("destage_age_ms", LONG_MS, "500", "destaging is due when data is older; 0: never"),
    param("read_priority", Kind::Choice(&["strict", "mixed", "greedy"]), "mixed", "queued commands and dirty data: strict: commands first; mixed: one command after every mixed_ranges pieces when destaging is due; greedy: shortest positioning time"),
    param("mixed_ranges", Kind::Count { min: 0, max: 65_536 }, "4", "mixed: pieces destaged between two commands"),
    param("read_hits_on_writes", Kind::Switch, "on", "reads of dirty data come from the cache"),
    // Shingled recording.
    param("media_cache_bytes", Kind::Bytes { min: 0, max: 1 << 40 }, "0", "log on the medium for writes that are no streams, of a drive with shingled recording; 0: conventional recording"),
    param("media_cache_pieces", Kind::Count { min: 1, max: 1 << 24 }, "250000", "pieces that its map has room for"),
    param("media_cache_entry_bytes", Kind::Bytes { min: 0, max: 1 << 26 }, "256KiB", "what is written behind each piece, for the map"),
    param("band_bytes", Kind::Bytes { min: 1 << 20, max: 1 << 34 }, "30MiB", "tracks that overlap, which are written as a whole"),
    param("clean_passes", Kind::Count { min: 2, max: 16 }, "3", "how often a band passes the head until it holds what the media cache has of it"),
    param("clean_idle_ms", LONG_MS, "1000", "bands are cleaned when the drive has had nothing to do for so long"),
    // Queue.
    param("selection", Kind::Choice(&["fcfs", "sptf", "sptf_aged", "sptf_window", "scan"]), "sptf_aged", "which queued command is next"),
    param("age_weight", Kind::Real { min: 0.0, max: 1000.0 }, "0.05", "sptf_aged: ms of positioning time that a ms of waiting makes up for"),
    param("age_limit_ms", LONG_MS, "0", "a command that has waited longer goes first; 0: none"),
    param("window", Kind::Count { min: 1, max: 65_536 }, "8", "sptf_window: how many of the oldest are considered"),
    param("reorder_bias_write", Kind::Real { min: 1.0, max: 1000.0 }, "1", "cost of reads is multiplied by this"),
];

pub(crate) fn build(values: &Values, depth: u32) -> Result<Box<dyn Device>, DeviceError> {
    let buffer_sectors = values.int("buffer_bytes") / SECTOR_BYTES;
    let ns = |name| [values.int(name); 2];
    let parts = Parts {
        mech: mechanism(values)?,
        overheads: Overheads {
            read_hit_ns: ns("overhead_read_hit_ms"),
            read_miss_ns: ns("overhead_read_miss_ms"),
            write_hit_ns: ns("overhead_write_hit_ms"),
            write_miss_ns: ns("overhead_write_miss_ms"),
            leaves_nothing_open: false,
            extra: None,
        },
        bus: bus(values),
        selection: selection(values),
        cache: read_cache(values, buffer_sectors)?,
        prefetch_min_sectors: values.int("prefetch_min_sectors"),
        resume_read_ahead: values.on("read_ahead_resume"),
        least_write_move_ns: 0,
        writes: write_cache(values, buffer_sectors)?,
        shingles: shingles(values)?,
    };
    Ok(Box::new(Disk::new(parts, depth)))
}

fn bus(values: &Values) -> Bus {
    let sector_ns = SECTOR_BYTES as f64 * 1_000.0 / values.real("bus_mb_per_s");
    Bus::new(BusSpec {
        mark: values.real("read_mark"),
        ..BusSpec::plain(sector_ns.round() as u64)
    })
}

fn mechanism(values: &Values) -> Result<Mechanism, DeviceError> {
    let revolution_ns = (60_000_000_000 + values.int("rpm") / 2) / values.int("rpm");
    let revolution_ns = u32::try_from(revolution_ns).unwrap_or(u32::MAX);
    let surfaces = values.count("surfaces");
    let layout = match values.int("layout") {
        0 => Layout::Classic,
        _ => Layout::Serpentine(values.count("strip_cylinders")),
    };
    let zones = zones(values, layout, revolution_ns)?;
    let cylinders = cylinders(&zones, surfaces);
    let seek = SeekTable::new(&seek_curve(values, cylinders)?, cylinders);
    let head_switch_ns = values.count("head_switch_ms");
    let geometry = Geometry::new(
        &zones,
        layout,
        surfaces,
        revolution_ns,
        medium_sectors(values),
        &seek,
        head_switch_ns,
    );
    let settle_ns = values.count("write_settle_ms") as i32;
    let zero_latency = values.on("zero_latency");
    Ok(Mechanism::new(
        geometry,
        seek,
        revolution_ns,
        head_switch_ns,
        settle_ns,
        zero_latency,
    ))
}

/// All sectors of the medium: what the host sees, and the media cache.
fn medium_sectors(values: &Values) -> u64 {
    values.int("capacity_sectors") + values.int("media_cache_bytes") / SECTOR_BYTES
}

fn shingles(values: &Values) -> Result<Option<Shingles>, DeviceError> {
    let log_sectors = values.int("media_cache_bytes") / SECTOR_BYTES;
    if log_sectors == 0 {
        return Ok(None);
    }
    let least = values.int("destage_sectors");
    if log_sectors < least {
        let expected = format!("0, or at least the {least} sectors of destage_sectors");
        return Err(values.bad("media_cache_bytes", expected));
    }
    Ok(Some(Shingles::new(ShingleSpec {
        capacity_sectors: values.int("capacity_sectors"),
        log_sectors,
        map_pieces: values.count("media_cache_pieces"),
        band_sectors: values.int("band_bytes") / SECTOR_BYTES,
        entry_sectors: values.int("media_cache_entry_bytes") / SECTOR_BYTES,
        passes: values.count("clean_passes"),
        idle_ns: values.int("clean_idle_ms"),
    })))
}

/// How many cylinders the zones reach over.
pub(crate) fn cylinders(zones: &[ZoneSpec], surfaces: u32) -> u32 {
    let end = |z: &ZoneSpec| z.first_cylinder + z.tracks.div_ceil(u64::from(surfaces)) as u32;
    zones.iter().map(end).max().unwrap_or(0)
}

/// Zones of equally many cylinders with tracks that shrink from the outer to
/// the inner length, `inner + (outer - inner) * (1 - x^p)` for x from 0 to 1.
/// p is 1 if the number of cylinders is free, else such that the capacity fits.
fn zones(
    values: &Values,
    layout: Layout,
    revolution_ns: u32,
) -> Result<Vec<ZoneSpec>, DeviceError> {
    let (outer, inner) = (
        values.count("track_outer_sectors"),
        values.count("track_inner_sectors"),
    );
    if inner > outer {
        return Err(values.bad(
            "track_inner_sectors",
            format!("at most the {outer} of the outermost track"),
        ));
    }
    let nr_zones = if inner == outer {
        1
    } else {
        values.int("zones")
    };
    let capacity = medium_sectors(values);
    let surfaces = values.int("surfaces");
    let spread = f64::from(outer - inner);
    let power = values.opt("cylinders").map_or(1.0, |cylinders| {
        let mean = capacity as f64 / (cylinders * surfaces) as f64;
        let share = ((mean - f64::from(inner)) / spread.max(1.0)).clamp(0.02, 0.98);
        share / (1.0 - share)
    });
    let track_sectors = |zone: u64| {
        let x = if nr_zones == 1 {
            0.0
        } else {
            zone as f64 / (nr_zones - 1) as f64
        };
        (f64::from(inner) + spread * (1.0 - x.powf(power))).round() as u32
    };
    let sum: u64 = (0..nr_zones).map(|z| u64::from(track_sectors(z))).sum();
    // A strip does not cross the end of its zone.
    let unit = match layout {
        Layout::Serpentine(cylinders) => u64::from(cylinders),
        _ => 1,
    };
    let each = capacity
        .div_ceil(surfaces * sum)
        .max(1)
        .next_multiple_of(unit);
    if each * nr_zones > MAX_CYLINDERS {
        return Err(DeviceError::Impossible {
            device: values.device(),
            reason: format!(
                "{capacity} sectors on {surfaces} surfaces make {} cylinders: expected at most {MAX_CYLINDERS}",
                each * nr_zones
            ),
        });
    }
    let skew_ns = |name| (values.real(name) * f64::from(revolution_ns)).round() as u32;
    let zone = |z| ZoneSpec {
        first_cylinder: (z * each) as u32,
        tracks: each * surfaces,
        track_sectors: track_sectors(z),
        track_skew_ns: skew_ns("head_skew"),
        cylinder_skew_ns: skew_ns("cylinder_skew"),
        first_angle_ns: None,
        sectors: None,
        spares: Spares::default(),
    };
    Ok((0..nr_zones).map(zone).collect())
}

fn seek_curve(values: &Values, cylinders: u32) -> Result<SeekCurve, DeviceError> {
    let ms = |name| values.int(name) as f64 / MS as f64;
    match values.int("seek_curve") {
        0 => {
            let (min, avg, max) = (ms("seek_min_ms"), ms("seek_avg_ms"), ms("seek_max_ms"));
            if min > avg || avg > max {
                let expected = format!("between seek_min_ms={min} and seek_max_ms={max}");
                return Err(values.bad("seek_avg_ms", expected));
            }
            Ok(SeekCurve::from_data_sheet(min, avg, max, cylinders))
        }
        1 => Ok(SeekCurve::ThreePart {
            a_ms: values.real("seek_a"),
            b_ms: values.real("seek_b"),
            limit: values.count("seek_limit_cylinders"),
            c_ms: values.real("seek_c"),
            e_ms: values.real("seek_e"),
        }),
        _ => seek_points(values.text("seek_table")).map(SeekCurve::Table).ok_or_else(|| {
            values.bad("seek_table", "distance:ms pairs with rising distances and times up to 1000 ms, as in '1:0.8 100:1.0'".into())
        }),
    }
}

fn seek_points(text: &str) -> Option<Vec<(u32, f64)>> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for pair in text.split_whitespace() {
        let (distance, ms) = pair.split_once(':')?;
        let point: (u32, f64) = (distance.parse().ok()?, ms.parse().ok()?);
        let rising = points.last().is_none_or(|last| last.0 < point.0);
        if !rising || !(0.0..=1000.0).contains(&point.1) {
            return None;
        }
        points.push(point);
    }
    (!points.is_empty()).then_some(points)
}

fn read_cache(values: &Values, buffer_sectors: u64) -> Result<ReadCache, DeviceError> {
    let segments = values.count("segments");
    let segment_sectors = buffer_sectors / u64::from(segments);
    if segment_sectors == 0 {
        return Err(values.bad(
            "segments",
            format!("at most {buffer_sectors}: a segment holds a sector or more"),
        ));
    }
    let read_ahead_sectors = values.opt("read_ahead_sectors").unwrap_or(segment_sectors);
    if read_ahead_sectors > segment_sectors {
        return Err(values.bad(
            "read_ahead_sectors",
            format!("at most the {segment_sectors} of a segment"),
        ));
    }
    let stop = match values.int("prefetch_stop") {
        0 => PrefetchStop::Segment,
        1 => PrefetchStop::Track,
        _ => PrefetchStop::Cylinder,
    };
    Ok(ReadCache::new(ReadCacheSpec {
        segments,
        segment_sectors,
        read_ahead_sectors,
        stop,
        read_ahead_after: values.count("read_ahead_after"),
        partial_hits: values.on("partial_hits"),
        makes_room: values.on("reads_make_room"),
        writes: match values.int("write_segments") {
            0 => WriteSegments::Apart,
            1 => WriteSegments::Void,
            _ => WriteSegments::Keep,
        },
    }))
}

fn write_cache(values: &Values, buffer_sectors: u64) -> Result<WriteCache, DeviceError> {
    let dirty_sectors = values
        .opt("dirty_limit_bytes")
        .map(|bytes| bytes / SECTOR_BYTES);
    let (high_pct, low_pct) = (
        values.count("destage_high_pct"),
        values.count("destage_low_pct"),
    );
    if low_pct > high_pct {
        return Err(values.bad(
            "destage_low_pct",
            format!("at most destage_high_pct={high_pct}"),
        ));
    }
    Ok(WriteCache::new(WriteCacheSpec {
        limit_sectors: if values.on("write_cache") {
            dirty_sectors.unwrap_or(buffer_sectors / 2)
        } else {
            0
        },
        max_ranges: values.count("max_dirty_ranges"),
        window: values.count("destage_window") as usize,
        piece_sectors: values.int("destage_sectors"),
        high_pct,
        low_pct,
        age_ns: values.int("destage_age_ms"),
        read_priority: match values.int("read_priority") {
            0 => ReadPriority::Strict,
            1 => ReadPriority::Mixed(values.count("mixed_ranges")),
            _ => ReadPriority::Greedy,
        },
        serves_reads: values.on("read_hits_on_writes"),
    }))
}

fn selection(values: &Values) -> Selection {
    let per_1024 = |name| (values.real(name) * 1024.0).round() as u32;
    Selection {
        policy: match values.int("selection") {
            0 => Policy::Fcfs,
            1 => Policy::Sptf,
            2 => Policy::SptfAged(per_1024("age_weight")),
            3 => Policy::SptfWindow(values.count("window")),
            _ => Policy::Scan,
        },
        age_limit_ns: values.int("age_limit_ms"),
        read_bias: per_1024("reorder_bias_write"),
    }
}
