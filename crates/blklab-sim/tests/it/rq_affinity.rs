// SPDX-License-Identifier: MIT OR Apache-2.0
//! On which processor requests end: where the device's interrupt comes, or where they were
//! submitted.

use crate::rig::{experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_sim::{Sinks, build_machine, catalogue};
use blklab_trace::{Action, Event, NullSink};
use std::collections::{BTreeMap, BTreeSet};

/// Four processors and a device on Linux 6.12.
fn with_device(name: &str, params: &[(&str, &str)]) -> Experiment {
    let mut e = experiment();
    e.choose_kernel("6.12".parse().unwrap(), &catalogue());
    e.device = DeviceSpec {
        name: name.to_owned(),
        params: params
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    };
    e.queue.queue_depth = None;
    e.choose_scheduler("none", &catalogue()).unwrap();
    e.vm.cpus = Some(4);
    e.vm.processor_time = Some(false);
    e
}

/// A SATA drive: one interrupt.
fn sata() -> Experiment {
    with_device("sata-ssd", &[])
}

/// Reads of a job that is bound to a processor.
fn events_of(e: &Experiment, cpu: u16, iodepth: u32) -> Vec<Event> {
    let job = format!(
        "[a]\nfilename=/dev/sda\ndirect=1\nrw=randread\nbs=4k\nsize=4m\nio_size=1m\n\
         ioengine=libaio\niodepth={iodepth}\ncpus_allowed={cpu}\n"
    );
    run(e, &job).events
}

fn of_action(events: &[Event], action: Action) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |e| e.action == action)
}

/// Processors of the C events of one read after another on processor 3.
fn ends_on(e: &Experiment) -> BTreeSet<u16> {
    let events = events_of(e, 3, 1);
    of_action(&events, Action::Complete)
        .map(|e| e.cpu)
        .collect()
}

#[test]
fn a_request_of_a_sata_drive_ends_where_its_interrupt_comes_unless_it_is_sent_on() {
    let with = |rq_affinity, irq_cpu, llc_cpus| {
        let mut e = sata();
        e.queue.rq_affinity = rq_affinity;
        e.vm.irq_cpu = irq_cpu;
        e.vm.llc_cpus = llc_cpus;
        let ended = ends_on(&e);
        assert_eq!(ended.len(), 1, "{ended:?}");
        ended.into_iter().next()
    };
    assert_eq!(with(None, None, None), Some(0), "all share a cache");
    assert_eq!(with(None, Some(2), None), Some(2));
    assert_eq!(with(Some(2), None, None), Some(3));
    assert_eq!(with(None, None, Some(2)), Some(3), "0 has another cache");
    assert_eq!(with(None, Some(2), Some(2)), Some(2), "2 has the same");
    assert_eq!(with(Some(0), None, Some(2)), Some(0));
}

#[test]
fn a_request_that_is_sent_on_ends_later_by_an_interrupt_of_another_processor() {
    let took = |rq_affinity| {
        let mut e = sata();
        e.queue.rq_affinity = Some(rq_affinity);
        let events = events_of(&e, 3, 1);
        let nth = |action, n| of_action(&events, action).nth(n).map(|e| e.time);
        let (issued, ended) = (nth(Action::Issue, 0), nth(Action::Complete, 0));
        ended.unwrap().since(issued.unwrap()).ns()
    };
    // 5 us on the average.
    let later = took(2) - took(1);
    assert!((2500..=7500).contains(&later), "{later}");
}

/// Commands of 100 ns, eight at a time: several end while another processor is called.
#[test]
fn one_call_of_a_processor_is_for_all_that_it_is_sent_meanwhile() {
    let times = |rq_affinity| {
        let mut e = with_device("parallel", &[("read_ns", "100")]);
        e.queue.rq_affinity = Some(rq_affinity);
        e.vm.io_cost_ns = Some(500);
        let events = events_of(&e, 3, 8);
        let ended: Vec<_> = of_action(&events, Action::Complete)
            .map(|e| e.time)
            .collect();
        let distinct: BTreeSet<_> = ended.iter().collect();
        (distinct.len(), ended.len())
    };
    let (alone, all) = times(0);
    assert_eq!((alone, all), (256, 256));
    let (together, all) = times(2);
    assert!(all == 256 && together * 2 < all, "{together} of {all}");
}

#[test]
fn each_queue_of_an_nvme_drive_has_its_interrupt_on_its_first_processor() {
    let e = with_device("nvme-consumer", &[]);
    assert_eq!(ends_on(&e), BTreeSet::from([3]));
}

/// kblockd hands over on all processors by turns.
#[test]
fn the_timer_of_a_command_of_null_blk_runs_out_where_it_was_handed_over() {
    let params = [("completion_nsec", "500000"), ("hw_queue_depth", "4")];
    let mut e = with_device("null_blk", &params);
    e.choose_kernel("7.3".parse().unwrap(), &catalogue());
    e.choose_scheduler("mq-deadline", &catalogue()).unwrap();
    e.queue.rq_affinity = Some(2);
    let jobs = "[a]\nfilename=/dev/nullb0\ndirect=1\nrw=randread\nbs=4k\nsize=8m\nio_size=1m\n\
        ioengine=libaio\niodepth=8\nnumjobs=2\ncpus_allowed=1-2\ncpus_allowed_policy=split\n";
    let events = run(&e, jobs).events;
    let (mut issued, mut queued) = (BTreeMap::new(), BTreeMap::new());
    let mut elsewhere = 0;
    for Event {
        action,
        sector,
        cpu,
        ..
    } in events
    {
        match action {
            Action::Queue => {
                queued.insert(sector, cpu);
            }
            Action::Issue => {
                issued.insert(sector, cpu);
            }
            Action::Complete => {
                assert_eq!(issued[&sector], cpu, "{sector}");
                elsewhere += u32::from(queued[&sector] != cpu);
            }
            _ => {}
        }
    }
    assert!(elsewhere > 0, "all were handed over by their submitters");
}

#[test]
fn the_timer_of_a_simulated_disk_stays_where_it_was_idle() {
    let e = with_device("simdisk", &[("fixed_ns", "100000")]);
    assert_eq!(ends_on(&e), BTreeSet::from([3]));
}

#[test]
fn processors_that_an_interrupt_cannot_go_to_are_refused() {
    let refusal = |mut e: Experiment, cpu| {
        e.vm.irq_cpu = Some(cpu);
        let sinks = Sinks::of_events(Box::new(NullSink));
        let built = build_machine(&e, sinks, std::sync::Arc::default());
        built.err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(refusal(sata(), 3), "");
    let beyond = refusal(sata(), 4);
    assert!(
        beyond.contains("the machine has 4 processors, 0 to 3"),
        "{beyond}"
    );
    for (device, what) in [
        ("nvme-consumer", "the kernel chooses"),
        ("null_blk", "timers"),
        ("scsi_debug", "timers"),
    ] {
        let said = refusal(with_device(device, &[]), 0);
        assert!(said.contains("irq_cpu") && said.contains(what), "{said}");
    }
}
