// SPDX-License-Identifier: MIT OR Apache-2.0
//! What newer kernels change: each change can be left out of the models, and a kernel without
//! all of them is the one before.

use blklab::experiment::{Experiment, Workload, can_be_without, change_name};
use blklab::kernel_changes::{Asked, Step, kernel_changes};
use blklab::matrix::Overrides;
use blklab::run::{Collect, RunOptions, run};
use blklab::targets::{Planner, Sim};
use blklab::types::Error;

fn experiment(job: &str) -> Experiment {
    let workload = Workload::Fio {
        name: "job.fio".to_owned(),
        text: job.to_owned(),
    };
    Experiment::new("job", workload)
}

fn steps(job: &str, kernels: &[&str], scheduler: &str, filesystem: &str) -> Vec<Step> {
    let planner = Planner::new(Sim::default());
    let mut e = experiment(job);
    e.choose_filesystem(filesystem, planner.catalogue())
        .expect("a filesystem");
    let asked = Asked {
        overrides: Overrides {
            schedulers: vec![scheduler.to_owned()],
            repeat: 2,
            ..Overrides::default()
        },
        kernels: kernels.iter().map(|k| (*k).to_owned()).collect(),
        metrics: Vec::new(),
        threads: 2,
    };
    kernel_changes(&e, &asked, &planner, &run, &Default::default()).expect("they run")
}

#[test]
fn a_kernel_without_what_it_changed_is_the_one_before() {
    let jobs = [
        ("[r]\nrw=read\nsize=16m\n", "ext4"),
        (
            "[w]\nrw=write\nsize=4m\nfdatasync=8\n[b]\nrw=write\nbs=1m\nsize=16m\n",
            "ext4",
        ),
        (
            "[r]\nrw=randrw\ndirect=1\nioengine=libaio\niodepth=16\nsize=64m\nio_size=1m\n",
            "extents",
        ),
    ];
    let mut with_effect = 0;
    for (job, filesystem) in jobs {
        for scheduler in ["mq-deadline", "bfq"] {
            for step in steps(job, &["5.10", "6.1", "6.12", "7.3"], scheduler, filesystem) {
                let names: Vec<&str> = step.effects.iter().map(|e| e.name.as_str()).collect();
                let (before, after) = (&step.before, &step.after);
                assert!(
                    step.is_all,
                    "{before} -> {after} {scheduler} {job} {names:?}"
                );
                with_effect += step.effects.len();
            }
        }
    }
    assert!(with_effect > 5, "{with_effect} changes do something");
}

#[test]
fn the_change_that_does_it_is_named_with_what_it_does() {
    let steps = steps(
        "[r]\nrw=read\nsize=32m\n",
        &["6.12", "7.3"],
        "mq-deadline",
        "extents",
    );
    let [step] = &steps[..] else {
        panic!("one step: {steps:?}");
    };
    let names: Vec<&str> = step.effects.iter().map(|e| e.name.as_str()).collect();
    assert!(names.contains(&"page-cache:6.17"), "{names:?}");
    assert!(names.contains(&"block-layer:6.17"), "{names:?}");
    let factors: Vec<f64> = step
        .effects
        .iter()
        .map(blklab::kernel_changes::Effect::largest)
        .collect();
    assert!(
        factors.is_sorted_by(|a, b| a >= b),
        "the largest first: {factors:?}"
    );
    assert!(
        step.effects
            .iter()
            .all(|e| !e.figures.is_empty() && !e.source.is_empty())
    );
}

#[test]
fn what_is_left_out_stays_out_of_another_kernel_or_a_remark_says_why_not() -> Result<(), Error> {
    let planner = Planner::new(Sim::default());
    let catalogue = planner.catalogue();
    let mut e = experiment("[r]\nrw=read\nsize=1m\n");
    e.choose_kernel("6.12".parse()?, catalogue);
    e.choose_scheduler("bfq", catalogue)?;
    e.set("without", "bfq:5.12+block-layer:6.12", catalogue)?;
    let said = |e: &Experiment| e.left_out().concat();
    e.choose_kernel("6.1".parse()?, catalogue);
    assert_eq!(e.without, ["bfq:5.12"]);
    assert!(
        said(&e).starts_with("the models leave bfq:5.12 out"),
        "{}",
        said(&e)
    );
    let remark = "kernel 6.1 does not have block-layer:6.12, which was to be left out";
    assert_eq!(e.remarks, [remark]);
    e.choose_kernel("5.10".parse()?, catalogue);
    assert!(e.without.is_empty() && said(&e).is_empty());
    assert_eq!(e.remarks.len(), 2, "{:?}", e.remarks);
    Ok(())
}

#[test]
fn changes_of_kernels_are_not_told_of_those_that_lack_some() -> Result<(), Error> {
    let planner = Planner::new(Sim::default());
    let mut e = experiment("[r]\nrw=read\nsize=1m\n");
    e.choose_kernel("6.12".parse()?, planner.catalogue());
    e.set("without", "block-layer:6.12", planner.catalogue())?;
    let asked = Asked {
        overrides: Overrides::default(),
        kernels: vec!["6.1".to_owned(), "6.12".to_owned()],
        metrics: Vec::new(),
        threads: 1,
    };
    let refused = kernel_changes(&e, &asked, &planner, &run, &Default::default());
    let err = refused.expect_err("something is left out").to_string();
    assert!(
        err.ends_with("take block-layer:6.12 out of the experiment"),
        "{err}"
    );
    Ok(())
}

#[test]
fn every_change_can_be_left_out_alone() -> Result<(), Error> {
    let planner = Planner::new(Sim::default());
    let catalogue = planner.catalogue();
    let job = "[w]\nrw=randwrite\nsize=2m\nfsync=16\n[r]\nrw=randread\ndirect=1\nsize=2m\n";
    for kernel in ["5.10", "6.1", "7.3"] {
        for (owner, change) in catalogue.changes() {
            let mut e = experiment(job);
            e.choose_kernel(kernel.parse()?, catalogue);
            if !can_be_without(change) || !change.is_in(e.kernel) {
                continue;
            }
            let is_scheduler = catalogue.schedulers().iter().any(|s| s.name == owner);
            if is_scheduler && e.choose_scheduler(owner, catalogue).is_err() {
                continue;
            }
            if catalogue.filesystems().contains(&owner)
                && e.choose_filesystem(owner, catalogue).is_err()
            {
                continue;
            }
            e.set("without", &change_name(owner, change), catalogue)?;
            // What a filesystem cannot be without it is refused, with the reason.
            let Ok(plan) = planner.plan(&e) else {
                continue;
            };
            let options = RunOptions {
                collect: Collect::Totals,
                ..RunOptions::default()
            };
            let output = run(&plan, &options)?;
            let said = output
                .notes
                .iter()
                .any(|n| n.contains(&change_name(owner, change)));
            assert!(
                said,
                "{kernel} without {}: {:?}",
                change_name(owner, change),
                output.notes
            );
        }
    }
    Ok(())
}

#[test]
fn a_change_that_the_kernel_does_not_have_is_refused() {
    let planner = Planner::new(Sim::default());
    let mut e = experiment("[r]\nrw=read\nsize=1m\n");
    e.choose_kernel("6.1".parse().expect("a release"), planner.catalogue());
    let refused = e.set("without", "page-cache:6.17", planner.catalogue());
    let text = refused.expect_err("6.1 does not have it").to_string();
    assert!(
        text.contains("no change is called 'page-cache:6.17'"),
        "{text}"
    );
    let alone = Asked {
        overrides: Overrides::default(),
        kernels: vec!["6.1".to_owned()],
        metrics: Vec::new(),
        threads: 1,
    };
    let e = experiment("[r]\nrw=read\nsize=1m\n");
    let old = Asked {
        kernels: vec!["4.19".to_owned(), "5.10".to_owned()],
        ..alone.clone()
    };
    let refused = kernel_changes(&e, &old, &planner, &run, &Default::default());
    assert!(refused.is_err_and(|e| e.to_string().contains("4.19: changes can be left out")));
    let refused = kernel_changes(&e, &alone, &planner, &run, &Default::default());
    assert!(refused.is_err_and(|e| e.to_string().contains("two kernels or more")));
}
