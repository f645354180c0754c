// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the syncs of fio jobs bring to the device, and what they cost.

use crate::rig::{Ran, experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_fiostat::Ddir;
use blklab_sim::catalogue;
use blklab_trace::{Action, Event, Rwbs};

/// A kernel with a device.
fn on(kernel: &str, device: &str) -> Experiment {
    let mut e = experiment();
    e.choose_kernel(kernel.parse().unwrap(), &catalogue());
    e.choose_scheduler(
        if e.kernel.has_single_queue() {
            "noop"
        } else {
            "none"
        },
        &catalogue(),
    )
    .unwrap();
    e.device = DeviceSpec {
        name: device.to_owned(),
        params: Vec::new(),
    };
    e.queue.queue_depth = None;
    e
}

/// The flushes that the device was sent.
fn flushes(r: &Ran) -> Vec<&Event> {
    let sent = r.events.iter().filter(|e| e.action == Action::Issue);
    sent.filter(|e| e.nr_sectors() == 0).collect()
}

/// The writes that it was sent, and how many of them carried FUA.
fn forced(r: &Ran) -> (usize, usize) {
    let sent = r.events.iter().filter(|e| e.action == Action::Issue);
    let writes: Vec<_> = sent.filter(|e| e.nr_sectors() > 0).collect();
    let fua = writes.iter().filter(|e| e.rwbs.has(Rwbs::FUA));
    (writes.len(), fua.count())
}

const ENGINES: [&str; 9] = [
    "sync",
    "psync",
    "vsync",
    "pvsync2",
    "mmap",
    "libaio",
    "posixaio",
    "io_uring",
    "io_uring\ndirect=1",
];

#[test]
fn every_engine_s_syncs_flush_the_disk_s_cache() {
    for engine in ENGINES {
        for (place, from) in [("filename=/dev/sda\n", "2.6.33"), ("", "3.16")] {
            for option in ["fsync=2", "fdatasync=2"] {
                let job = format!(
                    "[a]\nioengine={engine}\n{place}rw=randwrite\nbs=4k\nsize=1m\n\
                     number_ios=12\niodepth=4\n{option}\n"
                );
                for kernel in ["2.6.28", "2.6.33", "3.7", "3.16", "4.19", "6.1"] {
                    let r = run(&on(kernel, "sata-7200-2008"), &job);
                    let syncs = r.job("a").stat.sync_ios;
                    assert!(syncs >= 1, "{engine} {option}: {syncs}");
                    let sent = flushes(&r).len() as u64;
                    let of = format!("{engine} {place}{option} {kernel}");
                    let [kernel, from] = [kernel, from].map(|v| {
                        v.parse::<blklab_kernel::KernelVersion>()
                            .expect("a release")
                    });
                    if kernel < from {
                        assert_eq!(sent, 0, "{of}");
                    } else {
                        // Requests that wait for a flush at the same time share one.
                        assert!(sent > 0 && sent <= syncs, "{of}: {sent} of {syncs}");
                        let one_at_a_time = ["sync", "psync", "pvsync2", "mmap"];
                        if one_at_a_time.contains(&engine) {
                            assert_eq!(sent, syncs, "{of}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn end_fsync_and_fsync_on_close_flush() {
    for option in ["end_fsync=1", "fsync_on_close=1"] {
        for place in ["filename=/dev/sda\n", ""] {
            let job = format!("[a]\n{place}rw=write\nbs=64k\nsize=1m\n{option}\n");
            let r = run(&on("6.1", "sata-7200-2008"), &job);
            assert_eq!(flushes(&r).len(), 1, "{option} {place}");
        }
    }
}

#[test]
fn a_disk_without_a_volatile_cache_is_sent_no_flush() {
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nbs=4k\nsize=1m\n\
               number_ios=8\nfsync=1\nsync=dsync\n";
    for device in ["null_blk", "nvme-datacenter", "cciss", "simdisk", "sas-15k"] {
        let r = run(&on("6.1", device), job);
        assert_eq!(flushes(&r).len(), 0, "{device}");
        assert_eq!(forced(&r), (8, 0), "{device}");
    }
    let mut e = on("6.1", "sata-7200-2008");
    e.device.params = vec![("write_cache".to_owned(), "off".to_owned())];
    assert_eq!(flushes(&run(&e, job)).len(), 0);
}

#[test]
fn a_sync_takes_at_least_its_system_call() {
    for engine in ENGINES {
        for kernel in ["2.6.28", "6.1"] {
            let job = format!(
                "[a]\nioengine={engine}\nfilename=/dev/sda\nrw=read\nsize=64k\nstonewall\n\
                 [b]\nstonewall\nioengine={engine}\nfilename=/dev/sda\nrw=randwrite\n\
                 bs=4k\nsize=1m\nnumber_ios=8\nfsync=1\n"
            );
            let mut e = on(kernel, "null_blk");
            e.set("io_cost_ns", "3000", &catalogue()).unwrap();
            let r = run(&e, &job);
            let b = &r.job("b").stat;
            assert!(
                b.sync_ios > 0 && b.sync.stat.min >= 3000,
                "{engine} {kernel}"
            );
        }
    }
    // With direct I/O, the part of the call that counts comes on top of it.
    let mut e = on("6.1", "null_blk");
    e.set("call_cost_ns", "500", &catalogue()).unwrap();
    e.set("processor_time", "0", &catalogue()).unwrap();
    let job = "[b]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nbs=4k\nsize=1m\n\
               number_ios=4\nfsync=1\n";
    assert_eq!(run(&e, job).job("b").stat.sync.stat.min, 1500);
}

#[test]
fn the_latency_of_a_sync_rises_with_the_dirty_data_in_the_disk() {
    for kernel in ["2.6.33", "3.7", "6.1"] {
        let mut before = 0.0;
        for writes in [1, 8, 64, 256] {
            let job = format!(
                "[a]\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nbs=4k\nsize=8g\n\
                 number_ios={}\nfdatasync={writes}\n",
                writes * 6
            );
            let r = run(&on(kernel, "sata-7200-2008"), &job);
            let stat = &r.job("a").stat;
            assert!(stat.sync_ios >= 5);
            let mean = stat.sync.stat.mean;
            assert!(
                mean > 1.5 * before,
                "{kernel}, {writes} writes: {mean} after {before}"
            );
            before = mean;
        }
    }
}

#[test]
fn io_uring_hands_syncs_to_workers_and_goes_on() {
    let job = |engine: &str| {
        format!(
            "[a]\nioengine={engine}\nfilename=/dev/sda\ndirect=1\nrw=randwrite\nbs=4k\n\
             size=1g\nnumber_ios=64\niodepth=8\nfsync=4\n"
        )
    };
    let e = on("6.1", "sata-7200-2008");
    // While a sync is under way, how many writes does the job queue?
    let beside = |r: &Ran| {
        let mut in_sync = false;
        let mut writes = 0;
        for e in &r.events {
            match (e.action, e.nr_sectors()) {
                (Action::Issue, 0) => in_sync = true,
                (Action::Complete, 0) => in_sync = false,
                (Action::Queue, 8) => writes += u32::from(in_sync),
                _ => {}
            }
        }
        writes
    };
    assert_eq!(
        beside(&run(&e, &job("libaio"))),
        0,
        "fio calls fsync itself"
    );
    let during = beside(&run(&e, &job("io_uring")));
    assert!(during >= 4, "{during}");
}

#[test]
fn o_dsync_is_fua_where_the_disk_knows_it() {
    let job = |sync: &str, place: &str, engine: &str| {
        format!(
            "[a]\nioengine={engine}\n{place}direct=1\nrw=randwrite\nbs=4k\nsize=1m\n\
             number_ios=8\nsync={sync}\n"
        )
    };
    let disk = "filename=/dev/sda\n";
    let nvme = on("6.1", "nvme-consumer");
    let seen = |e: &Experiment, job: &str| {
        let r = run(e, job);
        (forced(&r), flushes(&r).len())
    };
    // On the disk itself pwrite flushes behind its FUA write, io_uring does not.
    assert_eq!(seen(&nvme, &job("dsync", disk, "psync")), ((8, 8), 8));
    assert_eq!(seen(&nvme, &job("dsync", disk, "io_uring")), ((8, 8), 0));
    assert_eq!(seen(&nvme, &job("1", disk, "libaio")), ((8, 8), 0));
    // A file that is overwritten: O_DSYNC is FUA alone, O_SYNC a flush.
    for engine in ["psync", "libaio", "io_uring"] {
        let laid_out = "overwrite=1\n";
        assert_eq!(seen(&nvme, &job("dsync", laid_out, engine)), ((8, 8), 0));
        assert_eq!(seen(&nvme, &job("sync", laid_out, engine)), ((8, 0), 8));
    }
    // A SATA disk does not know FUA: a flush behind each write.
    let sata = on("6.1", "sata-7200-2008");
    assert_eq!(seen(&sata, &job("dsync", disk, "io_uring")), ((8, 0), 8));
    assert_eq!(seen(&sata, &job("dsync", "", "psync")), ((8, 0), 8));
    assert_eq!(
        seen(&on("4.9", "sata-7200-2008"), &job("dsync", disk, "libaio")),
        ((8, 0), 8)
    );
    assert_eq!(
        seen(
            &on("2.6.32", "sata-7200-2008"),
            &job("dsync", disk, "psync")
        ),
        ((8, 0), 0)
    );
    let r = run(&sata, &job("dsync", "", "psync"));
    assert!(r.job("a").stat.dir(Ddir::Write).clat.stat.min > 1_000_000);
}

#[test]
fn sync_file_range_does_what_its_flags_say() {
    let wait = |flags: &str| {
        let job = format!(
            "[a]\nfilename=/dev/sda\nrw=write\nbs=64k\nsize=1m\nsync_file_range={flags}:4\n"
        );
        let r = run(&on("6.1", "sata-7200-2008"), &job);
        assert_eq!(flushes(&r).len(), 0);
        let job = r.job("a");
        let ended = job.ended.expect("it ended").0;
        let during = |e: &&Event| e.action == Action::Queue && e.time.0 <= ended;
        (
            r.events.iter().filter(during).count() > 0,
            job.stat.sync.stat.max > 100_000,
        )
    };
    assert_eq!(wait("wait_before"), (false, false));
    assert_eq!(wait("write"), (true, false));
    assert_eq!(wait("write,wait_after"), (true, true));
}
