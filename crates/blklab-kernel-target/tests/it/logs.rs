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
    assert!(start.abs_diff(times[0] + 2_000_000) < 30_000_000, "{start}");
}

#[test]
fn a_trace_runs_at_its_times_and_not_in_closed_loop() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/blkparse/sync-write-stall-2.6.26.txt");
    let mut spec = TraceSpec::new(&sample.display().to_string());
    let Some(e) = experiment(Workload::Trace(spec.clone())) else {
        return;
    };
    let (outcome, seen) = run(&e).expect("it runs");
    assert!(seen.bios.len() >= 8, "{:?}", seen.bios);
    assert!(
        seen.names.values().any(|name| name == "python"),
        "{:?}",
        seen.names
    );
    let told = outcome
        .notes
        .iter()
        .any(|note| note.contains("whole microseconds"));
    assert!(told, "{:?}", outcome.notes);
    spec.timing = blklab_experiment::Timing::Closed;
    let closed = experiment(Workload::Trace(spec)).expect("there is a kernel");
    let error = run(&closed).err().expect("it is refused");
    assert!(error.contains("in closed loop"), "{error}");
}
