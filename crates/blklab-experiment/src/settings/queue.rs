// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of `/sys/block/X/queue` that the model knows, and settings of the
//! driver beside them.
//!
//! Defaults are those of `sata-7200-2008` with the kernel's default scheduler;
//! devices have their own. Releases: block/blk-sysfs.c and the dates in
//! Documentation/ABI/stable/sysfs-block.

use super::{Access, Form, Home, MULTI_QUEUE, Place, Setting, Value, setting, settings};
use crate::{Catalogue, Experiment, QueueFacts};
use blklab_kernel::{KernelVersion, Unit};
use blklab_types::Fetch;

const V2_6_26: KernelVersion = KernelVersion::v2_6(26);
const V2_6_28: KernelVersion = KernelVersion::v2_6(28);
const V2_6_29: KernelVersion = KernelVersion::v2_6(29);
const V2_6_34: KernelVersion = KernelVersion::v2_6(34);
const V2_6_36: KernelVersion = KernelVersion::v2_6(36);

/// What `queue/write_cache` takes (block/blk-sysfs.c, `queue_wc_store`).
const WRITE_CACHE: Form = Form::Words(&[("write back", 1), ("write through", 0), ("none", 0)]);

const FETCH: Form = Form::Words(&[("peek_then_check", 0), ("check_then_peek", 1)]);

impl Value for Fetch {
    fn number(self) -> i64 {
        match self {
            Fetch::PeekThenCheck => 0,
            Fetch::CheckThenPeek => 1,
        }
    }

    fn from_number(number: i64) -> Fetch {
        match number {
            0 => Fetch::PeekThenCheck,
            _ => Fetch::CheckThenPeek,
        }
    }
}

/// A row of 0 or 1.
const fn switch(default: i64) -> Setting {
    setting(Unit::Bool, default, (0, 1))
}

/// A row of sectors of the partition.
const fn sectors(low: i64) -> Setting {
    setting(Unit::Sectors, 0, (low, u32::MAX as i64)).taken_at(Place::Ioctl("BLKPG"))
}

/// What the queue comes to.
fn fact(e: &Experiment, catalogue: &Catalogue, get: fn(QueueFacts) -> u32) -> Option<i64> {
    let facts = e.queue_facts(catalogue).ok()?;
    Some(i64::from(get(facts)))
}

settings! {
    /// Files of `/sys/block/X/queue` and the driver's settings. `None` is the
    /// default of the kernel or device.
    struct QueueSettings at queue, Home::Queue;

    /// requests in each of the two pools
    nr_requests: u32 = setting(Unit::Count, 128, (4, 100_000))
        .then(MULTI_QUEUE, 62)
        .help("requests of a hardware queue: twice the queue depth, of which 128 count at most; \
               without a scheduler the queue depth")
        // Without a scheduler there are no more than the device takes, which may
        // be fewer than anybody can write.
        .effective(|e, catalogue| fact(e, catalogue, |q| q.nr_requests))
        .manual("to 4.20: requests in each of the two pools. From 5.0 on: requests of a hardware \
              queue; without a scheduler at most the queue depth",
             "128; from 5.0 on twice the queue depth, of which 128 count at most (none: the queue \
              depth)");

    /// largest request, if the device does not say
    max_sectors: u32 = setting(Unit::KiB, 512, (4, 32_767))
        .then(MULTI_QUEUE, 1280).then(KernelVersion::new(6, 17), 4096)
        .named("max_sectors_kb").per_unit(2).or_finer("max_sectors")
        .effective(|e, catalogue| fact(e, catalogue, |q| q.max_sectors))
        .manual("largest request, KiB; in files `max_sectors` gives it in sectors",
             "the device's; else 512, from 5.0 on 1280, from 6.17 on 4096");

    /// scatter/gather segments of a request; a driver's limit (cciss 31)
    max_segments: u32 = setting(Unit::Count, 128, (1, 65_535)).taken_at(Place::Device)
        .effective(|e, catalogue| fact(e, catalogue, |q| q.max_segments))
        .manual("most segments of a request", "the device's; else 128");

    // The driver's flag is of 2.6.28, the file of 2.6.29.
    /// whether the device seeks
    rotational: bool = switch(1).since(V2_6_28).without(1)
        .effective(|e, catalogue| fact(e, catalogue, |q| u32::from(q.rotational)))
        .manual("whether the device seeks, 0 or 1 (2.6.28: drivers know; a file since 2.6.29)",
             "the device's");

    /// 1: merge only with the last merged request
    nomerges: u8 = setting(Unit::Count, 0, (0, 1)).since(V2_6_26).without(0)
        .then(V2_6_34, 0).range(0, 2)
        .help("1: merge only with the last merged request; 2: never")
        .effective(|e, catalogue| fact(e, catalogue, |q| u32::from(q.nomerges)))
        .manual("1: merge only with the request merged with last (2.6.26); 2 (2.6.34): never", "0");

    /// commands the device takes at once (device/queue_depth)
    queue_depth: u32 = setting(Unit::Count, 31, (1, 1024)).of_driver()
        .taken_at(Place::Driver {
            file: "/sys/block/{disk}/device/queue_depth",
            parameter: "virtio_blk.queue_depth",
        })
        .effective(|e, catalogue| Some(i64::from(e.queue_depth(catalogue).ok()?)))
        .manual("commands that the device takes at once; in files a key of `[device]`",
             "the device's");

    /// when the driver takes the next request: before it looks whether the device is full, or after
    fetch: Fetch = setting(Unit::Bool, 0, (0, 1)).of_driver().until(MULTI_QUEUE).without(0)
        .form(FETCH)
        .manual("when the driver takes the next request, to 4.20: `peek_then_check` before it looks \
              whether the device is full, `check_then_peek` after; in files a key of `[device]`",
             "peek_then_check");

    /// 1: the kernel's own null_blk or scsi_debug, not the model behind virtio
    inside: bool = setting(Unit::Bool, 0, (0, 1)).of_driver()
        .manual("1: the kernel's own null_blk or scsi_debug in place of the model, on the target \
              kernel; in files a key of `[device]`",
             "0");

    /// largest readahead window
    read_ahead_kb: u32 = setting(Unit::KiB, 128, (0, 65_536))
        .effective(|e, catalogue| {
            let facts = e.queue_facts(catalogue).ok()?;
            i64::try_from(facts.read_ahead_bytes >> 10).ok()
        })
        .manual("largest read-ahead window, KiB",
             "128; of RAID 0 at least two stripes; from 6.17 on twice the largest request of the \
              device where it seeks");

    /// largest discard; 0: none
    discard_max_bytes: u64 = setting(Unit::Bytes, 0, (0, u32::MAX as i64 * 512))
        .since(KernelVersion::new(4, 3))
        .effective(|e, catalogue| {
            let facts = e.queue_facts(catalogue).ok()?;
            i64::try_from(facts.discard_max_bytes).ok()
        })
        .manual("largest discard, bytes; larger ones are split; 0: there are none (4.3)",
             "the device's");

    /// 'write back' (1): the kernel flushes the device's cache; 'write through' (0): it does not
    write_cache: bool = switch(1).since(KernelVersion::new(4, 7)).without(0)
        .form(WRITE_CACHE)
        .manual("`write back`: the kernel takes the device's cache for a volatile one and flushes \
              it; `write through`: it does not (4.7). The device stays as it is: that has a \
              parameter, `write_cache` of disks, `power_loss_protection` of flash drives",
             "the device's");

    /// read latency that write-back throttling aims at; before 5.0 it makes no difference in the model
    wbt_lat_usec: u32 = setting(Unit::Us, 0, (0, u32::MAX as i64))
        .since(KernelVersion::new(4, 10)).without(0)
        .then(MULTI_QUEUE, 75_000)
        .help("read latency that write-back throttling aims at (2000 without seeks, off beside \
               bfq); 0: off")
        .manual("read latency that write-back throttling aims at, us; 0 is off (4.10). Modelled \
              from 5.0 on; before it makes no difference, and a note says so",
             "75000 on devices that seek, 2000 on others; off beside bfq");

    /// before 5.0 it makes no difference in the model
    rq_affinity: u8 = setting(Unit::Count, 1, (0, 1)).since(V2_6_28)
        .then(KernelVersion::new(3, 1), 1).range(0, 2)
        .then(MULTI_QUEUE, 1)
        .help("where a request ends: 0 on the processor that the interrupt comes to, 1 there if it shares \
               a cache with the submitter's, 2 on the submitter's")
        .manual("where a request ends (2.6.28): 0 on the processor that the device's interrupt comes to; 1 \
              there if that one shares a cache with the submitter's (`llc_cpus`), else on the \
              submitter's; 2 (3.1) on the submitter's. Modelled from 5.0 on; before it makes no \
              difference, and a note says so",
             "1");

    /// makes no difference in the model
    iostats: u8 = switch(1).since(V2_6_29).without_effect()
        .manual("accepted (2.6.29); makes no difference, and a note says so", "1");

    /// makes no difference in the model
    add_random: u8 = switch(1).since(V2_6_36).without_effect()
        .manual("accepted (2.6.36); makes no difference, and a note says so", "1");

    /// first sector of the partition in use (63 in 2008): traces show A events; 0: the whole disk
    partition_start: u32 = sectors(0)
        .manual("first sector of the partition in use; traces then show A events; 0: the whole disk",
             "0");

    /// length of that partition; to the end of the disk if not set
    partition_sectors: u32 = sectors(8)
        .manual("its length in sectors", "to the end of the disk");
}
