// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events are analysed as they come, by the run itself, or on a processor of its own
//! while the run goes on.

use super::analysis::Analysis;
use blklab_trace::Event;
use blklab_types::{Pid, Time};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Events that the thread is given at a time, about.
const BATCH_EVENTS: usize = 1024;

/// Batches on their way before the run waits: it is to have no more in memory than a
/// processor's cache holds.
const BATCHES: usize = 8;

/// Who makes something of the events.
pub(super) enum Analyst {
    /// The run itself.
    Here(Analysis),
    /// Another thread.
    Beside(Beside),
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

    /// The next events, and messages of the scheduler, whose texts tell nobody anything.
    pub(super) fn events(&mut self, events: &[Event]) {
        match self {
            Analyst::Here(analysis) => analysis.events(events),
            Analyst::Beside(beside) => beside.events(events),
        }
    }

    /// A process has this name from now on.
    pub(super) fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        match self {
            Analyst::Here(analysis) => analysis.process(time, pid, comm),
            Analyst::Beside(beside) => beside.process(time, pid, comm),
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

/// What the thread is told, in the order of the run.
enum Told {
    /// Events and messages.
    Events(Vec<Event>),
    /// The name of a process.
    Process(Time, Pid, String),
}

/// The run's side of the thread.
pub(super) struct Beside {
    batch: Vec<Event>,
    told: SyncSender<Told>,
    /// Batches that the thread is done with.
    empty: Receiver<Vec<Event>>,
    thread: JoinHandle<Analysis>,
}

impl Beside {
    fn new(analysis: Analysis) -> Beside {
        let (told, hears) = sync_channel(BATCHES);
        let (gives_back, empty) = channel();
        Beside {
            batch: Vec::with_capacity(BATCH_EVENTS),
            told,
            empty,
            thread: std::thread::spawn(move || analyse(analysis, &hears, &gives_back)),
        }
    }

    fn events(&mut self, events: &[Event]) {
        self.batch.extend_from_slice(events);
        if self.batch.len() >= BATCH_EVENTS {
            self.hand_over();
        }
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.hand_over();
        self.tell(Told::Process(time, pid, comm.to_owned()));
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            let empty = self.empty_batch();
            let batch = std::mem::replace(&mut self.batch, empty);
            self.tell(Told::Events(batch));
        }
    }

    fn empty_batch(&self) -> Vec<Event> {
        let empty = self.empty.try_recv();
        empty.unwrap_or_else(|_| Vec::with_capacity(BATCH_EVENTS))
    }

    fn tell(&self, told: Told) {
        // A thread that is not there any more has panicked: its end says so.
        let _ = self.told.send(told);
    }

    fn finish(mut self) -> Analysis {
        self.hand_over();
        drop(self.told);
        match self.thread.join() {
            Ok(analysis) => analysis,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The thread: takes what it is told until the run has ended.
fn analyse(
    mut analysis: Analysis,
    hears: &Receiver<Told>,
    gives_back: &Sender<Vec<Event>>,
) -> Analysis {
    for told in hears {
        match told {
            Told::Events(mut batch) => {
                analysis.events(&batch);
                batch.clear();
                // The run may be over.
                let _ = gives_back.send(batch);
            }
            Told::Process(time, pid, comm) => analysis.process(time, pid, &comm),
        }
    }
    analysis
}

#[cfg(test)]
mod tests {
    use crate::run::{Collect, RunOptions, RunOutput, run};
    use crate::{Experiment, Planner, Sim, Workload};
    use blklab_analysis::watch::BioFilter;
    use std::path::PathBuf;

    fn output(job: &str, scheduler: &str, options: &RunOptions) -> RunOutput {
        let workload = Workload::Fio {
            name: "a.fio".into(),
            text: job.into(),
        };
        let sim = Sim::default();
        let mut e = Experiment::new("a", workload, &sim.catalogue());
        e.choose_scheduler(scheduler).unwrap();
        run(&Planner::new(&sim).plan(&e).unwrap(), options).unwrap()
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
