// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of any content as fio's job files: those that do the same, and those that repeat
//! each bio. They are job files and logs that fio's parsers take, and the machine that a
//! trace shows is one that can be simulated.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::traces::{open, traces};
use blklab::findings::Context;
use blklab::matrix::{self, Overrides};
use blklab::scheduler::Schedulers;
use blklab::targets::{Planner, Sim};
use blklab::to_fio::{exact_job, job_file, job_on, read, shown_stack};
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::replay::text;
use blklab_fio::settings::ReplayOptions;
use std::path::Path;

pub(crate) const TARGET: Target = Target {
    name: "to_fio",
    feed,
    samples: traces,
};

const DISK: &str = "/dev/sda";

fn feed(data: &[u8]) -> Option<u64> {
    let summary = match read(&mut open(data)?, Path::new("fuzz"), None) {
        Ok(summary) => summary,
        Err(e) => {
            one_line(&e);
            return None;
        }
    };
    let exact = exact_job(&summary.recorded, DISK, "fuzz");
    let around = Fixed {
        files: exact.logs.clone(),
        devices: vec![DISK.to_owned()],
        ..Fixed::default()
    };
    let jobs = |text: &str| {
        let read = parse("fuzz.fio", text, &ParseOptions::default(), &around);
        read.unwrap_or_else(|e| panic!("no job file: {e}\n{text}"))
            .jobs
            .len()
    };
    if !exact.logs.is_empty() {
        assert_eq!(jobs(&exact.job), exact.logs.len(), "a job for each log");
    }
    for (name, log) in &exact.logs {
        let replayed = text::read(&mut log.as_bytes(), name, &ReplayOptions::default());
        if let Err(e) = replayed {
            panic!("no log: {e}\n{log}");
        }
    }
    let same = job_file(&summary.recorded, DISK);
    let text = same.text();
    if !same.sections.is_empty() {
        jobs(&text);
        match shown_stack(&summary, &Context::default(), Schedulers::default()) {
            Err(e) => one_line(&e),
            Ok(shown) => {
                let job = job_on(&shown.experiment, "fuzz.fio", text.clone());
                let planner = Planner::new(Sim::default());
                let overrides = Overrides {
                    repeat: 1,
                    ..Overrides::default()
                };
                let cells = matrix::expand(&[job], &overrides, &planner);
                let plans = cells.and_then(|cells| matrix::plans(&cells, &overrides, &planner));
                if let Err(refused) = plans {
                    one_line(&refused);
                }
            }
        }
    }
    Some(fingerprint(&(text, exact.logs)))
}
