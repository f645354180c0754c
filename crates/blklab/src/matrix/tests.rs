// SPDX-License-Identifier: MIT OR Apache-2.0
//! Combinations, their names, and what is refused.

use super::*;
use blklab_experiment::Workload;
use blklab_sim::Sim;

fn serial() -> Vec<DeviceSpec> {
    vec![DeviceSpec {
        name: "serial".to_owned(),
        params: vec![("read_ns".to_owned(), "5".to_owned())],
    }]
}

fn setting(key: &str, values: &[&str]) -> Setting {
    Setting {
        key: key.to_owned(),
        values: values.iter().map(|v| (*v).to_owned()).collect(),
    }
}

/// `A+B` is both; `none` is no patch.
fn patch_sets(sets: &[&str]) -> Vec<PatchSet> {
    let names = |set: &&str| match *set {
        "none" => Vec::new(),
        set => set.split('+').map(str::to_owned).collect(),
    };
    sets.iter().map(names).collect()
}

/// Expanded, and surveyed as whoever plans does.
fn expand(files: &[Experiment], o: &Overrides) -> Result<Vec<Cell>, Refused> {
    let planner = Planner::new(Sim::default());
    let cells = super::expand(files, o, &planner)?;
    for cell in &cells {
        survey(cell, o, &planner)?;
    }
    Ok(cells)
}

fn base() -> Experiment {
    Experiment::new("e", Workload::Processes(Vec::new()))
}

#[test]
fn every_combination_with_what_varies_as_its_name() {
    let o = Overrides {
        kernels: vec!["2.6.28".into()],
        schedulers: vec!["noop".into(), "deadline".into()],
        settings: vec![setting("queue_depth", &["1", "31"])],
        devices: serial(),
        ..Overrides::default()
    };
    let cells = expand(&[base()], &o).unwrap();
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    assert_eq!(
        names,
        [
            "noop queue_depth=1",
            "noop queue_depth=31",
            "deadline queue_depth=1",
            "deadline queue_depth=31"
        ]
    );
    assert_eq!(cells[3].experiment.queue.queue_depth, Some(31));
    assert_eq!(cells[3].experiment.device.params.len(), 1);
}

#[test]
fn files_with_one_id_are_told_apart() {
    let mut other = base();
    other.file = "b/e.fio".into();
    let mut first = base();
    first.file = "a/e.fio".into();
    let o = Overrides {
        devices: serial(),
        ..Overrides::default()
    };
    let names = |files: &[Experiment]| {
        let cells = expand(files, &o).unwrap();
        cells.iter().map(Cell::name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[first.clone(), other]), ["a/e.fio", "b/e.fio"]);
    assert_eq!(names(&[first.clone(), first]), ["e #1", "e #2"]);
}

#[test]
fn repetitions_differ_in_their_seed() {
    let o = Overrides {
        repeat: 3,
        seed: Some(7),
        ..Overrides::default()
    };
    let mut e = base();
    e.device.name = "serial".into();
    let seeds: Vec<u64> = expand(&[e], &o)
        .unwrap()
        .iter()
        .map(|c| c.experiment.seed)
        .collect();
    assert_eq!(seeds, [7, 8, 9]);
}

#[test]
fn patches_apply_where_they_belong_and_once() {
    let names = |patches: &[&[&str]], schedulers: &[&str]| {
        let o = Overrides {
            kernels: vec!["2.6.28".into()],
            schedulers: schedulers.iter().map(|s| (*s).to_owned()).collect(),
            patches: patches.iter().map(|sets| patch_sets(sets)).collect(),
            devices: serial(),
            ..Overrides::default()
        };
        let cells = expand(&[base()], &o);
        cells.map(|all| all.iter().map(Cell::name).collect::<Vec<_>>())
    };
    assert_eq!(
        names(
            &[&["none", "drain_async", "drain_async+async_ramp"]],
            &["noop", "cfq"]
        )
        .unwrap(),
        [
            "noop",
            "cfq unpatched",
            "cfq drain_async",
            "cfq drain_async+async_ramp"
        ]
    );
    assert_eq!(
        names(&[&["drain_async"], &["async_ramp"]], &["noop", "cfq"]).unwrap(),
        ["noop", "cfq"]
    );
    let error = names(&[&["drain_async"]], &["noop"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("a patch of cfq"), "{error}");
    let error = names(&[&["quantum_log"]], &["cfq"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("does not fit kernel 2.6.28"), "{error}");
}

#[test]
fn variants_of_a_file_give_way_to_the_command_line() {
    let mut e = base();
    e.choose_kernel("4.19".parse().unwrap(), &crate::targets::catalogue());
    e.variants = ["noop", "deadline"]
        .map(|name| blklab_experiment::Variant {
            name: format!("the {name}"),
            kernel: None,
            scheduler: Some(name.to_owned()),
            patches: Vec::new(),
            settings: Vec::new(),
        })
        .to_vec();
    let names = |schedulers: &[&str]| {
        let o = Overrides {
            schedulers: schedulers.iter().map(|s| (*s).to_owned()).collect(),
            devices: serial(),
            ..Overrides::default()
        };
        let cells = expand(std::slice::from_ref(&e), &o).unwrap();
        cells.iter().map(Cell::name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["the noop", "the deadline"]);
    assert_eq!(names(&["cfq", "noop"]), ["cfq", "noop"]);
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let check = |o: Overrides, choice: Option<Choice>, expected: &str| {
        let mut old = base();
        old.choose_kernel("4.19".parse().unwrap(), &crate::targets::catalogue());
        let err = expand(&[old], &o).unwrap_err();
        assert!(err.to_string().contains(expected), "{err}");
        assert_eq!(err.choice, choice);
    };
    check(
        Overrides {
            schedulers: vec!["elevator".into()],
            ..Overrides::default()
        },
        Some(Choice::Scheduler("elevator".into())),
        "no scheduler is called 'elevator'; valid: noop, deadline, cfq",
    );
    check(
        Overrides {
            kernels: vec!["2.4.20".into()],
            ..Overrides::default()
        },
        Some(Choice::Kernel("2.4.20".into())),
        "kernel 2.4.20 is older than 2.6.16",
    );
    check(
        Overrides {
            settings: vec![setting("quantums", &["1"])],
            ..Overrides::default()
        },
        Some(Choice::Setting(0)),
        "called 'quantums'; did you mean 'quantum'? of cfq: quantum, fifo_expire_sync",
    );
    check(
        Overrides {
            repeat: u32::MAX,
            ..Overrides::default()
        },
        None,
        "4294967295 experiments",
    );
}

#[test]
fn arrays_are_alternatives() {
    let o = Overrides {
        kernels: vec!["2.6.28".into()],
        devices: serial(),
        arrays: vec![
            None,
            Some(MdSpec::parse(&["raid1:2"]).unwrap()),
            Some(MdSpec::parse(&["raid0:3", "chunk_kb=128"]).unwrap()),
        ],
        ..Overrides::default()
    };
    let cells = expand(&[base()], &o).unwrap();
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    assert_eq!(names, ["one disk", "raid1:2", "raid0:3,chunk_kb=128"]);
    assert_eq!(cells[0].experiment.md, None);
}
