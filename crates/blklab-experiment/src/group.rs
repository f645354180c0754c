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
}
