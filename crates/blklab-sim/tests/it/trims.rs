// SPDX-License-Identifier: MIT OR Apache-2.0
//! Trims of fio jobs: what reaches the device, and what they cost.

use crate::rig::{Ran, experiment, run};
use blklab_experiment::{DeviceSpec, Experiment};
use blklab_fiostat::Ddir;
use blklab_sim::catalogue;
use blklab_trace::{Action, Event, Rwbs};

/// A kernel with a device, without processor time.
fn on(kernel: &str, device: &str) -> Experiment {
    let mut parts = device.split(',');
    let name = parts.next().unwrap().to_owned();
    let params = parts.map(|p| p.split_once('=').unwrap());
    let mut e = experiment();
    e.choose_kernel(kernel.parse().unwrap(), &catalogue());
    let scheduler = if e.kernel.has_single_queue() {
        "noop"
    } else {
        "none"
    };
    e.choose_scheduler(scheduler, &catalogue()).unwrap();
    e.device = DeviceSpec {
        name,
        params: params.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    e.queue.queue_depth = None;
    e.vm.processor_time = Some(false);
    e
}

fn trims(more: &str) -> String {
    format!("[t]\nfilename=/dev/sda\nrw=trim\n{more}\n")
}

/// First sector, sectors, and whether it is synchronous, of discards.
fn discards(r: &Ran, action: Action) -> Vec<(u64, u64, bool)> {
    let all = r.events.iter().filter(|e| e.action == action);
    let of_event = |e: &Event| {
        assert!(e.rwbs.has(Rwbs::DISCARD), "{e:?}");
        (e.sector, e.nr_sectors(), e.rwbs.has(Rwbs::SYNC))
    };
    all.map(of_event).collect()
}

/// The error that the job ended with.
fn error(e: &Experiment, job: &str) -> i32 {
    let r = run(e, job);
    let of_job = r.job("t").outcome.error;
    assert!(of_job == 0 || r.events.is_empty(), "{:?}", r.events);
    of_job
}

#[test]
fn a_trim_takes_what_the_device_takes_for_a_discard_whatever_the_engine() {
    let job = |engine| {
        trims(&format!(
            "bs=64k\nsize=256k\nioengine={engine}\niodepth=4\ndirect=1"
        ))
    };
    for engine in ["sync", "pvsync2", "mmap", "libaio", "io_uring", "posixaio"] {
        for kernel in ["4.19", "6.1"] {
            // 2 us of the controller, 30 us of firmware.
            let e = on(kernel, "nvme-consumer,command_us=2,discard_overhead_us=30");
            let r = run(&e, &job(engine));
            let trim = r.job("t").stat.dir(Ddir::Trim);
            assert_eq!(trim.total_ios, 4, "{engine}");
            let clat = &trim.clat.stat;
            assert_eq!((clat.min, clat.max), (32_000, 32_000), "{engine} {kernel}");
            assert_eq!(trim.slat.stat.samples, 0, "{engine}");
            let expected: Vec<_> = (0..4).map(|i| (i * 128, 128, true)).collect();
            for action in [
                Action::Queue,
                Action::GetRequest,
                Action::Issue,
                Action::Complete,
            ] {
                assert_eq!(discards(&r, action), expected, "{engine} {kernel}");
            }
        }
    }
}

/// Measured on 6.18.44: `blkdiscard` of a loop device with a granularity of 4 KiB and
/// `discard_max_bytes` of 1 MiB.
#[test]
fn a_discard_is_split_at_the_limit_and_begins_at_the_granularity() {
    let mut e = on("6.18", "ufs-2.1");
    e.queue.discard_max_bytes = Some(1 << 20);
    let r = run(&e, &trims("offset=1k\nsize=10m\nbs=2560k\nnumber_ios=1"));
    assert_eq!(
        discards(&r, Action::Queue),
        [(2, 6, false), (8, 5114, true)]
    );
    let parts = [
        (2, 6, false),
        (8, 2048, true),
        (2056, 2048, true),
        (4104, 1018, true),
    ];
    assert_eq!(discards(&r, Action::GetRequest), parts);
    assert_eq!(discards(&r, Action::Issue), parts);
    assert_eq!(
        discards(&r, Action::Split),
        [(8, 2048, true), (2056, 2048, true)]
    );
    // What is not split merges.
    let r = run(&e, &trims("offset=1k\nsize=10m\nbs=64k\nnumber_ios=1"));
    assert_eq!(discards(&r, Action::Queue), [(2, 6, false), (8, 122, true)]);
    assert_eq!(discards(&r, Action::BackMerge), [(8, 122, true)]);
    assert_eq!(discards(&r, Action::Issue), [(2, 128, false)]);
}

#[test]
fn up_to_4_20_the_call_cuts_at_the_limit() {
    let mut e = on("4.19", "ufs-2.1");
    e.queue.discard_max_bytes = Some(1 << 20);
    let r = run(&e, &trims("offset=1k\nsize=10m\nbs=2560k\nnumber_ios=1"));
    let parts = [(2, 2046, false), (2048, 2048, false), (4096, 1026, true)];
    assert_eq!(discards(&r, Action::Queue), parts);
    assert_eq!(discards(&r, Action::Issue), parts);
}

/// A SATA drive takes 4194240 sectors at a time.
#[test]
fn releases_wait_for_the_bios_of_a_discard_one_by_one_or_together() {
    let job = trims("bs=4g\nsize=8g\nnumber_ios=1");
    let order = |kernel: &str| -> String {
        let r = run(&on(kernel, "sata-ssd"), &job);
        let told = r.events.iter().filter_map(|e| match e.action {
            Action::Queue if e.rwbs.has(Rwbs::SYNC) => Some('S'),
            Action::Queue => Some('Q'),
            Action::Complete => Some('C'),
            _ => None,
        });
        told.collect()
    };
    assert_eq!(order("2.6.33"), "QCQCQC");
    assert_eq!(order("3.2"), "QQQCCC");
    assert_eq!(order("4.19"), "QQSCCC");
    // A bio as long as bios can be, which the block layer splits, and one sector.
    assert_eq!(order("6.1"), "QSCCC");
}

#[test]
fn what_cannot_be_discarded_ends_the_job_with_its_error() {
    let job = trims("bs=64k\nsize=256k");
    let ends_with = |kernel: &str, device: &str| error(&on(kernel, device), &job);
    // No BLKDISCARD; disks that rotate, and laws that stand for none; drivers that do
    // not know it yet.
    for (kernel, device, expected) in [
        ("2.6.24", "sata-ssd", 25),
        ("2.6.28", "sata-ssd", 95),
        ("2.6.33", "sata-ssd", 0),
        ("3.7", "nvme-datacenter", 95),
        ("3.10", "nvme-datacenter", 0),
        ("4.19", "virtio-blk", 95),
        ("5.0", "virtio-blk", 0),
        ("6.1", "pd-ssd", 0),
        ("6.1", "gp3", 95),
        ("6.1", "sata-7200-2008", 95),
        ("6.1", "smr-8tb", 95),
        ("6.1", "null_blk", 95),
        ("6.1", "scsi_debug", 95),
        ("6.1", "emmc-5.1", 0),
        ("6.1", "iocost-860-250gb", 0),
        ("6.1", "measured", 0),
    ] {
        assert_eq!(ends_with(kernel, device), expected, "{device} on {kernel}");
    }
    let mut e = on("6.1", "sata-ssd");
    assert_eq!(error(&e, &trims("bs=4000\nsize=256k")), 22);
    assert_eq!(error(&e, "[t]\nrw=trim\nbs=64k\nsize=256k\n"), 25);
    e.queue.discard_max_bytes = Some(0);
    assert_eq!(error(&e, &job), 95);
}

#[test]
fn a_limit_is_a_multiple_of_the_granularity_and_no_more_than_the_device_s() {
    let facts = |device: &str, bytes| {
        let mut e = on("6.1", device);
        e.queue.discard_max_bytes = Some(bytes);
        e.queue_facts(&catalogue()).map_err(|err| err.to_string())
    };
    let err = facts("ufs-2.1", 6144).unwrap_err();
    assert!(
        err.contains("no multiple of the granularity, 4096"),
        "{err}"
    );
    for (device, most) in [("sata-ssd", 2_147_450_880), ("sata-7200-2008", 0)] {
        assert_eq!(facts(device, 1 << 40).unwrap().discard_max_bytes, most);
    }
}

/// fio 3.33: vsync hands what it should trim to `writev`, which in a job without
/// buffers fails.
#[test]
fn vsync_writes_what_it_should_trim() {
    let e = on("6.1", "sata-ssd");
    let vsync = "bs=4k\nsize=64k\nioengine=vsync\ndirect=1";
    assert_eq!(error(&e, &trims(vsync)), 14);
    let job = format!("[t]\nfilename=/dev/sda\nrw=trimwrite\n{vsync}\n");
    let r = run(&e, &job);
    assert_eq!(r.job("t").stat.dir(Ddir::Trim).total_ios, 16);
    assert_eq!(r.spans(Action::Complete).len(), 32);
    assert!(r.events.iter().all(|e| !e.rwbs.has(Rwbs::DISCARD)));
}

#[test]
fn from_4_12_on_a_discard_drops_the_pages_of_its_range() {
    let job = "[global]\nfilename=/dev/sda\nbs=64k\nstonewall\ninvalidate=0\n\
               [w]\nrw=write\nsize=1m\n\
               [t]\nrw=trim\nsize=1m\n\
               [s]\nrw=write\nbs=4k\noffset=4m\nsize=4k\nend_fsync=1\n";
    let written = |kernel| -> u64 {
        let r = run(&on(kernel, "sata-ssd"), job);
        let writes = r.events.iter().filter(|e| e.action == Action::Issue);
        let writes = writes.filter(|e| e.rwbs.has(Rwbs::WRITE));
        writes.map(Event::nr_sectors).sum()
    };
    assert_eq!(written("4.4"), 2048 + 8);
    assert_eq!(written("4.19"), 8);
    assert_eq!(written("6.1"), 8);
}

/// Writes at random to a drive that has been written at random: as it is, behind a discard
/// of the range, and behind one of each place.
#[test]
fn a_used_drive_collects_less_behind_discards() {
    let write_ms = |first: &str, rw: &str| {
        let job = format!(
            "[global]\nfilename=/dev/sda\nsize=4g\ndirect=1\n{first}\
             [w]\nstonewall\nrw={rw}\nbs=4k\nio_size=4m\nnumjobs=32\ngroup_reporting\n"
        );
        let r = run(&on("6.1", "sata-ssd"), &job);
        let jobs = r.outcome.jobs.iter().filter(|j| j.job.section == "w");
        let writes = jobs.map(|j| j.stat.dir(Ddir::Write));
        let (nr, ms) = writes.fold((0, 0), |(nr, ms), w| {
            (nr + w.total_ios, ms.max(w.runtime_ms))
        });
        assert_eq!(nr, 32 * 1024);
        ms
    };
    let used = write_ms("", "randwrite");
    let trimmed = write_ms("[t]\nrw=trim\nbs=64m\n", "randwrite");
    assert!(trimmed * 2 < used, "{trimmed} ms, {used} ms");
    // Twice as many commands, in less time.
    let each = write_ms("", "randtrimwrite");
    assert!(each < used, "{each} ms, {used} ms");
}
