// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of MMC and SD.

use std::fmt;

/// Which request of a host controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MmcRequest {
    /// The host controller.
    pub host: u16,
    /// Its tag, where there is a command queue; else there is one request at a time.
    pub tag: i32,
}

/// `mmc0 tag 3`.
impl fmt::Display for MmcRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mmc{} tag {}", self.host, self.tag)
    }
}
