// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second target, which plays a recorded run back: all that takes a target takes it.

use blklab::compare::{Options, Recordings, compare};
use blklab::experiment::{Catalogue, Experiment, Source, parse};
use blklab::findings::Search;
use blklab::fio::{JobFile, Ranges};
use blklab::matrix::{self, Cell, Overrides};
use blklab::run::{RunOptions, run};
use blklab::run_directory::{self, Contents, EVENTS, RunDir};
use blklab::targets::TARGETS;
use blklab::targets::memory::Estimate;
use blklab::targets::{Failed, Outcome, Plan, Planner, Sinks, Site, Target, Work};
use blklab::trace::{Event, NullSink};
use blklab::types::{Error, Time};
use blklab::whatif::{self, OwnRun, Recording};
use blklab::why::{context_of, why_of_run};
use blklab_report::member::{self, Asked};
use blklab_report::{Report, SHOWN_MAX, html};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const EXPERIMENT: &str = "\
id = \"readers\"
kernel = \"6.1\"
scheduler = \"mq-deadline\"
[[processes]]
name = \"reader\"
pid = 1001
depth = 4
io = { pattern = \"sequential\", rw = \"read\", start = 0, nsect = 8, count = 100 }
";

/// What a run left: a target that knows nothing of models.
struct Playback {
    site: Site,
    events: Vec<Event>,
    end: Time,
}

impl Target for Playback {
    fn name(&self) -> &'static str {
        "playback"
    }

    fn catalogue(&self) -> Catalogue {
        blklab::targets::catalogue()
    }

    fn survey(&self, e: &Experiment) -> Result<Site, Error> {
        e.check_on(&self.catalogue(), || Ok(None))?;
        Ok(self.site.clone())
    }

    fn memory(&self, _: &Experiment, _: Work<'_>, _: &Site) -> Estimate {
        Estimate::default()
    }

    fn rehearse(&self, _: &Experiment, _: &JobFile) -> Result<Vec<Ranges>, Error> {
        Err(Error::not_modelled("a recorded run has no other jobs"))
    }

    fn run(&self, _: &Plan, mut sinks: Sinks, _: Arc<AtomicBool>) -> Result<Outcome, Failed> {
        for event in &self.events {
            sinks.trace.process(event.time, event.pid, "reader");
            sinks.trace.event(event);
        }
        Ok(Outcome {
            end: self.end,
            notes: vec!["played back".to_owned()],
            ..Outcome::default()
        })
    }
}

/// The first target of the table and one that plays back what it has done.
fn planner() -> Planner {
    let first = || (TARGETS[0].make)(blklab::scheduler::Schedulers::default());
    let planner = Planner::for_targets(vec![first()]);
    let plan = planner.plan(&experiment(&planner)).expect("a plan");
    let options = RunOptions {
        kept_events_max: usize::MAX,
        ..RunOptions::default()
    };
    let output = run(&plan, &options).expect("it runs");
    let playback = Playback {
        site: plan.site().clone(),
        events: output.events,
        end: output.end,
    };
    Planner::for_targets(vec![first(), Arc::new(playback)])
}

fn experiment(planner: &Planner) -> Experiment {
    let no_files = |name: &str| unreachable!("{name} is not named");
    let e = parse(
        "e.toml",
        Source::Toml,
        EXPERIMENT,
        &no_files,
        planner.catalogue(),
    );
    e.expect("an experiment")
}

/// The experiment on both targets: `--set target=sim,playback`.
fn cells(planner: &Planner) -> Vec<Cell> {
    let target = matrix::Setting {
        key: "target".to_owned(),
        values: vec!["sim".to_owned(), "playback".to_owned()],
    };
    let overrides = Overrides {
        settings: vec![target],
        ..Overrides::default()
    };
    matrix::expand(&[experiment(planner)], &overrides, planner).expect("a matrix")
}

/// Runs a cell into a run directory.
fn keep(planner: &Planner, cell: &Cell, dir: &Path) {
    let plan = planner.plan(&cell.experiment).expect("a plan");
    std::fs::create_dir(dir).expect("a folder");
    let options = RunOptions {
        traces: vec![dir.join(EVENTS)],
        ..RunOptions::default()
    };
    let output = run(&plan, &options).expect("it runs");
    let contents = Contents::new(&plan).expect("all can be written down");
    run_directory::write(dir, &contents, cell, &output).expect("it is written");
}

#[test]
fn a_target_is_chosen_by_its_name() {
    let planner = planner();
    let cells = cells(&planner);
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    assert_eq!(names, ["target=sim", "target=playback"]);
    let digests: Vec<_> = cells
        .iter()
        .map(|cell| {
            let plan = planner.plan(&cell.experiment).expect("a plan");
            run(&plan, &RunOptions::default())
                .expect("it runs")
                .digest
                .value()
        })
        .collect();
    assert_eq!(digests[0], digests[1]);

    let mut e = experiment(&planner);
    e.target = "playbak".to_owned();
    let error = planner.plan(&e).err().expect("there is none").to_string();
    assert!(error.contains("did you mean 'playback'"), "{error}");
}

#[test]
fn an_experiment_keeps_its_target_and_one_without_says_nothing() {
    let planner = planner();
    let mut e = experiment(&planner);
    assert!(
        !e.to_toml("job.fio", planner.catalogue())
            .expect("TOML")
            .contains("target")
    );
    e.set("target", "playback", planner.catalogue())
        .expect("a key");
    let text = e.to_toml("job.fio", planner.catalogue()).expect("TOML");
    let no_files = |name: &str| unreachable!("{name} is not named");
    let again = parse(
        "e.toml",
        Source::Toml,
        &text,
        &no_files,
        planner.catalogue(),
    );
    assert_eq!(again.expect("it is read").target, "playback");
}

#[test]
fn runs_of_two_targets_are_compared_and_shown_on_one_page() {
    let planner = planner();
    let folder = tempfile::tempdir().expect("a folder");
    let dirs: Vec<_> = cells(&planner)
        .iter()
        .map(|cell| {
            let dir = folder.path().join(&cell.experiment.target);
            keep(&planner, cell, &dir);
            dir
        })
        .collect();
    let options = Options::default();
    let found = Recordings::find(&dirs, None, planner.catalogue()).expect("two runs");
    let sides = found.read(&options, || {}).expect("their events");
    let compared = compare(&sides[0], &sides[1], &options).expect("compared");
    assert!(compared.identical);
    let differs: Vec<&str> = compared.settings.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(differs, ["target"]);

    let members: Vec<_> = dirs
        .iter()
        .map(|dir| {
            let run = RunDir::open(dir, planner.catalogue()).expect("a run");
            let asked = Asked {
                label: "run",
                source: "run",
                context: context_of(&run.experiment, planner.catalogue()).expect("a context"),
                shown_max: SHOWN_MAX,
            };
            let mut events = run.events().expect("its events");
            member::of_run(&run, &mut events, asked, NullSink).expect("a member")
        })
        .collect();
    let page = html::page(&Report::new(members)).expect("a page");
    assert!(page.contains("playback"));
}

#[test]
fn why_and_what_if_run_on_the_target_of_the_experiment() {
    let planner = planner();
    let mut e = experiment(&planner);
    e.set("target", "playback", planner.catalogue())
        .expect("a key");
    let plan = planner.plan(&e).expect("a plan");
    let context = context_of(&e, planner.catalogue()).expect("a context");
    let stop = || Arc::new(AtomicBool::default());
    let ran = why_of_run(
        &plan,
        Search::all(context.clone()),
        Recording::default(),
        stop(),
    );
    let (report, recording, outcome) = ran.expect("it runs");
    assert_eq!(report.devices.len(), 1);
    assert_eq!(outcome.notes[0], "played back");

    let own = OwnRun {
        experiment: &e,
        context: &context,
        report: &report,
        planner: &planner,
        is_new: false,
    };
    let rerun = whatif::rerun(recording, own, stop()).expect("it runs again");
    let changes = whatif::parse("sched=bfq").expect("a change");
    let trial = rerun.what_if(&changes).expect("a trial");
    // Whatever is asked, a recording stays as it is.
    assert!(!trial.closed_loop.is_empty());
    for row in &trial.closed_loop {
        assert_eq!(row.before.mean_ns, row.after.mean_ns);
    }
}
