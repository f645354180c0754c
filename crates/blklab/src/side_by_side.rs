// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same experiment on several targets: where their streams of events part, and how far
//! the mean times of their phases are apart.

use crate::beside::{Beside, EVENTS_MAX};
use crate::matrix::Cell;
use crate::run::RunOutput;
use blklab_analysis::divergence::{self, Side};
use blklab_types::Dev;

/// The label without the target.
fn without_target(cell: &Cell) -> impl Iterator<Item = &(String, String)> {
    cell.label.iter().filter(|(key, _)| key != "target")
}

/// Which of the cells are those of another: the same experiment on the first target.
fn first_of(cells: &[Cell], cell: &Cell) -> Option<usize> {
    let is_same = |other: &Cell| {
        other.file_idx == cell.file_idx
            && other.repetition == cell.repetition
            && without_target(other).eq(without_target(cell))
    };
    cells.iter().position(is_same)
}

/// Whether any experiment runs on several targets: then their events are to be kept.
pub fn is_wanted(cells: &[Cell]) -> bool {
    let several = |cell: &Cell| cell.label.iter().any(|(key, _)| key == "target");
    cells.iter().any(several)
}

/// Compares the runs on other targets with those on the first, and forgets their events.
pub fn compare(cells: &[Cell], runs: &mut [Option<RunOutput>]) {
    for i in 0..cells.len() {
        let Some(first) = first_of(cells, &cells[i]).filter(|first| *first != i) else {
            continue;
        };
        let (Some(a), Some(b)) = (&runs[first], &runs[i]) else {
            continue;
        };
        let targets = [first, i].map(|place| target_of(&cells[place]));
        let beside = beside(targets, [a, b]);
        if let Some(run) = &mut runs[i] {
            run.beside = Some(beside);
        }
    }
    for run in runs.iter_mut().flatten() {
        run.events = Vec::new();
    }
}

/// The name of a cell's target.
fn target_of(cell: &Cell) -> String {
    let label = cell.label.iter().find(|(key, _)| key == "target");
    label.map_or_else(String::new, |(_, name)| name.clone())
}

fn beside(targets: [String; 2], runs: [&RunOutput; 2]) -> Beside {
    let devices = runs.map(|run| run.disks.iter().map(|d| d.dev).collect::<Vec<Dev>>());
    let side = |i: usize| Side {
        name: &targets[i],
        events: &runs[i].events,
        devices: &devices[i],
    };
    let orders = divergence::compare([side(0), side(1)]);
    Beside {
        orders,
        phases: divergence::phase_errors(runs.map(|run| &run.stats.all)),
        cut: runs.iter().any(|run| run.events.len() >= EVENTS_MAX),
        targets,
    }
}

#[cfg(test)]
mod tests {
    use super::{compare, first_of, is_wanted};
    use crate::experiment::{Experiment, Workload};
    use crate::matrix::{Cell, Overrides, Setting, expand};
    use crate::run::{RunOptions, run};
    use crate::targets::{Planner, Sim};

    fn cells(overrides: &Overrides) -> Vec<Cell> {
        let workload = Workload::Fio {
            name: "a.fio".into(),
            text: "[a]\nrw=randread\nsize=64k\ndirect=1\n".into(),
        };
        let planner = Planner::new(Sim::default());
        let e = Experiment::new("a", workload);
        expand(&[e], overrides, &planner).expect("a matrix")
    }

    fn setting(key: &str, values: &[&str]) -> Setting {
        Setting {
            key: key.to_owned(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    #[test]
    fn runs_on_other_targets_stand_beside_that_on_the_first() {
        let overrides = Overrides {
            schedulers: vec!["none".into(), "bfq".into()],
            ..Overrides::default()
        };
        // Another name for the same target: the streams are the same.
        let on = |target: &str, cell: &Cell| {
            let mut cell = cell.clone();
            cell.label.push(("target".into(), target.into()));
            cell
        };
        let both = |cell: &Cell| [on("sim", cell), on("again", cell)];
        let cells: Vec<Cell> = cells(&overrides).iter().flat_map(both).collect();
        assert!(is_wanted(&cells));
        let firsts: Vec<_> = cells.iter().map(|c| first_of(&cells, c)).collect();
        assert_eq!(firsts, [Some(0), Some(0), Some(2), Some(2)]);
        let planner = Planner::new(Sim::default());
        let options = RunOptions {
            kept_events_max: crate::beside::EVENTS_MAX,
            ..RunOptions::default()
        };
        let mut runs: Vec<_> = cells
            .iter()
            .map(|c| run(&planner.plan(&c.experiment).expect("a plan"), &options).ok())
            .collect();
        compare(&cells, &mut runs);
        for (i, ran) in runs.iter().flatten().enumerate() {
            let beside = ran.beside.as_ref();
            assert_eq!(beside.is_some(), i % 2 == 1);
            let Some(beside) = beside else { continue };
            assert_eq!(beside.targets, ["sim", "again"]);
            assert_eq!(beside.orders[0].to_string(), "identical over 16 dispatches");
            assert!(beside.phases.iter().any(|p| p.name == "D2C"));
            assert!(beside.phases.iter().all(|p| p.difference_ns() == 0.0));
            assert!(!beside.cut && ran.events.is_empty());
        }
    }

    #[test]
    fn one_target_stands_beside_nothing() {
        let overrides = Overrides {
            settings: vec![setting("nr_requests", &["32", "64"])],
            ..Overrides::default()
        };
        assert!(!is_wanted(&cells(&overrides)));
    }
}
