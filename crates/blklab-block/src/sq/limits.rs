// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits and settings of a single queue and its driver.

use crate::QueueLimits;
use blklab_kernel::Patches;
use blklab_types::{Fetch, Hz};

/// Settings of one queue and its driver.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What holds on either path.
    pub queue: QueueLimits,
    /// Size of each request pool.
    pub nr_requests: u32,
    /// Waiting requests that make a plugged queue start.
    pub unplug_thresh: u32,
    /// Commands the device takes at once.
    pub queue_depth: u32,
    /// When the driver looks at the next request.
    pub fetch: Fetch,
    /// A completion removes the plug (SCSI); cciss leaves it.
    pub completion_unplugs: bool,
    /// The driver uses block-layer tags.
    pub tagged: bool,
    /// The driver can order writes (cciss cannot: barriers fail).
    pub ordered_writes: bool,
    /// Other commands may be queued beside a flush.
    pub flush_queueable: bool,
    /// Requests per allocation batch.
    pub batch_requests: u32,
    /// Validity of a batch granted for a read and for a write, in jiffies.
    pub batch_jiffies: [u64; 2],
    /// Bios that may join `last_merge` in a row; no limit if none.
    pub cached_merge_limit: Option<u32>,
}

impl Limits {
    /// The kernel's defaults for a SCSI disk with a write cache.
    pub fn new(hz: Hz) -> Limits {
        Limits {
            queue: QueueLimits {
                max_sectors: 1024,
                max_segments: 128,
                rotational: true,
                nomerges: 0,
                has_flush: true,
                has_fua: false,
                discard: None,
                partition_start: None,
            },
            nr_requests: 128,
            unplug_thresh: 4,
            queue_depth: 31,
            fetch: Fetch::PeekThenCheck,
            completion_unplugs: true,
            tagged: false,
            ordered_writes: true,
            flush_queueable: false,
            batch_requests: 32,
            batch_jiffies: [u64::from(hz.0 / 50); 2],
            cached_merge_limit: None,
        }
    }

    /// What historical patches change. `batch_patch`: batches of 16, valid for
    /// two seconds if granted for a read. `cached_merge_limit`: 128 bios.
    pub fn patch(&mut self, patches: &Patches, hz: Hz) {
        if patches.has("batch_patch") {
            self.batch_requests = 16;
            self.batch_jiffies = [2 * u64::from(hz.0), u64::from(hz.0 / 50)];
        }
        if patches.has("cached_merge_limit") {
            self.cached_merge_limit = Some(128);
        }
    }
}
