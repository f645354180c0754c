// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of NVMe.

use std::fmt;

/// Which command of NVMe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvmeCommand {
    /// The controller.
    pub ctrl: u16,
    /// The queue; 0 is that of admin commands.
    pub qid: u16,
    /// The tag; from 5.15 on the command's identifier has a generation above it, which is
    /// left out.
    pub tag: u16,
}

/// `nvme0 queue 1 tag 17`.
impl fmt::Display for NvmeCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nvme{} queue {} tag {}", self.ctrl, self.qid, self.tag)
    }
}
