// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discards of jobs reach the device as such.

use blklab_experiment::{Experiment, Workload};
use blklab_kernel_target::Kernel;
use blklab_target::{Planner, Sinks};
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::Op;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const JOB: &str = "[t]\nrw=randtrim\nbs=64k\nsize=4m\nfilename=/dev/vda\n";

/// Sectors of the discards that the device was given.
#[derive(Clone, Default)]
struct Issued(Arc<Mutex<Vec<u64>>>);

impl TraceSink for Issued {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Issue && event.rwbs.op() == Some(Op::Discard) {
            let mut all = self.0.lock().expect("one at a time");
            all.push(event.nr_sectors());
        }
    }
}

#[test]
fn a_trim_of_fio_is_a_discard_of_the_device_where_it_has_such() {
    let Some(kernel) = super::kernel() else {
        return;
    };
    let catalogue = blklab_sim::catalogue();
    let run = |device: &str| {
        let workload = Workload::Fio {
            name: "job.fio".to_owned(),
            text: JOB.to_owned(),
        };
        let mut e = Experiment::new("trims", workload);
        e.set("target", "kernel", &catalogue).expect("a target");
        e.choose_kernel(kernel.release.parse().expect("a release"), &catalogue);
        e.device.name = device.to_owned();
        let planner = Planner::new(Kernel::with(catalogue.clone()));
        let plan = planner.plan(&e).expect("it is accepted");
        let issued = Issued::default();
        let sinks = Sinks::of_events(Box::new(issued.clone()));
        let outcome = plan.run(sinks, Arc::new(AtomicBool::new(false)));
        let outcome = outcome.expect("it runs");
        let all = issued.0.lock().expect("it has ended").clone();
        (outcome.jobs[0].outcome.error, all)
    };
    let (error, sectors) = run("nvme-consumer");
    assert_eq!(error, 0);
    assert_eq!(sectors, vec![128; 64]);
    // A disk has none, and says so.
    let (error, sectors) = run("sata-7200-2008");
    assert_ne!(error, 0);
    assert!(sectors.is_empty(), "{sectors:?}");
}
