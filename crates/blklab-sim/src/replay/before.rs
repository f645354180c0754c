// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came before the first event of a recording.

use std::fmt;

/// What came before the first recorded event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Reads, one after another, at ascending sectors.
    pub reads: u32,
    /// The scheduler tag at which the first search for a free one begins (`alloc_hint`).
    pub first_tag: u32,
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reads {
            0 => {}
            1 => write!(f, "a read came before the trace, ")?,
            n => write!(f, "{n} reads one after another came before the trace, ")?,
        }
        write!(f, "the search for a tag begins at {}", self.first_tag)
    }
}
