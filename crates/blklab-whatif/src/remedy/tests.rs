// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::change::apply_all;
use blklab_analysis::findings::{ALL, remedies};
use blklab_experiment::Workload;
use blklab_infer::Process;
use blklab_sim::catalogue;
use blklab_types::{Dev, IoPrio};

/// A process that keeps 64 bios under way.
fn process(pid: u32, name: &str) -> Process {
    Process {
        pid,
        name: Some(name.to_owned()),
        waiting: Waiting::Depth(64),
        bios: Vec::new(),
        links: Vec::new(),
        prio: IoPrio::default(),
        group: String::new(),
    }
}

fn party(p: &Process) -> Party {
    Party {
        pid: p.pid,
        comm: p.name.clone(),
        requests: 1,
        delay_ns: 1,
        writes_for: None,
    }
}

/// The first kernel and scheduler that have what is changed; the first error if none has.
fn made(changes: &[Change], recorded: &Recorded) -> Result<(), String> {
    let machines = [
        ("6.12", ["mq-deadline", "bfq"]),
        ("2.6.32", ["cfq", "anticipatory"]),
    ];
    let mut told = None;
    for (kernel, schedulers) in machines {
        for scheduler in schedulers {
            let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
            e.kernel = kernel.parse().expect("a version");
            let catalogue = catalogue();
            e.choose_scheduler(scheduler, &catalogue)
                .expect("it is there");
            match apply_all(changes, &mut e, &mut recorded.clone(), &catalogue) {
                Ok(()) => return Ok(()),
                Err(e) => told = told.or(Some(e.what)),
            }
        }
    }
    Err(told.unwrap_or_default())
}

/// What is done about each remedy of each kind of finding, where all is known that a context
/// can tell. `UPDATE_GOLDEN=1` writes the list anew.
#[test]
fn every_remedy_is_tried_or_says_why_not() {
    let recorded = Recorded {
        processes: vec![process(7, "sufferer"), process(8, "causer")],
        ..Recorded::default()
    };
    let context = "queue/max_sectors_kb=128\nqueue/max_hw_sectors_kb=1024\n\
                   queue/discard_max_bytes=1073741824\nqueue/wbt_lat_usec=2000\n";
    let context = Context::parse(context).expect("sound");
    let mut list = String::new();
    for (kind, remedy) in remedies() {
        let mut finding = Finding::new("held-back", Dev::default(), "");
        finding.victims = vec![party(&recorded.processes[0])];
        finding.causes = vec![party(&recorded.processes[1])];
        let known = Known {
            finding: &finding,
            context: &context,
            recorded: &recorded,
            depth: 32,
            nr_requests: 128,
            scheduler: "kyber",
            is_old: false,
            is_rerun: false,
        };
        let done = changes(&filled_in(remedy), &known)
            .and_then(|changes| made(&changes, &recorded).map(|()| changes));
        list += &match done {
            Ok(changes) => {
                let changes: Vec<String> = changes.iter().map(Change::to_string).collect();
                format!("{kind} {}: {}\n", remedy.id, changes.join("; "))
            }
            Err(why) => format!("{kind} {}: not tried: {why}\n", remedy.id),
        };
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/remedy/tried.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &list).expect("written");
    }
    let golden = std::fs::read_to_string(path).expect("the list");
    assert!(
        list == golden,
        "{path} is out of date: UPDATE_GOLDEN=1 writes it\n{list}"
    );
    for kind in ALL {
        assert!(
            golden.lines().any(|l| l.starts_with(kind.name)),
            "{}",
            kind.name
        );
    }
}

/// As a finding has it, with some values.
fn filled_in(remedy: &Remedy) -> Remedy {
    let filled = remedy.clone().filled_with("batch");
    match &filled.act {
        Act::Set { value, .. } if value.is_empty() => filled.to(16),
        Act::AtMost(_) => Remedy {
            act: Act::AtMost(4),
            ..filled
        },
        _ => filled,
    }
}

#[test]
fn a_scheduler_that_is_there_is_not_tried() {
    let finding = Finding::new("held-back", Dev::default(), "");
    let known = Known {
        finding: &finding,
        context: &Context::default(),
        recorded: &Recorded::default(),
        depth: 1,
        nr_requests: 128,
        scheduler: "none",
        is_old: false,
        is_rerun: true,
    };
    let told = |act| changes(&Remedy::act("a", act, "b"), &known).expect_err("not tried");
    assert_eq!(
        told(Act::Scheduler(Serving::AtOnce)),
        "none is the scheduler already"
    );
    assert!(told(Act::FewerCommands).contains("one command at a time"));
    assert!(told(Act::Fewer).contains("too little is known"));
    let applications = told(Act::Outside(Outside::Applications));
    assert!(
        applications.ends_with("not in the experiment"),
        "{applications}"
    );
}
