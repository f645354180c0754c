// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is to choose from, and the metrics.

use crate::errors::{raise, refuse};
use crate::json::python_of;
use crate::scheduler::schedulers;
use blklab::kernel::KernelVersion;
use blklab::list;
use pyo3::prelude::*;

/// The entries of a list, as `blklab list --format json` gives them.
#[pyfunction]
#[pyo3(signature = (what, kernel = None))]
pub(crate) fn entries<'py>(
    py: Python<'py>,
    what: &str,
    kernel: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let kernel = kernel.map(str::parse::<KernelVersion>).transpose();
    let kernel = kernel.map_err(|e| raise(blklab::types::Error::from(e)))?;
    let own = schedulers();
    let entries = match what {
        "schedulers" => list::schedulers(own, kernel),
        "tunables" => list::tunables(own, kernel),
        "devices" => list::devices(),
        "kernels" => list::kernels(own),
        "changes" => list::changes(own, kernel),
        "targets" => list::targets(),
        "patches" => list::patches(kernel),
        "scenarios" => list::scenarios(),
        "filesystems" => list::filesystems(),
        "dm" => list::dm(),
        "formats" => list::formats(),
        "findings" => list::findings(),
        "engines" => list::engines(),
        other => {
            let known = [
                "schedulers",
                "tunables",
                "devices",
                "kernels",
                "changes",
                "targets",
                "patches",
                "scenarios",
                "filesystems",
                "dm",
                "formats",
                "findings",
                "engines",
            ];
            return Err(refuse(blklab::types::no_such("list", other, &known)));
        }
    };
    python_of(py, &entries)
}

/// Column, unit, what is better (lower, higher, or empty), title and source of each metric.
#[pyfunction]
pub(crate) fn metrics() -> Vec<(
    String,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
)> {
    use blklab::metric::{Aim, all};
    let aim = |aim: Aim| match aim {
        Aim::Lower => "lower",
        Aim::Higher => "higher",
        Aim::None => "",
    };
    let row = |m: &blklab::metric::Metric| {
        (
            m.column(),
            m.unit.text(),
            aim(m.aim),
            m.title,
            m.source.text(),
        )
    };
    all().map(row).collect()
}
