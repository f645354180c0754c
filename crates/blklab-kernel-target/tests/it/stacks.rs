// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrays, device mapper and the kernel's own devices: what a real kernel makes of them,
//! twice the same.

use blklab_experiment::{Catalogue, DmSpec, Experiment, MdSpec, Workload};
use blklab_kernel_target::{Built, Kernel};
use blklab_target::{Planner, Sinks};
use blklab_trace::{Action, Digest, Event, TraceSink};
use blklab_types::Dev;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const JOB: &str = "[mixed]\nrw=randrw\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\n\
                   size=64m\nio_size=1m\n";

/// What a run left of events.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    queued: BTreeMap<Dev, u32>,
    remapped: BTreeMap<(Dev, Dev), u32>,
    /// Whether time went back.
    goes_back: bool,
    last_ns: u64,
    digest: Digest,
}

impl TraceSink for Seen {
    fn event(&mut self, event: &Event) {
        let mut counts = self.0.lock().expect("one at a time");
        counts.digest.event(event);
        counts.goes_back |= event.time.0 < counts.last_ns;
        counts.last_ns = event.time.0;
        match event.action {
            Action::Queue => *counts.queued.entry(event.dev).or_default() += 1,
            Action::Remap => {
                let way = (event.from_dev, event.dev);
                *counts.remapped.entry(way).or_default() += 1;
            }
            _ => {}
        }
    }
}

fn experiment(kernel: &Built, catalogue: &Catalogue, md: &str, dm: &str) -> Experiment {
    let workload = Workload::Fio {
        name: "job.fio".to_owned(),
        text: JOB.to_owned(),
    };
    let mut e = Experiment::new("stack", workload);
    e.set("target", "kernel", catalogue).expect("a target");
    e.choose_kernel(kernel.release.parse().expect("a release"), catalogue);
    let (info, _) = blklab_device::parse_spec("nvme-consumer").expect("a device");
    e.device.name = info.name.to_owned();
    if !md.is_empty() {
        let words: Vec<&str> = md.split(',').collect();
        e.md = Some(MdSpec::parse(&words).expect("an array"));
    }
    e.dm = DmSpec::parse(dm).expect("device mapper");
    e
}

/// Whether the kernel cannot make it, or this machine has no program for it.
fn is_without_means(why: &str) -> bool {
    why.contains("cannot be made") || why.contains("a machine needs ")
}

/// Runs it twice, and returns the devices from the top down with what was seen of them.
fn run(e: &Experiment, catalogue: &Catalogue) -> Option<(Vec<Dev>, Seen)> {
    let planner = Planner::new(Kernel::with(catalogue.clone()));
    let plan = planner.plan(e).expect("it is accepted");
    let devices = plan.site().devices.iter().map(|(dev, _)| *dev).collect();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let sink = Seen::default();
        let sinks = Sinks::of_events(Box::new(sink.clone()));
        match plan.run(sinks, Arc::new(AtomicBool::new(false))) {
            Ok(outcome) => assert!(outcome.jobs.iter().all(|j| j.outcome.error == 0)),
            Err(e) if is_without_means(&e.to_string()) => {
                blklab_testkit::skipped(&format!("the kernel or this machine: {e}"));
                return None;
            }
            Err(e) => panic!("{e}"),
        }
        seen.push(sink);
    }
    let [first, second] = [0, 1].map(|i| seen[i].0.lock().expect("it has ended").digest.value());
    // ext4 asks for random numbers, which kernels built in an older way have of the machine.
    if !e.dm.to_string().contains("fs=ext4") {
        assert_eq!(first, second, "two runs differ");
    }
    Some((devices, seen.swap_remove(0)))
}

/// Runs what lies on disks, where a kernel was built, as [`run`] does.
fn run_stack(md: &str, dm: &str) -> Option<(Vec<Dev>, Seen)> {
    let kernel = super::kernel()?;
    let catalogue = blklab_sim::catalogue();
    run(&experiment(&kernel, &catalogue, md, dm), &catalogue)
}

#[test]
fn raid_5_reads_before_it_writes_a_part_of_a_stripe() {
    let Some((devices, seen)) = run_stack("raid5:3", "none") else {
        return;
    };
    assert_eq!(devices.len(), 4);
    let counts = seen.0.lock().expect("it has ended");
    assert!(!counts.goes_back);
    let queued = |dev: Dev| counts.queued.get(&dev).copied().unwrap_or(0);
    assert_eq!(queued(devices[0]), 256);
    // Half of them are writes, each of which reads once and writes twice.
    let members: u32 = devices[1..].iter().map(|dev| queued(*dev)).sum();
    assert!(members > 256 * 3 / 2, "{members}");
    for member in &devices[1..] {
        let remapped = counts.remapped.get(&(devices[0], *member));
        assert!(remapped.is_some_and(|n| *n > 0), "{member:?}");
    }
}

#[test]
fn device_mapper_lies_on_an_array() {
    let Some((devices, seen)) = run_stack("raid1:2", "thin+crypt:sector_size=4096") else {
        return;
    };
    assert_eq!(devices.len(), 5);
    let counts = seen.0.lock().expect("it has ended");
    assert!(!counts.goes_back);
    assert_eq!(counts.queued.get(&devices[0]), Some(&256));
    assert_eq!(counts.queued.get(&devices[1]), Some(&256));
    assert!(counts.queued.contains_key(&devices[4]));
}

#[test]
#[ignore = "writes whole files through a kernel for a quarter of a minute; make test-kernel"]
fn a_loop_device_lies_on_an_array_and_on_a_file() {
    for (md, dm) in [
        ("raid1:2", "loop:direct_io=1"),
        ("", "loop:fs=ext4:size_mb=256"),
        ("", "loop:fs=xfs:size_mb=256:direct_io=1+crypt"),
    ] {
        let Some((devices, seen)) = run_stack(md, dm) else {
            continue;
        };
        let counts = seen.0.lock().expect("it has ended");
        assert!(!counts.goes_back);
        let queued = |dev: &Dev| counts.queued.get(dev).copied().unwrap_or(0);
        assert_eq!(queued(&devices[0]), 256, "{md} {dm}");
        let is_loop = |dev: &&Dev| dev.major == 7;
        let below = devices.iter().skip_while(|dev| !is_loop(dev)).nth(1);
        let below = queued(below.expect("a loop device lies on something"));
        // The page cache of the file, where it is not passed by, reads ahead and holds
        // writes back.
        assert!(below >= 64, "{md} {dm}: {below}");
    }
}

#[test]
fn a_delay_is_one_of_virtual_time() {
    // From 50 ms on no release polls the clock for it.
    let delay = "delay:read_ms=60:write_ms=60:flush_ms=60";
    let Some((devices, seen)) = run_stack("", delay) else {
        return;
    };
    let counts = seen.0.lock().expect("it has ended");
    assert_eq!(counts.queued.get(&devices[1]), Some(&256));
    // 64 rounds of four.
    assert!(counts.last_ns > 64 * 60_000_000, "{}", counts.last_ns);
}

#[test]
fn devices_of_the_kernel_itself_run_in_virtual_time() {
    let Some(kernel) = super::kernel() else {
        return;
    };
    let catalogue = blklab_sim::catalogue();
    for device in ["null_blk", "scsi_debug"] {
        let mut e = experiment(&kernel, &catalogue, "", "none");
        e.device.name = device.to_owned();
        e.queue.inside = Some(true);
        let Some((devices, seen)) = run(&e, &catalogue) else {
            return;
        };
        assert_eq!(devices.len(), 1);
        let counts = seen.0.lock().expect("it has ended");
        assert_eq!(counts.queued.get(&devices[0]), Some(&256), "{device}");
    }
    let mut other = experiment(&kernel, &catalogue, "", "none");
    other.queue.inside = Some(true);
    let planner = Planner::new(Kernel::with(catalogue.clone()));
    let error = planner.plan(&other).err().expect("it has none").to_string();
    assert!(error.contains("it has null_blk and scsi_debug"), "{error}");
}

#[test]
fn stacks_that_cannot_be_are_refused_before_they_run() {
    let Some(kernel) = super::kernel() else {
        return;
    };
    let catalogue = blklab_sim::catalogue();
    let planner = Planner::new(Kernel::with(catalogue.clone()));
    for (md, dm, said) in [
        ("raid5:3", "striped:3", "choose one"),
        ("", "cache:fast=no-such-disk", "no-such-disk"),
        ("", "writecache:size_mb=1048576", "fast device"),
        ("", "writecache:low_watermark=60", "low_watermark is above"),
        ("", "flakey:up_s=0:down_s=0", "are both 0"),
        ("", "loop:fs=ext4:size_mb=1048576", "no room for a file"),
    ] {
        let e = experiment(&kernel, &catalogue, md, dm);
        let error = planner.plan(&e).err().expect(dm).to_string();
        assert!(error.contains(said), "{dm}: {error}");
    }
}
