// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events are analysed as they come, by the run itself, or on a processor of its own
//! while the run goes on.

use super::analysis::Analysis;
use crate::relay::{Teller, relay};
use blklab_trace::{Event, TraceSink as _};
use blklab_types::{Pid, Time};
use std::thread::JoinHandle;

/// Who makes something of the events.
pub(super) enum Analyst {
    /// The run itself.
    Here(Analysis),
    /// Another thread.
    Beside(Beside),
}

/// A thread that analyses.
pub(super) struct Beside {
    teller: Teller,
    thread: JoinHandle<Analysis>,
}

impl Analyst {
    /// The run itself, or a thread if a processor is idle and there is something to do.
    pub(super) fn new(analysis: Analysis, has_idle_core: bool) -> Analyst {
        if has_idle_core && !matches!(analysis, Analysis::Nothing) {
            Analyst::Beside(Beside::new(analysis))
        } else {
            Analyst::Here(analysis)
        }
    }

    /// Whether anything is made of events.
    pub(super) fn is_told(&self) -> bool {
        !matches!(self, Analyst::Here(Analysis::Nothing))
    }

    /// The next events, and messages of the scheduler, whose texts tell nobody anything.
    pub(super) fn events(&mut self, events: &[Event]) {
        match self {
            Analyst::Here(analysis) => analysis.events(events),
            Analyst::Beside(beside) => beside.teller.events(events),
        }
    }

    /// A process has this name from now on.
    pub(super) fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        match self {
            Analyst::Here(analysis) => analysis.process(time, pid, comm),
            Analyst::Beside(beside) => beside.teller.process(time, pid, comm),
        }
    }

    /// The run has ended: what was found.
    pub(super) fn finish(self) -> Analysis {
        match self {
            Analyst::Here(analysis) => analysis,
            Analyst::Beside(beside) => beside.finish(),
        }
    }
}

impl Beside {
    fn new(mut analysis: Analysis) -> Beside {
        let (teller, listener) = relay();
        let thread = std::thread::spawn(move || {
            listener.pass_on(&mut analysis);
            analysis
        });
        Beside { teller, thread }
    }

    fn finish(self) -> Analysis {
        drop(self.teller);
        match self.thread.join() {
            Ok(analysis) => analysis,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{Experiment, Workload};
    use crate::run::{Collect, RunOptions, RunOutput, run};
    use crate::targets::{Planner, Sim};
    use blklab_analysis::watch::BioFilter;
    use std::path::PathBuf;

    fn output(job: &str, scheduler: &str, options: &RunOptions) -> RunOutput {
        let workload = Workload::Fio {
            name: "a.fio".into(),
            text: job.into(),
        };
        let planner = Planner::new(Sim::default());
        let mut e = Experiment::new("a", workload);
        e.choose_scheduler(scheduler, planner.catalogue()).unwrap();
        run(&planner.plan(&e).unwrap(), options).unwrap()
    }

    /// Where nothing is made of events, somebody else may read them.
    #[test]
    fn events_are_there_for_whoever_reads_them() {
        let kept = |collect| {
            let options = RunOptions {
                collect,
                kept_events_max: usize::MAX,
                ..RunOptions::default()
            };
            output("[a]\nrw=read\nsize=64k\n", "none", &options).events
        };
        let all = kept(Collect::Statistics);
        assert!(!all.is_empty());
        assert_eq!(kept(Collect::Watches), all);
    }

    /// Several batches, few events, messages of the scheduler, names of processes.
    #[test]
    fn what_comes_out_is_the_same_on_either_side() {
        let few = "[a]\nrw=read\nsize=64k\n";
        let many = "[a]\nrw=randrw\nioengine=libaio\niodepth=8\ndirect=1\nsize=8m\nnumjobs=3\n";
        let folder = tempfile::tempdir().unwrap();
        let trace = |name: &str| folder.path().join(name);
        for (job, scheduler, traces) in [
            (few, "none", vec![]),
            (many, "mq-deadline", vec![]),
            (many, "bfq", vec!["a.txt"]),
        ] {
            for collect in [Collect::Statistics, Collect::Totals, Collect::Watches] {
                let options = |has_idle_core| RunOptions {
                    collect,
                    traces: traces.iter().map(|t| trace(t)).collect::<Vec<PathBuf>>(),
                    watches: vec![BioFilter {
                        process: Some("a".into()),
                        ..BioFilter::default()
                    }],
                    has_idle_core,
                    ..RunOptions::default()
                };
                let here = output(job, scheduler, &options(false));
                let beside = output(job, scheduler, &options(true));
                assert_eq!(here.digest, beside.digest);
                assert_eq!((&here.disks, here.end), (&beside.disks, beside.end));
                assert_eq!(here.watched, beside.watched);
                assert!(here.watched[0].count > 0, "{job}");
                let shown = |output: &RunOutput| serde_json::to_string(&output.stats).unwrap();
                assert_eq!(shown(&here), shown(&beside));
            }
        }
    }
}
