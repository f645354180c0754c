// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies on disks, and our own module, on an image in QEMU.

use blklab_experiment::{DmSpec, Experiment, MdSpec, Workload};
use blklab_kernel_target::Kernel;
use blklab_target::{CgroupUse, Planner, Sinks};
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::Dev;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const JOB: &str = "[mixed]\nrw=randrw\nbs=4k\ndirect=1\nsize=16m\nio_size=256k\n";

/// Bios by device, and what commands took from D to C.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    queued: BTreeMap<Dev, u32>,
    issued: BTreeMap<u64, u64>,
    took_ns: Vec<u64>,
    first_ns: Option<u64>,
}

impl TraceSink for Seen {
    fn event(&mut self, event: &Event) {
        let mut counts = self.0.lock().expect("one at a time");
        let now = event.time.0;
        match event.action {
            Action::Queue => {
                counts.first_ns.get_or_insert(now);
                *counts.queued.entry(event.dev).or_default() += 1;
            }
            Action::Issue => {
                counts.issued.insert(event.sector, now);
            }
            Action::Complete => {
                if let Some(begun) = counts.issued.remove(&event.sector) {
                    counts.took_ns.push(now - begun);
                }
            }
            _ => {}
        }
    }
}

/// An experiment on an image that is there, if QEMU can run it.
fn experiment(device: &str) -> Option<Experiment> {
    let image = super::image()?;
    let catalogue = blklab_sim::catalogue();
    let workload = Workload::Fio {
        name: "job.fio".to_owned(),
        text: JOB.to_owned(),
    };
    let mut e = Experiment::new("image", workload);
    e.set("target", "qemu", &catalogue).expect("a target");
    e.choose_kernel(image.name.parse().expect("a release"), &catalogue);
    e.device.name = device.to_owned();
    e.set("cpus", "2", &catalogue).expect("processors");
    Some(e)
}

fn run(e: &Experiment) -> Option<(Vec<Dev>, Counts)> {
    run_with_groups(e).map(|(devices, counts, _)| (devices, counts))
}

fn run_with_groups(e: &Experiment) -> Option<(Vec<Dev>, Counts, Vec<CgroupUse>)> {
    let planner = Planner::new(Kernel::in_qemu(blklab_sim::catalogue()));
    let plan = planner.plan(e).expect("it is accepted");
    let stop = Arc::new(AtomicBool::new(false));
    if let Err(why) = plan.prepare(&stop, &mut |_| {}) {
        blklab_testkit::skipped(&why.to_string());
        return None;
    }
    let seen = Seen::default();
    let devices = plan.site().devices.iter().map(|(dev, _)| *dev).collect();
    let ran = plan.run(Sinks::of_events(Box::new(seen.clone())), stop);
    let groups = match ran {
        Ok(outcome) => {
            assert!(outcome.jobs.iter().all(|job| job.outcome.error == 0));
            outcome.cgroups
        }
        Err(why) if why.to_string().contains("a machine needs ") => {
            blklab_testkit::skipped(&why.to_string());
            return None;
        }
        Err(why) => panic!("{why}"),
    };
    let counts = std::mem::take(&mut *seen.0.lock().expect("it has ended"));
    Some((devices, counts, groups))
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn an_array_and_device_mapper_lie_on_an_images_own_disks() {
    let Some(mut e) = experiment("null_blk") else {
        return;
    };
    e.device.params = vec![("submit_queues".to_owned(), "2".to_owned())];
    e.md = Some(MdSpec::parse(&["raid1:2"]).expect("an array"));
    e.dm = DmSpec::parse("crypt+loop").expect("device mapper");
    let Some((devices, counts)) = run(&e) else {
        return;
    };
    assert_eq!(devices.len(), 5);
    let is_used = |device: &Dev| counts.queued.contains_key(device);
    let (layers, members) = devices.split_at(3);
    assert!(layers.iter().all(is_used), "{:?}", counts.queued);
    // One half of the mirror may serve all reads.
    assert!(members.iter().any(is_used), "{:?}", counts.queued);
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn a_control_group_of_an_image_is_held_to_its_limit() {
    let Some(mut e) = experiment("null_blk") else {
        return;
    };
    let text = "[held]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=16m\n\
                runtime=1\ntime_based=1\ncgroup=held\n";
    e.workload = Workload::Fio {
        name: "job.fio".to_owned(),
        text: text.to_owned(),
    };
    let catalogue = blklab_sim::catalogue();
    e.set("cgroup.held.io.max", "riops=500", &catalogue)
        .expect("a limit");
    let Some((_, _, groups)) = run_with_groups(&e) else {
        return;
    };
    let moved = groups[0].moved.expect("the kernel counts it");
    // 500 a second, and those in flight.
    assert!((500..600).contains(&moved.ios[0]), "{moved:?}");
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn a_filesystem_is_made_before_the_run_begins() {
    let Some(mut e) = experiment("null_blk") else {
        return;
    };
    e.filesystem.name = "ext4".to_owned();
    let Some((devices, counts)) = run(&e) else {
        return;
    };
    assert!(counts.queued[&devices[0]] >= 64);
    // Two minutes in which it settles are before the run.
    let first = counts.first_ns.expect("a bio");
    assert!(first < 20_000_000_000, "{first}");
}

#[test]
#[ignore = "boots images for a quarter of a minute; make test-kernel"]
fn commands_of_our_module_take_the_time_of_its_law() {
    let Some(mut e) = experiment("simdisk") else {
        return;
    };
    e.device.params = vec![("fixed_ns".to_owned(), "300000".to_owned())];
    let Some((_, counts)) = run(&e) else {
        return;
    };
    // Eight sectors.
    let law = 300_000 + 8 * 5000;
    assert!(counts.took_ns.len() >= 64);
    for took in counts.took_ns {
        assert!((law..law + 60_000).contains(&took), "{took}");
    }
}
