// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of an experiment that are plain values.

use crate::Experiment;
use blklab_kernel::KernelVersion;
use blklab_types::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Name of a law or preset.
    pub name: String,
    /// Parameters that differ from the preset, in order.
    pub params: Vec<(String, String)>,
}

/// As the command line takes it: `NAME,key=value…`.
impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut params = self.params.iter();
        params.try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// A number that somebody published for a configuration of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Scheduler it was measured with; any if not given.
    #[serde(default)]
    pub scheduler: Option<String>,
    /// Queue depth it was measured with; any if not given.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// Patches that were on, in any order.
    #[serde(default)]
    pub patches: Vec<String>,
    /// read or write.
    pub direction: String,
    /// Shortest run time of a job, ms.
    #[serde(default)]
    pub runt_min_ms: Option<u64>,
    /// Longest run time of a job, ms.
    #[serde(default)]
    pub runt_max_ms: Option<u64>,
    /// Bandwidth of the group, MB/s.
    #[serde(default)]
    pub bandwidth_mb_s: Option<f64>,
    /// Where it was published, and what differs from the experiment.
    #[serde(default)]
    pub source: String,
}

impl Published {
    /// Whether it is about this experiment, whose driver hands so many commands to the
    /// device at most.
    pub fn fits(&self, e: &Experiment, queue_depth: Option<u32>) -> bool {
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            names
        };
        sorted(&self.patches) == sorted(&e.patches)
            && self.scheduler.as_ref().is_none_or(|s| *s == e.scheduler)
            && self.queue_depth.is_none_or(|d| queue_depth == Some(d))
    }
}

/// One of several configurations that an experiment file compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What tables call it.
    pub name: String,
    /// Kernel release, if it is another.
    pub kernel: Option<KernelVersion>,
    /// I/O scheduler, if it is another.
    pub scheduler: Option<String>,
    /// Patches beside those of the file.
    pub patches: Vec<String>,
    /// Settings, as [`Experiment::set`] takes them, in order.
    pub settings: Vec<(String, String)>,
}

/// What the queue of an experiment shows in sysfs: what was set, else what the device
/// and its driver ask for, else the kernel's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFacts {
    /// `queue/nr_requests`: the size of a pool, or of a hardware queue's set of tags.
    pub nr_requests: u32,
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// Most segments of a request.
    pub max_segments: u32,
    /// Whether the device seeks.
    pub rotational: bool,
    /// `queue/nomerges`.
    pub nomerges: u8,
    /// Whether the kernel flushes the device's write cache.
    pub write_back: bool,
    /// Commands that the driver hands to the device at most.
    pub queue_depth: u32,
    /// Largest bio of the device that tasks use, in sectors.
    pub bio_max_sectors: u32,
    /// `queue/discard_max_bytes`; 0: there are no discards.
    pub discard_max_bytes: u64,
    /// Largest read-ahead window of the device that tasks use.
    pub read_ahead_bytes: u64,
}

/// What an experiment comes to with the models that it chose, as far as a reader of its
/// result asks: an experiment itself names models and knows nothing of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// What its queue shows; none if there is no such device.
    pub queue: Option<QueueFacts>,
    /// Processor time of a request that its scheduler adds.
    pub sched_cost: Span,
}

impl Facts {
    /// Commands that the driver hands to the device at most.
    pub fn queue_depth(&self) -> Option<u32> {
        self.queue.map(|q| q.queue_depth)
    }
}
