// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random job files against the installed fio 3.33: every I/O of every job, as
//! fio's own log shows it.
//!
//! Ignored by default, because it needs the program. Run it with
//! `cargo test -p blklab-fio --test it differential -- --ignored --nocapture`;
//! `BLKLAB_FIO_JOBS` says how many job files (200), `BLKLAB_FIO_SEED` where to
//! begin (1), `BLKLAB_FIO_ENGINE` which engine (null). A job file that differs is printed.

use blklab_fio::parse::{Fixed, JobFile, ParseOptions, parse};
use blklab_fio::range::FileState;
use blklab_fio::rng::Rng;
use blklab_fio::run::Io;
use blklab_fio::run::Step;
use blklab_fio::workload::{Listing, set_up};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines compared per job.
const LINES_MAX: usize = 20_000;

struct Draw(Rng);

impl Draw {
    fn one_in(&mut self, count: u64) -> bool {
        self.0.below(count) == 0
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.0.below(words.len() as u64) as usize]
    }

    fn number(&mut self, low: u64, high: u64) -> u64 {
        self.0.between(low, high)
    }
}

/// A random job file whose jobs do not wait for time.
fn job_file(draw: &mut Draw) -> String {
    let engine = std::env::var("BLKLAB_FIO_ENGINE").unwrap_or_else(|_| "null".to_owned());
    let mut out = format!("[global]\nioengine={engine}\n");
    if draw.one_in(4) {
        options(draw, &mut out, 4);
    }
    for job in 0..draw.number(1, 3) {
        let _ = writeln!(out, "[j{job}]\nwrite_iolog=j{job}.log");
        let _ = writeln!(out, "size={}k", draw.number(16, 2000));
        let rw = [
            "read",
            "write",
            "trim",
            "randread",
            "randwrite",
            "randtrim",
            "rw",
            "randrw",
            "trimwrite",
            "randtrimwrite",
            "randread",
            "randwrite",
            "randrw",
        ];
        // Regular files cannot be trimmed everywhere.
        let rw = match draw.pick(&rw) {
            rw if engine != "null" && rw.contains("trim") => "randrw",
            rw => rw,
        };
        let postfix = match (draw.one_in(6), rw.starts_with("rand")) {
            (false, _) => String::new(),
            (true, true) => format!(":{}", draw.number(0, 9)),
            (true, false) => format!(":{}", draw.pick(&["4k", "-4k", "12k", "1m", "-8k", "100k"])),
        };
        let _ = writeln!(out, "rw={rw}{postfix}");
        let count = draw.number(0, 7);
        options(draw, &mut out, count);
    }
    out
}

fn options(draw: &mut Draw, out: &mut String, count: u64) {
    for _ in 0..count {
        let line = option(draw);
        let _ = writeln!(out, "{line}");
    }
}

fn option(draw: &mut Draw) -> String {
    let small = draw.number(0, 7);
    let kib = draw.number(1, 64);
    match draw.number(0, 36) {
        0 => format!(
            "bs={}",
            draw.pick(&[
                "1k",
                "2k",
                "4k",
                "8k",
                "16k",
                "3k",
                "4k,8k",
                "4k,8k,16k",
                "512",
                "5000"
            ])
        ),
        1 => format!(
            "bsrange={}",
            draw.pick(&[
                "4k-16k",
                "1k-8k",
                "4k-16k,1k-4k",
                "3k-10k",
                "512-64k",
                "4k-5k"
            ])
        ),
        2 => format!(
            "bssplit={}",
            draw.pick(&[
                "4k/50:8k/50",
                "4k/10:16k/",
                "1k/5:4k/90:64k/",
                "4k:8k:2k/20,4k/50:512"
            ])
        ),
        3 => format!("randseed={}", draw.number(0, 1 << 40)),
        4 => "norandommap".to_owned(),
        5 => format!(
            "random_generator={}",
            draw.pick(&["lfsr", "tausworthe64", "tausworthe"])
        ),
        6 => format!(
            "random_distribution={}",
            draw.pick(&[
                "zipf:1.2",
                "zipf:0.7:0.3",
                "pareto:0.3",
                "normal:15",
                "normal:8:0.8",
                "zoned:60/10:40/90",
                "zoned:50/:30/5:20/",
                "zoned_abs:50/8k:50/8k",
                "zipf",
                "pareto"
            ])
        ),
        7 => format!(
            "percentage_random={}",
            draw.pick(&["50", "90,10", "0", "1,2,3", "99"])
        ),
        8 => format!("nrfiles={}", draw.number(1, 6)),
        9 => format!(
            "file_service_type={}",
            draw.pick(&[
                "random",
                "roundrobin:3",
                "sequential",
                "random:4",
                "zipf:1.2",
                "pareto:0.4",
                "normal:20",
                "roundrobin"
            ])
        ),
        10 => format!("openfiles={}", draw.number(1, 4)),
        11 => format!("rwmixread={}", draw.number(0, 100)),
        12 => format!("offset={kib}k"),
        13 => format!("offset_increment={kib}k"),
        14 => format!("io_size={}k", draw.number(4, 4000)),
        15 => format!("number_ios={}", draw.number(1, 500)),
        16 => format!("loops={}", draw.number(1, 3)),
        17 => format!("fsync={small}"),
        18 => format!("fdatasync={small}"),
        19 => format!(
            "filesize={}",
            draw.pick(&["64k", "64k-512k", "1m", "100k-101k"])
        ),
        20 => format!("numjobs={}", draw.number(1, 3)),
        21 => "allrandrepeat=1".to_owned(),
        22 => format!("ba={}", draw.pick(&["512", "4k", "8k", "1k,2k"])),
        23 => "bs_unaligned".to_owned(),
        24 => "bs_is_seq_rand=1".to_owned(),
        25 => "rw_sequencer=identical".to_owned(),
        26 => "verify=null".to_owned(),
        27 => format!("verify=null\nverify_backlog={}", draw.number(1, 40)),
        28 => format!(
            "verify=null\nverify_backlog={}\nverify_backlog_batch={}",
            draw.number(1, 40),
            small
        ),
        29 => "do_verify=0".to_owned(),
        30 => format!(
            "zonemode=strided\nzonesize={kib}k\nzonerange={}k\nzoneskip={small}k",
            draw.number(16, 128)
        ),
        31 => "end_fsync=1".to_owned(),
        32 => format!("iodepth={}", draw.number(1, 16)),
        33 => format!("iodepth_batch={small}"),
        34 => format!("iodepth_batch_complete={small}"),
        35 => format!("iodepth_low={small}"),
        _ => format!("sync_file_range=write:{small}"),
    }
}

/// What every process logged: `op offset length file` per line, by the name of
/// its first file. Processes of one section share a log; the lists are
/// complete only while each fits into the program's buffer.
fn from_log(path: &Path) -> Vec<(String, Vec<String>)> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Vec::new();
    };
    let processes: Vec<&str> = text.split("fio version 3 iolog\n").skip(1).collect();
    // A killed process leaves what it had in its buffer, or nothing.
    let killed = processes
        .iter()
        .any(|process| !process.ends_with(" close\n"));
    if killed || (processes.len() > 1 && text.len() > 8000) {
        return Vec::new();
    }
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields.len() == 5)
            .then(|| format!("{} {} {} {}", fields[2], fields[3], fields[4], fields[1]))
    };
    let process = |text: &str| {
        let first = text
            .lines()
            .next()
            .and_then(|line| line.split(' ').nth(1))
            .unwrap_or("")
            .to_owned();
        (
            first,
            text.lines().filter_map(line).take(LINES_MAX).collect(),
        )
    };
    processes.into_iter().map(process).collect()
}

/// The same by this library.
fn ours(file: &JobFile) -> Result<Vec<(String, Vec<String>)>, String> {
    let ranges = set_up(file, |_| FileState::Missing).map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    for (job, ranges) in file.jobs.iter().zip(&ranges) {
        // fio's log has every attempt, refused ones too.
        let mut listing = Listing::new(job.clone(), ranges).map_err(|e| e.to_string())?;
        let attempts = std::iter::from_fn(|| {
            loop {
                if let Step::Issue(io) = listing.next_step()? {
                    return Some(io);
                }
            }
        });
        let ios = attempts.take(LINES_MAX);
        let line = |io: Io| {
            let length = if io.op.dir().is_some() { io.length } else { 0 };
            format!(
                "{} {} {length} {}",
                io.op.name(),
                io.logged_offset,
                job.files[io.file as usize]
            )
        };
        out.push((job.files[0].clone(), ios.map(line).collect()));
    }
    Ok(out)
}

/// Runs the real program; `None` if it does not end. Some jobs make it loop for
/// ever and write its log all the while. Its job processes survive their
/// parent, so each has limits of its own for processor time and file size.
fn run_fio(text: &str, directory: &Path) -> Option<bool> {
    std::fs::write(directory.join("job.fio"), text).expect("a writable directory");
    let status = Command::new("timeout")
        .args([
            "--signal=KILL",
            "6",
            "prlimit",
            "--cpu=2",
            "--fsize=50000000",
        ])
        .args(["fio", "--output=/dev/null", "job.fio"])
        .current_dir(directory)
        .stderr(Stdio::null())
        .status()
        .expect("fio is installed");
    // Killed by either limit: it would not have ended.
    let ended = status.code().is_some_and(|code| code != 124 && code < 128);
    ended.then(|| status.success())
}

/// Compares one job file; says what differs.
fn compare(text: &str) -> Result<bool, String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(accepted) = run_fio(text, directory.path()) else {
        return Ok(false);
    };
    let parsed = parse("job.fio", text, &ParseOptions::default(), &Fixed::default());
    let ours = match parsed
        .map_err(|error| error.to_string())
        .and_then(|file| ours(&file))
    {
        Ok(ours) => ours,
        Err(_) if !accepted => return Ok(true),
        Err(error) => return Err(format!("fio accepts it, but: {error}")),
    };
    if !accepted {
        return Err("fio refuses it".to_owned());
    }
    let mut compared = false;
    for log in 0..9 {
        for (first, theirs) in from_log(&directory.path().join(format!("j{log}.log"))) {
            let Some((_, ours)) = ours.iter().find(|(name, _)| *name == first) else {
                return Err(format!("no job with file {first}"));
            };
            compared = true;
            let longest = ours.len().max(theirs.len());
            if let Some(at) = (0..longest).find(|&at| ours.get(at) != theirs.get(at)) {
                let (ours, theirs) = (ours.get(at), theirs.get(at));
                return Err(format!(
                    "{first}, line {at}: {ours:?} instead of {theirs:?}"
                ));
            }
        }
    }
    Ok(compared)
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

#[test]
#[ignore = "needs the program fio"]
fn random_job_files_like_fio() {
    let first = from_environment("BLKLAB_FIO_SEED", 1);
    let count = from_environment("BLKLAB_FIO_JOBS", 200);
    let (mut compared, mut wrong) = (0, 0);
    for seed in first..first + count {
        let text = job_file(&mut Draw(Rng::new(seed, true)));
        match compare(&text) {
            Ok(done) => compared += u64::from(done),
            Err(why) => {
                wrong += 1;
                println!("---- seed {seed}: {why}\n{text}");
            }
        }
    }
    println!("{compared} of {count} job files compared, {wrong} differ");
    assert_eq!(wrong, 0);
    assert!(compared > 0);
}
