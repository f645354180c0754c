// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does `why` say the truth? Random scenarios in which a cause is planted, and as many
//! with nothing wrong.
//!
//! ```text
//! draw ─► Planted: experiment ──► run ─► truth ─► the cause has an effect?
//!                  the same             └► events ─► why ─► findings ─► score
//!                  without it ──► run ─► truth
//! ```
//!
//! A cause is built into an experiment: kernel, scheduler, device, sizes, number of
//! requests and how bad it is are drawn. That it has an effect is told from what the
//! simulator knows of the run (its own labels of each wait, sleeps for a request, what
//! the device got), mostly beside a run of the same experiment without the cause, and
//! never from findings; a scenario in which it has none is drawn anew. The detectors get
//! the events, and what is known of the machine, as from a recorded trace.
//!
//! What is said is right if it is the kind that was planted, with one of its victims (and
//! one of the culprits, if it names any), or a kind that is true of the same construction
//! (`also` of the drawn scenario). Everything else is wrong, and in scenarios
//! with nothing wrong everything is.

mod change;
mod clean;
mod device;
mod draw;
mod queues;
mod scenario;
mod score;
mod setup;
mod shapes;
mod stacks;
mod truth;

#[cfg(test)]
mod tests;

pub(crate) use draw::Draw;
pub use score::{KindScore, Score};

use blklab::findings::{Finding, Report as Why};
use blklab_trace::truth::Why as Reason;
use blklab_types::Error;
use scenario::{Planted, Proof, Ran, run};
use serde::Serialize;

/// A cause that can be planted.
struct Cause {
    /// By which its scenarios are called.
    name: &'static str,
    /// The kind of finding that must name it.
    kind: &'static str,
    /// Draws a scenario.
    plant: fn(&mut Draw) -> Planted,
}

/// A cause that is called by the kind of finding that must name it.
const fn cause(kind: &'static str, plant: fn(&mut Draw) -> Planted) -> Cause {
    Cause {
        name: kind,
        kind,
        plant,
    }
}

/// All causes.
const CAUSES: &[Cause] = &[
    cause("reads-behind-writes", queues::reads_behind_writes),
    cause("behind-other", queues::behind_other),
    cause("deep-queue", queues::deep_queue),
    cause("no-request-free", queues::no_request_free),
    cause("idling", queues::idling),
    cause("slice", queues::slice),
    cause("writes-starved", queues::writes_starved),
    cause("shallow-dispatch", queues::shallow),
    cause("cgroup-limit", queues::cgroup_limit),
    cause("missed-merge", shapes::missed_merge),
    cause("split", shapes::split),
    cause("no-readahead", shapes::no_readahead),
    cause("misaligned", shapes::misaligned),
    cause("flush", shapes::flush),
    cause("journal-chain", shapes::journal_chain),
    cause("dependent-read", shapes::dependent_read),
    cause("never-completed", shapes::never_completed),
    cause("io-error", shapes::io_error),
    cause("bfq-queue-merge", queues::bfq_queue_merge),
    cause("plug-timer", queues::plug_timer),
    cause("overtaken", queues::overtaken),
    cause("seek-storm", shapes::seek_storm),
    cause("held-back", device::held_back),
    cause("device-slow", device::device_slow),
    cause("rate-capped", device::rate_capped),
    cause("small-discards", device::small_discards),
    cause("requeued", device::requeued),
    Cause {
        name: "wbt",
        kind: "wbt-likely",
        plant: queues::wbt,
    },
    Cause {
        name: "write-back-burst",
        kind: "reads-behind-writes",
        plant: queues::write_back_burst,
    },
];

/// A cause is drawn so often until it has an effect.
const ATTEMPTS: u64 = 24;

/// A scenario by its name and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// `idling-3`: the cause that is planted, or the sort of what is not wrong.
    pub id: String,
    /// The kind that is planted; none where nothing is wrong.
    pub planted: Option<&'static str>,
    /// Place in the table of causes, or of sorts.
    row: usize,
    number: u64,
    seed: u64,
}

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Examined {
    /// Its name.
    pub id: String,
    /// The kind that is planted; none where nothing is wrong.
    pub planted: Option<&'static str>,
    /// Times that it was drawn until its cause had an effect; none if it never had.
    pub draws: Option<u64>,
    /// What is said, in order.
    pub said: Vec<Said>,
    /// Events in its trace.
    pub events: u64,
    /// Its experiment file.
    #[serde(skip)]
    pub experiment: String,
    /// The findings.
    #[serde(skip)]
    pub why: Option<Why>,
}

/// A finding, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Its kind.
    pub kind: &'static str,
    /// Whether it is true of the scenario.
    pub right: bool,
    /// Whether it names the planted cause.
    pub planted: bool,
}

impl Examined {
    /// Whether the planted cause is said.
    pub fn is_found(&self) -> bool {
        self.said.iter().any(|s| s.planted)
    }
}

/// So many scenarios with a cause, and as many with nothing wrong.
pub fn scenarios(each: u64, seed: u64) -> Vec<Scenario> {
    let scenario = |name: &'static str, planted, row, number| Scenario {
        id: format!("{name}-{number}"),
        planted,
        row,
        number,
        seed,
    };
    let causes = CAUSES.len() as u64;
    let sorts = clean::SORTS.len() as u64;
    let planted = (0..each).map(|i| {
        let row = (i % causes) as usize;
        let Cause { name, kind, .. } = CAUSES[row];
        scenario(name, Some(kind), row, i / causes)
    });
    let clean = (0..each).map(|i| {
        let row = (i % sorts) as usize;
        scenario(clean::SORTS[row].0, None, row, i / sorts)
    });
    planted.chain(clean).collect()
}

/// Runs a scenario, and lets `why` speak.
///
/// # Errors
/// If an experiment cannot be run: a fault of the generator.
pub fn examine(scenario: &Scenario) -> Result<Examined, Error> {
    match scenario.planted {
        Some(_) => examine_planted(scenario),
        None => examine_clean(scenario),
    }
}

fn examine_planted(scenario: &Scenario) -> Result<Examined, Error> {
    let cause = &CAUSES[scenario.row];
    let mut last = String::new();
    for attempt in 0..ATTEMPTS {
        let number = scenario.number * ATTEMPTS + attempt;
        let planted = (cause.plant)(&mut Draw::new(scenario.seed, cause.name, number));
        let text = planted.setup.text(&scenario.id);
        let mut ran = run(&scenario.id, &text)?;
        let control = run(&scenario.id, &planted.control.text(&scenario.id))?;
        let holds = |proof: &Proof| proof.holds(planted.victims, &ran, &control);
        if !planted.proof.iter().all(holds) {
            last = text;
            continue;
        }
        if let Some(change) = planted.change {
            ran.change(change);
        }
        let why = ran.why();
        let said = why
            .findings
            .iter()
            .map(|f| judge(f, cause.kind, &planted, &ran));
        return Ok(Examined {
            id: scenario.id.clone(),
            planted: scenario.planted,
            draws: Some(attempt + 1),
            said: said.collect(),
            events: why.nr_events,
            experiment: text,
            why: Some(why),
        });
    }
    Ok(Examined {
        id: scenario.id.clone(),
        planted: scenario.planted,
        draws: None,
        said: Vec::new(),
        events: 0,
        experiment: last,
        why: None,
    })
}

fn examine_clean(scenario: &Scenario) -> Result<Examined, Error> {
    let (name, draw) = clean::SORTS[scenario.row];
    let setup = draw(&mut Draw::new(scenario.seed, name, scenario.number));
    let text = setup.text(&scenario.id);
    let why = run(&scenario.id, &text)?.why();
    let said = why.findings.iter().map(|f| Said {
        kind: f.kind,
        right: false,
        planted: false,
    });
    Ok(Examined {
        id: scenario.id.clone(),
        planted: None,
        draws: Some(1),
        said: said.collect(),
        events: why.nr_events,
        experiment: text,
        why: Some(why),
    })
}

/// Whether a finding is true of a scenario.
fn judge(f: &Finding, kind: &str, planted: &Planted, ran: &Ran) -> Said {
    let named = |parties: &[blklab::findings::Party], names: &[&str]| {
        let is_one = |name: &str| names.contains(&name);
        names.is_empty()
            || parties
                .iter()
                .any(|p| p.comm.as_deref().is_some_and(is_one))
    };
    let blames = f.causes.is_empty() || named(&f.causes, planted.culprits);
    let is_planted = f.kind == kind && named(&f.victims, planted.victims) && blames;
    Said {
        kind: f.kind,
        right: is_planted || planted.also.contains(&f.kind) || is_known(f, ran),
        planted: is_planted,
    }
}

/// Of the time of those who are said to suffer, the run itself must know so large a part
/// to be for the reason of a finding.
const KNOWN_SHARE: f64 = 0.2;

/// Whether the run itself knows of the waits that a finding speaks of.
fn is_known(f: &Finding, ran: &Ran) -> bool {
    let reasons: &[Reason] = match f.kind {
        "idling" => &[Reason::Idling, Reason::InFlight],
        "slice" => &[Reason::Slice],
        "writes-starved" => &[Reason::ReadBatch],
        "no-request-free" => {
            return f.victims.iter().all(|p| {
                let sum = ran.truth_of_process(p.pid);
                sum.sleep_ns as f64 >= KNOWN_SHARE * sum.waited_ns as f64
            });
        }
        _ => return false,
    };
    f.victims.iter().all(|p| {
        let sum = ran.truth_of_process(p.pid);
        let ns: u64 = reasons.iter().filter_map(|why| sum.why.get(why)).sum();
        ns as f64 >= KNOWN_SHARE * sum.waited_ns as f64
    })
}
