// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans: what is wrong is found when they are made, and they run as they are.

use crate::support::root;
use blklab::experiment::{Experiment, Source, parse};
use blklab::run::{RunOptions, RunOutput, run};
use blklab::targets::{Plan, Planner, Sim};
use std::sync::Arc;

/// A fio job in an experiment with more keys.
fn experiment_with(keys: &str, text: &str) -> Experiment {
    let file = |name: &str| Ok((name.to_owned(), text.to_owned()));
    let toml = format!("job_file = 'a.fio'\n{keys}");
    let mut e = parse(
        "a.toml",
        Source::Toml,
        &toml,
        &file,
        &blklab::targets::catalogue(),
    )
    .expect("an experiment");
    // Nothing of it is in a file.
    e.file.clear();
    e
}

fn experiment(text: &str) -> Experiment {
    experiment_with("", text)
}

fn refused(e: &Experiment) -> String {
    let planner = Planner::new(Sim::default());
    match planner.plan(e) {
        Ok(_) => panic!("it was accepted"),
        Err(err) => err.to_string(),
    }
}

fn ran(plan: &Plan) -> RunOutput {
    run(plan, &RunOptions::default()).expect("a plan runs")
}

#[test]
fn what_is_wrong_with_a_job_file_is_one_line() {
    let check = |text: &str, sections: &[&str], expected: &str| {
        let mut e = experiment(text);
        e.sections = sections.iter().map(|s| (*s).to_owned()).collect();
        let error = refused(&e);
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    };
    check("", &[], "a.fio: no job: a job file has a section");
    check("[global]\nrw=read\n", &[], "a.fio: no job: a job file has");
    check(
        "[a]\nrw=raed\n",
        &[],
        "a.fio:2: failed parsing rw=raed: rw: valid values: read",
    );
    check(
        "[a]\nsizee=4k\n",
        &[],
        "a.fio:2: Bad option <sizee=4k>. Did you mean size?",
    );
    check(
        "; [ax] is none\n[ab]\nsize=1m\n[ab]\n[global]\n[ad]\nsize=1m\n",
        &["ac"],
        "a.fio: no section is called 'ac'; did you mean 'ab'? valid: ab, ad",
    );
    check(
        "[a]\nsize=1m\nioengine=libaoi\n",
        &[],
        "a.fio:3: job 'a': ioengine: no engine is called 'libaoi'; did you mean 'libaio'?",
    );
    check(
        "[a]\nsize=1m\nstartdelay=1000000d\n",
        &[],
        "a.fio:3: job 'a': startdelay of 86400000000 s: at most 3153600000 s",
    );
    check(
        "[a]\nsize=1m\niodepth=2000000000\n",
        &[],
        "a.fio:3: job 'a': iodepth=2000000000: at most 1048576",
    );
    check(
        "[a]\nsize=1m\nioengine=rbd\n",
        &[],
        "a.fio:3: job 'a': ioengine=rbd is not simulated; those that are: sync",
    );
    check(
        "[a]\nfilename=/dev/sda\nsize=1m\noffset=10t\n",
        &[],
        "a.fio:4: job 'a': offset 10995116277760 lies beyond the end of /dev/sda, which has 500",
    );
}

#[test]
fn files_that_do_not_fit_are_found_before_the_run() {
    for filesystem in ["extents", "ext3", "ext4", "xfs"] {
        let mut e = experiment("[a]\nrw=read\nsize=300g\n[b]\nrw=read\nsize=300g\n");
        e.choose_filesystem(filesystem, &blklab::targets::catalogue())
            .expect("a filesystem");
        let error = refused(&e);
        assert!(
            error
                .starts_with("a.fio:6: file 'b.0.0' of 307200 MiB does not fit the disk of 476940"),
            "{filesystem}: {error}"
        );
    }
}

#[test]
fn a_kernel_without_the_filesystem_is_found_before_the_run() {
    let mut e = experiment("[a]\nrw=read\nsize=1m\n");
    e.choose_kernel(
        "2.6.16".parse().expect("a release"),
        &blklab::targets::catalogue(),
    );
    e.choose_filesystem("ext4", &blklab::targets::catalogue())
        .expect("a filesystem");
    assert!(refused(&e).contains("kernel 2.6.16 has no ext4"));
}

/// The device is made when the first of them is planned; its description may go.
#[test]
fn experiments_with_one_device_share_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let testdata = root().join("testdata/device/disksim");
    for entry in std::fs::read_dir(testdata).expect("samples") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let name = path.file_name().expect("a name");
            std::fs::copy(&path, dir.path().join(name)).expect("a copy");
        }
    }
    let specs = std::fs::read_dir(dir.path()).expect("a folder");
    let specs = specs.map(|e| e.expect("an entry").path());
    let spec = specs
        .filter(|p| p.extension().is_some_and(|e| e == "diskspecs"))
        .min()
        .expect("a disk of DiskSim");
    let device = format!("[device]\nname = 'disksim'\nfile = '{}'\n", spec.display());
    let mut e = experiment_with(&device, "[a]\nrw=randread\ndirect=1\nsize=1m\n");
    let planner = Planner::new(Sim::default());
    let first = planner.plan(&e).unwrap_or_else(|err| panic!("{err}"));
    dir.close().expect("it can be removed");
    e.choose_scheduler("none", &blklab::targets::catalogue())
        .expect("a scheduler");
    let second = planner.plan(&e).unwrap_or_else(|err| panic!("{err}"));
    assert!(!first.site().described_in.is_empty());
    assert_eq!(first.site(), second.site());
    // A run leaves the device as it was: each begins at the same place.
    let digests = [&first, &second, &first].map(|p| ran(p).digest);
    assert_eq!(digests[0], digests[2]);
}

/// Experiments of a matrix that differ in what jobs do not see share their jobs.
#[test]
fn jobs_are_parsed_once() {
    let mut e = experiment("[a]\nrw=randread\nsize=1m\n");
    let planner = Planner::new(Sim::default());
    let jobs = |e: &Experiment| planner.jobs(e).expect("a job file").expect("jobs");
    let first = jobs(&e);
    e.choose_scheduler("bfq", &blklab::targets::catalogue())
        .expect("a scheduler");
    assert!(Arc::ptr_eq(&first, &jobs(&e)));
    e.seed = 1;
    assert!(!Arc::ptr_eq(&first, &jobs(&e)));
}

/// A plan says which part of its files each job works on, as fio finds it: the second job
/// reads the rest of the file that the first has had laid out.
#[test]
fn a_plan_has_the_ranges_of_its_jobs() {
    let text = "[a]\nrw=read\nfilename=f\nsize=3m\n[b]\nrw=randread\nfilename=f\noffset=1m\n\
                [c]\nrw=read\ndirect=1\nfilename=/dev/sda\noffset=4k\nsize=64k\n";
    let e = experiment(text);
    let planner = Planner::new(Sim::default());
    let plan = planner.plan(&e).unwrap_or_else(|err| panic!("{err}"));
    let found: Vec<(u64, u64)> = plan
        .ranges()
        .iter()
        .map(|ranges| (ranges.files[0].first, ranges.files[0].length))
        .collect();
    assert_eq!(found, [(0, 3 << 20), (1 << 20, 2 << 20), (4096, 64 << 10)]);
}

/// What is to be known of the jobs is said once, not by each process of a section.
#[test]
fn processes_of_a_section_share_a_note() {
    let text = "[a]\nrw=read\ndirect=1\nnumjobs=3\nfilename=/dev/sda\noffset=90%\nsize=900g\n";
    let e = experiment(text);
    let planner = Planner::new(Sim::default());
    let plan = planner.plan(&e).unwrap_or_else(|err| panic!("{err}"));
    let cut = |notes: &[String]| notes.iter().filter(|n| n.contains("is cut there")).count();
    assert_eq!(cut(plan.notes()), 1);
    let jobs = plan.jobs().expect("it has jobs");
    let listed = blklab::workload::notes(&e, jobs, plan.site());
    assert_eq!(cut(&listed.expect("they fit")), 1);
}
