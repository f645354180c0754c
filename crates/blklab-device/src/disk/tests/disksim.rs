// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times of real disks: the validation traces of DiskSim 4.0.
//!
//! DiskSim's own distances: Atlas 10K 0.268, Cheetah 4LP 0.318, IBM 18ES 0.135,
//! HP C2490A 0.254 ms. What each law of the controller contributes is in
//! `docs/devices.md`.

use crate::device::Device;
use crate::host::Host;
use crate::{build, parse_spec, parse_trace, replay};
use blklab_types::{Op, Time};
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
    check(&dir, "atlas-10k", "atlas10k", [0.2, 0.085]);
    check(&dir, "cheetah-4lp", "cheetah4LP", [0.27, 0.22]);
    check(&dir, "ibm-18es", "ibm18es", [0.25, 0.15]);
    check(&dir, "hp-c2490a", "hp_c2490a", [0.4, 0.16]);
}

#[test]
fn disks_agree_with_their_validation_traces() {
    let Some(dir) = blklab_testkit::shared("data/disks") else {
        return;
    };
    check(&dir, "atlas-10k", "atlas10k", [0.15, 0.08]);
    check(&dir, "cheetah-4lp", "cheetah4LP", [0.29, 0.245]);
    check(&dir, "ibm-18es", "ibm18es", [0.22, 0.105]);
    check(&dir, "hp-c2490a", "hp_c2490a", [0.85, 0.11]);
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

/// The sample disk behaves as its files say: each replacement of a value changes
/// what a few commands take, in the direction given.
#[test]
fn parameters_of_the_controller_do_what_they_say() {
    let [diskspecs, model, seek] = sample();
    let with = |changes: &[(&str, &str)]| {
        let mut text = diskspecs.clone();
        for (key, value) in changes {
            let line = text.lines().find(|l| l.trim_start().starts_with(key));
            let line = line.expect("the key is there").to_owned();
            text = text.replacen(&line, &format!("  {key} = {value},"), 1);
        }
        Host::new(with_texts(&text, &model, &seek).expect("a disk"))
    };
    let ms = |host: &mut Host, op, sector, n| {
        let done = host.one(op, sector, n);
        (done.ended - done.submitted).ns() as f64 / 1e6
    };
    let plain = [
        ("Immediate buffer read", "0"),
        ("Buffer continuous read", "3"),
    ];
    let and = |more: &[(&'static str, &'static str)]| [&plain, more].concat();
    let far = 9_000_000;

    // The mark: nothing crosses the bus before so much of the read is there.
    let miss = |mark| {
        let mut host = with(&and(&[("High (read) water mark", mark)]));
        ms(&mut host, Op::Read, far, 300)
    };
    let passing_ms = 300.0 / 229.0 * 5.985;
    let late = miss("1.0") - miss("0.0");
    assert!((4.0..passing_ms).contains(&late), "{late}");
    assert!(miss("0.75") < miss("1.0"));

    // What the host has got makes room, or stays.
    let again = |over| {
        let mut host = with(&and(&[
            ("Read-ahead over requested", over),
            ("Maximum read-ahead (blks)", "374"),
        ]));
        host.one(Op::Read, far, 8);
        host.run_until(Time(host.now.ns() + 20_000_000));
        (
            ms(&mut host, Op::Read, far + 8, 8),
            ms(&mut host, Op::Read, far, 8),
        )
    };
    assert!(again("0").0 < 1.2 && again("0").1 < 1.2, "{:?}", again("0"));
    assert!(again("1").0 < 1.2 && again("1").1 > 1.5, "{:?}", again("1"));

    // What was written can be read, or not.
    let back = |hits| {
        let mut host = with(&and(&[("Allow read hits on write data", hits)]));
        host.one(Op::Write, far, 8);
        host.run_until(Time(host.now.ns() + 50_000_000));
        ms(&mut host, Op::Read, far, 8)
    };
    assert!(
        back("1") < 1.2 && back("0") > 1.2,
        "{} {}",
        back("1"),
        back("0")
    );

    // The begin of a read that is there crosses while the rest is fetched.
    let mut host = with(&and(&[("Maximum read-ahead (blks)", "8")]));
    host.one(Op::Read, far, 8);
    host.run_until(Time(host.now.ns() + 20_000_000));
    let partial = ms(&mut host, Op::Read, far + 8, 16);
    assert!((1.2..8.0).contains(&partial), "{partial}");

    // Kind 4 without reading on arrival: to the end of the track, and through the
    // next one for a stream that comes from the track before.
    let mut host = with(&[("Immediate buffer read", "0")]);
    host.one(Op::Read, 0, 8);
    host.run_until(Time(host.now.ns() + 50_000_000));
    assert!(ms(&mut host, Op::Read, 320, 8) < 1.2);
    assert!(ms(&mut host, Op::Read, 340, 8) > 1.2);
    let mut host = with(&[("Immediate buffer read", "0")]);
    host.one(Op::Read, 300, 40);
    host.run_until(Time(host.now.ns() + 50_000_000));
    assert!(ms(&mut host, Op::Read, 640, 8) < 1.2);

    // Completion, and letting go of the bus and getting it back.
    let write = |key| {
        let mut host = with(&[("Fast write level", "0"), (key, "2.0")]);
        ms(&mut host, Op::Write, far, 8)
    };
    let base = write("Read hit over. after read");
    assert!((write("Write completion overhead") - base - 2.0).abs() < 1e-3);
    assert!((write("First reselect overhead") - base - 2.0).abs() < 1e-3);
    let least = [("Fast write level", "0"), ("Minimum seek delay", "30.0")];
    assert!(ms(&mut with(&least), Op::Write, far, 8) > 30.0);

    // A write behind a write elsewhere takes the times of its own.
    let second = |extra| {
        let mut host = with(&[
            ("Fast write level", "0"),
            ("Number of buffer segments", "1"),
            ("Extra write disconnect", extra),
            ("Extradisc command overhead", "20.0"),
        ]);
        host.one(Op::Write, far, 8);
        ms(&mut host, Op::Write, 0, 8)
    };
    assert!(second("1") > 20.0 && second("0") < 20.0);
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
