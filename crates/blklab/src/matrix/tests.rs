// SPDX-License-Identifier: MIT OR Apache-2.0
//! Combinations, their names, and what is refused.

use super::*;
use blklab_experiment::Workload;

fn base() -> Experiment {
    Experiment::new("e", Workload::Processes(Vec::new()))
}

#[test]
fn every_combination_with_what_varies_as_its_name() {
    let o = Overrides {
        kernels: vec!["2.6.28".into()],
        schedulers: vec!["noop".into(), "deadline".into()],
        settings: vec![parse_setting("queue_depth=1,31").unwrap()],
        devices: parse_devices("serial,read_ns=5").unwrap(),
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
        devices: parse_devices("serial").unwrap(),
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
    let names = |patches: &[&str], schedulers: &[&str]| {
        let o = Overrides {
            kernels: vec!["2.6.28".into()],
            schedulers: schedulers.iter().map(|s| (*s).to_owned()).collect(),
            patches: patches.iter().map(|p| parse_patches(p).unwrap()).collect(),
            devices: parse_devices("serial").unwrap(),
            ..Overrides::default()
        };
        let cells = expand(&[base()], &o);
        cells.map(|all| all.iter().map(Cell::name).collect::<Vec<_>>())
    };
    assert_eq!(
        names(
            &["none,drain_async,drain_async+async_ramp"],
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
        names(&["drain_async", "async_ramp"], &["noop", "cfq"]).unwrap(),
        ["noop", "cfq"]
    );
    let error = names(&["drain_async"], &["noop"]).unwrap_err().to_string();
    assert!(error.contains("a patch of cfq"), "{error}");
    let error = names(&["quantum_log"], &["cfq"]).unwrap_err().to_string();
    assert!(error.contains("does not fit kernel 2.6.28"), "{error}");
    assert!(parse_patches("a,,b").is_err());
}

#[test]
fn variants_of_a_file_give_way_to_the_command_line() {
    let mut e = base();
    e.choose_kernel("4.19".parse().unwrap());
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
            devices: parse_devices("serial").unwrap(),
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
    let check = |o: Overrides, expected: &str| {
        let mut old = base();
        old.choose_kernel("4.19".parse().unwrap());
        let err = expand(&[old], &o).unwrap_err().to_string();
        assert!(err.contains(expected), "{err}");
    };
    check(
        Overrides {
            schedulers: vec!["elevator".into()],
            ..Overrides::default()
        },
        "--sched elevator: no scheduler is called 'elevator'; valid: noop, deadline, cfq",
    );
    check(
        Overrides {
            kernels: vec!["2.4.20".into()],
            ..Overrides::default()
        },
        "not a kernel version",
    );
    check(
        Overrides {
            settings: vec![parse_setting("quantums=1").unwrap()],
            ..Overrides::default()
        },
        "called 'quantums'; did you mean 'quantum'? of cfq: quantum, fifo_expire_sync",
    );
    check(
        Overrides {
            repeat: u32::MAX,
            ..Overrides::default()
        },
        "4294967295 experiments",
    );
    assert!(parse_devices("rpm=5400").is_err());
    assert!(parse_devices("").is_err());
    assert!(parse_setting("=1").is_err());
    assert!(parse_setting("quantum").is_err());
}

#[test]
fn arrays_are_alternatives() {
    let o = Overrides {
        kernels: vec!["2.6.28".into()],
        devices: parse_devices("serial").unwrap(),
        arrays: parse_arrays("none,raid1:2,raid0:3,chunk_kb=128").unwrap(),
        ..Overrides::default()
    };
    let cells = expand(&[base()], &o).unwrap();
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    assert_eq!(names, ["one disk", "raid1:2", "raid0:3,chunk_kb=128"]);
    assert_eq!(cells[0].experiment.md, None);
    for text in [
        "",
        "raid1",
        "raid1:",
        "raid1:x",
        "raid1:2,chunk=4",
        "chunk_kb=4",
    ] {
        let said = parse_arrays(text).unwrap_err().to_string();
        assert!(
            said.ends_with("write raid1:2, or raid0:2,chunk_kb=64"),
            "{said}"
        );
    }
}
