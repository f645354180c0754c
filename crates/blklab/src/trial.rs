// SPDX-License-Identifier: MIT OR Apache-2.0
//! One load under two schedulers, one of them a changed copy of the other: what the change
//! does to the figure that matters, how sure that is, and where the orders of dispatches part.

use crate::figure::Figure;
use crate::matrix::{self, Cell, Overrides};
use crate::parallel;
use crate::run::{Collect, RunOptions, RunOutput, run};
use crate::scheduler::Schedulers;
use crate::verdict::{Verdict, judge, sides};
use blklab_experiment::{DeviceSpec, Experiment, load};
use blklab_target::Planner;
use blklab_trace::{Action, Event};
use blklab_types::Error;
use std::fmt;
use std::path::Path;

/// What is tried.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    /// A fio job file or an experiment file.
    pub file: &'a Path,
    /// The two schedulers, the original first.
    pub schedulers: [&'a str; 2],
    /// `kernel`, `device` (`NAME,K=V`) and all that [`Experiment::set`] takes.
    pub settings: &'a [(String, String)],
    /// What it is judged by, as `sync p99.9 of wal`; none: the 99.9th percentile of the job
    /// that is worst off.
    pub figure: Option<&'a str>,
    /// Runs of each, with other random offsets.
    pub repetitions: u32,
}

/// Dispatches of each that are compared.
const EVENTS_MAX: usize = 4_000_000;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Who is better.
    pub verdict: Verdict,
    /// Dispatches of both that are the same, from the first on.
    pub same: usize,
    /// What each dispatches then, as `R 1000+8 of pid 1`; none if it has no more.
    pub then: [Option<String>; 2],
}

impl Trial<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// One line: what is wrong with the load, the settings or the figure.
    pub fn run(&self, schedulers: Schedulers) -> Result<Outcome, Error> {
        let figure = self.figure.map(Figure::parse).transpose()?;
        let planner = Planner::new(blklab_sim::Sim::with(schedulers));
        let experiment = self.experiment(&planner)?;
        let overrides = Overrides {
            schedulers: self.schedulers.map(str::to_owned).to_vec(),
            repeat: self.repetitions.max(1),
            ..Overrides::default()
        };
        let told = |refused: matrix::Refused| refused.error;
        let cells = matrix::expand(&[experiment], &overrides, &planner).map_err(told)?;
        let plans = matrix::plans(&cells, &overrides, &planner).map_err(told)?;
        let all: Vec<usize> = (0..cells.len()).collect();
        let runs = parallel::map(&all, parallel::cores(), |&i| {
            let options = RunOptions {
                collect: Collect::Totals,
                kept_events_max: if cells[i].repetition == 0 {
                    EVENTS_MAX
                } else {
                    0
                },
                ..RunOptions::default()
            };
            run(&plans[i], &options)
        });
        let runs: Vec<RunOutput> = runs.into_iter().collect::<Result<_, _>>()?;
        if let Some(failed) = runs.iter().flat_map(crate::failures::messages).next() {
            return Err(Error::new(failed));
        }
        let pairs: Vec<(&Cell, &RunOutput)> = cells.iter().zip(&runs).collect();
        let verdict = judge(&sides(&pairs), figure.as_ref())?;
        let firsts: Vec<Vec<String>> = pairs
            .iter()
            .filter(|(cell, _)| cell.repetition == 0)
            .map(|(_, run)| dispatches(&run.events))
            .collect();
        let [original, changed] = [&firsts[0], &firsts[1]];
        let both = original.iter().zip(changed);
        let same = both.take_while(|(a, b)| a == b).count();
        Ok(Outcome {
            verdict,
            same,
            then: [original, changed].map(|order| order.get(same).cloned()),
        })
    }

    /// The experiment of the file with the settings.
    fn experiment(&self, planner: &Planner) -> Result<Experiment, Error> {
        let catalogue = planner.catalogue();
        let mut e = load(self.file, catalogue)?;
        let chosen = |key: &'static str| self.settings.iter().filter(move |(k, _)| k == key);
        for (_, version) in chosen("kernel") {
            e.choose_kernel(version.parse()?, catalogue);
        }
        for (_, text) in chosen("device") {
            let mut parts = text.split(',');
            let name = parts.next().unwrap_or_default().to_owned();
            let params = parts.map(|part| {
                let (key, value) = part.split_once('=').ok_or_else(|| {
                    Error::new(format!(
                        "device={text}: write parameters like queue_depth=1"
                    ))
                })?;
                Ok((key.to_owned(), value.to_owned()))
            });
            let params = params.collect::<Result<_, Error>>()?;
            e.choose_device(DeviceSpec { name, params }, catalogue)?;
        }
        // What a tunable is depends on the scheduler: the copy has those of the original.
        e.choose_scheduler(self.schedulers[0], catalogue)?;
        let is_other = |key: &str| key != "kernel" && key != "device";
        for (key, value) in self.settings.iter().filter(|(key, _)| is_other(key)) {
            e.set(key, value, catalogue)?;
        }
        Ok(e)
    }
}

/// What goes to the device, in order.
fn dispatches(events: &[Event]) -> Vec<String> {
    let issued = events.iter().filter(|e| e.action == Action::Issue);
    let told =
        issued.map(|e| format!("{} {}+{} of pid {}", e.rwbs, e.sector, e.bytes / 512, e.pid));
    told.collect()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = &self.verdict;
        for text in [&v.answer, &v.sure, &v.cost] {
            if !text.is_empty() {
                writeln!(f, "{text}")?;
            }
        }
        let width = v.rows.iter().map(|row| row.label.chars().count()).max();
        let width = width.unwrap_or(0);
        writeln!(f, "\n{}", v.figure)?;
        for row in &v.rows {
            let interval = &row.interval_text;
            writeln!(f, "  {:<width$} {:>10}  {interval}", row.label, row.text)?;
        }
        for (i, name) in v.others.iter().enumerate() {
            writeln!(f, "{name}")?;
            for row in &v.rows {
                let other = &row.others[i];
                let interval = &other.interval_text;
                writeln!(f, "  {:<width$} {:>10}  {interval}", row.label, other.text)?;
            }
        }
        match &self.then {
            [None, None] => writeln!(
                f,
                "\nBoth dispatch the same {} requests in the same order.",
                self.same
            ),
            [original, changed] => {
                let told =
                    |next: &Option<String>| next.clone().unwrap_or("nothing more".to_owned());
                writeln!(
                    f,
                    "\nThe first {} dispatches are the same; then {} takes {}, and {} takes {}.",
                    self.same,
                    v.rows[0].label,
                    told(original),
                    v.rows[1].label,
                    told(changed)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "[w]\nrw=randwrite\nsize=4m\nio_size=256k\nioengine=libaio\niodepth=16\n\
        direct=1\n[r]\nrw=randread\nsize=4m\nio_size=256k\nioengine=libaio\niodepth=16\ndirect=1\n";

    fn outcome(schedulers: [&str; 2], settings: &[(&str, &str)]) -> Result<Outcome, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("job.fio");
        std::fs::write(&file, JOB).expect("written");
        let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
        let settings: Vec<(String, String)> = settings.iter().map(owned).collect();
        let trial = Trial {
            file: &file,
            schedulers,
            settings: &settings,
            figure: Some("p99 of w"),
            repetitions: 3,
        };
        trial.run(Schedulers::default())
    }

    #[test]
    fn two_schedulers_are_judged_and_their_orders_compared() {
        let device = ("device", "sata-7200-2008,queue_depth=1");
        let o = outcome(["mq-deadline", "kyber"], &[device, ("nr_requests", "32")]);
        let o = o.expect("it runs");
        let labels: Vec<&str> = o.verdict.rows.iter().map(|r| r.label.as_str()).collect();
        assert_eq!(labels, ["mq-deadline", "kyber"]);
        assert!(o.then.iter().all(Option::is_some), "{o}");
        assert!(
            o.to_string()
                .contains("dispatches are the same; then mq-deadline takes")
        );
        let told = |settings| outcome(["mq-deadline", "none"], settings).expect_err("refused");
        assert!(told(&[("nr_request", "3")]).what.contains("nr_requests"));
        assert!(
            told(&[("device", "serial,x")])
                .what
                .contains("like queue_depth=1")
        );
    }
}
