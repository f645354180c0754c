// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment to a machine.

use crate::machine::{Config, KBLOCKD_PID, Machine, Sinks};
use crate::process::run_process;
use blklab_block::Features;
use blklab_block::sq::Queue;
use blklab_engine::Agenda;
use blklab_experiment::{Experiment, ExperimentError};
use blklab_sched::Build;
use blklab_types::{Dev, Time};
use blklab_workload::Process;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The disk as traces name it: sda.
pub const SDA: Dev = Dev { major: 8, minor: 0 };

/// A machine with the experiment's queue, scheduler and device, without tasks.
/// Setting `stop` ends its run at the next step.
///
/// # Errors
/// If the experiment is not possible; see [`Experiment::check`].
pub fn build_machine(
    e: &Experiment,
    mut sinks: Sinks,
    stop: Arc<AtomicBool>,
) -> Result<Machine, ExperimentError> {
    let (scheduler, tunables) = e.scheduler()?;
    let limits = e.limits()?;
    let patches = e.patches()?;
    let device = e.build_device()?;
    let mut agenda = Agenda::new(e.hz);
    let elevator = (scheduler.build)(&mut Build {
        version: e.kernel,
        hz: e.hz,
        tunables: &tunables,
        patches: &patches,
        rotational: limits.rotational,
        timers: &mut agenda.timers,
    });
    let queue = Queue::new(
        SDA,
        Features::of(e.kernel),
        limits,
        elevator,
        &mut agenda.timers,
    );
    sinks.trace.process(Time::ZERO, KBLOCKD_PID, "kblockd/0");
    Ok(Machine::new(Config {
        agenda,
        queue,
        device,
        sinks,
        stop,
    }))
}

/// Adds explicit processes to a machine.
pub fn spawn_processes(m: &Machine, processes: &[Process]) {
    for p in processes {
        let p = Rc::new(p.clone());
        let start = Time(p.start_ns);
        let body = run_process(m.clone(), Rc::clone(&p));
        m.spawn_at(&p.name, p.pid, p.ioprio(), true, start, body);
    }
}
