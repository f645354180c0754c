// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: every combination of what is chosen on top of an experiment, checked.

use crate::errors::raise;
use crate::experiment::Experiment;
use crate::scheduler::schedulers;
use blklab::experiment::{DeviceSpec, MdSpec, load_device};
use blklab::matrix::{self, Cell, Choice, Overrides, Refused, Setting};
use blklab::targets::{self, Planner};
use blklab::types::{Error, shown};
use pyo3::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// A device and its parameters.
type Device = (String, Vec<(String, String)>);

/// What is chosen on top of experiments; what is empty leaves their own.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Stack {
    kernel: Vec<String>,
    sched: Vec<String>,
    device: Vec<Device>,
    md: Vec<Option<String>>,
    patch: Vec<Vec<String>>,
    settings: Vec<(String, Vec<String>)>,
    section: Vec<String>,
    seed: Option<u64>,
    repeat: u32,
    repeat_exact: bool,
}

impl Stack {
    /// As the matrix takes it.
    ///
    /// # Errors
    /// If an array is none, or a file describes no device.
    pub(crate) fn overrides(&self) -> Result<Overrides, Error> {
        let array = |text: &Option<String>| {
            let Some(text) = text.as_deref().filter(|t| *t != "none") else {
                return Ok(None);
            };
            let words: Vec<&str> = text.split(',').map(str::trim).collect();
            MdSpec::parse(&words).map(Some).map_err(|e| e.in_file("md"))
        };
        let settings = self.settings.iter().map(|(key, values)| Setting {
            key: key.clone(),
            values: values.clone(),
        });
        let patches = (!self.patch.is_empty()).then(|| self.patch.clone());
        Ok(Overrides {
            kernels: self.kernel.clone(),
            schedulers: self.sched.clone(),
            devices: self.device.iter().map(device).collect::<Result<_, _>>()?,
            arrays: self.md.iter().map(array).collect::<Result<_, _>>()?,
            settings: settings.collect(),
            patches: patches.into_iter().collect(),
            seed: self.seed,
            repeat: self.repeat,
            repeat_exact: self.repeat_exact,
            sections: self.section.clone(),
        })
    }
}

/// A device by its name, or by the file that describes it; parameters beside it count last.
fn device((name, params): &Device) -> Result<DeviceSpec, Error> {
    let (name, params) = (name.clone(), params.clone());
    let is_file = Path::new(&name).extension().is_some_and(|e| e == "toml");
    if !is_file {
        return Ok(DeviceSpec { name, params });
    }
    let mut described = load_device(Path::new(&name), &targets::catalogue())?;
    described
        .params
        .retain(|(key, _)| params.iter().all(|(k, _)| k != key));
    described.params.extend(params);
    Ok(described)
}

/// An error of the matrix, with the keyword that it is about.
pub(crate) fn told(refused: Refused, overrides: &Overrides) -> Error {
    let keyword = match refused.choice {
        None => return refused.error,
        Some(Choice::Kernel(v)) => format!("kernel={}", shown(&v)),
        Some(Choice::Scheduler(name)) => format!("sched={}", shown(&name)),
        Some(Choice::Device(None)) => "device".to_owned(),
        Some(Choice::Device(Some(name))) => format!("device={}", shown(&name)),
        Some(Choice::Array(array)) => format!("md={array}"),
        Some(Choice::Patches(names)) => format!("patch={}", shown(&names)),
        Some(Choice::Setting(place)) => match overrides.settings.get(place) {
            // What has a keyword of its own is known by it.
            Some(setting) if setting.key == "filesystem" => "fs".to_owned(),
            Some(setting) if ["target", "memory", "dm"].contains(&&*setting.key) => {
                setting.key.clone()
            }
            _ => "set".to_owned(),
        },
        Some(Choice::Seed) => "seed".to_owned(),
    };
    Error {
        file: Some(keyword),
        line: None,
        ..refused.error
    }
}

/// A plan, and where it stands in its matrix.
pub(crate) struct Planned {
    pub(crate) cell: Cell,
    pub(crate) plan: targets::Plan,
}

/// The plans of all combinations.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn planned(
    experiments: &[blklab::experiment::Experiment],
    overrides: &Overrides,
    planner: &Planner,
) -> Result<Vec<Planned>, Error> {
    let cells = matrix::expand(experiments, overrides, planner);
    let cells = cells.map_err(|refused| told(refused, overrides))?;
    let plans = matrix::plans(&cells, overrides, planner);
    let plans = plans.map_err(|refused| told(refused, overrides))?;
    let pairs = cells.into_iter().zip(plans);
    Ok(pairs.map(|(cell, plan)| Planned { cell, plan }).collect())
}

/// An experiment that is checked and can run.
#[pyclass(frozen, module = "blklab._native")]
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) inner: Arc<Planned>,
}

#[pymethods]
impl Plan {
    /// What varies in its matrix, and its values: pairs of texts.
    #[getter]
    fn label(&self) -> Vec<(String, String)> {
        self.inner.cell.label.clone()
    }

    /// The label in one piece; empty if nothing varies.
    #[getter]
    fn name(&self) -> String {
        self.inner.cell.name()
    }

    /// Which repetition it is, from 0.
    #[getter]
    fn repetition(&self) -> u32 {
        self.inner.cell.repetition
    }

    /// Its place in its matrix, from 0.
    #[getter]
    fn place(&self) -> u32 {
        self.inner.cell.place
    }

    /// Seed of everything random.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.cell.experiment.seed
    }

    /// Whether it gives the same events each time that it is run.
    #[getter]
    fn repeats(&self) -> bool {
        self.inner.plan.repeats()
    }
}

/// Plans every combination of what is chosen for every experiment, in order: repetitions
/// innermost.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    experiments: Vec<PyRef<'_, Experiment>>,
    stack: Stack,
) -> PyResult<Vec<Plan>> {
    let experiments: Vec<_> = experiments.iter().map(|e| e.value.clone()).collect();
    let own = schedulers();
    let planned = py.detach(|| {
        let planner = targets::planner(own);
        planned(&experiments, &stack.overrides()?, &planner)
    });
    let planned = planned.map_err(raise)?.into_iter();
    Ok(planned.map(|p| Plan { inner: Arc::new(p) }).collect())
}
