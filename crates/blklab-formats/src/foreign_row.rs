// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kind of text or file that is no trace.

/// A text or file that is no trace.
pub(crate) struct Foreign {
    /// What it seems to be.
    pub(crate) what: &'static str,
    /// What to do instead.
    pub(crate) instead: &'static str,
    /// Sets of words of which one is there whole.
    pub(crate) marks: &'static [&'static [&'static str]],
}
