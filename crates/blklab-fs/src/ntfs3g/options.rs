// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about an NTFS-3G volume, and what the daemon costs
//! (estimates for a machine with 2.4 GHz in 2008).

use blklab_types::Span;

/// A volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtfsOptions {
    /// A message carries up to 32 pages of a write instead of one
    /// (`big_writes`; 2.6.27 and later).
    pub big_writes: bool,
    /// Reads change access times (`noatime` is the other choice).
    pub atime: bool,
    /// How long the kernel trusts a name and its attributes.
    pub timeout: Span,
    /// Processor time of the daemon.
    pub costs: NtfsCosts,
}

/// Processor time of the daemon and of talking to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtfsCosts {
    /// A message, there and back.
    pub message: Span,
    /// More for a new file or directory.
    pub create: Span,
    /// More for each page of a write.
    pub write_page: Span,
    /// More for the removal of a file or directory.
    pub unlink: Span,
}

impl NtfsCosts {
    /// All costs changed alike.
    #[must_use]
    pub fn map(self, f: impl Fn(Span) -> Span) -> NtfsCosts {
        NtfsCosts {
            message: f(self.message),
            create: f(self.create),
            write_page: f(self.write_page),
            unlink: f(self.unlink),
        }
    }
}

impl Default for NtfsCosts {
    fn default() -> NtfsCosts {
        NtfsCosts {
            message: Span::from_us(45),
            create: Span::from_us(120),
            write_page: Span::from_us(20),
            unlink: Span::from_us(100),
        }
    }
}

impl Default for NtfsOptions {
    fn default() -> NtfsOptions {
        NtfsOptions {
            big_writes: false,
            atime: true,
            timeout: Span::from_s(1),
            costs: NtfsCosts::default(),
        }
    }
}
