// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small experiment made of any bytes, run twice: the models keep their own
//! assertions, every job ends with all its I/Os done or failed, and both runs give
//! the same events. Write-back that is under way when the last job ends is not waited for. Shared
//! by the fuzz target and by the test that runs some of fixed seeds.

use blklab::matrix::{self, Overrides, Setting};
use blklab::run::{RunOptions, run};
use blklab::{Catalogue, DeviceSpec, Experiment, Planner, Sim, Workload};

/// Devices: laws, disks, controllers, flash drives.
const DEVICES: [&str; 9] = [
    "sata-7200-2008",
    "serial",
    "parallel",
    "null_blk",
    "cciss",
    "san-lun",
    "ssd-x25m",
    "samsung-980-pro",
    "st2000dm006",
];
/// Settings of queue and machine, and values that make them matter.
const SETTINGS: [(&str, &[&str]); 12] = [
    ("nr_requests", &["4", "5", "16", "128"]),
    ("queue_depth", &["1", "2", "7", "31"]),
    ("max_sectors_kb", &["4", "36", "512"]),
    ("max_segments", &["1", "2", "31"]),
    ("nomerges", &["0", "1"]),
    ("read_ahead_kb", &["0", "4", "128"]),
    ("dirty_ratio", &["1", "10", "40"]),
    ("dirty_background_ratio", &["1", "5"]),
    ("dirty_writeback_centisecs", &["1", "10", "500"]),
    ("dirty_at_start_mb", &["1", "9"]),
    ("memory", &["76m", "84m", "128m", "256m"]),
    ("cpus", &["1", "2", "4"]),
];
const PATTERNS: [&str; 6] = ["read", "write", "randread", "randwrite", "rw", "randrw"];
const BLOCKS: [&str; 5] = ["4k", "8k", "20k", "64k", "256k"];
/// Options of a job that change how its I/O reaches the queue.
const OPTIONS: [&str; 14] = [
    "fsync=1",
    "fsync=7",
    "fdatasync=3",
    "sync=1",
    "thinktime=300",
    "thinktime=9000",
    "startdelay=30ms",
    "prioclass=3",
    "prioclass=1",
    "numjobs=3",
    "end_fsync=1",
    "invalidate=0",
    "nrfiles=6",
    "unlink=1",
];
/// Sections of a job file, each of up to three processes (`numjobs`), and I/Os of each
/// process, at most.
const SECTIONS_MAX: u64 = 3;
const IOS_MAX: u64 = 40;

/// Bytes that choices are taken from; zeros follow the last.
struct Tape<'a>(std::slice::Iter<'a, u8>);

impl Tape<'_> {
    fn byte(&mut self) -> u64 {
        self.0.next().map_or(0, |b| u64::from(*b))
    }

    /// A number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        (self.byte() << 8 | self.byte()) % n
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    fn job(&mut self, n: u64, on_disk: bool) -> String {
        let mut job = format!(
            "[j{n}]\nrw={}\nbs={}\n",
            self.one_of(&PATTERNS),
            self.one_of(&BLOCKS)
        );
        job += &format!(
            "number_ios={}\nsize={}m\n",
            1 + self.below(IOS_MAX),
            1 + self.below(4)
        );
        if on_disk {
            job += "filename=/dev/sda\n";
        }
        match self.below(3) {
            0 => job += "ioengine=psync\n",
            1 => job += "ioengine=psync\ndirect=1\n",
            _ => {
                job += &format!(
                    "ioengine=libaio\ndirect=1\niodepth={}\n",
                    1 + self.below(20)
                );
            }
        }
        for _ in 0..self.below(3) {
            job += self.one_of(&OPTIONS);
            job += "\n";
        }
        job
    }

    /// One of all, and some of its options that take words.
    fn filesystem(&mut self, catalogue: &Catalogue) -> String {
        let name = self.one_of(&catalogue.filesystems());
        let mut text = name.to_owned();
        for option in catalogue.filesystem_rows(name).expect("it is listed") {
            let words = option.words();
            if !words.is_empty() && self.below(4) == 0 {
                let word = &words[self.below(words.len() as u64) as usize];
                text += &format!(":{}={word}", option.name());
            }
        }
        text
    }

    /// A value of a tunable, at an end of its range or near its default.
    fn value(&mut self, default: i64, range: (i64, i64)) -> i64 {
        let near = match self.below(5) {
            0 => range.0,
            1 => range.0.saturating_add(1),
            2 => default / 3,
            3 => default,
            _ => default.saturating_mul(5),
        };
        near.clamp(range.0, range.1)
    }
}

/// Says how many events a run has, if the experiment can be.
pub(crate) fn run_twice(data: &[u8]) -> Option<u64> {
    let mut tape = Tape(data.iter());
    let sim = Sim::default();
    let catalogue = sim.catalogue();
    let releases: Vec<_> = blklab_kernel::releases().collect();
    let kernel = tape.one_of(&releases);
    let mut schedulers = catalogue.schedulers();
    schedulers.retain(|s| s.since <= kernel && kernel < s.until);
    let scheduler = tape.one_of(&schedulers);
    let mut settings = Vec::new();
    let mut set = |key: &str, value: String| {
        settings.push(Setting {
            key: key.to_owned(),
            values: vec![value],
        });
    };
    for t in scheduler.tunables.iter().filter(|t| t.is_in(kernel)) {
        if tape.below(4) == 0 {
            set(t.name, tape.value(t.default, t.range).to_string());
        }
    }
    for (key, values) in SETTINGS {
        if tape.below(3) == 0 {
            set(key, tape.one_of(values).to_owned());
        }
    }
    let on_disk = tape.below(2) == 0;
    if !on_disk {
        set("filesystem", tape.filesystem(&catalogue));
    }
    let device = tape.one_of(&DEVICES);
    let text = (0..=tape.below(SECTIONS_MAX))
        .map(|n| tape.job(n, on_disk))
        .collect();
    let workload = Workload::Fio {
        name: "fuzz.fio".to_owned(),
        text,
    };
    let overrides = Overrides {
        kernels: vec![kernel.to_string()],
        schedulers: vec![scheduler.name.to_owned()],
        devices: vec![DeviceSpec {
            name: device.to_owned(),
            params: Vec::new(),
        }],
        settings,
        repeat: 1,
        ..Overrides::default()
    };
    let planner = Planner::new(&sim);
    let experiment = Experiment::new("fuzz", workload, &catalogue);
    let cells = matrix::expand(&[experiment], &overrides, &planner);
    let plans = match cells.and_then(|cells| matrix::plans(&cells, &overrides, &planner)) {
        Ok(plans) => plans,
        Err(refused) => {
            let refused = refused.to_string();
            assert_eq!(refused.lines().count(), 1, "one line: {refused}");
            return None;
        }
    };
    let once = || {
        let output = run(&plans[0], &RunOptions::default()).expect("a plan runs");
        for job in &output.jobs {
            assert!(job.ended.is_some(), "a job does not end: {overrides:?}");
            // Some filesystems refuse direct I/O (EINVAL), which ends the job.
            let dirs = &job.stat.dirs;
            let issued: u64 = dirs.iter().map(|d| d.total_ios).sum();
            let done: u64 = dirs.iter().map(|d| d.lat.stat.samples).sum();
            let failed = job.outcome.errors;
            assert_eq!(issued, done + failed, "I/Os of a job: {overrides:?}");
        }
        (output.digest, output.end)
    };
    let first = once();
    assert_eq!(first, once(), "two runs of {overrides:?}");
    Some(first.0.nr_events())
}
