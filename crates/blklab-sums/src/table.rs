// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of iostat, whatever they were written as.

use std::collections::BTreeMap;

/// The figures of a device in an interval, by the names of the columns.
pub(crate) type Row = BTreeMap<String, f64>;

/// The rows of an interval, by device in the order of the table.
pub(crate) type Table = Vec<(String, Row)>;
