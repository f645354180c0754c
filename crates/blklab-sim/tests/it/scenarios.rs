// SPDX-License-Identifier: MIT OR Apache-2.0
//! Built-in scenarios on a whole machine.

use crate::rig::{experiment, parallel, run_scenario};
use blklab_fiostat::Ddir;
use blklab_sim::catalogue;

/// Published in March 2006: an asynchronous write with 16 outstanding takes 16
/// times as long as a pwrite, and the total is the same; PVFS2's replacement is
/// "not really faster".
#[test]
fn sixteen_writes_of_one_file_wait_for_each_other() {
    let mut means = Vec::new();
    for mode in ["pwrite", "aio16", "alt-aio"] {
        let r = run_scenario(
            &experiment(),
            "pvfs-bench",
            &[("mode", mode), ("ops", "4096")],
        );
        let write = r.job("pvfs-bench").stat.dir(Ddir::Write);
        assert_eq!(write.total_ios, 4096, "{mode}");
        means.push((write.clat.stat.mean, write.runtime_ms as f64));
    }
    let [pwrite, aio, alt] = means[..] else {
        panic!("three modes");
    };
    assert!((14.0..19.0).contains(&(aio.0 / pwrite.0)), "{means:?}");
    assert!((0.9..1.25).contains(&(aio.1 / pwrite.1)), "{means:?}");
    assert!((0.9..1.25).contains(&(alt.1 / pwrite.1)), "{means:?}");
}

/// Run time of lists of regions of 1 KiB, ms: 16384 regions in all, which fit
/// memory.
fn run_time_of_lists(mode: &str, regions: u64) -> f64 {
    let set = [
        ("mode", mode.to_owned()),
        ("regions", regions.to_string()),
        ("bs", (regions * 1024).to_string()),
        ("ops", (16384 / regions).to_string()),
    ];
    let set: Vec<(&str, &str)> = set.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let mut e = experiment();
    e.vm.memory_bytes = Some(2 << 30);
    let r = run_scenario(&e, "pvfs-bench", &set);
    r.job("pvfs-bench").stat.dir(Ddir::Write).runtime_ms as f64
}

/// A remark of March 2006: lists of noncontiguous regions through the library's
/// AIO are an order of magnitude slower than plain calls.
#[test]
fn lists_of_small_regions_are_ten_times_slower_than_plain_writes() {
    for regions in [64, 1024] {
        let plain = run_time_of_lists("pwrite", regions);
        let list = run_time_of_lists("aio16", regions);
        assert!(list > 10.0 * plain, "{regions}: {list} and {plain} ms");
    }
}

#[test]
fn the_storage_layer_limits_what_is_outstanding() {
    let mean = |depth, limit| {
        let set = [("ops", "2048"), ("depth", depth), ("limit", limit)];
        let r = run_scenario(&experiment(), "pvfs-bench", &set);
        r.job("pvfs-bench").stat.dir(Ddir::Write).clat.stat.mean
    };
    let sixteen = mean("16", "16");
    assert!((mean("64", "16") / sixteen - 1.0).abs() < 1e-9);
    let four = mean("64", "4");
    assert!((0.2..0.3).contains(&(four / sixteen)), "{four} {sixteen}");
}

/// On a machine whose memory is soon full of dirty pages the longest operation
/// is a throttled one, and the accounts of its sleeps make up its time.
#[test]
fn the_longest_operation_says_where_it_slept() {
    let mut e = experiment();
    e.vm.memory_bytes = Some(128 << 20);
    for mode in ["pwrite", "aio16", "alt-aio"] {
        let set = [("mode", mode), ("ops", "2048")];
        let r = run_scenario(&e, "pvfs-bench", &set);
        let notes = &r.outcome.notes;
        let found = notes.iter().find(|n| n.starts_with("longest operation: "));
        let note = found.unwrap_or_else(|| panic!("{mode}: {notes:?}"));
        assert!(note.contains("while throttled"), "{mode}: {note}");
        let seconds = |text: &str| text.split(' ').next().and_then(|t| t.parse().ok());
        let took: f64 = seconds(&note["longest operation: ".len()..]).expect("a time");
        let longest = r.job("pvfs-bench").stat.dir(Ddir::Write).clat.stat.max;
        assert!((took - longest as f64 / 1e9).abs() < 0.001, "{note}");
        if mode == "pwrite" {
            let (_, slept) = note.rsplit_once(": ").expect("accounts");
            let slept: f64 = slept.split(", ").filter_map(seconds).sum();
            assert!((0.9..=1.01).contains(&(slept / took)), "{note}");
        }
    }
}

#[test]
fn cat_reads_every_file_to_its_end() {
    let set = [("writers", "0"), ("start", "1")];
    let r = run_scenario(&experiment(), "dd+cat", &set);
    let read = r.job("cat").stat.dir(Ddir::Read);
    assert!((250..260).contains(&read.total_ios), "{}", read.total_ios);
    assert!(
        read.runtime_ms < 1000,
        "{} ms without a writer",
        read.runtime_ms
    );
    let set = [
        ("writers", "1"),
        ("start", "0"),
        ("size", "64m"),
        ("direct", "1"),
    ];
    let beside = run_scenario(&experiment(), "dd+cat", &set);
    let slower = beside.job("cat").stat.dir(Ddir::Read).runtime_ms;
    assert!(slower > read.runtime_ms, "{slower} ms beside a writer");
}

#[test]
fn batches_are_submitted_whole() {
    let set = [("runtime", "1"), ("tasks", "1"), ("batch", "8")];
    let all = run_scenario(&parallel(experiment()), "aio-batch", &set);
    let read = all.job("task1").stat.dir(Ddir::Read);
    assert_eq!(read.total_ios % 8, 0, "whole batches");
    assert!(read.total_ios > 8);
}

#[test]
fn dd_writes_its_file_and_readers_read_theirs() {
    let set = [("size", "16m"), ("readers", "2"), ("reads", "9")];
    let r = run_scenario(&experiment(), "dd+ls", &set);
    assert_eq!(r.job("job1").stat.dir(Ddir::Write).total_ios, 16);
    for reader in ["file1", "file2"] {
        assert_eq!(r.job(reader).stat.dir(Ddir::Read).total_ios, 9);
    }
}

#[test]
fn compilebench_creates_trees_and_says_its_rates() {
    let set = [("initial", "1"), ("ordering", "0")];
    let r = run_scenario(&experiment(), "compilebench", &set);
    let write = r.job("compilebench").stat.dir(Ddir::Write);
    assert_eq!(write.io_bytes, 233_176_153);
    assert!(
        (31_870..31_920).contains(&write.total_ios),
        "{}",
        write.total_ios
    );
    let says = |n: &String| n.starts_with("compilebench: create, 1 runs, mean of the rates");
    assert!(r.outcome.notes.iter().any(says), "{:?}", r.outcome.notes);
}

#[test]
fn compilebench_orders_and_operates_at_random() {
    let set = [("initial", "2"), ("runs", "12")];
    let r = run_scenario(&experiment(), "compilebench", &set);
    let job = r.job("compilebench");
    let counted: usize = job.figures.iter().map(|f| f.count).sum();
    assert_eq!(counted, 14, "{:?}", job.figures);
    let create = job.figures.iter().find(|f| f.name == "create");
    assert!(create.is_some_and(|f| f.value > 1.0 && f.unit == "MiB/s"));
    // The ordering phase alone writes 1023 MiB.
    assert!(job.stat.dir(Ddir::Write).io_bytes > (1023 + 2 * 222) << 20);
    let failed = |n: &String| n.contains("ended early");
    assert!(!r.outcome.notes.iter().any(failed), "{:?}", r.outcome.notes);
}

/// Random operations on a volume with names: every one that was asked for
/// ends, and the disk is large enough.
#[test]
fn compilebench_ages_ext3_and_ext2_under_every_scheduler() {
    let cases = [
        ("ext3", "noop"),
        ("ext3:dir_index=0:data=journal", "deadline"),
        ("ext3:data=writeback", "anticipatory"),
        ("ext2", "cfq"),
    ];
    for (filesystem, scheduler) in cases {
        let mut e = experiment();
        e.choose_filesystem(filesystem, &catalogue())
            .expect("a filesystem");
        e.scheduler = scheduler.to_owned();
        e.vm.memory_bytes = Some(2 << 30);
        let set = [("initial", "1"), ("runs", "4"), ("ordering", "0")];
        let r = run_scenario(&e, "compilebench", &set);
        let job = r.job("compilebench");
        let counted: usize = job.figures.iter().map(|f| f.count).sum();
        assert_eq!(counted, 5, "{filesystem}: {:?}", job.figures);
        let failed = |n: &String| n.contains("ended early") || n.contains("extent layout");
        assert!(!r.outcome.notes.iter().any(failed), "{:?}", r.outcome.notes);
    }
}

/// A flusher that sleeps for a journal handle hands over what its plug holds:
/// the task that makes room in the log waits for those writes.
#[test]
fn a_flusher_that_waits_for_the_journal_keeps_no_bio_to_itself() {
    let mut e = experiment();
    e.choose_kernel("4.19".parse().expect("a release"), &catalogue());
    e.choose_filesystem("ext3:data=journal", &catalogue())
        .expect("a filesystem");
    e.scheduler = "deadline".to_owned();
    e.device.name = "sata-7200-2008".to_owned();
    e.device.params.clear();
    e.queue.queue_depth = None;
    e.vm.memory_bytes = Some(1 << 30);
    let set = [("initial", "2"), ("runs", "12"), ("ordering", "0")];
    let r = run_scenario(&e, "compilebench", &set);
    let job = r.job("compilebench");
    let counted: usize = job.figures.iter().map(|f| f.count).sum();
    assert_eq!(counted, 14, "{:?}", job.figures);
    // A deadlock would leave only the journal's timer at work, for ever.
    assert!(r.outcome.end.0 < 600_000_000_000, "{}", r.outcome.end.0);
}

/// With few tags, tasks sleep for one while their plug holds requests that
/// merge when it is flushed, and so give back the tag that the task waits for.
#[test]
fn nobody_sleeps_for_ever_on_few_tags() {
    let set = [("initial", "1"), ("runs", "3")];
    for kernel in ["5.10", "6.1", "6.18"] {
        for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
            let mut e = experiment();
            e.choose_kernel(kernel.parse().expect("a version"), &catalogue());
            e.choose_scheduler(scheduler, &catalogue())
                .expect("a scheduler");
            e.set("filesystem", "ext4", &catalogue())
                .expect("a filesystem");
            e.queue.queue_depth = Some(2);
            e.queue.nr_requests = Some(4);
            let r = run_scenario(&e, "compilebench", &set);
            let job = r.job("compilebench");
            assert!(
                job.stat.dir(Ddir::Write).runtime_ms > 0,
                "{kernel} {scheduler}"
            );
        }
    }
}
