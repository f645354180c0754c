// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controller of a disk from the block `disksim_disk`: overheads, bus, buffer,
//! order of queued commands.
//!
//! Each law is chosen by what the file says. Sources: the manual of DiskSim 4.0,
//! and where the names of parameters leave it open the validation traces, which
//! the comments name.

use super::super::bus::{Bus, BusSpec};
use super::super::overheads::{ExtraDisconnect, Overheads};
use super::super::read_cache::{PrefetchStop, ReadCache, ReadCacheSpec, WriteSegments};
use super::super::select::{Policy, Selection};
use super::super::write_cache::{ReadPriority, WriteCache, WriteCacheSpec};
use super::{Block, DeviceError, ns};

/// Time of an overhead, 0 if it is not there.
fn overhead_ns(controller: &Block<'_>, key: &str) -> Result<u64, DeviceError> {
    let scale = controller.opt("Time scale for overheads")?.unwrap_or(1.0);
    Ok(ns(controller.opt(key)?.unwrap_or(0.0) * scale))
}

fn segment_sectors(controller: &Block<'_>) -> Result<u64, DeviceError> {
    Ok(controller.within("Segment size (in blks)", 1.0, 1e9)? as u64)
}

fn fast_write_level(controller: &Block<'_>) -> Result<u32, DeviceError> {
    Ok(controller.opt("Fast write level")?.unwrap_or(0.0) as u32)
}

/// A share of a segment or of a request.
fn mark(controller: &Block<'_>, key: &str) -> Result<f64, DeviceError> {
    match controller.opt(key)? {
        Some(_) => controller.within(key, 0.0, 1.0),
        None => Ok(0.0),
    }
}

/// At fast write level 1 only writes that append to the last one count as hits;
/// they are taken for misses here, as most are.
///
/// A drive that can break off its read-ahead anywhere (*stop prefetch in sector*) is
/// taken for one that leaves nothing open. Of the four with validation traces that is
/// the HP C2490A alone, and it alone behaves so.
pub(super) fn overheads(controller: &Block<'_>) -> Result<Overheads, DeviceError> {
    let each_ns = overhead_ns(controller, "Per-request overhead time")?;
    let pair = |kind: &str| -> Result<[u64; 2], DeviceError> {
        let after = |what| -> Result<u64, DeviceError> {
            let key = format!("{kind} over. after {what}");
            controller.number(&key)?;
            Ok(each_ns + overhead_ns(controller, &key)?)
        };
        Ok([after("read")?, after("write")?])
    };
    let write_hit = match fast_write_level(controller)? {
        1 => "Write miss",
        _ => "Write hit",
    };
    Ok(Overheads {
        read_hit_ns: pair("Read hit")?,
        read_miss_ns: pair("Read miss")?,
        write_hit_ns: pair(write_hit)?,
        write_miss_ns: pair("Write miss")?,
        leaves_nothing_open: controller.on("Stop prefetch in sector")?,
        extra: extra_disconnect(controller, each_ns)?,
    })
}

/// Drives that disconnect before the data of a write come do so for a write whose
/// segment was last used by a write that it does not continue: if there is one
/// segment for writes, for every write after a write elsewhere.
fn extra_disconnect(
    controller: &Block<'_>,
    each_ns: u64,
) -> Result<Option<ExtraDisconnect>, DeviceError> {
    let one_segment = controller.opt("Number of buffer segments")?.unwrap_or(1.0) < 2.0
        || controller.on("Use separate write segment")?;
    if !controller.on("Extra write disconnect")? || !one_segment {
        return Ok(None);
    }
    let time = |key| overhead_ns(controller, key);
    let command_ns = each_ns + time("Extradisc command overhead")?;
    let mechanism_ns = command_ns + time("Extradisc seek delta")?;
    let data_ns = command_ns
        + time("Extradisc disconnect overhead")?
        + time("Extradisc inter-disconnect delay")?
        + time("First reselect overhead")?;
    Ok(Some(ExtraDisconnect {
        mechanism_ns,
        data_ns: data_ns.saturating_sub(mechanism_ns),
        reselect_ns: time("Other reselect overhead")?,
    }))
}

/// The bus takes the longest of what the drive, the bus and the system's controller
/// (`bus_ms`) take for a sector.
pub(super) fn bus(controller: &Block<'_>, bus_ms: f64) -> Result<Bus, DeviceError> {
    let bulk_ms = controller.opt("Bulk sector transfer time")?.unwrap_or(0.0);
    let segment = segment_sectors(controller)?;
    let by_request = controller.on("Set watermark by reqsize")?;
    let never = controller.on("Never disconnect")?;
    let time = |key| overhead_ns(controller, key);
    Ok(Bus::new(BusSpec {
        sector_ns: ns(bulk_ms.max(bus_ms)),
        cut_through: false,
        mark: mark(controller, "High (read) water mark")?,
        low_mark: mark(controller, "Low (write) water mark")?,
        mark_of_sectors: if by_request { 0 } else { segment },
        write_sectors: segment,
        hold: never || controller.on("Hold bus entire read xfer")?,
        begin_at_once: controller.on("Immed transfer partial hit")?,
        disconnect_ns: [
            time("Read disconnect afterread")?,
            time("Read disconnect afterwrite")?,
        ],
        reselect_ns: time("First reselect overhead")?,
        prepare_ns: time("Data preparation overhead")?,
        completion_ns: [
            time("Read completion overhead")?,
            time("Write completion overhead")?,
        ],
    }))
}

/// Kinds of *buffer continuous read*: 0 none, 1 to the end of the track, 2 of the
/// cylinder, 3 until the segment is full, 4 a track ahead of a stream. A drive of
/// the last kind that reads whatever comes first (*immediate buffer read*) reads
/// whole tracks: so does the Atlas 10K.
///
/// *Read-ahead over requested*: data that the host has got make room for all of the
/// read-ahead. The Cheetah 4LP, where it is set and read-ahead fills the segment,
/// misses on 37 of 41 reads of what was just read; the Atlas 10K and IBM 18ES, where
/// it is not, on none of 95.
pub(super) fn read_cache(controller: &Block<'_>) -> Result<ReadCache, DeviceError> {
    let segments = controller.within("Number of buffer segments", 1.0, 1024.0)? as u32;
    let segment_sectors = segment_sectors(controller)?;
    let kind = controller.number("Buffer continuous read")? as u32;
    let stop = match kind {
        1 => PrefetchStop::Track,
        2 => PrefetchStop::Cylinder,
        4 if controller.on("Immediate buffer read")? => PrefetchStop::WholeTrack,
        4 => PrefetchStop::NextTrack,
        _ => PrefetchStop::Segment,
    };
    let most = controller.opt("Maximum read-ahead (blks)")?.unwrap_or(0.0);
    let read_ahead_sectors = match (stop, most) {
        _ if kind == 0 => 0,
        (PrefetchStop::NextTrack, _) => u64::from(u32::MAX),
        (_, most) if most < 1.0 => segment_sectors,
        (_, most) => (most as u64).min(segment_sectors),
    };
    let writes = if controller.on("Use separate write segment")? {
        WriteSegments::Apart
    } else if controller.on("Allow read hits on write data")? {
        WriteSegments::Keep
    } else {
        WriteSegments::Void
    };
    Ok(ReadCache::new(ReadCacheSpec {
        segments,
        segment_sectors,
        read_ahead_sectors,
        stop,
        read_ahead_after: 0,
        partial_hits: true,
        makes_room: controller.on("Read-ahead over requested")?,
        writes,
    }))
}

pub(super) fn write_cache(controller: &Block<'_>) -> Result<WriteCache, DeviceError> {
    let segment_sectors = segment_sectors(controller)?;
    let most = controller.opt("Maximum number of write segments")?;
    let segments = most.unwrap_or(1.0).clamp(1.0, 1024.0) as u32;
    Ok(WriteCache::new(WriteCacheSpec {
        limit_sectors: match fast_write_level(controller)? {
            0 => 0,
            _ => segment_sectors * u64::from(segments),
        },
        max_ranges: segments,
        window: segments as usize,
        piece_sectors: segment_sectors,
        high_pct: 75,
        low_pct: 25,
        age_ns: 0,
        read_priority: ReadPriority::Mixed(1),
        serves_reads: controller.on("Allow read hits on write data")?,
    }))
}

/// By the numbers of the manual: 1 first come; 2, 3, 5, 6 and 17 to 24 go by
/// address or cylinder in one direction or both (here always one); the others
/// are the shortest seek or positioning time.
pub(super) fn selection(controller: &Block<'_>) -> Result<Selection, DeviceError> {
    let scheduler = controller.block("Scheduler");
    let number = scheduler.map(|s| s.opt("Scheduling policy")).transpose()?;
    let policy = match number.flatten().unwrap_or(1.0) as u32 {
        0 | 1 => Policy::Fcfs,
        2 | 3 | 5 | 6 | 17..=24 => Policy::Scan,
        _ => Policy::Sptf,
    };
    Ok(Selection {
        policy,
        age_limit_ns: 0,
        read_bias: 1024,
    })
}
