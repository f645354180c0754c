// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real blkparse and btt read what we write, and print what we print.

use crate::synthetic::{Recorder, Said, header, send, trace};
use blklab_formats::TraceFile;
use blklab_formats::blkparse::{BlkparseOptions, BlkparseWriter};
use blklab_formats::blktrace::{BlktraceReader, BlktraceStream, BlktraceWriter};
use blklab_testkit::Blktrace;
use blklab_trace::{Action, TraceSource};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs blkparse or btt in `dir`; `None` if they are not installed.
fn tool(dir: &Path, name: &str, args: &[&str]) -> Option<(Blktrace, Output)> {
    let release = Blktrace::installed()?;
    let run = Command::new(name).args(args).current_dir(dir).output();
    Some((release, run.unwrap_or_else(|e| panic!("{name}: {e}"))))
}

/// The text that blkparse left in a file, as 1.2.0 prints it.
fn printed(release: Blktrace, path: &Path) -> Vec<u8> {
    let text = fs::read(path).unwrap();
    match String::from_utf8(text) {
        Ok(text) => release.text(&text).into_bytes(),
        Err(e) => e.into_bytes(),
    }
}

/// blkparse's number formatting depends on whether this locale exists.
fn has_separators() -> bool {
    Command::new("locale").arg("-a").output().is_ok_and(|o| {
        String::from_utf8_lossy(&o.stdout)
            .lines()
            .any(|l| l.starts_with("en_US"))
    })
}

fn our_text(said: &[Said], summary: bool) -> Vec<u8> {
    let options = BlkparseOptions {
        name: "t".into(),
        summary,
        ..BlkparseOptions::default()
    };
    let mut writer = BlkparseWriter::new(Vec::new(), options);
    send(said, &mut writer);
    writer.finish().unwrap()
}

/// Compares our text with that of blkparse for the files we write.
fn check(said: &[Said], nr_cpus: u16, what: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = BlktraceWriter::create(&dir.path().join("t"), &header(nr_cpus)).unwrap();
    send(said, &mut writer);
    let written = writer.finish().unwrap();
    assert_eq!(written.files.len(), usize::from(nr_cpus));
    let summary = !has_separators();
    let mut args = vec!["-i", "t", "-o", "text"];
    if !summary {
        args.push("-q");
    }
    let Some((release, output)) = tool(dir.path(), "blkparse", &args) else {
        return;
    };
    assert!(output.status.success());
    let errors = release.errors(&String::from_utf8_lossy(&output.stderr));
    assert_eq!(errors, "", "{what}");
    let theirs = printed(release, &dir.path().join("text"));
    compare(&our_text(said, summary), &theirs, what);
}

/// Names the first line that differs.
fn compare(ours: &[u8], theirs: &[u8], what: &str) {
    if ours != theirs {
        let ours = String::from_utf8_lossy(ours);
        let theirs = String::from_utf8_lossy(theirs);
        for (number, (a, b)) in ours.lines().zip(theirs.lines()).enumerate() {
            assert_eq!(a, b, "{what}: line {}", number + 1);
        }
        panic!(
            "{what}: {} lines, blkparse has {}",
            ours.lines().count(),
            theirs.lines().count()
        );
    }
}

#[test]
fn text_is_that_of_blkparse() {
    for seed in 0..12 {
        check(&trace(seed, 400, 1, 1), 1, &format!("one cpu, seed {seed}"));
        check(
            &trace(seed, 600, 4, 0),
            4,
            &format!("four cpus, seed {seed}"),
        );
    }
}

#[test]
fn ties_between_cpus_are_ordered_like_blkparse() {
    for seed in 0..40 {
        check(&trace(seed, 300, 5, 6), 5, &format!("ties, seed {seed}"));
    }
    check(
        &trace(1, 3000, 7, 4),
        7,
        "longer than what blkparse reads at once",
    );
}

#[test]
fn an_empty_trace() {
    check(&[], 2, "empty");
}

/// Binary traces of real kernels, decompressed into `dir`: their folders, and the names of the
/// traces.
fn real_traces(dir: &Path) -> Vec<(std::path::PathBuf, String)> {
    let mut all = Vec::new();
    for (folder, name) in [("centos", "sda"), ("keks", "keks")] {
        let found = blklab_testkit::shared(&format!("data/real-traces/{folder}"));
        all.extend(found.map(|path| (path, name.to_owned())));
    }
    let oracle = blklab_testkit::shared("data/oracle");
    let entries = oracle
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut packed: Vec<_> = entries
        .map(|e| e.unwrap().path().join("trace.blktrace.0.zst"))
        .filter(|path| path.exists())
        .collect();
    packed.sort();
    for path in packed {
        let name = format!("t{}", all.len());
        let plain = dir.join(format!("{name}.blktrace.0"));
        let file = fs::File::open(path).unwrap();
        zstd::stream::copy_decode(file, fs::File::create(plain).unwrap()).unwrap();
        all.push((dir.to_owned(), name));
    }
    all
}

/// Left out are messages, of which blkparse 1.2 passes over those of control groups, and which
/// CPU's idle task pid 0 is: blkparse takes the name that it reads first for all of them.
#[test]
fn real_traces_print_as_blkparse_prints_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut nr_compared = 0;
    for (folder, name) in real_traces(dir.path()) {
        let out = tool(&folder, "blkparse", &["-q", "-i", &name]);
        let Some((release, output)) = out else {
            return;
        };
        let theirs = release.text(&String::from_utf8_lossy(&output.stdout));
        let mut file = TraceFile::open(&folder.join(&name)).unwrap();
        let mut writer = BlkparseWriter::new(
            Vec::new(),
            BlkparseOptions {
                name: name.clone(),
                summary: false,
                ..BlkparseOptions::default()
            },
        );
        file.print_to(&mut writer).unwrap();
        let ours = String::from_utf8(writer.finish().unwrap()).unwrap();
        let idle = |line: &str| match line.rfind("[swapper") {
            Some(at) => line[..at].to_owned(),
            None => line.to_owned(),
        };
        let kept = |text: &str| -> Vec<String> {
            let lines = text
                .lines()
                .filter(|l| l.split_whitespace().nth(5) != Some("m"));
            lines
                .filter(|l| !l.starts_with("Input file"))
                .map(idle)
                .collect()
        };
        let (ours, theirs) = (kept(&ours), kept(&theirs));
        // Without a message in front, times begin with the first event.
        let begin = |lines: &[String]| {
            let time = lines.first()?.split_whitespace().nth(3)?;
            time.replace('.', "").parse::<u64>().ok()
        };
        let (a, b) = (begin(&ours).unwrap_or(0), begin(&theirs).unwrap_or(0));
        assert_eq!(ours.len(), theirs.len(), "{}/{name}", folder.display());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(
                since(ours, a),
                since(theirs, b),
                "{}/{name}",
                folder.display()
            );
        }
        nr_compared += 1;
    }
    println!("{nr_compared} traces compared");
}

/// A line with its time as ns since `begin`.
fn since(line: &str, begin: u64) -> String {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(time) = words.get_mut(3)
        && let Ok(ns) = time.replace('.', "").parse::<u64>()
    {
        *time = ns.wrapping_sub(begin).to_string();
    }
    words.join(" ")
}

#[test]
fn btt_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let said: Vec<Said> = trace(3, 2000, 2, 1);
    let mut stream = BlktraceStream::new(Vec::new());
    send(&said, &mut stream);
    fs::write(dir.path().join("t.bin"), stream.finish().unwrap()).unwrap();
    let Some((_, output)) = tool(dir.path(), "btt", &["-A", "-i", "t.bin", "-o", "out"]) else {
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let averages = fs::read_to_string(dir.path().join("out.avg")).unwrap();
    assert!(averages.contains("Q2Q"), "{averages}");
}

/// Everything that kernels recorded, messages and summary too.
#[test]
fn recorded_traces_print_like_blkparse() {
    for directory in ["truth/traces", "truth-2628/traces"] {
        let Some(directory) = blklab_testkit::shared(directory) else {
            continue;
        };
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "zst") {
                continue;
            }
            let dir = tempfile::tempdir().unwrap();
            let binary = zstd::decode_all(fs::File::open(&path).unwrap()).unwrap();
            fs::write(dir.path().join("t.blktrace.0"), binary).unwrap();
            let summary = !has_separators();
            let args = ["-i", "t", "-o", "text", "-q"];
            let args = &args[..if summary { 4 } else { 5 }];
            let Some((release, output)) = tool(dir.path(), "blkparse", args) else {
                return;
            };
            assert!(output.status.success());
            let theirs = printed(release, &dir.path().join("text"));
            let mut reader = BlktraceReader::open(&dir.path().join("t")).unwrap();
            let mut recorder = Recorder::default();
            reader.send_all(&mut recorder).unwrap();
            assert!(reader.counts().is_clean(), "{:?}", reader.counts());
            // blkparse 1.2.0 passes over messages with a cgroup id.
            let mut said = recorder.0;
            if !String::from_utf8_lossy(&theirs).contains("  m   N ") {
                said.retain(|s| !matches!(s, Said::Message(..)));
            }
            let ours = our_text(&said, summary);
            assert!(theirs.len() > 100_000);
            let splits = |s: &Said| matches!(s, Said::Event(e) if e.action == Action::Split);
            let are_split = said.iter().any(splits);
            let [ours, theirs] = [ours, theirs].map(|text| {
                let text = String::from_utf8(text).unwrap();
                release.agreed_lines(&text, are_split).into_bytes()
            });
            compare(&ours, &theirs, &path.display().to_string());
        }
    }
}

/// Files made once with real blkparse, so that this holds without it.
#[test]
fn golden_files() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/blkparse");
    let said = trace(11, 250, 2, 2);
    let dir = tempfile::tempdir().unwrap();
    let mut writer = BlktraceWriter::create(&dir.path().join("t"), &header(2)).unwrap();
    send(&said, &mut writer);
    for file in writer.finish().unwrap().files {
        let name = file
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replace("t.", "all-actions.");
        assert_eq!(
            fs::read(&file).unwrap(),
            fs::read(golden.join(&name)).unwrap(),
            "{name}"
        );
    }
    let options = BlkparseOptions {
        name: "all-actions".into(),
        ..BlkparseOptions::default()
    };
    let mut writer = BlkparseWriter::new(Vec::new(), options);
    send(&said, &mut writer);
    let text = writer.finish().unwrap();
    let theirs = fs::read_to_string(golden.join("all-actions.txt")).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), theirs);
}
