// SPDX-License-Identifier: MIT OR Apache-2.0
//! How well runs know a number.

use super::figures::{Column, RowFigures, Source, WhatOf};
use crate::record::metrics;
use crate::run::RunOutput;
use crate::statistics::{CONFIDENCE, half_width};

/// How well repetitions know a number: for each row of
/// [`Comparison`](super::Comparison) that has it in all of them, half of its 95 % interval in
/// terms of its mean.
pub fn widths(runs: &[&RunOutput], column: &Column) -> Vec<(String, f64)> {
    let sources: Vec<Source> = runs
        .iter()
        .map(|run| Source::of_run(&metrics(run)))
        .collect();
    let width = |key: WhatOf| {
        let rows: Option<Vec<&RowFigures>> = sources.iter().map(|s| s.row(&key)).collect();
        let figure = column.over(&rows?)?;
        let width = half_width(figure.each(), CONFIDENCE)?;
        Some((key.to_string().trim().to_owned(), width))
    };
    let keys = Source::keys(&sources);
    keys.into_iter().filter_map(width).collect()
}
