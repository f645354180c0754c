// SPDX-License-Identifier: MIT OR Apache-2.0
//! What newer kernels change for an experiment, and which of their changes does it.

use crate::experiment::Experiment;
use crate::json::python_of;
use crate::plan::Stack;
use crate::run::run_one;
use crate::scheduler::schedulers;
use crate::waiting::wait_for;
use blklab::kernel_changes::{Asked, kernel_changes};
use blklab::targets;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// From each kernel to the next: how the jobs' numbers differ, and what each change between the
/// two does.
#[pyfunction]
pub(crate) fn changes<'py>(
    py: Python<'py>,
    experiment: PyRef<'py, Experiment>,
    stack: Stack,
    kernels: Vec<String>,
    metrics: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let e = experiment.value.clone();
    let own = schedulers();
    let stop = Arc::new(AtomicBool::new(false));
    let steps = wait_for(py, &stop, || {
        let asked = Asked {
            overrides: stack.overrides()?,
            kernels,
            metrics,
            threads: threads.unwrap_or_else(blklab::parallel::cores),
        };
        kernel_changes(&e, &asked, &targets::planner(own), &run_one, &stop)
    })?;
    python_of(py, &steps?)
}
