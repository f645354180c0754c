// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded sequences: `NAME.fio` and what its jobs issued in
//! `NAME.expected.csv`, the shared ones if they are there and always the few
//! in `testdata/fio`.

use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::range::FileState;
use blklab_fio::workload::{Limits, list};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Lines `op,offset,length,file` per thread.
type Sequences = BTreeMap<u32, Vec<String>>;

pub(crate) fn project_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ours(path: &Path, limits: &BTreeMap<u32, usize>) -> Sequences {
    let text = std::fs::read_to_string(path).expect("the job file is readable");
    let around = Fixed {
        environment: vec![("FIO_BS".into(), "8k".into())],
        ..Fixed::default()
    };
    let file = parse("job.fio", &text, &ParseOptions::default(), &around)
        .expect("the job file is accepted");
    let mut out = Sequences::new();
    // Enough to show lines too many, even where each is repeated.
    let longest = limits
        .values()
        .max()
        .map_or(0, |&longest| 2 * longest as u64 + 1);
    let limits = Limits {
        lines_per_job: Some(longest),
    };
    let result = list(
        &file,
        limits,
        |_| FileState::Missing,
        |line| {
            let lines = out.entry(line.thread).or_default();
            lines.push(format!(
                "{},{},{},{}",
                line.op.name(),
                line.offset,
                line.length,
                line.file
            ));
            ControlFlow::Continue(())
        },
    );
    result.expect("every job can be set up");
    out
}

fn recorded(path: &Path) -> Sequences {
    let text = std::fs::read_to_string(path).expect("the recorded sequence is readable");
    let mut out = Sequences::new();
    for line in text.lines().skip(1) {
        let (thread, rest) = line.split_once(',').expect("comma-separated");
        out.entry(thread.parse().expect("a thread number"))
            .or_default()
            .push(rest.to_owned());
    }
    out
}

/// Which recorded lists are complete, from `index.csv`.
fn complete(directory: &Path) -> BTreeMap<(String, u32), bool> {
    let index = std::fs::read_to_string(directory.join("index.csv")).expect("an index");
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (
            (
                fields[0].to_owned(),
                fields[1].parse().expect("a thread number"),
            ),
            fields[3] == "yes",
        )
    };
    index.lines().skip(1).map(parse).collect()
}

fn check_directory(directory: &Path) -> usize {
    let complete = complete(directory);
    let mut names: Vec<String> = complete.keys().map(|(name, _)| name.clone()).collect();
    names.dedup();
    let mut wrong = Vec::new();
    for name in &names {
        let expected = recorded(&directory.join(format!("{name}.expected.csv")));
        let lengths = expected
            .iter()
            .map(|(thread, lines)| (*thread, lines.len()))
            .collect();
        let actual = ours(&directory.join(format!("{name}.fio")), &lengths);
        for (thread, expected) in &expected {
            let mut actual = actual.get(thread).cloned().unwrap_or_default();
            if !complete[&(name.clone(), *thread)] {
                actual.truncate(expected.len());
            }
            if let Some(at) =
                (0..expected.len().max(actual.len())).find(|&at| actual.get(at) != expected.get(at))
            {
                wrong.push(format!(
                    "{name}, job {thread}, line {at}: {:?} instead of {:?}",
                    actual.get(at),
                    expected.get(at)
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} sequences differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    names.len()
}

#[test]
fn carried_samples() {
    assert!(check_directory(&project_root().join("testdata/fio")) >= 6);
}

#[test]
fn all_recorded_sequences() {
    let Some(directory) = blklab_testkit::shared("data/fio-offsets") else {
        return;
    };
    assert!(check_directory(&directory) >= 62);
}
