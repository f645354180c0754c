// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times of real disks: the validation traces of DiskSim 4.0.
//!
//! DiskSim's own distances: Atlas 10K 0.268, Cheetah 4LP 0.318, IBM 18ES 0.135,
//! HP C2490A 0.254 ms.

use crate::device::Device;
use crate::host::Host;
use crate::{build, parse_spec, parse_trace, replay};
use blklab_types::Op;
use std::fs;
use std::path::Path;

fn made(spec: &str) -> Box<dyn Device> {
    let (info, params) = parse_spec(spec).expect("a valid device");
    let read = |path: &str| fs::read_to_string(path).map_err(|e| e.to_string());
    build(info.name, &params, 1, &read).expect("a valid disk")
}

/// The preset and the disk made from the files, against the trace.
fn check(dir: &Path, preset: &str, name: &str, limits_ms: [f64; 2]) {
    let trace = fs::read_to_string(dir.join(format!("{name}.trace"))).expect("a text");
    let trace = parse_trace(name, &trace).expect("a trace");
    let file = dir.join(format!("{name}.diskspecs"));
    let specs = [
        preset.to_owned(),
        format!("disksim,file={}", file.display()),
    ];
    let rms = specs.map(|spec| replay(made(&spec).as_mut(), &trace).rms_ms);
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
fn disks_agree_with_the_beginning_of_their_traces() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/disksim");
    check(&dir, "atlas-10k", "atlas10k", [0.2, 0.1]);
    check(&dir, "cheetah-4lp", "cheetah4LP", [0.27, 0.26]);
    check(&dir, "ibm-18es", "ibm18es", [0.25, 0.19]);
    check(&dir, "hp-c2490a", "hp_c2490a", [0.4, 0.14]);
}

#[test]
fn disks_agree_with_their_validation_traces() {
    let Some(dir) = blklab_testkit::shared("data/disks") else {
        return;
    };
    check(&dir, "atlas-10k", "atlas10k", [0.15, 0.1]);
    check(&dir, "cheetah-4lp", "cheetah4LP", [0.29, 0.29]);
    check(&dir, "ibm-18es", "ibm18es", [0.22, 0.13]);
    check(&dir, "hp-c2490a", "hp_c2490a", [0.85, 0.1]);
}

/// Builds the sample disk with some of its files replaced.
fn with_texts(diskspecs: &str, model: &str, seek: &str) -> Result<Box<dyn Device>, String> {
    let read = |path: &str| {
        let text = match path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("diskspecs") => diskspecs,
            Some("model") => model,
            Some("seek") => seek,
            _ => return Err("not there".to_owned()),
        };
        Ok(text.to_owned())
    };
    let file = vec![("file".to_owned(), "d/x.diskspecs".to_owned())];
    crate::build("disksim", &file, 2, &read).map_err(|e| e.to_string())
}

fn sample() -> [String; 3] {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/device/disksim");
    ["diskspecs", "model", "seek"]
        .map(|kind| fs::read_to_string(dir.join(format!("atlas10k.{kind}"))).expect(kind))
}

#[test]
fn errors_name_file_and_line() {
    let [diskspecs, model, seek] = sample();
    let error = |diskspecs: &str, model: &str, seek: &str| {
        with_texts(diskspecs, model, seek)
            .map(|_| ())
            .expect_err("refused")
    };
    assert_eq!(
        error("", &model, &seek),
        "d/x.diskspecs: expected a block 'disksim_disk NAME { … }'"
    );
    let broken = model.replace(
        "Rotation speed (in rpms) = 10025",
        "Rotation speed (in rpms) = fast",
    );
    assert_eq!(
        error(&diskspecs, &broken, &seek),
        "d/atlas10k.model:18: Rotation speed (in rpms) = fast: expected a number"
    );
    assert_eq!(
        error(&diskspecs, &model, "1, 1.0\n3, x"),
        "d/atlas10k.seek:2: expected 'distance, milliseconds'"
    );
    assert_eq!(
        error(&diskspecs, &model, ""),
        "d/atlas10k.seek: expected lines of 'distance, milliseconds'"
    );
    let short = diskspecs.replace("Segment size (in blks) = 374,", "");
    assert_eq!(
        error(&short, &model, &seek),
        "d/x.diskspecs:1: Segment size (in blks) is missing: expected a number"
    );
    let open = &model[..model.len() / 2];
    assert!(error(&diskspecs, open, &seek).starts_with("d/atlas10k.model:"));
}

/// Each line of the files in turn is given an absurd value: the disk is
/// refused, or it works.
#[test]
fn absurd_files_do_not_break_anything() {
    let [diskspecs, model, seek] = sample();
    let (mut refused, mut served) = (0, 0);
    let mut check = |diskspecs: &str, model: &str| {
        let Ok(device) = with_texts(diskspecs, model, &seek) else {
            refused += 1;
            return;
        };
        let mut host = Host::new(device);
        let capacity = host.capacity().expect("a disk has an end");
        let ops = [Op::Read, Op::Write, Op::Flush, Op::Read];
        for (i, op) in ops.into_iter().enumerate() {
            let n = match op {
                Op::Flush => 0,
                _ => capacity.min(900),
            };
            host.one(op, (capacity - n) / 3 * i as u64, n as u32);
        }
        served += 1;
    };
    for value in ["-1", "0", "1", "7.5", "1e14", "none", "[1]", "x {"] {
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

/// Every kind of seek curve of the format makes a disk, and the curves differ.
#[test]
fn seek_curves_of_every_kind() {
    let [diskspecs, model, seek] = sample();
    let times = "Single cylinder seek time = 1.2, Average seek time = 5.6,
        Full strobe seek time = 10.8, Constant seek time = 5.0,
        HPL seek equation values = [ 300, 1.3, 0.1, 3.0, 0.0007, -1.0 ],
        First ten seek times = [ 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9 ],";
    let mut ends = Vec::new();
    for kind in [
        "linear",
        "curve",
        "constant",
        "hpl",
        "hplplus10",
        "extracted",
    ] {
        let text = model.replace(
            "Seek type = extracted,",
            &format!("{times} Seek type = {kind},"),
        );
        let mut host = Host::new(with_texts(&diskspecs, &text, &seek).expect(kind));
        let capacity = host.capacity().expect("an end");
        host.one(Op::Read, 0, 8);
        for i in 1..50 {
            host.one(Op::Read, (i * 7_654_321) % capacity, 8);
        }
        ends.push(host.now);
    }
    ends.sort_unstable();
    ends.dedup();
    // The two equations differ only below ten cylinders.
    assert!(ends.len() >= 4, "{ends:?}");
}
