// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of measurements: CSV without quotes, a line of names first.

use blklab_experiment::ExperimentError;
use std::collections::BTreeMap;

/// A line of a table with names for its fields.
pub(super) struct Row {
    /// The file, for messages.
    pub(super) file: String,
    /// Line number from 1.
    pub(super) line: usize,
    pub(super) fields: BTreeMap<String, String>,
}

/// The rows of a table that has these columns; `otherwise` is said if it lacks
/// one.
///
/// # Errors
/// If a column is missing, or a line has more or fewer fields than the first.
pub(super) fn rows(
    file: &str,
    text: &str,
    needed: &[&str],
    otherwise: &str,
) -> Result<Vec<Row>, ExperimentError> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    if let Some(missing) = needed.iter().find(|c| !head.contains(c)) {
        let what = format!("no column '{missing}'{otherwise}");
        return Err(ExperimentError::new(what).in_file(file));
    }
    let rows = lines.enumerate().filter(|(_, l)| !l.trim().is_empty());
    rows.map(|(i, line)| {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != head.len() {
            let what = format!("{} fields instead of {}", fields.len(), head.len());
            return Err(ExperimentError {
                line: Some(i + 2),
                ..ExperimentError::new(what).in_file(file)
            });
        }
        let pairs = head.iter().zip(&fields);
        Ok(Row {
            file: file.to_owned(),
            line: i + 2,
            fields: pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        })
    })
    .collect()
}
