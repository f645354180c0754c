// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a device, its driver and sysfs set for a queue on either path.

/// Limits of a queue, the kernel's `struct queue_limits` and what lies beside
/// it in sysfs. The rest differs by path: [`crate::sq::Limits`],
/// [`crate::mq::Limits`].
#[derive(Clone, Debug)]
pub struct QueueLimits {
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u32,
    /// Whether the device seeks (`queue/rotational`).
    pub rotational: bool,
    /// `queue/nomerges`: 1 leaves only `last_merge`, 2 nothing.
    pub nomerges: u8,
    /// The device has a volatile write cache that must be flushed.
    pub has_flush: bool,
    /// The device writes through on request.
    pub has_fua: bool,
    /// First sector of the partition that bios come from (event A); none if
    /// the whole disk is used.
    pub partition_start: Option<u64>,
}
