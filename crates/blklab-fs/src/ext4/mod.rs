// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4.

use crate::ext3::journal::Journal;

/// A volume.
#[derive(Debug)]
pub(crate) struct Ext4 {
    pub(crate) journal: Journal,
}
