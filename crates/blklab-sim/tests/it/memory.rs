// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run takes of memory, told before it begins.

use blklab_experiment::{Experiment, Workload};
use blklab_sim::Sim;
use blklab_target::memory::{Estimate, check};
use blklab_target::{Planner, Site, Work};
use blklab_types::SECTOR_BYTES;

fn estimate(text: &str) -> Estimate {
    let workload = Workload::Fio {
        name: "a.fio".into(),
        text: text.into(),
    };
    let planner = Planner::new(Sim::default());
    let e = Experiment::new("a", workload);
    let read = planner.jobs(&e).expect("jobs");
    let read = read.expect("a job file");
    let site = Site {
        disk_bytes: 500_000_000_000 / SECTOR_BYTES * SECTOR_BYTES,
        devices: Vec::new(),
        described_in: Vec::new(),
        nr_cpus: 1,
        epoch_ms: 0,
    };
    let told = planner.memory(&e, Work::Jobs(&read.jobs), &site);
    told.expect("a target")
}

#[test]
fn what_takes_most_is_named() {
    let fits = |text: &str, expected: &str| {
        let found = check(&[estimate(text)], 1);
        match expected {
            "" => assert_eq!(found, Ok(()), "{text}"),
            _ => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(expected), "{text}: {error}");
                assert!(error.ends_with("; at most 4.0 GiB"), "{error}");
            }
        }
    };
    fits("[a]\nsize=1g\niodepth=1048576\n", "");
    fits("[a]\nsize=1m\nnumjobs=4096\n", "");
    fits(
        "[a]\nsize=1m\nnumjobs=64\niodepth=1048576\n",
        "64.0 GiB of it for iodepth, 67108864 over all jobs",
    );
    fits("[a]\nrw=randread\nsize=16t\nbs=4k\n", "");
    fits(
        "[a]\nrw=randread\nsize=16t\nbs=512\n",
        "for the maps of blocks that random jobs have touched (norandommap=1",
    );
    fits("[a]\nrw=randread\nsize=16t\nbs=512\nnorandommap\n", "");
    fits(
        "[a]\nrw=randread\nsize=16t\nbs=512\nrandom_generator=lfsr\n",
        "",
    );
    fits("[a]\nrw=randread\nsize=16t\nbs=512\nnumber_ios=1000\n", "");
}

#[test]
fn a_matrix_is_counted_as_a_whole() {
    let one = estimate("[a]\nsize=1m\niodepth=1048576\n");
    assert_eq!(check(&vec![one.clone(); 3], 2), Ok(()));
    let error = check(&vec![one; 8], 8).unwrap_err().to_string();
    assert!(error.contains("8 of them run at a time"), "{error}");
    let many = estimate("[a]\nsize=1m\nnumjobs=100\n");
    let error = check(&vec![many; 1000], 2).unwrap_err().to_string();
    assert!(error.contains("results are kept to the end"), "{error}");
}
