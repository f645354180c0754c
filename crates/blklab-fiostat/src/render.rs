// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output formats by name, and results printed in them.

use std::fmt;
use std::str::FromStr;

use crate::{FioResult, TerseVersion, json, json_report, normal, terse};

/// What `--output-format` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Normal,
    /// JSON.
    Json,
    /// JSON with histograms.
    JsonPlus,
    /// One line of fields; `csv` is another name of it.
    Terse,
}

/// Characters of a wrong word that are repeated.
const SHOWN_MAX: usize = 80;

/// A word that is not an output format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFormatError {
    word: String,
}

impl fmt::Display for ParseFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = &self.word;
        write!(
            f,
            "unknown output format {word:?}: expected normal, json, json+, terse, minimal or csv"
        )
    }
}

impl std::error::Error for ParseFormatError {}

impl FromStr for Format {
    type Err = ParseFormatError;

    fn from_str(word: &str) -> Result<Format, ParseFormatError> {
        match word {
            "normal" => Ok(Format::Normal),
            "json" => Ok(Format::Json),
            "json+" => Ok(Format::JsonPlus),
            "terse" | "minimal" | "csv" => Ok(Format::Terse),
            _ => Err(ParseFormatError {
                word: word.chars().take(SHOWN_MAX).collect(),
            }),
        }
    }
}

impl Format {
    /// Reads a list of formats separated by commas.
    ///
    /// # Errors
    ///
    /// The first word that is not a format.
    pub fn parse_list(text: &str) -> Result<Vec<Format>, ParseFormatError> {
        text.split(',').map(|word| word.trim().parse()).collect()
    }
}

impl FioResult {
    /// Prints the result in one or more formats. Several come in fio's order,
    /// whatever that of `formats`: terse, JSON, normal.
    pub fn render(&self, formats: &[Format], terse_version: TerseVersion) -> String {
        let mut out = String::new();
        if formats.contains(&Format::Terse) {
            terse::write(&mut out, self, terse_version).expect("a String takes everything");
        }
        let with_bins = formats.contains(&Format::JsonPlus);
        if with_bins || formats.contains(&Format::Json) {
            out.push_str(&json::to_text(&self.to_json(with_bins)));
            out.push('\n');
        }
        if formats.contains(&Format::Normal) {
            normal::write(&mut out, self).expect("a String takes everything");
        }
        out
    }

    /// The JSON tree of the result; `with_bins` makes it that of `json+`.
    pub fn to_json(&self, with_bins: bool) -> serde_json::Value {
        json_report::tree(self, with_bins)
    }
}
