// SPDX-License-Identifier: MIT OR Apache-2.0
//! Use of the disk, one row per experiment.

use crate::matrix::Cell;
use crate::metric::{self, DiskNumbers};
use crate::run::RunOutput;
use crate::same::repetitions;
use blklab_analysis::spread::Spread;

/// Use of the disk in one experiment; of an array's disks together, and of the
/// busiest one.
#[derive(Clone, Debug)]
pub struct DiskRow {
    /// What distinguishes the experiment from the others.
    pub label: String,
    /// What the metrics of each run are made of.
    pub numbers: Vec<DiskNumbers>,
}

impl DiskRow {
    /// A metric over the runs, by its key; of what is no metric nothing.
    pub fn spread(&self, key: &str) -> Spread {
        let metric = metric::named(key);
        let values = self.numbers.iter().filter_map(|n| metric?.of_disk(n));
        Spread::new(values.collect())
    }
}

/// Use of the disk by some runs of one experiment file.
pub fn disk_rows(runs: &[(&Cell, &RunOutput)]) -> Vec<DiskRow> {
    let row = |runs: &[(&Cell, &RunOutput)]| DiskRow {
        label: runs[0].0.name_in_file(),
        numbers: runs.iter().map(|(_, r)| DiskNumbers::new(r)).collect(),
    };
    repetitions(runs).map(row).collect()
}
