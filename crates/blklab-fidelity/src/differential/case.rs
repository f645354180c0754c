// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment in rows.

use blklab_experiment::{Catalogue, Experiment, Source};
use blklab_types::Error;
use std::fmt::Write as _;

/// A key and its value.
pub type Row = (String, String);

/// A job of fio: its name and its options.
pub(super) type Job = (String, Vec<Row>);

/// An experiment that is put together of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// Release.
    pub kernel: String,
    /// Scheduler.
    pub scheduler: String,
    /// Of everything random in the models.
    pub seed: u64,
    /// Device.
    pub device: String,
    /// Its parameters.
    pub params: Vec<Row>,
    /// `[queue]`.
    pub queue: Vec<Row>,
    /// `[tunables]`.
    pub tunables: Vec<Row>,
    /// `[vm]`, beside the one processor.
    pub vm: Vec<Row>,
    /// Options of all jobs.
    pub(super) global: Vec<Row>,
    /// Jobs.
    pub(super) jobs: Vec<Job>,
}

impl Case {
    /// The job file.
    pub fn job_text(&self) -> String {
        let mut text = String::from("[global]\n");
        options(&mut text, &self.global);
        for (name, own) in &self.jobs {
            let _ = writeln!(text, "\n[{name}]");
            options(&mut text, own);
        }
        text
    }

    /// The experiment file, with the job in it or in a file of its own.
    pub fn text(&self, job_file: Option<&str>) -> String {
        let mut text = format!("kernel = \"{}\"\n", self.kernel);
        if !self.scheduler.is_empty() {
            let _ = writeln!(text, "scheduler = \"{}\"", self.scheduler);
        }
        if self.seed != 0 {
            let _ = writeln!(text, "seed = {}", self.seed);
        }
        let _ = match job_file {
            Some(name) => writeln!(text, "job_file = \"{name}\""),
            None => writeln!(text, "job = \"\"\"\n{}\"\"\"", self.job_text()),
        };
        let name = [("name".to_owned(), self.device.clone())];
        let device: Vec<Row> = name.iter().chain(&self.params).cloned().collect();
        table(&mut text, "device", &device);
        table(&mut text, "queue", &self.queue);
        table(&mut text, "tunables", &self.tunables);
        let one = [("cpus".to_owned(), "1".to_owned())];
        let vm: Vec<Row> = one.iter().chain(&self.vm).cloned().collect();
        table(&mut text, "vm", &vm);
        text
    }

    /// The experiment.
    ///
    /// # Errors
    /// If the rows are none.
    pub fn experiment(&self, catalogue: &Catalogue) -> Result<Experiment, Error> {
        blklab_experiment::parse(
            &format!("{}.toml", self.id),
            Source::Toml,
            &self.text(None),
            &|_| Err(Error::new("it refers to no file".to_owned())),
            catalogue,
        )
    }
}

fn options(text: &mut String, rows: &[Row]) {
    for (key, value) in rows {
        let _ = match value.as_str() {
            "" => writeln!(text, "{key}"),
            _ => writeln!(text, "{key}={value}"),
        };
    }
}

fn table(text: &mut String, name: &str, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n[{name}]");
    for (key, value) in rows {
        let _ = match value.parse::<i64>() {
            Ok(number) => writeln!(text, "{key} = {number}"),
            Err(_) => writeln!(text, "{key} = \"{value}\""),
        };
    }
}
