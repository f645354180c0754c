// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs and traces compared, with intervals and verdicts.

use crate::errors::raise;
use crate::json::python_of;
use crate::waiting::wait_for;
use blklab::compare::{Options, Recordings, compare as compare_sides};
use blklab::types::Error;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Compares the sides that these run directories, folders of them and traces hold with the
/// first: a list, as `blklab compare --format json` gives it.
#[pyfunction]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    bios: bool,
    metrics: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let stop = Arc::new(AtomicBool::new(false));
    let compared = wait_for(py, &stop, || {
        let options = Options::new(&paths, bios, &metrics).map_err(|e| e.in_file("metrics"))?;
        let recordings = Recordings::find(&paths, None, &blklab::targets::catalogue())?;
        let sides = recordings.read(&options, || {})?;
        let [before, others @ ..] = &sides[..] else {
            return Err(Error::new("nothing to compare"));
        };
        if others.is_empty() {
            let what = format!("{} alone has nothing to be compared with", before.name);
            return Err(Error::new(what));
        }
        let each = others
            .iter()
            .map(|after| compare_sides(before, after, &options));
        each.collect::<Result<Vec<_>, Error>>()
    })?;
    python_of(py, &compared.map_err(raise)?)
}
