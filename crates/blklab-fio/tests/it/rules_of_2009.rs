// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers under fio 1.24's rules, against what fio 1.24 did on Linux 2.6.28.

use blklab_fio::parse::{Fixed, JobFile, ParseOptions, parse};
use blklab_fio::range::FileState;
use blklab_fio::release::Release;
use blklab_fio::workload::{Limits, Line, list};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

fn shared(path: &str) -> Option<String> {
    let path = blklab_testkit::shared(path)?;
    Some(std::fs::read_to_string(path).expect("a text"))
}

fn jobs(text: &str, release: Release, seed: u64) -> JobFile {
    let options = ParseOptions {
        release,
        entropy: seed,
        ..ParseOptions::default()
    };
    parse("a.fio", text, &options, &Fixed::default()).expect("a job file")
}

/// Offset and length of each read, by thread.
fn reads(file: &JobFile) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut reads: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    let visit = |line: Line<'_>| {
        if line.op.name() == "read" {
            let of_job = reads.entry(line.thread).or_default();
            of_job.push((line.offset, line.length));
        }
        ControlFlow::Continue(())
    };
    list(file, Limits::default(), |_| FileState::Missing, visit).expect("set up");
    reads
}

const TWO_JOBS: &str = "[job1]\nrw=write\nsize=1m\nblocksize=1024k\n\n[file1]\nrw=randread\n\
                        size=2048k\nfilesize=30m\nbsrange=4k-44k\n";

/// The recorded reader of that job number began its reads at these blocks
/// (the fifth draw, 3968, fell on a block read before).
#[test]
fn places_are_those_of_the_recorded_reader() {
    let file = jobs(TWO_JOBS, Release::V1_24, 0);
    let places: Vec<u64> = reads(&file)[&2].iter().map(|r| r.0 / 4096).collect();
    let recorded = [
        1201, 2783, 7575, 3968, 3463, 1298, 4201, 591, 7027, 463, 6428,
    ];
    assert_eq!(places[..recorded.len()], recorded);
}

#[test]
fn places_do_not_depend_on_the_seed_and_lengths_do() {
    let second_job = |seed| reads(&jobs(TWO_JOBS, Release::V1_24, seed))[&2].clone();
    let (a, b) = (second_job(0), second_job(1));
    assert_eq!(a[0].0, b[0].0);
    assert_ne!(a, b);
    assert_eq!(a, second_job(0));
}

#[test]
fn every_block_is_read_once_until_the_map_is_full() {
    let text = "[a]\nrw=randread\nsize=2m\nbsrange=4k-44k\n";
    let mut seen = BTreeSet::new();
    for (offset, length) in &reads(&jobs(text, Release::V1_24, 3))[&1] {
        assert!(*length > 0 && offset + length <= 2 << 20);
        for block in offset / 4096..(offset + length) / 4096 {
            assert!(seen.insert(block), "block {block} twice");
        }
    }
    assert_eq!(seen.len(), 512);
}

#[test]
fn the_default_is_fio_3_33() {
    let file = jobs(TWO_JOBS, Release::default(), 0);
    assert_eq!(file.jobs[0].release, Release::V3_33);
    let old = jobs(TWO_JOBS, Release::V1_24, 0);
    assert_ne!(reads(&file), reads(&old));
}

/// 41 readers of the experiment of 2009: their number of reads lies among
/// those of the measured runs, and so does the mean.
#[test]
fn readers_make_as_many_reads_as_measured() {
    let (Some(text), Some(measured)) = (
        shared("data/fio/seed000-ssh.fio"),
        shared("truth-2628/readers.csv"),
    ) else {
        return;
    };
    let measured: Vec<u64> = measured
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("ls-"))
        .filter_map(|line| line.split(',').nth(4)?.parse().ok())
        .collect();
    let reads = reads(&jobs(&text, Release::V1_24, 0));
    let readers: Vec<&Vec<(u64, u64)>> = reads.values().collect();
    assert_eq!(readers.len(), 41);
    for r in &readers {
        let bytes: u64 = r.iter().map(|(_, length)| length).sum();
        assert!((2 << 20..(2 << 20) + 45056).contains(&bytes), "{bytes}");
    }
    let mean = |all: &[u64]| all.iter().sum::<u64>() as f64 / all.len() as f64;
    let ours: Vec<u64> = readers.iter().map(|r| r.len() as u64).collect();
    let (low, high) = (
        measured.iter().min().unwrap(),
        measured.iter().max().unwrap(),
    );
    assert!(
        ours.iter().all(|&n| (low - 5..=high + 5).contains(&n)),
        "{ours:?}"
    );
    let (ours, theirs) = (mean(&ours), mean(&measured));
    assert!(
        (ours / theirs - 1.0).abs() < 0.03,
        "{ours} reads, measured {theirs}"
    );
}
