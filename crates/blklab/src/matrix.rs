// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several values for some settings: every combination is an experiment.

use blklab_experiment::{Catalogue, DeviceSpec, Experiment, FilesystemSpec, MdSpec, Workload};
use blklab_kernel::PATCHES;
use blklab_target::{Plan, Planner, Site};
use blklab_types::Error;
use blklab_types::shown;
use std::fmt;

/// What is chosen on top of experiment files. Empty lists leave the file's value.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Kernel releases.
    pub kernels: Vec<String>,
    /// Schedulers.
    pub schedulers: Vec<String>,
    /// Devices with parameters.
    pub devices: Vec<DeviceSpec>,
    /// Arrays of the device; none is the device alone.
    pub arrays: Vec<Option<MdSpec>>,
    /// Settings, each with its values.
    pub settings: Vec<Setting>,
    /// Sets of patches: of each list, every set is an alternative; `none` is
    /// the empty one.
    pub patches: Vec<Vec<PatchSet>>,
    /// Seed of the first repetition.
    pub seed: Option<u64>,
    /// Repetitions with different seeds.
    pub repeat: u32,
    /// Repetitions draw the same random offsets where fio would (its `randrepeat`).
    pub repeat_exact: bool,
    /// Only these sections of job files; those of the file if empty.
    pub sections: Vec<String>,
}

/// A setting with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As [`Experiment::set`] takes it.
    pub key: String,
    /// One, or several that make a matrix.
    pub values: Vec<String>,
}

/// Which of the [`Overrides`] an error is about, and its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A kernel release.
    Kernel(String),
    /// A scheduler.
    Scheduler(String),
    /// A device; its name where the message does not say it.
    Device(Option<String>),
    /// An array, or `none`.
    Array(String),
    /// Patches.
    Patches(String),
    /// One of the settings, by its place among them.
    Setting(usize),
    /// The seed.
    Seed,
}

/// Why there is no matrix: something that a file says, or something chosen on
/// top of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was chosen; none if a file is wrong, which the error names.
    pub choice: Option<Choice>,
    /// What is wrong.
    pub error: Error,
}

impl Refused {
    fn new(choice: Choice, error: Error) -> Refused {
        Refused {
            choice: Some(choice),
            error,
        }
    }

    /// With the file of an experiment, if that is where the fault lies.
    fn located_in(self, e: &Experiment) -> Refused {
        match self.choice {
            Some(_) => self,
            None => e.locate(self.error).into(),
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused {
            choice: None,
            error,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// Patches that are switched on together.
pub type PatchSet = Vec<String>;

/// Most experiments of one command.
pub const CELLS_MAX: usize = 10_000;

/// One experiment of a matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Names and values of what varies, in order; empty if nothing does.
    pub label: Vec<(String, String)>,
    /// Which of the files it comes from, from 0.
    pub file_idx: usize,
    /// Its place in the matrix, from 0.
    pub place: u32,
    /// Which repetition it is, from 0.
    pub repetition: u32,
    /// The experiment.
    pub experiment: Experiment,
}

impl Cell {
    /// The label in one piece: the values, with names where a value alone
    /// would not tell.
    pub fn name(&self) -> String {
        join(&self.label)
    }

    /// The label without the file: what varies within it; the scheduler if
    /// nothing does.
    pub fn name_in_file(&self) -> String {
        let varies = self.label.iter().filter(|(key, _)| key != "file");
        match join(varies) {
            name if name.is_empty() => self.experiment.scheduler.clone(),
            name => name,
        }
    }
}

fn join<'a>(label: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let shown = label.into_iter().map(|(key, value)| match key.as_str() {
        "scheduler" | "device" | "md" | "dm" | "file" | "patch" | "variant" => value.clone(),
        "kernel" if value.starts_with(|c: char| c.is_ascii_digit()) => format!("v{value}"),
        "kernel" => value.clone(),
        _ => format!("{key}={value}"),
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// Every combination of the overrides for every experiment, in order: files
/// outermost, repetitions innermost.
///
/// # Errors
/// If a value does not exist or does not fit.
pub fn expand(
    experiments: &[Experiment],
    overrides: &Overrides,
    planner: &Planner,
) -> Result<Vec<Cell>, Refused> {
    check_number(experiments.len(), overrides)?;
    let mut cells: Vec<Cell> = Vec::new();
    for (file_idx, e) in experiments.iter().enumerate() {
        let label = if experiments.len() > 1 {
            vec![("file".to_owned(), distinct_name(experiments, file_idx))]
        } else {
            Vec::new()
        };
        let mut base = Cell {
            label,
            file_idx,
            place: 0,
            repetition: 0,
            experiment: e.clone(),
        };
        if !overrides.sections.is_empty() {
            base.experiment.sections.clone_from(&overrides.sections);
        }
        if let Some(seed) = overrides.seed {
            base.experiment.seed = seed;
        }
        let of_file = combinations(base, overrides, planner);
        cells.extend(of_file.map_err(|err| err.located_in(e))?);
    }
    for (place, cell) in (0..).zip(&mut cells) {
        cell.place = place;
    }
    Ok(cells)
}

/// What the jobs of a cell find.
///
/// # Errors
/// If the experiment cannot run.
pub fn survey(cell: &Cell, overrides: &Overrides, planner: &Planner) -> Result<Site, Refused> {
    let e = &cell.experiment;
    let site = planner.survey(e);
    site.map_err(|err| by_choice(err, overrides, e).located_in(e))
}

/// The plans of all cells. What is wrong with an experiment is found before what is
/// wrong with any job.
///
/// # Errors
/// The first thing that is wrong.
pub fn plans(
    cells: &[Cell],
    overrides: &Overrides,
    planner: &Planner,
) -> Result<Vec<Plan>, Refused> {
    let sites = cells.iter().map(|cell| survey(cell, overrides, planner));
    let sites = sites.collect::<Result<Vec<Site>, _>>()?;
    let surveyed = cells.iter().zip(sites);
    let planned = surveyed.map(|(cell, site)| planner.plan_at(&cell.experiment, site));
    Ok(planned.collect::<Result<_, _>>()?)
}

/// A matrix that nobody will wait for is a mistake.
fn check_number(nr_files: usize, o: &Overrides) -> Result<(), Error> {
    let sizes = [
        o.kernels.len(),
        o.schedulers.len(),
        o.devices.len(),
        o.arrays.len(),
    ];
    let settings = o.settings.iter().map(|s| s.values.len());
    let patches = o.patches.iter().map(Vec::len);
    let factors = sizes.into_iter().chain(settings).chain(patches);
    let factors = factors.map(|n| n.max(1));
    let number = factors.fold(nr_files, usize::saturating_mul);
    let number = number.saturating_mul(o.repeat.max(1) as usize);
    if number > CELLS_MAX {
        return Err(Error::new(format!(
            "{number} experiments (files, values and repetitions multiplied); at most {CELLS_MAX}"
        )));
    }
    Ok(())
}

/// The id of an experiment, or its file where another has the same id.
fn distinct_name(experiments: &[Experiment], idx: usize) -> String {
    let e = &experiments[idx];
    let same = experiments.iter().filter(|o| o.id == e.id).count();
    match same {
        1 => e.id.clone(),
        _ if experiments.iter().filter(|o| o.file == e.file).count() == 1 => e.file.clone(),
        _ => format!("{} #{}", e.id, idx + 1),
    }
}

/// An error about something that was chosen says what, not the file.
fn by_choice(err: Error, o: &Overrides, e: &Experiment) -> Refused {
    let choice = match err.key.split('.').next().unwrap_or("") {
        "kernel" if !o.kernels.is_empty() => Choice::Kernel(e.kernel.to_string()),
        "scheduler" if !o.schedulers.is_empty() => Choice::Scheduler(e.scheduler.clone()),
        "device" if !o.devices.is_empty() => Choice::Device(Some(e.device.name.clone())),
        "md" if !o.arrays.is_empty() => {
            Choice::Array(e.md.map_or("none".to_owned(), |md| md.to_string()))
        }
        "patches" if !o.patches.is_empty() => Choice::Patches(e.patches.join("+")),
        "seed" if o.seed.is_some() => Choice::Seed,
        key @ ("target" | "dm") => match o.settings.iter().position(|s| s.key == key) {
            Some(place) => Choice::Setting(place),
            None => return err.into(),
        },
        _ => return err.into(),
    };
    Refused::new(choice, err)
}

fn combinations(base: Cell, o: &Overrides, planner: &Planner) -> Result<Vec<Cell>, Refused> {
    let mut cells = vec![base];
    let catalogue = planner.catalogue();
    vary(&mut cells, "kernel", &o.kernels, String::clone, |e, v| {
        let version = v.parse().map_err(Error::from);
        let version = version.map_err(|err| Refused::new(Choice::Kernel(v.clone()), err))?;
        e.choose_kernel(version, catalogue);
        Ok(())
    })?;
    vary(
        &mut cells,
        "scheduler",
        &o.schedulers,
        String::clone,
        |e, v| {
            let chosen = e.choose_scheduler(v, catalogue);
            chosen.map_err(|err| Refused::new(Choice::Scheduler(v.clone()), err))
        },
    )?;
    if o.schedulers.is_empty() && o.patches.is_empty() {
        cells = variants(cells, catalogue)?;
    }
    for cell in &mut cells {
        scheduler_of_jobs(&mut cell.experiment, planner)?;
    }
    for alternatives in &o.patches {
        cells = patched(cells, alternatives)?;
    }
    vary(
        &mut cells,
        "device",
        &o.devices,
        DeviceSpec::to_string,
        |e, d| {
            let chosen = e.choose_device(d.clone(), catalogue);
            chosen.map_err(|err| Refused::new(Choice::Device(None), err))
        },
    )?;
    let array_name = |md: &Option<MdSpec>| md.map_or("one disk".to_owned(), |md| md.to_string());
    vary(&mut cells, "md", &o.arrays, array_name, |e, md| {
        e.md = *md;
        Ok(())
    })?;
    for (i, setting) in o.settings.iter().enumerate() {
        let can = |c: &Cell| c.experiment.can_set(&setting.key, catalogue);
        if cells.iter().any(can) {
            cells = set_where_known(cells, i, setting, catalogue)?;
        } else {
            set_all(&mut cells, i, setting, catalogue)?;
        }
    }
    run_without_absent(&mut cells);
    share_processors(&mut cells, planner)?;
    share_files(&mut cells, catalogue)?;
    let repeat = o.repeat.max(1);
    Ok(cells
        .into_iter()
        .flat_map(|c| {
            (0..repeat).map(move |i| {
                let mut c = c.clone();
                c.repetition = i;
                c.experiment.seed = c.experiment.seed.saturating_add(u64::from(i));
                c.experiment.vary_offsets |= i > 0 && !o.repeat_exact;
                c
            })
        })
        .collect())
}

/// Where several kernels are compared, those that do not have a setting of the
/// experiment file run without it. One alone is refused, when it is checked.
fn run_without_absent(cells: &mut [Cell]) {
    let differ = cells
        .windows(2)
        .any(|w| w[0].experiment.kernel != w[1].experiment.kernel);
    if differ {
        for cell in cells {
            cell.experiment.drop_absent();
        }
    }
}

/// Where targets are compared, all have as many processors as the one with the fewest,
/// unless their number was chosen.
fn share_processors(cells: &mut [Cell], planner: &Planner) -> Result<(), Error> {
    let is_compared = |cell: &Cell| cell.label.iter().any(|(key, _)| key == "target");
    if !cells.iter().any(is_compared) {
        return Ok(());
    }
    let mut fewest: Option<(u32, &str)> = None;
    for cell in cells.iter() {
        let target = planner.target(&cell.experiment)?;
        let most = target.cpus_max().map(|most| (most, target.name()));
        fewest = [fewest, most].into_iter().flatten().min();
    }
    let Some((cpus, name)) = fewest else {
        return Ok(());
    };
    for cell in cells {
        let e = &mut cell.experiment;
        if e.vm.cpus.is_none() {
            e.set("cpus", &cpus.to_string(), planner.catalogue())?;
            e.remarks.push(format!(
                "every target has {cpus} processor(s), as the target {name} has no more, \
                 unless cpus says how many"
            ));
        }
    }
    Ok(())
}

/// Where targets are compared and there is no filesystem, files are parts of the disk on all of
/// them: what a filesystem does with direct I/O (a plug around each call) is no difference of the
/// targets.
fn share_files(cells: &mut [Cell], catalogue: &Catalogue) -> Result<(), Error> {
    let is_compared = |cell: &Cell| cell.label.iter().any(|(key, _)| key == "target");
    if !cells.iter().any(is_compared) {
        return Ok(());
    }
    let none = FilesystemSpec::default();
    for cell in cells {
        let e = &mut cell.experiment;
        if e.filesystem == none && matches!(e.workload, Workload::Fio { .. }) {
            e.set("filesystem.parts", "1", catalogue)?;
            e.remarks.push(
                "on every target files are parts of the disk, as there is no filesystem".to_owned(),
            );
        }
    }
    Ok(())
}

/// Where nothing else chose one, the job file's `ioscheduler` chooses the
/// scheduler.
fn scheduler_of_jobs(e: &mut Experiment, planner: &Planner) -> Result<(), Error> {
    if e.scheduler_chosen {
        return Ok(());
    }
    // A job file that is wrong says so when it is planned.
    let Ok(Some(text)) = planner.jobs(e) else {
        return Ok(());
    };
    let Some((wanted, place)) = text.wanted_scheduler()? else {
        return Ok(());
    };
    let chosen = e.choose_scheduler(wanted, planner.catalogue());
    chosen.map_err(|err| {
        let what = format!(
            "ioscheduler={} in the job file: {} (a scheduler named for the experiment goes first)",
            shown(wanted),
            err.what
        );
        Error { what, ..err }.at(place)
    })?;
    e.remarks.push(format!(
        "the job file chose the scheduler: ioscheduler={wanted} (one named for the experiment \
         goes first)"
    ));
    Ok(())
}

/// Replaces each cell by one for each configuration that its file compares.
fn variants(cells: Vec<Cell>, catalogue: &Catalogue) -> Result<Vec<Cell>, Refused> {
    let mut out = Vec::new();
    for cell in cells {
        if cell.experiment.variants.is_empty() {
            out.push(cell);
            continue;
        }
        for v in &cell.experiment.variants {
            let mut c = cell.clone();
            let chosen = cell.experiment.with_variant(v, catalogue);
            c.experiment = chosen.map_err(|err| {
                let what = format!("variant '{}': {}", shown(&v.name), err.what);
                Error::new(what).about(format!("variant.\"{}\"", v.name))
            })?;
            c.label.push(("variant".to_owned(), v.name.clone()));
            out.push(c);
        }
    }
    Ok(out)
}

/// Replaces each cell by one for each set of patches. A scheduler runs without
/// the patches of other schedulers, once.
fn patched(cells: Vec<Cell>, alternatives: &[PatchSet]) -> Result<Vec<Cell>, Refused> {
    let mut out: Vec<Cell> = Vec::new();
    let mut unused: Vec<&String> = alternatives.iter().flatten().collect();
    for cell in &cells {
        let concerns = |name: &&String| {
            let patch = PATCHES.iter().find(|p| p.name == **name);
            let owner = patch.and_then(|p| p.scheduler);
            owner.is_none_or(|s| s == cell.experiment.scheduler)
        };
        let mut seen: Vec<PatchSet> = Vec::new();
        for set in alternatives {
            let own: PatchSet = set.iter().filter(concerns).cloned().collect();
            unused.retain(|name| !own.contains(name));
            if seen.contains(&own) {
                continue;
            }
            let mut c = cell.clone();
            if own.len() < set.len() {
                let left: Vec<&str> = set
                    .iter()
                    .filter(|n| !own.contains(n))
                    .map(|n| &**n)
                    .collect();
                c.experiment.remarks.push(format!(
                    "{} ran without {}: a patch of another scheduler",
                    c.experiment.scheduler,
                    left.join(" and ")
                ));
            }
            if alternatives.len() > 1 && alternatives.iter().flatten().any(|n| concerns(&n)) {
                let shown = if own.is_empty() {
                    "unpatched".to_owned()
                } else {
                    own.join("+")
                };
                c.label.push(("patch".to_owned(), shown));
            }
            c.experiment.patches.extend(own.iter().cloned());
            seen.push(own);
            out.push(c);
        }
    }
    if let Some(name) = unused.first() {
        let e = cells.first().map(|c| c.experiment.scheduler.clone());
        let owner = PATCHES
            .iter()
            .find(|p| p.name == **name)
            .and_then(|p| p.scheduler);
        let what = format!(
            "a patch of {}, which does not run here ({} does)",
            owner.unwrap_or_default(),
            e.unwrap_or_default()
        );
        let choice = Choice::Patches((*name).clone());
        return Err(Refused::new(choice, Error::new(what)));
    }
    Ok(out)
}

/// Varies a setting in the experiments whose scheduler has it; the others stay
/// as they are.
fn set_where_known(
    cells: Vec<Cell>,
    place: usize,
    setting: &Setting,
    catalogue: &Catalogue,
) -> Result<Vec<Cell>, Refused> {
    let mut out = Vec::new();
    for mut cell in cells {
        if cell.experiment.can_set(&setting.key, catalogue) {
            let mut own = vec![cell];
            set_all(&mut own, place, setting, catalogue)?;
            out.append(&mut own);
        } else {
            let e = &mut cell.experiment;
            e.remarks.push(e.runs_without(&setting.key));
            out.push(cell);
        }
    }
    Ok(out)
}

fn set_all(
    cells: &mut Vec<Cell>,
    place: usize,
    setting: &Setting,
    catalogue: &Catalogue,
) -> Result<(), Refused> {
    let Setting { key, values } = setting;
    vary(cells, key, values, String::clone, |e, v| {
        let set = e.set(key, v, catalogue);
        set.map_err(|err| Refused::new(Choice::Setting(place), err))
    })
}

/// Replaces each cell by one for each value.
fn vary<T>(
    cells: &mut Vec<Cell>,
    key: &str,
    values: &[T],
    shown: impl Fn(&T) -> String,
    apply: impl Fn(&mut Experiment, &T) -> Result<(), Refused>,
) -> Result<(), Refused> {
    if values.is_empty() {
        return Ok(());
    }
    let mut out = Vec::with_capacity(cells.len() * values.len());
    for cell in cells.iter() {
        for value in values {
            let mut c = cell.clone();
            apply(&mut c.experiment, value)?;
            if values.len() > 1 {
                c.label.push((key.to_owned(), shown(value)));
            }
            out.push(c);
        }
    }
    *cells = out;
    Ok(())
}

#[cfg(test)]
mod tests;
