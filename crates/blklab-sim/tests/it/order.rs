// SPDX-License-Identifier: MIT OR Apache-2.0
//! When jobs start, and that runs repeat.

use crate::rig::{experiment, run};
use blklab_fiostat::Ddir;
use blklab_types::Time;

const READS: &str = "rw=randread\ndirect=1\nsize=1m\nnumber_ios=10\n";

#[test]
fn a_stonewall_waits_for_all_before_it() {
    let job = format!("[a]\n{READS}[b]\n{READS}[c]\nstonewall\n{READS}[d]\n{READS}");
    let r = run(&experiment(), &job);
    let ended = |n: &str| r.job(n).ended.unwrap();
    let before = ended("a").max(ended("b"));
    assert_eq!(r.job("c").started, before);
    assert_eq!(r.job("d").started, before);
    assert_eq!((r.job("b").job.group, r.job("c").job.group), (0, 1));
}

#[test]
fn start_delays_count_from_the_start() {
    let job = format!("[a]\n{READS}startdelay=2\n[b]\n{READS}startdelay=1\n[c]\n{READS}");
    let r = run(&experiment(), &job);
    let started = |n: &str| r.job(n).started;
    assert_eq!(started("a"), Time(2_000_000_000));
    assert_eq!(started("b"), Time(1_000_000_000));
    assert_eq!(started("c"), Time::ZERO);
}

#[test]
fn wait_for_waits_for_all_clones_of_that_job() {
    let job = format!("[a]\nnumjobs=3\n{READS}[b]\nwait_for=a\n{READS}");
    let r = run(&experiment(), &job);
    let last = r.outcome.jobs[..3]
        .iter()
        .filter_map(|j| j.ended)
        .max()
        .unwrap();
    assert_eq!(r.job("b").started, last);
}

#[test]
fn exitall_ends_the_others_of_its_group_or_more() {
    let long = READS.replace("number_ios=10", "number_ios=100");
    for (what, b, c, d) in [
        ("", 20, 100, 100),
        ("exit_what=stonewall\n", 20, 20, 100),
        ("exit_what=all\n", 20, 20, 0),
    ] {
        let job = format!(
            "[a]\n{READS}exitall\n{what}[b]\n{long}[c]\nnew_group\n{long}[d]\nstonewall\n{long}"
        );
        let r = run(&experiment(), &job);
        let ios = |name: &str| {
            let found = r.outcome.jobs.iter().find(|j| j.job.name == name);
            found.map_or(0, |j| j.stat.dir(Ddir::Read).total_ios)
        };
        for (name, limit) in [("b", b), ("c", c), ("d", d)] {
            let cut = limit < 100;
            assert!(
                if cut {
                    ios(name) <= limit
                } else {
                    ios(name) == 100
                },
                "{what:?}: job {name} made {} reads",
                ios(name)
            );
        }
    }
}

#[test]
fn rate_limits_bandwidth() {
    let job = "[a]\nrw=read\ndirect=1\nbs=64k\nsize=2m\nrate=1m\n";
    let r = run(&experiment(), job);
    let read = r.job("a").stat.dir(Ddir::Read);
    // The last of 32 blocks is due after 31/16 s.
    assert!(
        (1937..=1940).contains(&read.runtime_ms),
        "{} ms",
        read.runtime_ms
    );
}

#[test]
fn runtime_ramp_time_and_think_time_shape_the_run() {
    let job = "[a]\nrw=randread\ndirect=1\nsize=1m\ntime_based\nruntime=2\nramp_time=1\n";
    let r = run(&experiment(), job);
    let read = r.job("a").stat.dir(Ddir::Read);
    assert!(
        (1999..=2002).contains(&read.runtime_ms),
        "{} ms",
        read.runtime_ms
    );
    assert!(
        (1990..=2000).contains(&read.clat.stat.samples),
        "{}",
        read.clat.stat.samples
    );

    let job = "[a]\nrw=randread\ndirect=1\nsize=1m\nnumber_ios=10\nthinktime=9000\n";
    let r = run(&experiment(), job);
    let runtime_ms = r.job("a").stat.dir(Ddir::Read).runtime_ms;
    assert!((90..=101).contains(&runtime_ms), "{runtime_ms} ms");
}

#[test]
fn the_same_run_twice_has_the_same_events() {
    let job = "[global]\nsize=2m\n[w]\nrw=write\n[r]\nrw=randread\n[d]\nrw=randrw\ndirect=1\n\
               ioengine=libaio\niodepth=4\n";
    let (a, b) = (run(&experiment(), job), run(&experiment(), job));
    assert!(a.events.len() > 1000);
    assert_eq!(a.digest(), b.digest());
    assert_eq!(a.events, b.events);
}

#[test]
fn another_seed_moves_the_starts_a_little() {
    let mut e = experiment();
    let job = format!("[a]\n{READS}[b]\n{READS}");
    let plain = run(&e, &job);
    e.seed = 1;
    let moved = run(&e, &job);
    assert_ne!(plain.digest(), moved.digest());
    assert!(moved.job("a").started < Time(1_000_000));
}

#[test]
fn a_run_can_be_stopped_from_outside() {
    let mut e = experiment();
    e.seed = 0;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let jobs = blklab_fio::parse::parse(
        "x",
        "[a]\nrw=randread\ndirect=1\nsize=1m\ntime_based\nruntime=100d\n",
        &blklab_fio::parse::ParseOptions::default(),
        &blklab_fio::parse::Fixed::default(),
    )
    .unwrap();
    let sinks = blklab_sim::Sinks::of_events(Box::new(blklab_trace::NullSink));
    let out = blklab_sim::fio::run_fio(&e, jobs, sinks, stop).unwrap();
    assert!(out.interrupted);
}
