// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs for fio whose results a fit wants.

use std::fmt::Write as _;

/// What the jobs run on.
#[derive(Clone, Debug)]
pub struct JobOptions {
    /// The disk.
    pub disk: String,
    /// Seconds of each load, after a third as many.
    pub seconds: f64,
}

/// A job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobText {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub text: String,
}

/// The job files, in the order in which they are run.
pub fn jobs(o: &JobOptions) -> Vec<JobText> {
    let file = |name, text| JobText { name, text };
    vec![
        file("1-fresh.fio", fresh(o)),
        file("2-precondition.fio", precondition(o)),
        file("3-steady.fio", steady(o)),
    ]
}

/// A time as fio takes it.
fn time(seconds: f64) -> String {
    format!("{:.0}ms", (seconds * 1000.0).max(1.0))
}

fn head(o: &JobOptions, what: &[&str], timed: bool) -> String {
    let mut text = String::new();
    for line in what {
        let _ = writeln!(text, "; {line}");
    }
    let _ = write!(
        text,
        "\n[global]\nfilename={}\nioengine=io_uring\ndirect=1\n",
        o.disk
    );
    if timed {
        let ramp = time(o.seconds / 3.0);
        let _ = write!(
            text,
            "norandommap\nrandrepeat=0\ntime_based\nruntime={}\nramp_time={ramp}\n",
            time(o.seconds)
        );
    }
    text
}

fn section(text: &mut String, name: &str, beside: bool, options: &str) {
    let wall = if beside { "" } else { "stonewall\n" };
    let lines = options.replace(' ', "\n");
    let _ = write!(text, "\n[{name}]\n{wall}{lines}\n");
}

/// A load of its own for each depth.
fn at_depths(text: &mut String, name: &str, options: &str, depths: &[u32]) {
    for depth in depths {
        let options = format!("{options} iodepth={depth}");
        section(text, &format!("{name}-qd{depth}"), false, &options);
    }
}

fn fresh(o: &JobOptions) -> String {
    let mut text = head(
        o,
        &[
            "A drive of which everything was discarded, as by blkdiscard: all data on it are lost.",
            "Only writes: reads of what was never written do not reach the flash.",
            "fio --output-format=json+ --output=1-fresh.json 1-fresh.fio",
        ],
        true,
    );
    at_depths(&mut text, "fresh-write-128k", "rw=write bs=128k", &[32]);
    let random = "rw=randwrite bs=4k";
    at_depths(&mut text, "fresh-randwrite-4k", random, &[1, 4, 32]);
    text
}

fn precondition(o: &JobOptions) -> String {
    let mut text = head(
        o,
        &[
            "Writes the drive full, then twice as much at random addresses, so that garbage",
            "collection is steady. It takes hours, and all data on the drive are lost.",
            "fio 2-precondition.fio",
        ],
        false,
    );
    section(&mut text, "fill", false, "rw=write bs=128k iodepth=32");
    let again = "rw=randwrite bs=4k iodepth=32 norandommap loops=2";
    section(&mut text, "write-at-random", false, again);
    text
}

fn steady(o: &JobOptions) -> String {
    let mut text = head(
        o,
        &[
            "Directly after 2-precondition.fio. All data on the drive are lost.",
            "fio --output-format=json+ --output=3-steady.json 3-steady.fio",
        ],
        true,
    );
    let mut loads = |name: &str, options: &str, depths: &[u32]| {
        at_depths(&mut text, &format!("steady-{name}"), options, depths);
    };
    let all = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    loads("randread-4k", "rw=randread bs=4k", &all);
    // What one process cannot submit: it is the drive that limits these.
    let several = "rw=randread bs=4k numjobs=4 group_reporting=1";
    loads("randread-4k-x4", several, &[64]);
    for size in ["8k", "16k", "64k"] {
        let options = format!("rw=randread bs={size}");
        loads(&format!("randread-{size}"), &options, &[1, 8, 32]);
    }
    loads("read-128k", "rw=read bs=128k", &[32]);
    loads("randwrite-4k", "rw=randwrite bs=4k", &[1, 4, 32]);
    loads("write-128k", "rw=write bs=128k", &[32]);
    loads("randrw-4k", "rw=randrw rwmixread=70 bs=4k", &[1, 8, 32]);
    for (reads, writes) in [(1, 32), (32, 32), (1, 128)] {
        let options = format!("rw=randread bs=4k iodepth={reads}");
        let name = format!("steady-reader-qd{reads}-beside-qd{writes}");
        section(&mut text, &name, false, &options);
        let options = format!("rw=randwrite bs=4k iodepth={writes}");
        let name = format!("steady-writer-qd{writes}-beside-qd{reads}");
        section(&mut text, &name, true, &options);
    }
    text
}
