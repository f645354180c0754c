// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a figure is good because little was done: a job that waits for each call makes the
//! fewer of them the longer others keep it from its turn, and a latency counts those alone that
//! were made.

use super::Row;
use crate::figure::Figure;

/// Who makes less than this share of the calls that another makes in the same time does much
/// less.
pub const MUCH_LESS: f64 = 0.5;

/// The row that did most, if the first, whose latency is the shortest, did much less in the same
/// time. Rates are compared by themselves.
pub(super) fn did_more(figure: &Figure, rows: &[Row], first: usize) -> Option<usize> {
    if !figure.is_latency() {
        return None;
    }
    let per_s = |i: &usize| rows[*i].calls_per_s.unwrap_or(0.0);
    let most = (0..rows.len()).max_by(|a, b| per_s(a).total_cmp(&per_s(b)).then(b.cmp(a)))?;
    (per_s(&first) > 0.0 && per_s(&first) < MUCH_LESS * per_s(&most)).then_some(most)
}
