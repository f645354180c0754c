// SPDX-License-Identifier: MIT OR Apache-2.0
//! Releases that are offered by name.

use crate::KernelVersion;

/// A release whose rules were read and measured, offered by name.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The release.
    pub version: KernelVersion,
    /// What it stands for, in a line.
    pub summary: &'static str,
}

/// The presets, oldest first. Releases between them are accepted too and
/// take each feature from the version at which it changed.
pub const PRESETS: &[Preset] = &[
    Preset {
        version: KernelVersion::v2_6(16),
        summary: "queue plugs; schedulers keep the merge hash; CFQ with lists, one queue per process",
    },
    Preset {
        version: KernelVersion::v2_6(18),
        summary: "CFQ is the default; it idles at completion, all writes are async to it",
    },
    Preset {
        version: KernelVersion::v2_6(24),
        summary: "core merge hash; CFQ with a service tree; deadline restarts at the oldest request",
    },
    Preset {
        version: KernelVersion::v2_6(26),
        summary: "nomerges; anticipatory gives batches their full time after a drain",
    },
    Preset {
        version: KernelVersion::v2_6(28),
        summary: "CFQ samples whether a device queues; deadline batches cross gaps",
    },
    Preset {
        version: KernelVersion::v2_6(32),
        summary: "pools by sync and async; CFQ dispatches one request at a time, low_latency",
    },
    Preset {
        version: KernelVersion::v2_6(33),
        summary: "anticipatory removed; CFQ with groups and workload trees",
    },
    Preset {
        version: KernelVersion::new(3, 7),
        summary: "task plugs, sorted flush; FLUSH/FUA without draining; CFQ with group idling",
    },
    Preset {
        version: KernelVersion::new(4, 19),
        summary: "last long-term release with the single-queue path; CFQ in nanoseconds",
    },
    Preset {
        version: KernelVersion::new(5, 10),
        summary: "multi-queue only; plugs of 16 requests, mq-deadline without classes",
    },
    Preset {
        version: KernelVersion::new(6, 1),
        summary: "plugs of 32, newest first; mq-deadline with classes; BFQ merges for good",
    },
    Preset {
        version: KernelVersion::new(6, 12),
        summary: "every bio plugged, oldest first; limited depths count all tags (6.12.117)",
    },
    Preset {
        version: KernelVersion::new(6, 18),
        summary: "requests of up to 4 MiB, large folios on ext4, long read-ahead where disks seek",
    },
    Preset {
        version: KernelVersion::new(7, 3),
        summary: "the newest; single bios are not plugged, async_depth is the queue's (7.3.4)",
    },
];
