// SPDX-License-Identifier: MIT OR Apache-2.0
//! `trace.dat` of trace-cmd, versions 6 and 7: the kernel's ring buffers of all CPUs
//! with the formats of the events in them (trace-cmd.dat.v6(5), trace-cmd.dat.v7(5)).
//!
//! Its parts lie anywhere in the file: a regular file is read where they are, a page
//! at a time; a pipe or a compressed file is held in memory.

mod addresses;
mod container;
mod formats;
mod live;
mod pages;
mod read;
mod stacks;
mod write;

pub use addresses::StackAddresses;
pub use live::Live;
pub use read::TraceDatReader;
pub use write::{Submitters, TraceDatHead, write_trace_dat};

use crate::ReadCounts;
use crate::format::{Format, Reader};
use blklab_trace::TraceHeader;

/// Its row.
pub(crate) static FORMAT: Format = Format {
    name: "trace.dat",
    summary: "trace.dat of trace-cmd, versions 6 and 7; read",
    has_printed_times: false,
    says_losses: true,
    says_flags: true,
    dialect: None,
    recognises: |input| Ok(input.fill(MAGIC.len())?.starts_with(MAGIC)),
    open: |input, _| Ok(Box::new(TraceDatReader::from_input(input)?)),
};

impl Reader for TraceDatReader {
    fn counts(&self) -> &ReadCounts {
        self.counts()
    }

    fn header(&self) -> Option<&TraceHeader> {
        Some(self.header()).filter(|h| !h.kernel.is_empty())
    }
}

/// What every such file begins with.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
