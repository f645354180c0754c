// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each engine makes of a job.

use crate::rig::{Ran, experiment, parallel, run, try_run};
use blklab_fiostat::Ddir;
use blklab_trace::Action;

#[test]
fn synchronous_direct_reads_wait_for_the_disk_one_by_one() {
    for engine in ["sync", "psync", "pvsync", "pvsync2"] {
        let job =
            format!("[a]\nioengine={engine}\ndirect=1\nrw=randread\nsize=1m\nnumber_ios=50\n");
        let r = run(&experiment(), &job);
        let read = r.job("a").stat.dir(Ddir::Read);
        assert_eq!(read.total_ios, 50, "{engine}");
        assert_eq!(read.clat.stat.min, 1_000_000, "{engine}");
        assert_eq!(read.clat.stat.max, 1_000_000, "{engine}");
        // 50 reads of 1 ms and 1 us of processor each.
        assert_eq!(read.runtime_ms, 51, "{engine}");
        assert_eq!(read.slat.stat.samples, 0, "{engine}");
    }
}

#[test]
fn libaio_keeps_iodepth_requests_in_flight() {
    for engine in ["libaio", "io_uring"] {
        let job = format!(
            "[a]\nioengine={engine}\niodepth=8\ndirect=1\nrw=randread\nsize=4m\nnumber_ios=400\n"
        );
        // The plug of 2.6.28 would delay requests: 3.7 has none per queue.
        let mut e = parallel(experiment());
        e.kernel = "3.7".parse().unwrap();
        let r = run(&e, &job);
        let read = r.job("a").stat.dir(Ddir::Read);
        assert_eq!(read.total_ios, 400);
        assert!(
            (50..=53).contains(&read.runtime_ms),
            "{engine}: {} ms",
            read.runtime_ms
        );
        assert!(read.slat.stat.samples == 400, "{engine}");
        assert!(
            r.job("a").stat.depth.0[3] > 300,
            "{:?}",
            r.job("a").stat.depth
        );
    }
}

#[test]
fn random_buffered_reads_go_page_by_page_before_2_6_34() {
    let job = "[a]\nrw=randread\nbs=44k\nsize=44k\nfilesize=4m\n";
    let r = run(&experiment(), job);
    let queued = r.spans(Action::Queue);
    assert_eq!(queued.len(), 11);
    assert!(queued.iter().all(|&(_, n)| n == 8));
    let sectors: Vec<u64> = queued.iter().map(|q| q.0).collect();
    assert!(sectors.windows(2).all(|w| w[1] == w[0] + 8));
    assert_eq!(r.job("a").stat.dir(Ddir::Read).clat.stat.samples, 1);
    assert!(r.job("a").stat.dir(Ddir::Read).clat.stat.min >= 11_000_000);
}

#[test]
fn sequential_buffered_reads_are_read_ahead() {
    let job = "[a]\nrw=read\nbs=4k\nsize=4m\n";
    let r = run(&experiment(), job);
    let queued = r.spans(Action::Queue);
    assert!(queued.len() < 30, "{} bios for 1024 pages", queued.len());
    assert_eq!(queued.iter().map(|q| q.1).sum::<u64>(), 8192);
}

#[test]
fn buffered_writes_end_in_memory_and_fsync_puts_them_on_the_disk() {
    let job =
        "[a]\nrw=write\nbs=64k\nsize=1m\n[b]\nstonewall\nrw=write\nbs=64k\nsize=1m\nfsync=4\n";
    let r = run(&experiment(), job);
    assert!(r.job("a").stat.dir(Ddir::Write).runtime_ms < 5);
    let b = &r.job("b").stat;
    // After writes 4, 8 and 12; the 16th ends the job.
    assert_eq!(b.sync_ios, 3);
    let from_b = r
        .events
        .iter()
        .filter(|e| e.action == Action::Queue && e.pid == 1002);
    assert_eq!(
        from_b.map(blklab_trace::Event::nr_sectors).sum::<u64>(),
        1536
    );
}

#[test]
fn o_sync_writes_wait() {
    let job = "[a]\nrw=write\nbs=4k\nsize=64k\nsync=1\n";
    let r = run(&experiment(), job);
    let w = r.job("a").stat.dir(Ddir::Write);
    assert!(w.clat.stat.min >= 1_000_000);
    assert_eq!(r.spans(Action::Complete).len(), 16);
}

#[test]
fn mmap_reads_by_page_faults() {
    let job = "[a]\nioengine=mmap\nrw=randread\nbs=4k\nsize=64k\n";
    let r = run(&experiment(), job);
    let a = r.job("a").stat.dir(Ddir::Read);
    assert_eq!(a.total_ios, 16);
    assert_eq!(r.spans(Action::Queue).iter().map(|q| q.1).sum::<u64>(), 128);
}

#[test]
fn vsync_joins_adjacent_requests_into_one_call() {
    let job =
        "[a]\nioengine=vsync\niodepth=4\niodepth_batch=4\ndirect=1\nrw=write\nbs=4k\nsize=64k\n";
    let r = run(&experiment(), job);
    assert_eq!(r.job("a").stat.dir(Ddir::Write).total_ios, 16);
    assert!(
        r.spans(Action::Queue).iter().all(|&(_, n)| n > 8),
        "{:?}",
        r.spans(Action::Queue)
    );
}

#[test]
fn posixaio_executes_requests_of_one_file_in_order() {
    let one = "[a]\nioengine=posixaio\niodepth=4\ndirect=1\nrw=randread\nsize=1m\nnumber_ios=40\n";
    let r = run(&parallel(experiment()), one);
    let runtime_ms = r.job("a").stat.dir(Ddir::Read).runtime_ms;
    assert!((40..45).contains(&runtime_ms), "one file: {runtime_ms} ms");
    let four = one.replace("size=1m", "size=4m\nnrfiles=4");
    let r = run(&parallel(experiment()), &four);
    let runtime_ms = r.job("a").stat.dir(Ddir::Read).runtime_ms;
    assert!(runtime_ms < 16, "four files: {runtime_ms} ms");
}

#[test]
fn io_uring_queues_syncs_and_buffered_io() {
    let job = "[a]\nioengine=io_uring\niodepth=8\nrw=randwrite\nsize=1m\nfsync=16\n";
    for direct in ["direct=0\n", "direct=1\n"] {
        let r = run(&experiment(), &format!("{job}{direct}"));
        let a = &r.job("a").stat;
        assert_eq!(a.dir(Ddir::Write).total_ios, 256, "{direct}");
        assert!(a.sync_ios >= 15, "{direct}: {} syncs", a.sync_ios);
    }
}

#[test]
fn the_null_engine_touches_no_disk_and_still_ends() {
    let job = "[a]\nioengine=null\nrw=randread\nsize=1m\nruntime=1\ntime_based\n";
    let r = run(&experiment(), job);
    assert_eq!(r.spans(Action::Queue).len(), 0);
    assert_eq!(r.job("a").stat.dir(Ddir::Read).runtime_ms, 1000);
}

#[test]
fn a_disk_can_be_named_as_a_file() {
    let mut e = experiment();
    e.device = blklab_experiment::DeviceSpec {
        name: "sata-7200-2008".to_owned(),
        params: Vec::new(),
    };
    let job = "[a]\nfilename=/dev/sda\ndirect=1\nrw=read\nbs=64k\noffset=1g\nsize=1m\n";
    let r = run(&e, job);
    assert_eq!(r.spans(Action::Queue)[0], (2_097_152, 128));
}

#[test]
fn engines_that_are_not_simulated_are_refused_by_name() {
    let err = try_run(&experiment(), "[a]\nioengine=rbd\nsize=1m\n")
        .map(drop)
        .unwrap_err();
    assert!(
        err.contains("ioengine=rbd is not simulated; those that are: sync"),
        "{err}"
    );
}

#[test]
fn files_that_do_not_fit_the_disk_are_refused() {
    let mut e = experiment();
    e.device.name = "sata-7200-2008".to_owned();
    e.device.params.clear();
    let err = try_run(&e, "[a]\nrw=read\nsize=2t\n")
        .map(drop)
        .unwrap_err();
    assert!(err.contains("does not fit the disk"), "{err}");
}

#[test]
fn the_iolog_holds_what_the_job_issued() {
    let job = "[a]\nioengine=null\nrw=randread\nsize=16k\nwrite_iolog=log\n";
    let r = run(&experiment(), job);
    let log = r.job("a").iolog.as_deref().expect("a log");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines[0], "fio version 3 iolog");
    assert_eq!(
        lines.iter().filter(|l| l.contains(" read ")).count(),
        4,
        "{log}"
    );
}

#[test]
fn a_partition_shows_in_the_trace() {
    let mut e = experiment();
    e.queue.partition_start = Some(4095);
    let r = run(&e, "[a]\ndirect=1\nrw=read\nbs=64k\nsize=64k\n");
    let remap = r.events[0];
    assert_eq!(remap.action, Action::Remap);
    assert_eq!((remap.sector, remap.arg), (4095, 0));
    assert_eq!((remap.from_dev.minor, remap.dev.minor), (1, 0));
    assert_eq!(r.events[1].action, Action::Queue);
    assert_eq!(r.events[1].sector, 4095);
}

/// What io_uring would have to sleep for, four workers at most submit, in its order, and the
/// job goes on meanwhile; libaio sleeps itself.
#[test]
fn workers_submit_for_io_uring_what_would_sleep() {
    let mut e = parallel(experiment());
    e.kernel = "6.12".parse().unwrap();
    e.scheduler = "none".to_owned();
    e.queue.queue_depth = Some(2);
    e.set("cpus", "1", &blklab_sim::catalogue()).unwrap();
    let run_with = |engine: &str| {
        let job = format!(
            "[a]\nioengine={engine}\niodepth=16\ndirect=1\nrw=randread\nfilename=/dev/sda\n\
             size=4m\nnumber_ios=64\n"
        );
        run(&e, &job)
    };
    let [aio, uring] = ["libaio", "io_uring"].map(run_with);
    let refused = |r: &Ran| {
        let all = r
            .events
            .iter()
            .filter(|e| e.action == Action::Complete && e.error == 11);
        all.count()
    };
    assert_eq!(refused(&aio), 0);
    assert!(refused(&uring) > 40, "{}", refused(&uring));
    let mut submitters: Vec<u32> = uring
        .events
        .iter()
        .filter(|e| e.action == Action::GetRequest)
        .map(|e| e.pid)
        .collect();
    submitters.sort_unstable();
    submitters.dedup();
    assert!((3..=5).contains(&submitters.len()), "{submitters:?}");
    let orders = [&aio, &uring].map(|r| r.spans(Action::Issue));
    assert_eq!(orders[1].len(), 64);
    let mut sorted = orders.clone();
    sorted.iter_mut().for_each(|o| o.sort_unstable());
    assert_eq!(sorted[0], sorted[1]);
}

/// A request of more than the device takes is split by a worker.
#[test]
fn a_worker_submits_for_io_uring_what_is_split() {
    let mut e = parallel(experiment());
    e.kernel = "6.12".parse().unwrap();
    e.scheduler = "none".to_owned();
    e.set("max_sectors_kb", "16", &blklab_sim::catalogue())
        .unwrap();
    let job = "[a]\nioengine=io_uring\niodepth=2\ndirect=1\nrw=read\nfilename=/dev/sda\n\
               bs=64k\nsize=4m\nnumber_ios=4\n";
    let r = run(&e, job);
    let refused = r.events.iter().filter(|e| e.error == 11);
    assert_eq!(refused.count(), 4);
    assert_eq!(r.spans(Action::Issue).len(), 16);
    assert_eq!(r.job("a").stat.dir(Ddir::Read).total_ios, 4);
}
