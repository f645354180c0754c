// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times of real disks: the validation traces of DiskSim 4.0.
//!
//! Each line is a request measured on the drive: `R|W Hit|Miss LBN SIZE
//! RESPONSE(us) TIME_TO_NEXT(us)`; the next request arrives so long after the
//! completion of this one. The figure of merit is the root mean square of the
//! horizontal distance between the two distributions of response times.

use crate::host::Host;
use crate::{DiskSimFiles, build_disksim};
use blklab_types::{Op, Span};
use std::fs;
use std::path::{Path, PathBuf};

struct Request {
    op: Op,
    sector: u64,
    n: u32,
    response_ms: f64,
    pause: Span,
}

fn requests(text: &str) -> Vec<Request> {
    let request = |line: &str| {
        let f: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| -> f64 { f[i].parse().expect("a number") };
        Request {
            op: if f[0] == "R" { Op::Read } else { Op::Write },
            sector: number(2) as u64,
            n: number(3) as u32,
            response_ms: number(4) / 1e3,
            pause: Span((number(5) * 1e3) as u64),
        }
    };
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(request)
        .collect()
}

/// Root mean square distance of the distributions in ms.
fn rms_ms(mut host: Host, trace: &str) -> f64 {
    let (mut measured, mut ours) = (Vec::new(), Vec::new());
    for r in requests(trace) {
        let f = host.one(r.op, r.sector, r.n);
        measured.push(r.response_ms);
        ours.push((f.ended - f.submitted).ns() as f64 / 1e6);
        host.run_until(host.now + r.pause);
    }
    measured.sort_by(f64::total_cmp);
    ours.sort_by(f64::total_cmp);
    let sum: f64 = measured
        .iter()
        .zip(&ours)
        .map(|(m, o)| (m - o) * (m - o))
        .sum();
    (sum / measured.len() as f64).sqrt()
}

fn from_files(dir: &Path, name: &str, model: &str) -> Host {
    let read = |file: String| fs::read_to_string(dir.join(&file)).expect(&file);
    let (diskspecs, system) = (
        read(format!("{name}.diskspecs")),
        read(format!("{name}.parv")),
    );
    let (text, seek) = (
        read(format!("{model}.model")),
        read(format!("{model}.seek")),
    );
    let files = DiskSimFiles {
        diskspecs: &diskspecs,
        model: &text,
        seek: &seek,
        system: &system,
    };
    Host::new(build_disksim(&files, 1).expect("a valid disk"))
}

/// The preset and the disk made from the files, against the trace.
fn check(dir: &Path, preset: &str, name: &str, model: &str, limits_ms: [f64; 2]) {
    let Ok(trace) = fs::read_to_string(dir.join(format!("{name}.trace"))) else {
        eprintln!("skipped: no {name}.trace in {}", dir.display());
        return;
    };
    let hosts = [Host::build(preset, 1), from_files(dir, name, model)];
    let rms = hosts.map(|host| rms_ms(host, &trace));
    println!(
        "{preset}: {:.3} ms, from its files {:.3} ms",
        rms[0], rms[1]
    );
    assert!(
        rms[0] <= limits_ms[0] && rms[1] <= limits_ms[1],
        "{preset}: {rms:?}"
    );
}

#[test]
fn the_sample_disk_agrees_with_its_trace() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/disksim");
    check(&dir, "atlas-10k", "atlas10k", "atlas10k", [0.2, 0.2]);
}

#[test]
fn disks_agree_with_their_validation_traces() {
    let shared = std::env::var_os("BLKLAB_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let dir = shared.join("data/disks");
    check(&dir, "atlas-10k", "atlas10k", "atlas10k", [0.15, 0.15]);
    check(
        &dir,
        "cheetah-4lp",
        "cheetah4LP",
        "cheetah4LP",
        [0.29, 0.33],
    );
    check(&dir, "ibm-18es", "ibm18es", "ibm18es", [0.22, 0.24]);
    check(
        &dir,
        "hp-c2490a",
        "hp_c2490a",
        "hp_c2490a_validate",
        [0.85, 0.33],
    );
}

#[test]
fn errors_name_file_and_line() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/disksim");
    let read = |file: &str| fs::read_to_string(dir.join(file)).expect(file);
    let (diskspecs, model) = (read("atlas10k.diskspecs"), read("atlas10k.model"));
    let error = |diskspecs: &str, model: &str, seek: &str| {
        let files = DiskSimFiles {
            diskspecs,
            model,
            seek,
            system: "",
        };
        build_disksim(&files, 1)
            .map(|_| ())
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        error("", &model, "1, 1.0"),
        "diskspecs file: Maximum read-ahead (blks): expected a number"
    );
    let broken = model.replace(
        "Rotation speed (in rpms) = 10025",
        "Rotation speed (in rpms) = fast",
    );
    assert_eq!(
        error(&diskspecs, &broken, "1, 1.0"),
        "line 18: model file: Rotation speed (in rpms) = fast: expected a number"
    );
    assert_eq!(
        error(&diskspecs, &model, "1, 1.0\n3, x"),
        "line 2: '3, x': expected 'distance, milliseconds'"
    );
    assert_eq!(
        error(&diskspecs, &model, ""),
        "model file: HPL seek equation values: expected an equation, or a file of seek times"
    );
}

/// Each parameter of the files in turn is given an absurd value: the disk is
/// refused, or it works.
#[test]
fn absurd_files_do_not_break_anything() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/disksim");
    let read = |file: &str| fs::read_to_string(dir.join(file)).expect(file);
    let (diskspecs, model) = (read("atlas10k.diskspecs"), read("atlas10k.model"));
    let seek = read("atlas10k.seek");
    let (mut refused, mut served) = (0, 0);
    let mut check = |diskspecs: &str, model: &str| {
        let files = DiskSimFiles {
            diskspecs,
            model,
            seek: &seek,
            system: "",
        };
        let Ok(device) = build_disksim(&files, 2) else {
            refused += 1;
            return;
        };
        let mut host = Host::new(device);
        let capacity = host.capacity().expect("a disk has an end");
        for (i, op) in [Op::Read, Op::Write, Op::Flush, Op::Read]
            .into_iter()
            .enumerate()
        {
            let n = if op == Op::Flush {
                0
            } else {
                capacity.min(900)
            };
            host.one(op, (capacity - n) / 3 * i as u64, n as u32);
        }
        served += 1;
    };
    for value in ["-1", "0", "1", "7.5", "1e14", "none"] {
        let absurd = |text: &str, i: usize| {
            let line = |(k, line): (usize, &str)| match line.split_once('=') {
                Some((key, _)) if k == i => format!("{key}= {value},\n"),
                _ => format!("{line}\n"),
            };
            text.lines().enumerate().map(line).collect::<String>()
        };
        for i in 0..diskspecs.lines().count() {
            check(&absurd(&diskspecs, i), &model);
        }
        for i in 0..60 {
            check(&diskspecs, &absurd(&model, i));
        }
    }
    assert!(
        refused > 50 && served > 500,
        "{refused} refused, {served} served"
    );
}
