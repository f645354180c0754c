// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment to a machine.

use crate::catalogue::catalogue_with;
use crate::cgroups;
use crate::device::build_device;
use crate::limits::{array_config, interrupts, mq_limits, queue_limits, sq_limits};
use crate::machine::{
    Config, CpuCosts, CpuSharing, Disk, KBLOCKD_NAME, KBLOCKD_PID, Machine, RequestTimes,
    SchedulerTime, WakeTimes,
};
use crate::process::run_process;
use blklab_block::md::{Array, MD0};
use blklab_block::{Gate, Queue, TaskTable, Throttle, mq, sq};
use blklab_device::{Device, interrupted};
use blklab_engine::Agenda;
use blklab_experiment::Experiment;
use blklab_sched::{Build, Built, LockOf, Schedulers, Shared};
use blklab_target::Sinks;
use blklab_types::Error;
use blklab_types::{Dev, Level, Pid, Time};
use blklab_workload::Process;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The process of a processor that has nothing to do: interrupts are its events then.
const IDLE_PID: Pid = 0;

/// Its name in traces: kernels for several processors say which one it is of (`init_idle` of
/// 5.10). Those of the single-queue path, of which 2.6.28 was measured, do not.
fn idle_name(e: &Experiment) -> &'static str {
    if e.kernel.has_single_queue() || e.one_cpu() {
        "swapper"
    } else {
        "swapper/0"
    }
}

/// A disk as traces name it: sda, sdb and so on.
pub(crate) fn disk_dev(number: u32) -> Dev {
    Dev {
        major: 8,
        minor: 16 * number as u16,
    }
}

/// The block devices of an experiment's machine with their names: the array if
/// there is one, then the disks.
pub fn devices(e: &Experiment) -> Vec<(Dev, String)> {
    let letter = |i: u32| char::from(b'a' + i as u8);
    let disk = |i| (disk_dev(i), format!("sd{}", letter(i)));
    match &e.md {
        None => vec![disk(0)],
        Some(md) => std::iter::once((MD0, "md0".to_owned()))
            .chain((0..md.members).map(disk))
            .collect(),
    }
}

/// A machine with the experiment's queues, schedulers and devices, without
/// tasks but those of an array. Setting `stop` ends its run at the next step.
///
/// # Errors
/// If the experiment is not possible; see [`Experiment::check`].
pub fn build_machine(
    e: &Experiment,
    sinks: Sinks,
    stop: Arc<AtomicBool>,
) -> Result<Machine, Error> {
    let device = build_device(e)?;
    let parts = Parts {
        device: &*device,
        schedulers: Schedulers::default(),
    };
    machine_with(e, parts, sinks, stop)
}

/// What machines are built of beside their experiment.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// The device that was made of the experiment; each disk is a copy of it.
    pub(crate) device: &'a dyn Device,
    /// The schedulers that its name is looked for in.
    pub(crate) schedulers: Schedulers,
}

/// The same, of parts that are there.
pub(crate) fn machine_with(
    e: &Experiment,
    parts: Parts<'_>,
    mut sinks: Sinks,
    stop: Arc<AtomicBool>,
) -> Result<Machine, Error> {
    let mut agenda = Agenda::new(e.hz);
    let tasks = cgroups::table(e);
    let nr_disks = e.md.as_ref().map_or(1, |md| md.members);
    let shared = Shared::default();
    let disks: Result<Vec<Disk>, Error> = (0..nr_disks)
        .map(|i| {
            let scheduler_time = scheduler_time(e, parts.schedulers)?;
            let mut queue = build_queue(
                e,
                parts.schedulers,
                disk_dev(i),
                &tasks,
                &shared,
                &mut agenda,
            )?;
            let pays = e.one_cpu() || e.has_turns();
            if let (Queue::Mq(q), Some(_), true) = (&mut queue, &scheduler_time, pays) {
                q.pay_for_requests();
            }
            let device = interrupted(parts.device.copy(), e.interrupt_latency());
            Ok(Disk {
                device,
                queue,
                interrupts: interrupts(e)?,
                kblockd_cpu: 0,
                scheduler_time,
            })
        })
        .collect();
    let disks = disks?;
    let array = match &e.md {
        Some(md) => Some(Array::new(array_config(e, md)?, &mut agenda.timers)),
        None => None,
    };
    let has_thread = array.as_ref().is_some_and(|a| a.level() == Level::Raid1);
    let has_group_limits = |d: &Disk| d.queue.gate().has_limits();
    let holds_bios = disks.iter().any(has_group_limits);
    sinks.trace.process(Time::ZERO, IDLE_PID, idle_name(e));
    let cpu = if e.kernel.has_single_queue() {
        sinks.trace.process(Time::ZERO, KBLOCKD_PID, "kblockd/0");
        if e.one_cpu() {
            CpuSharing::HoldsKblockd
        } else {
            CpuSharing::None
        }
    } else if e.one_cpu() {
        CpuSharing::One(cpu_costs(e))
    } else if e.has_turns() {
        CpuSharing::InTurn(cpu_costs(e))
    } else {
        // No task of its own says so.
        sinks.trace.process(Time::ZERO, KBLOCKD_PID, KBLOCKD_NAME);
        CpuSharing::Several(WakeTimes {
            own: e.wake_up_time(),
            remote: e.remote_wake_time(),
        })
    };
    let machine = Machine::new(Config {
        agenda,
        disks,
        array,
        tasks,
        kernel: e.kernel,
        cpu,
        nr_cpus: e.nr_cpus(),
        llc_cpus: e.vm.llc_cpus(e.kernel),
        seed: e.seed,
        sinks,
        stop,
    });
    if has_thread {
        machine.start_array_thread();
    }
    if holds_bios {
        machine.start_throttle_thread();
    }
    Ok(machine)
}

fn cpu_costs(e: &Experiment) -> CpuCosts {
    CpuCosts {
        switch: e.switch_cost(),
        interrupt: e.interrupt_cost(),
        wake: e.wake_cost(),
        insert: e.insert_cost(),
        worker: e.worker_cost(),
        gap: e.hand_over_gap(),
        dispatch: e.dispatch_cost(),
        copy: e.driver_copy(),
    }
}

/// What requests take of the processors; none if nothing, as on the single-queue path.
fn scheduler_time(e: &Experiment, schedulers: Schedulers) -> Result<Option<SchedulerTime>, Error> {
    let known = schedulers.find(&e.scheduler, e.kernel);
    let Some(scheduler) = known.filter(|_| !e.kernel.has_single_queue()) else {
        return Ok(None);
    };
    let of = scheduler.processor_time;
    // One processor at most waits for nobody.
    let nr_locks = match of.lock {
        _ if e.one_cpu() || e.has_turns() => 0,
        LockOf::Disk => 1,
        LockOf::HwQueue => mq_limits(e)?.nr_hw_queues,
    };
    Ok(SchedulerTime::new(RequestTimes {
        request: e.request_cost(),
        scheduler: e.sched_cost(of.request_ns),
        turns: of.turns,
        shared_turns: of.shared_turns,
        transfer: e.lock_transfer(),
        nr_locks,
    }))
}

/// A disk's queue with its scheduler; registers their timers.
pub(crate) fn build_queue(
    e: &Experiment,
    schedulers: Schedulers,
    dev: Dev,
    tasks: &TaskTable,
    shared: &Shared,
    agenda: &mut Agenda,
) -> Result<Queue, Error> {
    let (choice, tunables) = e.scheduler(&catalogue_with(schedulers))?;
    let scheduler = schedulers.find(choice.name, e.kernel);
    let scheduler = scheduler.expect("the catalogue is made of these schedulers");
    let patches = e.patches()?;
    let built = scheduler.build(&mut Build {
        version: e.kernel,
        hz: e.hz,
        tunables: &tunables,
        patches: &patches,
        rotational: queue_limits(e)?.rotational,
        timers: &mut agenda.timers,
        shared,
    });
    let timers = &mut agenda.timers;
    Ok(match built {
        Built::Sq(elevator) => {
            let feat = sq::Features::of(e.kernel);
            let throttle = Throttle::new(tasks, feat.throttle_counting(), e.hz, timers);
            let mut queue = sq::Queue::new(dev, feat, sq_limits(e)?, elevator, timers);
            queue.limit_groups(Gate::new(throttle));
            Queue::Sq(Box::new(queue))
        }
        Built::Mq(elevator) => {
            let feat = mq::Features::of(e.kernel);
            let limits = mq_limits(e)?;
            let throttle = Throttle::new(tasks, feat.throttle_counting(), e.hz, timers);
            let has_scheduler = elevator.is_some();
            let policies = mq::GroupPolicies::new(tasks, &feat, &limits, has_scheduler, timers);
            let mut queue = mq::Queue::new(dev, feat, limits, elevator, timers);
            queue.limit_groups(Gate::new(throttle));
            queue.add_group_policies(policies);
            if tasks.has_groups() && !e.has_groups_of_v1() {
                queue.count_groups();
            }
            Queue::Mq(Box::new(queue))
        }
    })
}

/// Adds explicit processes to an experiment's machine.
pub fn spawn_processes(m: &Machine, e: &Experiment, processes: &[Process]) {
    for p in processes {
        let p = Rc::new(p.clone());
        let start = Time(p.start_ns);
        let body = run_process(m.clone(), Rc::clone(&p));
        let task = m.spawn_at(&p.name, p.pid, p.ioprio(), true, start, body);
        if let Some(name) = &p.cgroup {
            m.set_group(task, cgroups::number_of(e, name));
        }
    }
}
