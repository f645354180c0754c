// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a release changed, as data.

use super::KernelVersion;

/// Something that changed in a release, as data: what a model does differently
/// from then on, and where that was read.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The first release with it.
    pub release: KernelVersion,
    /// Point releases of older series that have it, too.
    pub stable: &'static [KernelVersion],
    /// What changed, in a line.
    pub what: &'static str,
    /// Files of the kernel.
    pub source: &'static str,
}

impl Change {
    /// Whether a kernel has it.
    pub const fn is_in(&self, kernel: KernelVersion) -> bool {
        kernel.has_row(self.release, self.stable, self.what)
    }

    /// Whether it came in the series of a kernel, with it or before it; of one without a
    /// point, in the series at all.
    pub fn is_in_series_of(&self, kernel: KernelVersion) -> bool {
        let came = std::iter::once(&self.release).chain(self.stable);
        let mut of_series = came.filter(|v| v.series() == kernel.series());
        of_series.any(|v| kernel.point() == 0 || kernel.is_from(*v))
    }
}
