// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that may run on several processors move when somebody else runs on theirs.

use crate::rig::{Ran, experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_sim::catalogue;
use blklab_trace::{Action, Event};
use std::collections::BTreeSet;

/// Four processors and null_blk of 100 us on Linux 6.12.
fn four_processors() -> Experiment {
    let mut e = experiment();
    e.choose_kernel("6.12".parse().unwrap(), &catalogue());
    e.device = DeviceSpec {
        name: "null_blk".to_owned(),
        params: vec![("completion_nsec".to_owned(), "100000".to_owned())],
    };
    e.queue.queue_depth = None;
    e.choose_scheduler("none", &catalogue()).unwrap();
    e.vm.cpus = Some(4);
    // It is busy for a fifth of the time with each job.
    e.vm.io_cost_ns = Some(25_000);
    e
}

const READS: &str = "[global]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nbs=4k\nsize=64m\n\
    io_size=2m\nioengine=libaio\n";

/// So many jobs, each with a pause of its own between two reads.
fn jobs_out_of_step(nr: u32, more: &str) -> String {
    let job = |i| format!("[a{i}]\nthinktime={}us\n{more}", 20 + 13 * i);
    (0..nr).map(job).collect()
}

/// Q events of one process, by its number.
fn queued(r: &Ran, process: u32) -> impl Iterator<Item = &Event> {
    let mut pids: Vec<_> = r.events.iter().map(|e| e.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids.retain(|pid| *pid >= 1000);
    let pid = pids[process as usize];
    let all = r.events.iter();
    all.filter(move |e| e.action == Action::Queue && e.pid == pid)
}

fn processors(r: &Ran, process: u32) -> BTreeSet<u16> {
    queued(r, process).map(|e| e.cpu).collect()
}

fn moves(r: &Ran, process: u32) -> usize {
    let cpus: Vec<u16> = queued(r, process).map(|e| e.cpu).collect();
    cpus.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn more_jobs_than_processors_move_now_and_then() {
    let jobs = jobs_out_of_step(8, "");
    let r = run(&four_processors(), &format!("{READS}{jobs}"));
    for job in 0..8 {
        // 512 reads, and one of the other three jobs or so that run on a processor is awake
        // for a fifth of the time.
        let moves = moves(&r, job);
        assert!((10..200).contains(&moves), "{job}: {moves}");
    }
}

#[test]
fn who_is_alone_on_a_processor_stays_there() {
    let r = run(&four_processors(), &format!("{READS}[a]\nnumjobs=4\n"));
    for job in 0..4 {
        assert_eq!(processors(&r, job), BTreeSet::from([job as u16]));
    }
}

#[test]
fn a_task_stays_where_it_may_run_and_where_its_cache_is() {
    let jobs = jobs_out_of_step(8, "cpus_allowed=2-3\n");
    let r = run(&four_processors(), &format!("{READS}{jobs}"));
    for job in 0..8 {
        assert_eq!(processors(&r, job), BTreeSet::from([2, 3]));
    }
    let jobs = jobs_out_of_step(8, "cpus_allowed=2-3\ncpus_allowed_policy=split\n");
    let r = run(&four_processors(), &format!("{READS}{jobs}"));
    for job in 0..8 {
        assert_eq!(moves(&r, job), 0);
    }
    let mut e = four_processors();
    e.vm.llc_cpus = Some(2);
    let jobs = jobs_out_of_step(8, "");
    let r = run(&e, &format!("{READS}{jobs}"));
    for job in 0..8 {
        let own = if job % 4 < 2 { [0, 1] } else { [2, 3] };
        assert_eq!(processors(&r, job), BTreeSet::from(own));
    }
}

/// The reader begins on the first processor, which the other job never leaves.
#[test]
fn a_task_leaves_a_processor_that_is_always_busy() {
    let spins = "[b]\ncpus_allowed=0\nthinktime=1s\nthinktime_spin=1s\nio_size=8k\n";
    let reader = "[a]\ncpus_allowed=0-1\nstartdelay=100ms\n";
    let r = run(&four_processors(), &format!("{READS}{reader}{spins}"));
    assert_eq!(processors(&r, 0), BTreeSet::from([1]));
    assert_eq!(processors(&r, 1), BTreeSet::from([0]));
}

/// The reader's processor is taken for 1 ms in three; where it goes then, it stays.
#[test]
fn a_task_does_not_go_back_as_long_as_it_is_alone() {
    let spins = "[b]\ncpus_allowed=0\nthinktime=3ms\nthinktime_spin=1ms\nio_size=400k\n";
    let reader = "[a]\ncpus_allowed=0-3\n";
    let r = run(&four_processors(), &format!("{READS}{reader}{spins}"));
    assert_eq!(moves(&r, 0), 1, "{:?}", processors(&r, 0));
}
