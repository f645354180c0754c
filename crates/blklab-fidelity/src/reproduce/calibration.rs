// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters that were fitted to published numbers: `studies/calibration.toml`
//! lists all of them, and tests compare it with the studies.

use blklab_types::Error;
use serde::{Deserialize, Serialize};

const TEXT: &str = include_str!("../../studies/calibration.toml");

/// A parameter of experiments with the number it was fitted to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The name by which a number of a study refers to it.
    pub name: String,
    /// What it is, in a line.
    pub what: String,
    /// Where experiments have it: table and key, as in `device.seek_min_ns`.
    pub key: String,
    /// Its value, as experiments write it.
    pub value: String,
    /// Unit of the value.
    pub unit: String,
    /// The scheduler of the experiments that it is about; of any, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Studies all of whose experiments with this key have this value.
    pub studies: Vec<String>,
    /// The published number, in the unit of its metric.
    pub published: f64,
    /// Which number that is.
    pub number: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    parameter: Vec<Parameter>,
}

/// All fitted parameters.
///
/// # Errors
/// If the file is wrong: a fault in blklab.
pub fn calibration() -> Result<Vec<Parameter>, Error> {
    let raw: Raw =
        toml::from_str(TEXT).map_err(|e| Error::new(e.to_string()).in_file("calibration.toml"))?;
    Ok(raw.parameter)
}
