// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events are analysed in batches, with the code and tables of the analysis in the
//! processor's caches: by the run itself, or on a processor of its own while the run
//! goes on.

use super::analysis::Analysis;
use blklab_trace::Event;
use blklab_types::{Pid, Time};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

/// Events that are handed over at a time.
const BATCH_EVENTS: usize = 1024;

/// Events that the run itself analyses at a time: so few that they are still in the
/// processor's first cache.
const OWN_BATCH_EVENTS: usize = 256;

/// Batches on their way before the run waits: it is to have no more in memory than a
/// processor's cache holds.
const BATCHES: usize = 8;

/// Collects events, and has something made of them.
pub(super) struct Analyst {
    batch: Vec<Event>,
    /// Events of a whole batch.
    full: usize,
    who: Who,
}

/// Who makes something of the events.
enum Who {
    /// The run itself.
    Here(Analysis),
    /// Another thread.
    Beside(Beside),
}

impl Analyst {
    /// The run itself, or a thread if a processor is idle and there is something to do.
    pub(super) fn new(analysis: Analysis, has_idle_core: bool) -> Analyst {
        let is_beside = has_idle_core && !matches!(analysis, Analysis::Nothing);
        let (full, who) = if is_beside {
            (BATCH_EVENTS, Who::Beside(Beside::new(analysis)))
        } else {
            (OWN_BATCH_EVENTS, Who::Here(analysis))
        };
        Analyst {
            batch: Vec::with_capacity(full),
            full,
            who,
        }
    }

    /// The next event, or a message of the scheduler, whose text tells nobody anything.
    #[inline]
    pub(super) fn event(&mut self, event: &Event) {
        self.batch.push(*event);
        if self.batch.len() == self.full {
            self.hand_over();
        }
    }

    /// A process has this name from now on.
    pub(super) fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        self.hand_over();
        match &mut self.who {
            Who::Here(analysis) => analysis.process(time, pid, comm),
            Who::Beside(beside) => beside.tell(Told::Process(time, pid, comm.to_owned())),
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        match &mut self.who {
            _ if self.batch.is_empty() => {}
            Who::Here(analysis) => {
                analysis.events(&self.batch);
                self.batch.clear();
            }
            Who::Beside(beside) => {
                let batch = std::mem::replace(&mut self.batch, beside.empty_batch());
                beside.tell(Told::Events(batch));
            }
        }
    }

    /// The run has ended: what was found.
    pub(super) fn finish(mut self) -> Analysis {
        self.hand_over();
        match self.who {
            Who::Here(analysis) => analysis,
            Who::Beside(beside) => beside.finish(),
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
struct Beside {
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
            told,
            empty,
            thread: std::thread::spawn(move || analyse(analysis, &hears, &gives_back)),
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

    fn finish(self) -> Analysis {
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
