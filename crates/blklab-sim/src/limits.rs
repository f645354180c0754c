// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment's settings, its device and its driver make of the queue.

use crate::drivers;
use crate::machine::Interrupts;
use blklab_block::md::{ARRAY_MAX_SECTORS, ArrayConfig};
use blklab_block::{QueueLimits, mq, sq};
use blklab_device::{DeviceError, DeviceLimits, Driver};
use blklab_experiment::{Experiment, MdSpec, QueueFacts};
use blklab_kernel::default_scheduler;
use blklab_types::{DiscardLimits, Error, ErrorKind, SECTOR_BYTES};

/// What is wrong with a device, at its key or in its file.
pub fn device_refused(e: DeviceError) -> Error {
    let key = match &e {
        DeviceError::UnknownParam { param, .. } => format!("device.{param}"),
        DeviceError::BadValue { param, .. } => format!("device.{param}"),
        _ => "device".to_owned(),
    };
    let kind = match &e {
        DeviceError::UnknownDevice { .. } | DeviceError::UnknownParam { .. } => {
            ErrorKind::UnknownName
        }
        _ => ErrorKind::BadInput,
    };
    match e {
        DeviceError::BadFile { file, line, reason } => Error {
            line: (line > 0).then_some(line),
            ..Error::new(reason).in_file(&file)
        },
        e => Error::new(e.to_string()).of_kind(kind).about(key),
    }
}

fn of_device(e: &Experiment) -> Result<DeviceLimits, Error> {
    blklab_device::limits(&e.device.name, &e.device.params).map_err(device_refused)
}

/// Commands the driver hands to the device at most.
///
/// # Errors
/// If there is no such device, or it cannot have its parameters.
pub(crate) fn queue_depth(e: &Experiment) -> Result<u32, Error> {
    match e.queue.queue_depth {
        Some(depth) => Ok(depth),
        None => {
            blklab_device::queue_depth(&e.device.name, &e.device.params).map_err(device_refused)
        }
    }
}

/// Software queues of the multi-queue path: one for each processor, at most 64.
fn nr_cpus(e: &Experiment) -> u16 {
    e.vm.cpus(e.kernel).clamp(1, 64) as u16
}

/// Hardware queues of the multi-queue path: as many as the device has and there are
/// software queues.
fn nr_hw_queues(e: &Experiment, of_device: u32) -> u16 {
    of_device.clamp(1, u32::from(nr_cpus(e))) as u16
}

/// What decides on which processor a request ends.
fn affinity(e: &Experiment, driver: Driver) -> mq::RqAffinity {
    let llc_cpus = e.vm.llc_cpus(e.kernel);
    mq::RqAffinity {
        rq_affinity: e.queue.rq_affinity.unwrap_or(1),
        llc_cpus: u16::try_from(llc_cpus).unwrap_or(u16::MAX),
        ends_in_driver: driver == Driver::NullBlk,
    }
}

/// Where the interrupts of the disk come.
///
/// # Errors
/// If there is no such device, or it is told a processor that its interrupts cannot go to.
pub(crate) fn interrupts(e: &Experiment) -> Result<Interrupts, Error> {
    let of_device = of_device(e)?;
    let (device, nr_cpus) = (&e.device.name, e.nr_cpus());
    let refused = |what: String| Err(Error::new(format!("irq_cpu: {what}")).about("irq_cpu"));
    let cpu = e.vm.irq_cpu(e.kernel);
    let is_told = e.vm.irq_cpu.is_some();
    match of_device.driver {
        Driver::Scsi if !of_device.has_timers && cpu >= nr_cpus => {
            let last = nr_cpus - 1;
            refused(format!("the machine has {nr_cpus} processors, 0 to {last}"))
        }
        Driver::Scsi if !of_device.has_timers => Ok(Interrupts::Line(cpu as u16)),
        Driver::Nvme | Driver::Virtio if is_told => refused(format!(
            "each hardware queue of {device} has an interrupt, whose processor the kernel chooses"
        )),
        Driver::Nvme | Driver::Virtio => Ok(Interrupts::OfQueue),
        _ if is_told => refused(format!(
            "{device} has no interrupts but timers of the processors that it is started on"
        )),
        Driver::Scsi | Driver::NullBlk => Ok(Interrupts::OfCommand),
        Driver::SimDisk => Ok(Interrupts::OfServer(0)),
    }
}

/// What the queue can discard: what device and driver say, and `discard_max_bytes`
/// (block/blk-sysfs.c, `queue_discard_max_store`: more than the device's is the
/// device's).
fn discard_limits(
    e: &Experiment,
    of_device: &DeviceLimits,
) -> Result<Option<DiscardLimits>, Error> {
    let drivers = drivers::Features::of(e.kernel);
    let limits = of_device
        .discard
        .filter(|_| drivers.discards(of_device.driver));
    let (Some(limits), Some(max_bytes)) = (limits, e.queue.discard_max_bytes) else {
        return Ok(limits);
    };
    let granularity_bytes = u64::from(limits.granularity_sectors) * SECTOR_BYTES;
    if !max_bytes.is_multiple_of(granularity_bytes) {
        let what = format!(
            "discard_max_bytes: {max_bytes} is no multiple of the granularity, \
             {granularity_bytes} bytes"
        );
        return Err(Error::new(what).about("discard_max_bytes"));
    }
    let written = u32::try_from(max_bytes / SECTOR_BYTES).unwrap_or(u32::MAX);
    let max_sectors = written.min(limits.max_sectors);
    Ok((max_sectors > 0).then_some(DiscardLimits {
        max_sectors,
        ..limits
    }))
}

/// First sector of the partition in use, if it is not the whole disk.
fn partition_start(e: &Experiment) -> Option<u64> {
    let start = e.queue.partition_start.filter(|start| *start > 0);
    start.map(u64::from)
}

/// Limits of the queue on the path that the kernel has.
///
/// # Errors
/// If there is no such device, or it cannot have its parameters.
pub fn queue_limits(e: &Experiment) -> Result<QueueLimits, Error> {
    let q = &e.queue;
    let default = if e.kernel.has_single_queue() {
        sq::Limits::new(e.hz).queue
    } else {
        let max_sectors = mq::Features::of(e.kernel).max_sectors;
        QueueLimits {
            max_sectors,
            rotational: true,
            ..mq::Limits::default().queue
        }
    };
    let of_device = of_device(e)?;
    let set = |written: Option<u32>, of_device: Option<u32>, default: u32| {
        written.or(of_device).unwrap_or(default)
    };
    Ok(QueueLimits {
        max_sectors: set(q.max_sectors, of_device.max_sectors, default.max_sectors),
        max_segments: set(q.max_segments, of_device.max_segments, default.max_segments),
        rotational: q
            .rotational
            .or(of_device.rotational)
            .unwrap_or(default.rotational),
        nomerges: q.nomerges.unwrap_or(0),
        has_flush: q.write_cache.unwrap_or(of_device.has_flush),
        has_fua: of_device.has_fua,
        discard: discard_limits(e, &of_device)?,
        partition_start: partition_start(e),
    })
}

/// Read-ahead of a queue that was told nothing (`VM_READAHEAD_PAGES`).
const READ_AHEAD_BYTES: u64 = 128 << 10;

/// Largest read-ahead window of the queue unless told otherwise. What is written to
/// `max_sectors_kb` later does not make it smaller (`blk_apply_bdi_limits` of
/// block/blk-settings.c).
fn read_ahead_bytes(e: &Experiment, of_device: &DeviceLimits, limits: &QueueLimits) -> u64 {
    if e.kernel.has_single_queue() || !limits.rotational {
        return READ_AHEAD_BYTES;
    }
    let features = mq::Features::of(e.kernel);
    if !features.long_read_ahead {
        return READ_AHEAD_BYTES;
    }
    let registered = of_device.registered_sectors.or(of_device.max_sectors);
    let registered = registered.unwrap_or(features.max_sectors);
    let largest = u64::from(registered.max(limits.max_sectors)) * SECTOR_BYTES;
    READ_AHEAD_BYTES.max(2 * largest)
}

/// Limits of a single queue and its driver, before patches.
fn sq_limits_unpatched(e: &Experiment) -> Result<sq::Limits, Error> {
    let default = sq::Limits::new(e.hz);
    let of_device = of_device(e)?;
    one_queue(e, &of_device)?;
    Ok(sq::Limits {
        queue: queue_limits(e)?,
        completion_unplugs: of_device.completion_unplugs,
        ordered_writes: of_device.ordered_writes,
        nr_requests: e.queue.nr_requests.unwrap_or(default.nr_requests),
        queue_depth: queue_depth(e)?,
        fetch: e.queue.fetch.unwrap_or_default(),
        ..default
    })
}

/// Refuses several hardware queues, and their tags in common, where the kernel is modelled
/// with one queue. Presets have as many as the drive: before 5.0 the kernel used one.
fn one_queue(e: &Experiment, of_device: &DeviceLimits) -> Result<(), Error> {
    let is_told = |name: &str| e.device.params.iter().any(|(told, _)| told == name);
    let name = if of_device.shared_tags {
        "shared_tag_bitmap"
    } else if of_device.hw_queues > 1 && is_told("submit_queues") {
        "submit_queues"
    } else {
        return Ok(());
    };
    let what = "several hardware queues: modelled from 5.0 on; before, a disk has one queue";
    Err(Error::not_modelled(what).about(format!("device.{name}")))
}

/// Limits of a single queue and its driver.
///
/// # Errors
/// As [`queue_limits`], and if a patch is unknown or does not fit.
pub(crate) fn sq_limits(e: &Experiment) -> Result<sq::Limits, Error> {
    let mut limits = sq_limits_unpatched(e)?;
    limits.patch(&e.patches()?, e.hz);
    Ok(limits)
}

/// Whether the queue has a scheduler unless told otherwise. `null_blk` wants none
/// (`BLK_MQ_F_NO_SCHED_BY_DEFAULT`).
fn is_scheduled_by_default(e: &Experiment, of_device: &DeviceLimits) -> bool {
    of_device.driver != Driver::NullBlk
        && default_scheduler(e.kernel, of_device.hw_queues) != "none"
}

/// Limits of a multi-queue device and its driver.
///
/// # Errors
/// As [`queue_limits`].
pub(crate) fn mq_limits(e: &Experiment) -> Result<mq::Limits, Error> {
    let of_device = of_device(e)?;
    let depth = queue_depth(e)?;
    let nr_hw_queues = nr_hw_queues(e, of_device.hw_queues);
    if of_device.shared_tags && !mq::Features::of(e.kernel).shares_sched_tags {
        let what = "one set of tags for all hardware queues: modelled from 5.16 on; before, \
                    schedulers had tags for each queue, and a queue could be left waiting";
        return Err(Error::not_modelled(what).about("device.shared_tag_bitmap"));
    }
    Ok(mq::Limits {
        queue: queue_limits(e)?,
        queue_depth: depth,
        budget: (of_device.driver == Driver::Scsi).then_some(depth),
        bytes_per_tick: of_device.bytes_per_tick,
        tick_phase: of_device.tick_phase,
        refusal: drivers::Features::of(e.kernel).refusal(of_device.driver),
        nr_requests: e.queue.nr_requests,
        scheduled_by_default: is_scheduled_by_default(e, &of_device),
        nr_hw_queues,
        nr_poll_queues: drivers::Features::of(e.kernel).poll_queues(of_device.driver),
        shared_tags: of_device.shared_tags,
        nr_cpus: nr_cpus(e),
        affinity: affinity(e, of_device.driver),
        wbt_lat_us: e.queue.wbt_lat_usec.map(u64::from),
        ..mq::Limits::default()
    })
}

/// What all of it comes to.
///
/// # Errors
/// As [`queue_limits`].
pub(crate) fn queue_facts(e: &Experiment) -> Result<QueueFacts, Error> {
    let limits = queue_limits(e)?;
    let nr_requests = if e.kernel.has_single_queue() {
        sq_limits_unpatched(e)?.nr_requests
    } else {
        mq_limits(e)?.nr_requests(e.scheduler != "none")
    };
    let bio_max_sectors = match e.md {
        Some(_) => limits.max_sectors.min(ARRAY_MAX_SECTORS),
        None => limits.max_sectors,
    };
    let read_ahead = read_ahead_bytes(e, &of_device(e)?, &limits);
    Ok(QueueFacts {
        nr_requests,
        max_sectors: limits.max_sectors,
        max_segments: limits.max_segments,
        rotational: limits.rotational,
        nomerges: limits.nomerges,
        write_back: limits.has_flush,
        queue_depth: queue_depth(e)?,
        bio_max_sectors,
        discard_max_bytes: limits
            .discard
            .map_or(0, |discard| u64::from(discard.max_sectors) * SECTOR_BYTES),
        read_ahead_bytes: e.read_ahead_bytes(read_ahead),
    })
}

/// What an array needs to know of its members' queues.
///
/// # Errors
/// As [`sq_limits`].
pub(crate) fn array_config(e: &Experiment, md: &MdSpec) -> Result<ArrayConfig, Error> {
    let limits = sq_limits(e)?;
    let level = md.modelled();
    let level = level.ok_or_else(|| Error::not_modelled(format!("{md} is not modelled")))?;
    Ok(ArrayConfig {
        level,
        nr_members: md.members,
        data_start: limits.queue.partition_start.unwrap_or(0),
        members_order_writes: limits.ordered_writes,
        unplug_delay: sq::Features::of(e.kernel).unplug_delay(e.hz),
    })
}
