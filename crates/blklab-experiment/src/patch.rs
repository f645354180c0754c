// SPDX-License-Identifier: MIT OR Apache-2.0
//! Historical patches that can be switched on.

use crate::{ExperimentError, no_such};
use blklab_kernel::KernelVersion;

/// One patch, as data.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    /// Name for `--patch`.
    pub name: &'static str,
    /// What it changes, in a line.
    pub summary: &'static str,
    /// First release it fits.
    pub since: KernelVersion,
    /// First release it does not fit any more.
    pub until: KernelVersion,
}

/// Every patch.
pub const PATCHES: &[Patch] = &[Patch {
    name: "batch_patch",
    summary: "allocation batches of 16; a batch granted for a read lasts 2 s (Axboe, Dec 2012)",
    since: KernelVersion::v2_6(30),
    until: KernelVersion::new(5, 0),
}];

/// Finds a patch that fits a release.
pub(crate) fn find(name: &str, v: KernelVersion) -> Result<&'static Patch, ExperimentError> {
    let Some(patch) = PATCHES.iter().find(|p| p.name == name) else {
        let valid: Vec<_> = PATCHES.iter().map(|p| p.name).collect();
        return Err(ExperimentError::new(no_such("patch", name, &valid)).about("patches"));
    };
    if v < patch.since || v >= patch.until {
        return Err(ExperimentError::new(format!(
            "patch '{name}' does not fit kernel {v}; it fits {} up to, not including, {}",
            patch.since, patch.until
        ))
        .about("patches"));
    }
    Ok(patch)
}
