// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job files of any content: the parser refuses or accepts, set-up finds ranges
//! or says why not, and small jobs issue their first I/Os within their files.
//! Written out with includes and variables in place, it makes as many jobs with
//! the same options.

use crate::Target;
use crate::check::fingerprint;
use crate::corpus::{Seed, samples};
use blklab_fio::parse::{Fixed, ParseOptions, parse};
use blklab_fio::range::FileState;
use blklab_fio::workload::{Listing, set_up};

pub(crate) const TARGET: Target = Target {
    name: "fio_job",
    feed,
    samples: job_files,
};

fn job_files() -> Vec<Seed> {
    samples(
        &["testdata/*", "examples", "crates/blklab-fidelity/studies/*"],
        &[".fio"],
    )
}

/// Jobs and files that are run; larger ones are only parsed.
const JOBS_MAX: usize = 4;
const FILES_MAX: usize = 64;
/// Ranges in which a distribution or a length is found quickly.
const SIZE_MAX: u64 = 1 << 24;
/// Steps taken per job.
const STEPS: usize = 2000;

fn feed(data: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(data).ok()?;
    let around = Fixed {
        environment: vec![("BS".into(), "8k".into())],
        files: vec![
            ("inc".into(), "bs=8k\ninclude inc2\n".into()),
            ("inc2".into(), "include inc\n".into()),
        ],
        devices: vec!["/dev/sda".into()],
    };
    let Ok(file) = parse("fuzz.fio", text, &ParseOptions::default(), &around) else {
        return None;
    };
    let seen = Some(fingerprint(&file.jobs));
    if let Ok(spelled) = file.spell_out(&around, &mut |_, _| Ok(None)) {
        let alone = Fixed {
            devices: around.devices.clone(),
            ..Fixed::default()
        };
        let again =
            parse("fuzz.fio", &spelled, &ParseOptions::default(), &alone).expect("it stands alone");
        assert_eq!(again.jobs.len(), file.jobs.len());
        for (a, b) in again.jobs.iter().zip(&file.jobs) {
            assert_eq!(a.options, b.options);
        }
    }
    if file.jobs.len() > JOBS_MAX || file.jobs.iter().any(|job| job.files.len() > FILES_MAX) {
        return seen;
    }
    let Ok(ranges) = set_up(&file, |_| FileState::Missing) else {
        return seen;
    };
    for (job, ranges) in file.jobs.iter().zip(&ranges) {
        if ranges
            .files
            .iter()
            .any(|range| range.length > SIZE_MAX || range.real_size > SIZE_MAX)
        {
            continue;
        }
        let Ok(mut listing) = Listing::new(job.clone(), ranges) else {
            continue;
        };
        for _ in 0..STEPS {
            match listing.next_step() {
                Some(blklab_fio::run::Step::Issue(io)) => {
                    assert!(
                        io.offset
                            .checked_add(io.length)
                            .is_some_and(|end| end <= SIZE_MAX)
                    );
                }
                Some(_) => {}
                None => break,
            }
        }
    }
    seen
}
