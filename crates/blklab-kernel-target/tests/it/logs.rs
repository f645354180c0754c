// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of jobs, explicit processes and recorded traces on a real kernel.

use blklab_experiment::{Experiment, TraceSpec, Workload};
use blklab_kernel_target::Kernel;
use blklab_target::{Outcome, Planner, Sinks};
use blklab_trace::{Action, Event, TraceSink};
use blklab_types::{Pid, Time};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The bios that were queued, and how processes are called.
#[derive(Clone, Default)]
struct Queued(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Time, process, sector, sectors.
    bios: Vec<(u64, Pid, u64, u32)>,
    names: BTreeMap<Pid, String>,
}

impl TraceSink for Queued {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Queue && event.bytes > 0 {
            let mut seen = self.0.lock().expect("one at a time");
            let bio = (event.time.0, event.pid, event.sector, event.bytes / 512);
            seen.bios.push(bio);
        }
    }

    fn process(&mut self, _: Time, pid: Pid, comm: &str) {
        let mut seen = self.0.lock().expect("one at a time");
        seen.names.insert(pid, comm.to_owned());
    }
}

/// An experiment on a kernel that was built, if there is one.
fn experiment(workload: Workload) -> Option<Experiment> {
    let kernel = super::kernel()?;
    let catalogue = blklab_sim::catalogue();
    let mut e = Experiment::new("logs", workload);
    e.set("target", "kernel", &catalogue).expect("a target");
    e.choose_kernel(kernel.release.parse().expect("a release"), &catalogue);
    e.device.name = "nvme-consumer".to_owned();
    Some(e)
}

fn run(e: &Experiment) -> Result<(Outcome, Seen), String> {
    let planner = Planner::new(Kernel::with(blklab_sim::catalogue()));
    let plan = planner.plan(e).map_err(|e| e.to_string())?;
    let queued = Queued::default();
    let sinks = Sinks::of_events(Box::new(queued.clone()));
    let outcome = plan.run(sinks, Arc::new(AtomicBool::new(false)));
    let outcome = outcome.map_err(|e| e.to_string())?;
    let seen = std::mem::take(&mut *queued.0.lock().expect("it has ended"));
    Ok((outcome, seen))
}

fn of_jobs(folder: &Path, text: &str) -> Workload {
    Workload::Fio {
        name: folder.join("job.fio").display().to_string(),
        text: text.to_owned(),
    }
}

#[test]
fn logs_that_fio_writes_come_back_under_the_names_that_jobs_have_for_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[global]\nrw=randread\ndirect=1\nsize=1m\nio_size=64k\nwrite_lat_log=logs/lat\n\
                write_hist_log\nlog_hist_msec=1\n\
                [a]\nwrite_iolog=a.log\n[b]\nnumjobs=2\nwrite_bw_log\nwrite_iops_log=x\n";
    let Some(e) = experiment(of_jobs(folder.path(), text)) else {
        return;
    };
    let (outcome, seen) = run(&e).expect("it runs");
    let files: BTreeMap<&str, &str> = outcome
        .jobs
        .iter()
        .flat_map(|job| &job.written)
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let names: Vec<&str> = files.keys().copied().collect();
    let expected = [
        "a.log",
        "a_clat_hist.1.log",
        "b_bw.2.log",
        "b_bw.3.log",
        "b_clat_hist.2.log",
        "b_clat_hist.3.log",
        "logs/lat_clat.1.log",
        "logs/lat_clat.2.log",
        "logs/lat_clat.3.log",
        "logs/lat_lat.1.log",
        "logs/lat_lat.2.log",
        "logs/lat_lat.3.log",
        "logs/lat_slat.1.log",
        "logs/lat_slat.2.log",
        "logs/lat_slat.3.log",
        "x_iops.2.log",
        "x_iops.3.log",
    ];
    assert_eq!(names, expected);
    assert_eq!(files["logs/lat_lat.1.log"].lines().count(), 16);
    let reads = files["a.log"].lines().filter(|l| l.contains(" read "));
    let reads: Vec<u64> = reads
        .filter_map(|l| l.split(' ').nth(3)?.parse().ok())
        .collect();
    // Its file begins at sector 2048.
    let first = outcome.jobs[0].pid;
    let sectors = seen.bios.iter().filter(|bio| bio.1 == first);
    let queued: Vec<u64> = sectors.map(|bio| (bio.2 - 2048) * 512).collect();
    assert_eq!(reads, queued);
}

#[test]
fn logs_are_replayed_on_the_disk_and_on_a_filesystem() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = "fio version 3 iolog\n1 d/x add\n1 d/x open\n5000 d/x read 8192 4096\n\
               9000 d/x read 65536 4096\n9000 d/x close\n";
    std::fs::write(folder.path().join("in.log"), log).expect("a file");
    let text = "[r]\ndirect=1\nread_iolog=in.log\n";
    let Some(mut e) = experiment(of_jobs(folder.path(), text)) else {
        return;
    };
    let (_, seen) = run(&e).expect("it runs");
    let sectors: Vec<u64> = seen.bios.iter().map(|bio| bio.2 - 2048).collect();
    assert_eq!(sectors, [16, 128]);
    let pause_ns = seen.bios[1].0 - seen.bios[0].0;
    assert!(pause_ns.abs_diff(4_000_000) < 200_000, "{pause_ns}");
    e.filesystem.name = "xfs".to_owned();
    match run(&e) {
        Ok((outcome, _)) => assert_eq!(outcome.jobs[0].stat.dirs[0].total_ios, 2),
        Err(why) if why.contains("needs mkfs.xfs") => blklab_testkit::skipped(&why),
        Err(why) => panic!("{why}"),
    }
}

const PROCESSES: &str = r#"
kernel = "7.3"
[device]
name = "nvme-consumer"
[[processes]]
name = "reader"
pid = 4100
start_ns = 3000000
depth = 2
io = { pattern = "sequential", rw = "read", start = 4096, nsect = 8, count = 20 }
[[processes]]
name = "timed"
pid = 4200
io = { pattern = "script", ops = [[1000000, "read", [], 0, 8], [9000000, "write", ["sync"], 64, 16]] }
[[processes]]
name = "mixed"
pid = 4300
start_ns = 40000000
io = { pattern = "mixed", ops = [["read", [], 8192, 8], ["write", ["sync"], 16384, 8, 5000500], ["read", [], 0, 8, 1]] }
"#;

fn of_text(text: &str) -> Experiment {
    use blklab_experiment::{Source, parse};
    let no_files = |name: &str| unreachable!("{name}");
    let catalogue = blklab_sim::catalogue();
    let e = parse("e.toml", Source::Toml, text, &no_files, &catalogue);
    e.expect("an experiment")
}

#[test]
fn explicit_processes_submit_what_they_say_when_they_say_it() {
    let told = of_text(PROCESSES);
    let Some(e) = experiment(told.workload) else {
        return;
    };
    let (outcome, seen) = run(&e).expect("it runs");
    assert!(outcome.jobs.is_empty());
    assert_eq!(seen.names.get(&4100).map(String::as_str), Some("reader"));
    let bios_of = |pid: Pid| seen.bios.iter().filter(move |bio| bio.1 == pid);
    let sectors: Vec<u64> = bios_of(4100).map(|bio| bio.2).collect();
    let expected: Vec<u64> = (0..20).map(|i| 4096 + i * 8).collect();
    assert_eq!(sectors, expected);
    let timed: Vec<(u64, u32)> = bios_of(4200).map(|bio| (bio.2, bio.3)).collect();
    assert_eq!(timed, [(0, 8), (64, 16)]);
    let times: Vec<u64> = bios_of(4200).map(|bio| bio.0).collect();
    assert!(
        (times[1] - times[0]).abs_diff(8_000_000) < 200_000,
        "{times:?}"
    );
    let start = bios_of(4100).next().expect("a bio").0;
    assert!(start.abs_diff(times[0] + 2_000_000) < 200_000, "{start}");
    let mixed: Vec<(u64, u64)> = bios_of(4300).map(|bio| (bio.2, bio.0)).collect();
    let [(8192, first), (16384, second), (0, _)] = mixed[..] else {
        panic!("{mixed:?}");
    };
    // The read, and the pause that this bio has of its own.
    assert!(
        (5_000_500..5_300_000).contains(&(second - first)),
        "{mixed:?}"
    );
}

#[test]
fn a_trace_runs_at_its_times_under_the_names_of_its_processes() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/blkparse/sync-write-stall-2.6.26.txt");
    let spec = TraceSpec::new(&sample.display().to_string());
    let Some(e) = experiment(Workload::Trace(spec)) else {
        return;
    };
    let (outcome, seen) = run(&e).expect("it runs");
    assert!(outcome.jobs.is_empty());
    assert!(seen.bios.len() >= 8, "{:?}", seen.bios);
    assert!(
        seen.names.values().any(|name| name == "python"),
        "{:?}",
        seen.names
    );
}

/// A trace of a process that reads so many blocks one after another, each in 100 us, and
/// pauses so long between them.
fn reader(reads: u64, pause_us: u64) -> String {
    let mut text = String::new();
    for i in 0..reads {
        let at_us = i * (100 + pause_us);
        let sector = i * 64;
        let (queued, done) = ((at_us, 'Q', 77, "reader"), (at_us + 100, 'C', 0, "0"));
        for (us, action, pid, who) in [queued, done] {
            let (s, ns) = (us / 1_000_000, us % 1_000_000 * 1000);
            text += &format!("8,0 0 1 {s}.{ns:09} {pid} {action} R {sector} + 8 [{who}]\n");
        }
    }
    text
}

#[test]
fn in_closed_loop_a_process_waits_for_its_reads_and_pauses() {
    const PAUSE_US: u64 = 400;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("trace.txt");
    std::fs::write(&file, reader(50, PAUSE_US)).expect("a file");
    let mut spec = TraceSpec::new(&file.display().to_string());
    spec.timing = blklab_experiment::Timing::Closed;
    let Some(mut e) = experiment(Workload::Trace(spec)) else {
        return;
    };
    let intervals = |e: &Experiment| {
        let (_, seen) = run(e).expect("it runs");
        let bios: Vec<_> = seen.bios.iter().filter(|bio| bio.1 == 77).collect();
        assert_eq!(bios.len(), 50);
        let sectors: Vec<u64> = bios.iter().map(|bio| bio.2).collect();
        assert_eq!(sectors, (0..50).map(|i| i * 64).collect::<Vec<_>>());
        bios.windows(2).map(|w| w[1].0 - w[0].0).max().expect("two")
    };
    e.device.name = "null_blk".to_owned();
    let of_device = |us: u64| vec![("completion_nsec".to_owned(), (us * 1000).to_string())];
    for device_us in [20, 3000] {
        e.device.params = of_device(device_us);
        let longest = intervals(&e);
        let expected = (device_us + PAUSE_US) * 1000;
        // Beside that, the way through the kernel.
        assert!(
            (expected..expected + 30_000).contains(&longest),
            "{device_us} us: {longest} ns"
        );
    }
}
