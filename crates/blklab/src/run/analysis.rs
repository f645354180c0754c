// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is made of the events of a run.

use super::{Collect, DeviceUse, RunOptions, RunOutput};
use crate::disk_stats::AllStats;
use crate::life_totals::LifeTotals;
use blklab_analysis::collect::StatsCollector;
use blklab_analysis::lifecycle::Lifecycles;
use blklab_analysis::watch::{Watch, Watches};
use blklab_target::Plan;
use blklab_trace::{Digest, Event, TraceSink};
use blklab_types::{Dev, Pid, Time};

/// Who is told of lives beside the statistics.
type Beside = (AllStats, Watches);

/// What is made of the events of a run.
pub(super) enum Analysis {
    Statistics(Digest, Box<StatsCollector<Beside>>),
    Totals(Digest, Box<Lifecycles<Beside>>),
    Watches(Box<Lifecycles<Watches>>),
    Nothing,
}

impl Analysis {
    /// What the options ask for.
    pub(super) fn new(plan: &Plan, options: &RunOptions) -> Analysis {
        let watches = options.watches.iter().cloned().map(Watch::new).collect();
        let watches = Watches(watches);
        let beside = |watches| (AllStats::new(array_dev(plan)), watches);
        match options.collect {
            Collect::Statistics => {
                let collector = StatsCollector::with(beside(watches));
                Analysis::Statistics(Digest::default(), Box::new(collector))
            }
            Collect::Totals => {
                let lives = Lifecycles::new(beside(watches));
                Analysis::Totals(Digest::default(), Box::new(lives))
            }
            Collect::Watches if watches.0.is_empty() => Analysis::Nothing,
            Collect::Watches => Analysis::Watches(Box::new(Lifecycles::new(watches))),
        }
    }

    /// Puts what was found into the output of a run that has ended.
    pub(super) fn finish(mut self, plan: &Plan, output: &mut RunOutput) {
        let at_end = self.disks_at(plan, output.end);
        let ((all, watches), digest) = match self {
            Analysis::Statistics(digest, collector) => {
                let (stats, beside) = collector.finish_with();
                output.stats = stats;
                (beside, digest)
            }
            Analysis::Totals(digest, lives) => (lives.finish().0, digest),
            Analysis::Watches(lives) => {
                ((AllStats::default(), lives.finish().0), Digest::default())
            }
            Analysis::Nothing => Default::default(),
        };
        output.digest = digest;
        let mut uses = at_end;
        for of in &mut uses {
            of.lives = all.lives(of.dev);
        }
        // What lies on the disks comes first; of several jobs use the topmost.
        let on_disks = plan.experiment().nr_on_disks().min(uses.len());
        output.array = uses.drain(..on_disks).next();
        output.disks = uses;
        output.watched = watches.0.into_iter().map(Watch::finish).collect();
    }

    /// The counters of all devices at the end of the run, before lives end with the
    /// last event: the disk is busy until the run ends. None if nobody asked.
    fn disks_at(&mut self, plan: &Plan, end: Time) -> Vec<DeviceUse> {
        let all = match self {
            Analysis::Statistics(_, collector) => &collector.also().0,
            Analysis::Totals(_, lives) => &lives.sink().0,
            Analysis::Watches(_) | Analysis::Nothing => return Vec::new(),
        };
        let devices = plan.site().devices.iter();
        let uses = devices.map(|(dev, name)| DeviceUse {
            dev: *dev,
            name: name.clone(),
            stats: all.at(*dev, end),
            lives: LifeTotals::default(),
        });
        uses.collect()
    }
}

/// Messages of the scheduler come as events: their texts tell it nothing.
impl TraceSink for Analysis {
    fn event(&mut self, event: &Event) {
        self.events(std::slice::from_ref(event));
    }

    fn events(&mut self, batch: &[Event]) {
        match self {
            Analysis::Totals(digest, lives) => {
                digest.events(batch);
                lives.sink().0.events(batch);
                lives.events(batch);
            }
            Analysis::Statistics(digest, collector) => {
                digest.events(batch);
                collector.also().0.events(batch);
                collector.events(batch);
            }
            Analysis::Watches(lives) => lives.events(batch),
            Analysis::Nothing => {}
        }
    }

    fn process(&mut self, time: Time, pid: Pid, comm: &str) {
        let watches = match self {
            Analysis::Statistics(_, collector) => {
                collector.process(time, pid, comm);
                &mut collector.also().1
            }
            Analysis::Totals(_, lives) => &mut lives.sink().1,
            Analysis::Watches(lives) => lives.sink(),
            Analysis::Nothing => return,
        };
        for watch in &mut watches.0 {
            watch.process(pid, comm);
        }
    }
}

/// The array, which is the first of the devices.
fn array_dev(plan: &Plan) -> Option<Dev> {
    if plan.experiment().nr_on_disks() == 0 {
        return None;
    }
    plan.site().devices.first().map(|(dev, _)| *dev)
}
