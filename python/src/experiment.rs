// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments, from files, texts and traces.

use crate::errors::raise;
use blklab::experiment::{Source, TraceSpec, Workload, load, parse};
use blklab::types::Error;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// A workload with the block stack and the device that it names. It does not change: a stack
/// that is chosen on top of it makes plans.
#[pyclass(frozen, module = "blklab._native")]
#[derive(Clone)]
pub(crate) struct Experiment {
    pub(crate) value: blklab::experiment::Experiment,
}

impl From<blklab::experiment::Experiment> for Experiment {
    fn from(value: blklab::experiment::Experiment) -> Experiment {
        Experiment { value }
    }
}

#[pymethods]
impl Experiment {
    /// Of a job file, an experiment file, a run directory, or a built-in scenario by its name.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Experiment> {
        let catalogue = blklab::targets::catalogue();
        if path.is_dir() {
            let dir = blklab::run_directory::RunDir::open(&path, &catalogue).map_err(raise)?;
            return Ok(dir.experiment.into());
        }
        Ok(load(&path, &catalogue).map_err(raise)?.into())
    }

    /// Of a text that stands in no file: `kind` is fio, toml or json. `name` stands in errors.
    #[staticmethod]
    fn parse(name: &str, kind: &str, text: &str) -> PyResult<Experiment> {
        let source = match kind {
            "fio" => Source::Fio,
            "toml" => Source::Toml,
            "json" => Source::Json,
            other => {
                let known = blklab::types::no_such("kind of text", other, &["fio", "toml", "json"]);
                return Err(raise(Error::new(known)));
            }
        };
        // Files that a text names stand where the program runs.
        let read = |file: &str| {
            std::fs::read_to_string(file)
                .map(|text| (file.to_owned(), text))
                .map_err(|e| Error::new(format!("cannot read it: {e}")).in_file(file))
        };
        let catalogue = blklab::targets::catalogue();
        let parsed = parse(name, source, text, &read, &catalogue);
        Ok(parsed.map_err(raise)?.into())
    }

    /// That repeats the I/O of a trace; `settings` are those of the table `[replay]`.
    #[staticmethod]
    fn of_trace(path: &str, settings: Vec<(String, String)>) -> PyResult<Experiment> {
        let mut spec = TraceSpec::new(path);
        for (key, text) in settings {
            spec.set(&key, &text).map_err(raise)?;
        }
        let name = Path::new(path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let id = name
            .split(".blktrace.")
            .next()
            .unwrap_or("trace")
            .to_owned();
        Ok(blklab::experiment::Experiment::new(&id, Workload::Trace(spec)).into())
    }

    /// All that it says, with every default spelled out: its TOML, then the text of its job
    /// file. Equal texts are equal experiments, but for what logs and traces hold that they name.
    fn text(&self) -> PyResult<String> {
        let catalogue = blklab::targets::catalogue();
        let toml = self.value.to_toml("job", &catalogue).map_err(raise)?;
        let job = match &self.value.workload {
            Workload::Fio { text, .. } => text,
            _ => "",
        };
        Ok(format!("{toml}\n{job}"))
    }

    /// Its name.
    #[getter]
    fn id(&self) -> &str {
        &self.value.id
    }
}
