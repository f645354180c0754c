// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose metrics a study is about: some of the jobs of a run, or some of the bios of
//! its trace.

use blklab::analysis::watch::BioFilter;
use blklab::metric::{Numbers, Wanted};
use blklab::run::RunOutput;
use blklab::targets::JobResult;
use blklab_fiostat::Ddir;

/// Some of the jobs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Those of one reporting group; all if none.
    pub group: Option<u32>,
    /// Those of one section of the job file; all if none.
    pub section: Option<String>,
}

impl Jobs {
    fn wants(&self, j: &JobResult) -> bool {
        self.group.is_none_or(|g| g == j.job.group)
            && self.section.as_ref().is_none_or(|s| *s == j.job.section)
    }
}

/// Whose figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Of jobs, in one direction.
    Jobs(Jobs, Ddir),
    /// Of bios of the trace.
    Bios(BioFilter),
}

impl Subject {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Subject::Jobs(jobs, dir) => {
                let of = jobs.section.as_ref().map(|s| format!(" of {s}"));
                format!("{}{}", dir.name(), of.unwrap_or_default())
            }
            Subject::Bios(f) => {
                let sync = f.sync.map(|s| if s { "sync" } else { "async" });
                let op =
                    f.op.map_or("bios".to_owned(), |op| format!("{op:?}s").to_lowercase());
                let of = f.process.as_ref().map(|p| format!("of {p}"));
                let size = f.sectors.map(|n| format!("of {n} sectors"));
                let words = [sync.map(str::to_owned), Some(op), size, of];
                words.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// A metric of it; none if a run has none. `filters`: those that the run was
    /// watched with.
    pub(super) fn value(
        &self,
        wanted: Wanted,
        run: &RunOutput,
        filters: &[BioFilter],
    ) -> Option<f64> {
        let value = match self {
            Subject::Bios(filter) => {
                let i = filters.iter().position(|f| f == filter)?;
                wanted.metric.of_bios(run.watched.get(i)?)
            }
            Subject::Jobs(jobs, dir) => {
                let jobs = run.jobs.iter().filter(|j| jobs.wants(j));
                wanted.metric.of_jobs(&Numbers::new(jobs, Some(*dir)))
            }
        };
        value.map(|v| wanted.convert(v))
    }
}
