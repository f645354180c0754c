// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device and its driver impose on the queue.

use blklab_types::{DiscardLimits, Span};

/// The kernel driver that a device is attached to. Drivers differ in when they
/// take requests: only SCSI has a budget beside its tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// SCSI and libata: a budget of the device's queue depth is taken before
    /// the scheduler is asked.
    #[default]
    Scsi,
    /// NVMe: tags alone; hands over whole lists.
    Nvme,
    /// The null block device: tags alone.
    NullBlk,
    /// A disk of a virtual machine: tags alone.
    Virtio,
    /// The simulated disk of the measurements: tags alone.
    SimDisk,
}

/// What a device and its driver impose on the queue; `None` and the defaults
/// are those of a SCSI or SATA disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// The kernel driver.
    pub driver: Driver,
    /// Hardware queues; a kernel uses at most one for each processor.
    pub hw_queues: u32,
    /// They have one set of tags in common (`BLK_MQ_F_TAG_HCTX_SHARED`).
    pub shared_tags: bool,
    /// Most scatter/gather segments of a request.
    pub max_segments: Option<u32>,
    /// Largest request in sectors.
    pub max_sectors: Option<u32>,
    /// The same when the disk is registered, where it is made smaller afterwards.
    pub registered_sectors: Option<u32>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// Bytes that a multi-queue driver admits per tick of 20 ms; none if it has
    /// no such limit. Requests beyond it stay in their queue, and the model of
    /// the device is made without it ([`without_driver_limits`](crate::without_driver_limits)).
    pub bytes_per_tick: Option<u64>,
    /// When these ticks come, after multiples of 20 ms.
    pub tick_phase: Span,
    /// A completion removes the plug.
    pub completion_unplugs: bool,
    /// The driver can order writes.
    pub ordered_writes: bool,
    /// There is a volatile write cache to flush (`queue/write_cache`).
    pub has_flush: bool,
    /// A write can be made to pass that cache (`queue/fua`).
    pub has_fua: bool,
    /// Each command ends by a timer of the processor that hands it over, not by an
    /// interrupt of a controller.
    pub has_timers: bool,
    /// What it discards, from the release on in which its driver can say so; none:
    /// it has no discards.
    pub discard: Option<DiscardLimits>,
}

impl DeviceLimits {
    /// Nothing but the defaults.
    pub const NONE: DeviceLimits = DeviceLimits {
        driver: Driver::Scsi,
        hw_queues: 1,
        shared_tags: false,
        max_segments: None,
        max_sectors: None,
        registered_sectors: None,
        rotational: None,
        bytes_per_tick: None,
        tick_phase: Span::ZERO,
        completion_unplugs: true,
        ordered_writes: true,
        has_flush: true,
        has_fua: false,
        has_timers: false,
        discard: None,
    };

    /// What libata and the SCSI disk driver make of a SATA drive with TRIM: a command
    /// has 64 ranges of 65535 sectors (drivers/ata/libata-scsi.c,
    /// `ata_scsiop_inq_b0`; `discard_max_bytes` is 2147450880).
    pub const SATA_FLASH: DeviceLimits = DeviceLimits {
        rotational: Some(false),
        discard: Some(DiscardLimits {
            max_sectors: 64 * 65_535,
            granularity_sectors: 1,
        }),
        ..DeviceLimits::NONE
    };

    /// What the NVMe driver of Linux makes of a drive with many queues, and of one
    /// that takes commands larger than the kernel's own limit of 1280 KiB: general
    /// knowledge, not read in a data sheet. A discard has no limit but that of a
    /// request (drivers/nvme/host/core.c, `nvme_config_discard`).
    pub const NVME: DeviceLimits = DeviceLimits {
        driver: Driver::Nvme,
        hw_queues: 128,
        max_segments: Some(127),
        max_sectors: Some(2560),
        rotational: Some(false),
        has_fua: true,
        discard: Some(DiscardLimits::ANY),
        ..DeviceLimits::NONE
    };
}
