// SPDX-License-Identifier: MIT OR Apache-2.0
//! Does `why` say the truth? A factory of scenarios in which a cause is planted, or two, or
//! none.
//!
//! ```text
//! draw ─► Planted: experiment ──► run ──► what processes felt ─► the cause has an effect?
//!            │     without it ──► run ──► what processes felt ─┘
//!            └─► events ─► blkparse · D and C · biosnoop · 40 lines ─► why ─► judge ─► score
//! ```
//!
//! A cause is built into an experiment: kernel, scheduler, device, sizes, number of
//! requests and how bad it is are drawn. That it is a cause is proven by intervention: the
//! same experiment without it is run, too, and who suffers must be better off by a factor
//! (`proof`); a scenario in which it has no such effect is drawn anew. `why` gets the
//! trace as text in each of the forms that users have, and the settings of the machine.
//!
//! What is said is right if it is of a kind that names what was planted, with one of its
//! victims, and if it blames somebody, with a culprit first; or a kind that is true of the
//! same construction (`also` of the drawn scenario). Everything else is wrong, and in
//! scenarios with nothing wrong everything is.

mod change;
mod classes;
mod clean;
mod device;
mod draw;
mod effect;
mod forms;
mod judge;
mod keep;
mod layers;
mod planted;
mod policy;
mod proof;
mod queues;
mod scenario;
mod score;
mod setup;
mod shapes;
mod stacks;
mod storage;
mod truth;

#[cfg(test)]
mod tests;

pub use classes::{UNDRAWN, Undrawn};
pub(crate) use draw::Draw;
pub use forms::{FORMS, Form};
pub use judge::{Fate, Judged, Said};
pub use keep::{keep, words};
pub use scenario::Bench;
pub use score::{Cell, Clean, Score};

use blklab::findings::Report as Why;
use blklab_types::Error;
use classes::{CLASSES, Class};
use judge::Planting;
use planted::Planted;
use scenario::Ran;
use serde::Serialize;
use setup::Setup;

/// A cause is drawn so often until it has an effect.
const ATTEMPTS: u64 = 8;

/// Which scenarios are wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Of all that is random.
    pub seed: u64,
    /// How many.
    pub count: u64,
    /// Only with these classes of causes; all, and loads with nothing wrong, if empty.
    pub classes: Vec<String>,
    /// Only on this kernel; on any if none.
    pub kernel: Option<String>,
    /// What runs them: sim or kernel.
    pub target: &'static str,
}

/// A scenario by its name and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// `idling-3`: the cause that is planted, or the sort of what is not wrong.
    pub id: String,
    row: Row,
    number: u64,
    seed: u64,
    kernel: Option<&'static str>,
}

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// A class, by its place.
    One(usize),
    /// Two causes: a pair, by its place.
    Two(usize),
    /// Nothing: a sort of load, by its place.
    Clean(usize),
}

/// What came of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Examined {
    /// Its name.
    pub id: String,
    /// The classes that are planted; none where nothing is wrong.
    pub planted: Vec<&'static str>,
    /// Times that it was drawn until its causes had an effect; none if they never had.
    pub draws: Option<u64>,
    /// What became of each cause in each form of the trace.
    pub judged: Vec<Judged>,
    /// What is complained about.
    pub said: Vec<Said>,
    /// What `why` got and answered.
    #[serde(skip)]
    pub answers: Vec<Answered>,
    /// Its experiment file.
    #[serde(skip)]
    pub experiment: String,
    /// The same without each of the causes.
    #[serde(skip)]
    pub controls: Vec<String>,
    /// Lines of `key=value` about the machine.
    #[serde(skip)]
    pub context: String,
}

/// A trace and what is said of it.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The form of the trace.
    pub form: Form,
    /// The trace.
    pub trace: String,
    /// The answer.
    pub why: Why,
}

impl Examined {
    /// Whether something is missed or wrong in a form.
    pub fn is_wrong(&self, form: Form) -> bool {
        let is_missed = |j: &Judged| !matches!(j.fate, Fate::Named | Fate::Told);
        self.judged.iter().any(|j| j.form == form && is_missed(j))
            || self.said.iter().any(|s| s.form == form && !s.right)
    }
}

/// Names of all classes of causes.
pub fn class_names() -> Vec<&'static str> {
    CLASSES.iter().map(|c| c.name).collect()
}

/// Names of the kernels that scenarios are drawn on where one is asked for.
pub fn kernel_names() -> Vec<&'static str> {
    let all = stacks::OLD.iter().chain(stacks::NEW).chain(stacks::UNSEEN);
    all.copied().collect()
}

/// The scenarios that are wanted, classes one after the other, then pairs and loads with
/// nothing wrong; and what of them this kernel or target does not take, with the reason.
///
/// # Errors
/// A class or a kernel that there is not.
pub fn scenarios(wanted: &Wanted) -> Result<(Vec<Scenario>, Vec<Undrawn>), Error> {
    let names = class_names();
    if let Some(name) = wanted.classes.iter().find(|n| !names.contains(&n.as_str())) {
        return Err(Error::new(blklab_types::no_such("class", name, &names)));
    }
    let kernels = kernel_names();
    let kernel = match &wanted.kernel {
        None => None,
        Some(name) => Some(
            kernels
                .iter()
                .copied()
                .find(|k| k == name)
                .ok_or_else(|| Error::new(blklab_types::no_such("kernel", name, &kernels)))?,
        ),
    };
    let is_wanted =
        |name: &str| wanted.classes.is_empty() || wanted.classes.iter().any(|c| c == name);
    let mut rows: Vec<Row> = (0..CLASSES.len())
        .filter(|i| is_wanted(CLASSES[*i].name))
        .map(Row::One)
        .collect();
    if wanted.classes.is_empty() {
        rows.extend((0..layers::PAIRS.len()).map(Row::Two));
        rows.extend((0..clean::SORTS.len()).map(Row::Clean));
    }
    let scenario = |row: Row, number: u64| Scenario {
        id: format!("{}-{number}", row.name()),
        row,
        number,
        seed: wanted.seed,
        kernel,
    };
    let mut undrawn = Vec::new();
    rows.retain(|row| {
        let refused = scenario(*row, 0).refused(wanted.target);
        undrawn.extend(refused.map(|because| Undrawn {
            class: row.name(),
            because,
        }));
        refused.is_none()
    });
    let nr = rows.len() as u64;
    let all = (0..wanted.count).filter(|_| nr > 0);
    let all = all.map(|i| scenario(rows[(i % nr) as usize], i / nr));
    Ok((all.collect(), undrawn))
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::One(i) => CLASSES[i].name,
            Row::Two(i) => layers::PAIRS[i].name,
            Row::Clean(i) => clean::SORTS[i].0,
        }
    }
}

/// A drawn scenario: its causes, each with its own control, in one experiment.
struct Drawn {
    causes: Vec<(&'static Class, Planted)>,
}

impl Scenario {
    /// Why it cannot be drawn for a target; none if it can.
    fn refused(&self, target: &str) -> Option<&'static str> {
        let drawn = self.draw(0);
        let setups = drawn.causes.iter().map(|(_, planted)| &planted.setup);
        let is_impossible = match self.row {
            Row::Clean(i) => (clean::SORTS[i].1)(&mut self.stream(0)).is_impossible,
            Row::One(_) | Row::Two(_) => setups.clone().any(|s| s.is_impossible),
        };
        if is_impossible {
            return Some("the kernel that is asked for has not what it takes");
        }
        let is_changed = |(_, p): &(&Class, Planted)| p.change.is_some();
        if target == "kernel" && setups.clone().any(|s| !s.processes.is_empty()) {
            return Some("its processes submit bios themselves, which a real kernel does not take");
        }
        if target == "kernel" && drawn.causes.iter().any(is_changed) {
            return Some("it is made by changing events, which is the same on any target");
        }
        None
    }

    /// The random numbers of an attempt.
    fn stream(&self, attempt: u64) -> Draw {
        let number = self.number * ATTEMPTS + attempt;
        Draw::new(self.seed, self.row.name(), number).on_kernel(self.kernel)
    }

    /// Draws it once more.
    fn draw(&self, attempt: u64) -> Drawn {
        let mut draw = self.stream(attempt);
        let causes = match self.row {
            Row::One(i) => vec![(&CLASSES[i], (CLASSES[i].plant)(&mut draw))],
            Row::Two(i) => layers::PAIRS[i].draw(&mut draw),
            Row::Clean(_) => Vec::new(),
        };
        Drawn { causes }
    }
}

/// Runs a scenario, and lets `why` speak. None if the bench was stopped.
///
/// # Errors
/// If an experiment cannot be run: a fault of the generator.
pub fn examine(bench: &Bench, scenario: &Scenario) -> Result<Option<Examined>, Error> {
    match scenario.row {
        Row::Clean(i) => examine_clean(bench, scenario, i),
        Row::One(_) | Row::Two(_) => examine_planted(bench, scenario),
    }
}

fn examine_planted(bench: &Bench, scenario: &Scenario) -> Result<Option<Examined>, Error> {
    let mut last = Examined::new(scenario, Vec::new(), &Setup::default());
    for attempt in 0..ATTEMPTS {
        let drawn = scenario.draw(attempt);
        let plantings: Vec<Planting<'_>> = drawn.causes.iter().map(|(c, p)| (*c, p)).collect();
        let names = plantings.iter().map(|(class, _)| class.name).collect();
        last = Examined::new(scenario, names, &drawn.causes[0].1.setup);
        let Some(ran) = proven(bench, scenario, &plantings, &mut last)? else {
            if bench.is_stopped() {
                return Ok(None);
            }
            continue;
        };
        last.draws = Some(attempt + 1);
        last.ask(&ran, &plantings)?;
        return Ok(Some(last));
    }
    Ok(Some(last))
}

/// The run of a scenario if all of its causes have an effect.
fn proven(
    bench: &Bench,
    scenario: &Scenario,
    plantings: &[Planting<'_>],
    examined: &mut Examined,
) -> Result<Option<Ran>, Error> {
    let mut ran = bench.run(&scenario.id, &examined.experiment)?;
    for (_, planted) in plantings {
        if let Some(change) = planted.change {
            ran.change(change);
        }
    }
    for (_, planted) in plantings {
        let text = planted.control.text(&scenario.id);
        let mut control = bench.run(&scenario.id, &text)?;
        if bench.is_stopped() {
            return Ok(None);
        }
        if planted.change.is_some() {
            control.look_at_events();
        }
        examined.controls.push(text);
        let holds = |proof: &proof::Proof| proof.holds(planted.victims, &ran, &control);
        if !planted.proof.iter().all(holds) {
            return Ok(None);
        }
    }
    Ok(Some(ran))
}

fn examine_clean(
    bench: &Bench,
    scenario: &Scenario,
    sort: usize,
) -> Result<Option<Examined>, Error> {
    let setup = (clean::SORTS[sort].1)(&mut scenario.stream(0));
    let mut examined = Examined::new(scenario, Vec::new(), &setup);
    let ran = bench.run(&scenario.id, &examined.experiment)?;
    if bench.is_stopped() {
        return Ok(None);
    }
    examined.draws = Some(1);
    examined.ask(&ran, &[])?;
    Ok(Some(examined))
}

impl Examined {
    fn new(scenario: &Scenario, planted: Vec<&'static str>, setup: &Setup) -> Examined {
        Examined {
            id: scenario.id.clone(),
            planted,
            draws: None,
            judged: Vec::new(),
            said: Vec::new(),
            answers: Vec::new(),
            experiment: setup.text(&scenario.id),
            controls: Vec::new(),
            context: String::new(),
        }
    }

    /// Asks `why` in each form.
    fn ask(&mut self, ran: &Ran, plantings: &[Planting<'_>]) -> Result<(), Error> {
        let victims: Vec<&str> = plantings
            .iter()
            .flat_map(|(_, planted)| planted.victims.iter().copied())
            .collect();
        self.context.clone_from(&ran.context);
        for form in FORMS {
            let trace = form.text(ran, &victims);
            let why = forms::ask(&trace, &ran.context)
                .map_err(|e| Error::new(format!("{}, {}: {e}", self.id, form.name())))?;
            let said = judge::said(plantings, form, &why, ran);
            for planting in plantings {
                self.judged.push(judge::judge(*planting, form, &why, &said));
            }
            self.said.extend(said);
            self.answers.push(Answered { form, trace, why });
        }
        Ok(())
    }
}
