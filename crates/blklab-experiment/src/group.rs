// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group: its path and what is written to its files.

use blklab_types::{IoCostModel, IoCostQos, IoMax, PrioPolicy};

/// A control group below the root. `None` is the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path below the root, as `a/b`.
    pub name: String,
    /// `io.max`.
    pub io_max: IoMax,
    /// `io.bfq.weight`, 1 to 1000.
    pub bfq_weight: Option<u32>,
    /// `blkio.weight`, 10 to 1000.
    pub blkio_weight: Option<u32>,
    /// `blkio.leaf_weight`, 10 to 1000.
    pub blkio_leaf_weight: Option<u32>,
    /// `io.weight`, 1 to 10000.
    pub cost_weight: Option<u32>,
    /// `io.latency`, in us.
    pub latency_us: Option<u64>,
    /// `io.prio.class`.
    pub prio: Option<PrioPolicy>,
    /// `io.cost.qos`, of the root.
    pub cost_qos: Option<IoCostQos>,
    /// `io.cost.model`, of the root.
    pub cost_model: Option<IoCostModel>,
    /// `blkio.throttle.*`, of version 1.
    pub throttle: IoMax,
    /// `blkio.bfq.weight`, of version 1, 1 to 1000.
    pub bfq_weight_v1: Option<u32>,
    /// Files that no model looks at, and a real kernel does: names and texts.
    pub unmodelled: Vec<(&'static str, String)>,
}

impl Cgroup {
    /// The name of the root, which has no limits and the files of io.cost.
    pub const ROOT: &str = "/";

    /// Whether it is the root of all groups.
    pub fn is_root(&self) -> bool {
        self.name == Cgroup::ROOT
    }

    /// What a file holds that no model looks at.
    pub fn unmodelled(&self, file: &str) -> Option<&str> {
        let found = self.unmodelled.iter().find(|(name, _)| *name == file);
        found.map(|(_, text)| text.as_str())
    }

    /// The group that it belongs to; none: the root.
    pub fn parent(&self) -> Option<&str> {
        let (parent, _) = self.name.rsplit_once('/')?;
        (!parent.is_empty()).then_some(parent)
    }

    /// `io.max`; none if nothing is limited.
    pub fn limits(&self) -> Option<IoMax> {
        (self.io_max != IoMax::default()).then_some(self.io_max)
    }

    /// The limits of version 1; none if nothing is limited.
    pub fn throttle_limits(&self) -> Option<IoMax> {
        (self.throttle != IoMax::default()).then_some(self.throttle)
    }

    /// Whether it has a file of the first version of control groups.
    pub fn is_of_v1(&self) -> bool {
        let files = self.files();
        files.iter().any(|(file, _)| Cgroup::is_file_of_v1(file))
    }

    /// Whether the first version alone has a file of this name.
    pub fn is_file_of_v1(file: &str) -> bool {
        file.starts_with("blkio.")
    }

    /// Its weight under BFQ, which is that of io.cost where it has no other, as systemd
    /// copies it.
    pub fn weight_of_bfq(&self) -> Option<u32> {
        self.bfq_weight.or(self.bfq_weight_v1).or(self.cost_weight)
    }

    /// Its weight under io.cost, which is that of BFQ where it has no other.
    pub fn weight_of_cost(&self) -> Option<u32> {
        self.cost_weight.or(self.bfq_weight)
    }
}
