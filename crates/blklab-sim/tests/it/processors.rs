// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several processors: which one a job is on, software queues, and who takes a tag that
//! has become free.

use crate::rig::{Ran, experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_sim::{KBLOCKD_PID, catalogue};
use blklab_trace::{Action, Rwbs};
use std::collections::BTreeSet;

/// Linux 7.3 with four processors and null_blk: one hardware queue of four tags, 500 us.
fn four_processors(scheduler: &str) -> Experiment {
    let mut e = experiment();
    e.choose_kernel("7.3".parse().unwrap(), &catalogue());
    let params = [("completion_nsec", "500000"), ("hw_queue_depth", "4")];
    e.device = DeviceSpec {
        name: "null_blk".to_owned(),
        params: params.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec(),
    };
    e.queue.queue_depth = None;
    e.choose_scheduler(scheduler, &catalogue()).unwrap();
    e.vm.cpus = Some(4);
    e
}

/// Two readers one at a time on the first two processors, two writers of depth 16 on the
/// others.
const READERS_BESIDE_WRITERS: &str = "[global]\nfilename=/dev/nullb0\ndirect=1\nbs=4k\n\
    ioengine=libaio\ntime_based\nruntime=1\ncpus_allowed_policy=split\n\
    [reader]\nrw=randread\niodepth=1\nnumjobs=2\ncpus_allowed=0-1\n\
    [writer]\nrw=randwrite\niodepth=16\nnumjobs=2\ncpus_allowed=2-3\n";

fn reads(r: &Ran) -> usize {
    let dispatched = r.events.iter().filter(|e| e.action == Action::Issue);
    dispatched.filter(|e| e.rwbs.has(Rwbs::READ)).count()
}

#[test]
fn a_job_submits_on_the_processor_that_it_is_bound_to() {
    let r = run(&four_processors("none"), READERS_BESIDE_WRITERS);
    let cpus_of = |read: bool| -> BTreeSet<u16> {
        let queued = r.events.iter().filter(|e| e.action == Action::Queue);
        queued
            .filter(|e| e.rwbs.has(Rwbs::READ) == read)
            .map(|e| e.cpu)
            .collect()
    };
    assert_eq!(cpus_of(true), BTreeSet::from([0, 1]));
    assert_eq!(cpus_of(false), BTreeSet::from([2, 3]));
}

/// Measured on 7.3 with four processors: a reader mostly has its tag again before a writer
/// on another processor that was woken for it, and both together have 3494 reads a second.
#[test]
fn a_reader_takes_the_tag_again_that_its_own_completion_freed() {
    let with = |ns| {
        let mut e = four_processors("none");
        e.vm.remote_wake_ns = Some(ns);
        reads(&run(&e, READERS_BESIDE_WRITERS))
    };
    let (at_once, later) = (with(0), with(5000));
    assert!(
        later * 4 > at_once * 5,
        "{later} reads, {at_once} if woken at once"
    );
    // One at a time for a second, 500 us each.
    assert!((3200..=3800).contains(&later), "{later}");
}

#[test]
fn times_that_are_set_for_wake_ups_delay_the_next_read() {
    let job = "[a]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nbs=4k\nsize=1m\nioengine=psync\n";
    let took = |e: &Experiment| {
        let r = run(e, job);
        let (first, last) = (r.events.first().unwrap(), r.events.last().unwrap());
        last.time.since(first.time).ns()
    };
    let mut e = four_processors("none");
    let plain = took(&e);
    e.vm.wake_up_ns = Some(5000);
    // 256 reads, of which each but the last is followed by a wake-up.
    assert_eq!(took(&e) - plain, 255 * 5000);
}

/// The same with mq-deadline, and processors that run one at a time with the prices of the
/// measuring machine.
fn rig(kernel: &str) -> Experiment {
    let mut e = four_processors("mq-deadline");
    e.choose_kernel(kernel.parse().unwrap(), &catalogue());
    e.queue.nr_requests = Some(64);
    let vm = &mut e.vm;
    vm.cpu_turns = Some(true);
    vm.processor_time = Some(false);
    vm.io_cost_ns = Some(1700);
    vm.call_cost_ns = Some(4550);
    vm.reap_cost_ns = Some(2600);
    vm.interrupt_cost_ns = Some(1830);
    vm.wake_cost_ns = Some(2000);
    vm.switch_cost_ns = Some(1200);
    vm.worker_cost_ns = Some(1800);
    vm.insert_cost_ns = Some(1200);
    vm.dispatch_cost_ns = Some(1200);
    e
}

/// Four jobs, each on its own processor, that compute 100 us between I/Os of 10 us.
fn done_by_four_that_compute(turns: bool) -> usize {
    let mut e = four_processors("none");
    e.device.params[0].1 = "10000".to_owned();
    e.vm.cpu_turns = Some(turns);
    e.vm.io_cost_ns = Some(100_000);
    let job = "[a]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nbs=4k\nioengine=psync\n\
        time_based\nruntime=1\nnumjobs=4\ncpus_allowed=0-3\ncpus_allowed_policy=split\n";
    let ended = |e: &&blklab_trace::Event| e.action == Action::Complete;
    run(&e, job).events.iter().filter(ended).count()
}

#[test]
fn processors_that_run_one_at_a_time_have_the_speed_of_one() {
    let (at_once, in_turn) = (
        done_by_four_that_compute(false),
        done_by_four_that_compute(true),
    );
    // Each takes 110 us for an I/O, or all of them together 100.
    assert!((35_000..=36_500).contains(&at_once), "{at_once}");
    assert!((9500..=10_000).contains(&in_turn), "{in_turn}");
}

/// Measured on 7.3 with four processors of which one runs at a time: kblockd dispatches nearly
/// everything, eight runs on each processor, as null_blk has a second queue, for who polls.
#[test]
fn kblockd_goes_round_the_processors_where_a_disk_has_another_queue() {
    // The processors that it hands commands over on, and of the last command that ended before.
    let on = |kernel: &str| -> Vec<(u16, u16)> {
        let mut last = 0;
        let mut issued = Vec::new();
        for event in run(&rig(kernel), READERS_BESIDE_WRITERS).events {
            let thread = event.pid.wrapping_sub(KBLOCKD_PID);
            match event.action {
                Action::Complete => last = event.cpu,
                Action::Issue if thread < 4 => {
                    assert_eq!(u32::from(event.cpu), thread, "its own processor");
                    issued.push((event.cpu, last));
                }
                _ => {}
            }
        }
        issued
    };
    let (new, old) = (on("7.3"), on("5.10"));
    let goes_on = |pair: &[(u16, u16)]| [0, 1].contains(&((pair[1].0 + 4 - pair[0].0) % 4));
    let rounds = new.windows(2).filter(|pair| goes_on(pair)).count();
    assert!(
        rounds * 5 > (new.len() - 1) * 4,
        "{rounds} of {}",
        new.len()
    );
    let where_it_ended = |all: &[(u16, u16)]| all.iter().filter(|(cpu, last)| cpu == last).count();
    assert!(
        where_it_ended(&new) * 2 < new.len(),
        "{} of {}",
        where_it_ended(&new),
        new.len()
    );
    assert!(
        where_it_ended(&old) * 10 > old.len() * 9,
        "{} of {}",
        where_it_ended(&old),
        old.len()
    );
    assert!(old.len() > 100, "{}", old.len());
}

/// Measured on 6.12: the first command of several that are handed over while none is on its way ends
/// the turn, as its timer is due before all others, and the rest is handed over elsewhere, so that
/// commands do not end together for ever (four at once: 12 of 15,546).
#[test]
fn commands_that_end_together_part() {
    let r = run(&rig("6.12"), READERS_BESIDE_WRITERS);
    let issued = r.events.iter().filter(|e| e.action == Action::Issue);
    let issued: Vec<_> = issued.map(|e| (e.time, e.pid)).collect();
    let most = issued.chunk_by(|a, b| a == b).map(<[_]>::len);
    let together: usize = most.filter(|n| *n >= 3).sum();
    assert!(
        together * 10 < issued.len(),
        "{together} of {}",
        issued.len()
    );
}

/// Most commands that are at the device at once.
fn most_at_device(r: &Ran) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for event in &r.events {
        match event.action {
            Action::Issue => now += 1,
            Action::Complete => now -= 1,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

#[test]
fn hardware_queues_share_one_set_of_tags_where_the_driver_says_so() {
    let with = |scheduler: &str, shared: &str| {
        let mut e = four_processors(scheduler);
        for (name, value) in [("submit_queues", "4"), ("shared_tag_bitmap", shared)] {
            (e.device.params).push((name.to_owned(), value.to_owned()));
        }
        run(&e, READERS_BESIDE_WRITERS)
    };
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let (own, shared) = (with(scheduler, "off"), with(scheduler, "on"));
        assert_eq!(most_at_device(&shared), 4, "{scheduler}");
        assert!(
            most_at_device(&own) > 4,
            "{scheduler}: four tags for each queue"
        );
        // Four tags of 500 us: the device does 8,000 commands a second, and is never idle.
        let ended = |e: &&blklab_trace::Event| e.action == Action::Complete;
        let done = shared.events.iter().filter(ended).count();
        assert!((7500..=8010).contains(&done), "{scheduler}: {done}");
        assert!(reads(&shared) > 500, "{scheduler}: {}", reads(&shared));
    }
}

#[test]
fn tags_in_common_are_refused_where_the_scheduler_has_its_own() {
    let mut e = four_processors("mq-deadline");
    let param = ("shared_tag_bitmap".to_owned(), "on".to_owned());
    e.device.params.push(param);
    e.choose_kernel("5.10".parse().unwrap(), &catalogue());
    let error = e.check(&catalogue()).unwrap_err().to_string();
    assert!(error.contains("modelled from 5.16 on"), "{error}");
}

#[test]
fn hardware_queues_are_refused_where_a_disk_has_one_queue() {
    for (name, value, is_refused) in [
        ("submit_queues", "4", true),
        ("submit_queues", "1", false),
        ("shared_tag_bitmap", "on", true),
        ("shared_tag_bitmap", "off", false),
    ] {
        let mut e = four_processors("none");
        e.device.params.push((name.to_owned(), value.to_owned()));
        e.choose_kernel("4.19".parse().unwrap(), &catalogue());
        e.choose_scheduler("cfq", &catalogue()).unwrap();
        let checked = e.check(&catalogue());
        assert_eq!(checked.is_err(), is_refused, "{name}={value}");
        if let Err(error) = checked {
            let text = error.to_string();
            assert!(text.contains("modelled from 5.0 on"), "{text}");
        }
    }
}
