// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of measurements: CSV, a line of names first.

use blklab_types::Error;
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
) -> Result<Vec<Row>, Error> {
    let fail = |line: Option<usize>, what: String| Error {
        line,
        ..Error::new(what).in_file(file)
    };
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(text.as_bytes());
    let head = reader.headers().map_err(|e| fail(None, e.to_string()))?;
    let head = head.clone();
    if let Some(missing) = needed.iter().find(|c| !head.iter().any(|h| h == **c)) {
        return Err(fail(None, format!("no column '{missing}'{otherwise}")));
    }
    let rows = reader.records().map(|record| {
        let record = record.map_err(|e| fail(None, e.to_string()))?;
        let line = record.position().map_or(0, |p| p.line() as usize);
        if record.len() != head.len() {
            let what = format!("{} fields instead of {}", record.len(), head.len());
            return Err(fail(Some(line), what));
        }
        let pairs = head.iter().zip(&record);
        Ok(Row {
            file: file.to_owned(),
            line,
            fields: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        })
    });
    rows.collect()
}
