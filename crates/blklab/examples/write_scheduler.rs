// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scheduler of one's own: last come, first served, beside mq-deadline.
//!
//!     cargo run -p blklab --example write_scheduler
//!
//! docs/write-a-scheduler.md builds a better one, with merging and a test.

use blklab::experiment::{Experiment, Workload};
use blklab::fio::Ddir;
use blklab::metric::{self, Numbers};
use blklab::run::{RunOptions, run};
use blklab::scheduler::{
    Build, Core, Cx, Elevator, KernelVersion, List, Make, ProcessorTime, RqId, Scheduler,
    Schedulers,
};
use blklab::targets::{Planner, Sim};
use blklab::types::Error;

/// What experiments and `blklab list schedulers` know of it.
static LIFO: [Scheduler; 1] = [Scheduler {
    name: "lifo",
    summary: "last come, first served: unfair on purpose",
    since: KernelVersion::new(5, 0),
    until: KernelVersion::FOREVER,
    tunables: &[],
    changes: &[],
    processor_time: ProcessorTime::NONE,
    make: Make::Mq(|_: &mut Build<'_>| Box::new(Lifo::default())),
}];

#[derive(Default)]
struct Lifo {
    waiting: List,
}

impl Elevator for Lifo {
    fn name(&self) -> &'static str {
        LIFO[0].name
    }

    fn add(&mut self, q: &mut Core, _: &mut Cx<'_>, rq: RqId, _at_head: bool) {
        self.waiting.push_front(&mut q.rqs, rq);
    }

    fn has_work(&self, _: &Core, _: u16) -> bool {
        !self.waiting.is_empty()
    }

    fn dispatch(&mut self, q: &mut Core, _: &mut Cx<'_>, _: u16) -> Option<RqId> {
        self.waiting.pop_front(&mut q.rqs)
    }
}

const JOB: &str = "\
[reader]
rw=randread
direct=1
ioengine=libaio
iodepth=32
size=1g
io_size=4m
";

pub(crate) fn main() -> Result<(), Error> {
    for scheduler in ["lifo", "mq-deadline"] {
        let workload = Workload::Fio {
            name: "reader.fio".to_owned(),
            text: JOB.to_owned(),
        };
        let planner = Planner::new(Sim::with(Schedulers::with(&LIFO)));
        let mut experiment = Experiment::new("lifo", workload);
        experiment.choose_kernel("6.1".parse()?, planner.catalogue());
        experiment.choose_scheduler(scheduler, planner.catalogue())?;
        experiment.set("queue_depth", "1", planner.catalogue())?;
        let plan = planner.plan(&experiment)?;
        let output = run(&plan, &RunOptions::default())?;
        let reads = Numbers::new(&output.jobs, Some(Ddir::Read));
        let value = |key: &str| {
            metric::named(key)
                .and_then(|m| m.of_jobs(&reads))
                .unwrap_or(0.0)
                / 1e6
        };
        println!(
            "{scheduler:<12} median {:>6.1} ms, longest {:>7.1} ms",
            value("clat_p50"),
            value("clat_max")
        );
    }
    Ok(())
}
