// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control group: its path and what is written to its files.

use blklab_types::IoMax;

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
}

impl Cgroup {
    /// The group that it belongs to; none: the root.
    pub fn parent(&self) -> Option<&str> {
        self.name.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// `io.max`; none if nothing is limited.
    pub fn limits(&self) -> Option<IoMax> {
        (self.io_max != IoMax::default()).then_some(self.io_max)
    }
}
