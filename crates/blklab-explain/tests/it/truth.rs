// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run's trace, re-enacted, must say of each request what the run itself knows.

use blklab_experiment::{Experiment, Source};
use blklab_explain::{Explained, Options, ReEnacted, ReEnactment, Stack, Survey};
use blklab_sched::Schedulers;
use blklab_sim::Sim;
use blklab_target::{Planner, Sinks};
use blklab_trace::truth::{Kind, Truth, TruthSink, Why};
use blklab_trace::{Action, Event, TraceSink, WaitLabels, Waited};
use blklab_types::Time;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Two readers and a writer that gives each of them something to wait for.
const JOB: &str = "[global]\ndirect=1\nbs=4k\nsize=16m\nruntime=1\ntime_based\n\
    [reader]\nrw=randread\nnumjobs=2\nioengine=libaio\niodepth=4\n\
    [writer]\nrw=randwrite\nbs=64k\nioengine=libaio\niodepth=16\n\
    [thinker]\nrw=read\nthinktime=4000\n";

/// Woken tasks look for a tag at once: no event shows when one looks in vain that woke up
/// on another processor, and that decides which it gets later.
fn experiment(kernel: &str, scheduler: &str) -> Experiment {
    let has_hw_queues = kernel.starts_with(['5', '6', '7']);
    let vm = if has_hw_queues {
        "[vm]\nremote_wake_ns = 0\n"
    } else {
        ""
    };
    let file = format!(
        "kernel = '{kernel}'\nscheduler = '{scheduler}'\njob = '''\n{JOB}'''\n\
         [device]\nname = 'serial'\nqueue_depth = 2\n[queue]\nnr_requests = 128\n{vm}"
    );
    let e = blklab_experiment::parse(
        "e.toml",
        Source::Toml,
        &file,
        &|_| unreachable!(),
        &blklab_sim::catalogue(),
    );
    e.unwrap_or_else(|e| panic!("{kernel} {scheduler}: {e}"))
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<Event>>>);

impl TraceSink for Kept {
    fn event(&mut self, event: &Event) {
        self.0.borrow_mut().push(*event);
    }
}

/// What a run knows of a request at its hand-over.
#[derive(Clone, Debug)]
struct Known {
    sector: u64,
    pid: u32,
    labels: Vec<(Why, u32, u64)>,
    waited: bool,
}

struct Labels<F>(WaitLabels<F>, Rc<RefCell<Vec<Known>>>);

impl<F: FnMut(&Waited<'_>)> TruthSink for Labels<F> {
    fn truth(&mut self, record: &Truth, text: &str) {
        // Whoever did not wait in the scheduler is handed over without labels.
        let before = self.1.borrow().len();
        self.0.truth(record, text);
        if record.kind == Kind::HandOver && self.1.borrow().len() == before {
            self.1.borrow_mut().push(Known {
                sector: record.sector,
                pid: record.pid,
                labels: Vec::new(),
                waited: false,
            });
        }
    }
}

/// A run: its events, and what it knows of each request that went to the device.
fn run(e: &Experiment) -> (Vec<Event>, Vec<Known>) {
    let events = Kept::default();
    let known = Rc::new(RefCell::new(Vec::new()));
    let of_labels = Rc::clone(&known);
    let labels = WaitLabels::new(move |w: &Waited<'_>| {
        of_labels.borrow_mut().push(Known {
            sector: w.request.sector,
            pid: w.request.pid,
            labels: w.labels.iter().map(|l| (l.why, l.pid, l.span.0)).collect(),
            waited: true,
        });
    });
    let sinks = Sinks {
        truth: Some(Box::new(Labels(labels, Rc::clone(&known)))),
        ..Sinks::of_events(Box::new(events.clone()))
    };
    let planner = Planner::new(Sim::default());
    let plan = planner.plan(e).expect("a plan");
    plan.run(sinks, Arc::default()).expect("a run");
    let (events, known) = (events.0.take(), known.take());
    (events, known)
}

fn re_enact(e: &Experiment, events: &[Event]) -> ReEnacted {
    let mut survey = Survey::default();
    for event in events {
        survey.event(event);
    }
    let (dev, disk) = survey.disk(0).expect("it shows enough");
    let issues = (1_u64..)
        .zip(events)
        .filter(|(_, e)| e.action == Action::Issue);
    let options = Options {
        direct: true,
        worst: 3,
        wanted: issues.map(|(n, _)| n).collect(),
        ..Options::default()
    };
    let stack = Stack::of_run(e, Schedulers::default());
    let mut again = ReEnactment::new(stack, &survey, (dev, disk), options).expect("possible");
    for event in events {
        again.event(event);
    }
    again.finish().expect("not too many processes")
}

/// The scheduler's reasons for a request, those in a row that are the same as one.
fn decided(x: &Explained) -> Vec<(&'static str, u32, u64)> {
    let mut all: Vec<(&'static str, u32, u64)> = Vec::new();
    for r in &x.reasons {
        let cause = match r.cause {
            "driver" => "device-full",
            "no-request" | "task-plug" | "flush" | "write-back-throttling" => continue,
            cause => cause,
        };
        match all.last_mut() {
            Some(last) if (last.0, last.1) == (cause, r.pid.unwrap_or(0)) => last.2 += r.ns,
            _ => all.push((cause, r.pid.unwrap_or(0), r.ns)),
        }
    }
    all
}

/// Nearly all dispatches must agree, and the reasons of those that do must be the run's
/// own, to the nanosecond; 96 % of them under BFQ, where a task that was woken and found no
/// tag ran the hardware queue, which no event shows, and BFQ decided then.
fn check(kernel: &str, scheduler: &str) {
    let e = experiment(kernel, scheduler);
    let (events, known) = run(&e);
    let again = re_enact(&e, &events);
    let shown = format!("{kernel} {scheduler}: {:?}", again.agreement);
    assert!(again.is_good, "{shown}");
    assert!(again.agreement.order_share() > 0.98, "{shown}");
    let issues = (1_u64..)
        .zip(&events)
        .filter(|(_, e)| e.action == Action::Issue);
    let (mut nr, mut explained, mut same, mut waited) = (0, 0, 0, 0);
    let mut different = Vec::new();
    for ((number, event), k) in issues.zip(&known) {
        assert_eq!(
            event.sector, k.sector,
            "{kernel} {scheduler}: D and hand-over"
        );
        // Processes end after a second, which no event shows: a scheduler that idles
        // for one of them stops at once, and in the model only when the time is over.
        if event.time >= Time(1_000_000_000) {
            break;
        }
        nr += 1;
        let Some(x) = again.of_event(number) else {
            continue;
        };
        explained += 1;
        assert_eq!(x.pid, k.pid, "whose it is");
        let name = |why: Why| blklab_explain::Cause::Decided(why).name();
        let truth: Vec<_> = k
            .labels
            .iter()
            .map(|(w, p, ns)| (name(*w), *p, *ns))
            .collect();
        waited += usize::from(k.waited && !truth.is_empty());
        if decided(x) == truth {
            same += 1;
        } else {
            let said = decided(x);
            let at = said.iter().zip(&truth).take_while(|(a, b)| a == b).count();
            different.push(format!(
                "#{number}: reason {at} is {:?}, in truth {:?}",
                said.get(at),
                truth.get(at)
            ));
        }
    }
    assert!(explained * 100 >= nr * 98, "{shown}: {explained} explained");
    assert!(
        waited * 4 > explained || scheduler == "none",
        "{shown}: {waited} waited"
    );
    let least_percent = if scheduler == "bfq" { 96 } else { 100 };
    assert!(
        same * 100 >= explained * least_percent,
        "{shown}: {same} of {explained} the same; {:#?}",
        &different[..different.len().min(5)]
    );
}

#[test]
fn noop() {
    check("2.6.28", "noop");
}

#[test]
fn deadline() {
    check("2.6.28", "deadline");
    check("4.19", "deadline");
}

#[test]
fn cfq() {
    check("2.6.28", "cfq");
    check("4.19", "cfq");
}

#[test]
fn none() {
    check("6.12", "none");
}

#[test]
fn mq_deadline() {
    check("5.10", "mq-deadline");
    check("6.12", "mq-deadline");
}

#[test]
fn kyber() {
    check("6.12", "kyber");
}

#[test]
fn bfq() {
    check("6.12", "bfq");
}
