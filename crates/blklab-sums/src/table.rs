// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of iostat, whatever they were written as.

use std::collections::BTreeMap;

/// The figures of a device in an interval, by the names of the columns.
pub(crate) type Row = BTreeMap<String, f64>;

/// Whether a table is the mean since the machine started, which iostat prints first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Span {
    /// Of an interval.
    #[default]
    Interval,
    /// Since the machine started: the first one behind the line that names the kernel.
    SinceStart,
    /// It is the first of the text, and that line is missing.
    Unknown,
}

/// A table: the rows of an interval, by device in the order of the table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    /// Of what while.
    pub(crate) span: Span,
    /// By device.
    pub(crate) rows: Vec<(String, Row)>,
}
