// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the text of job files to jobs.
//!
//! Everything the text may refer to outside itself (environment, included
//! files, facts about the machine) comes through [`Surroundings`], so parsing
//! depends on its arguments alone.
//!
//! ```
//! use blklab_fio::parse::{Fixed, ParseOptions, parse};
//! let text = "[global]\nioengine=null\nsize=1m\n[a]\nrw=randread\n";
//! let jobs = parse("x.fio", text, &ParseOptions::default(), &Fixed::default()).unwrap().jobs;
//! assert_eq!(jobs[0].files, ["a.0.0"]);
//! ```

mod flows;
mod names;
mod recordings;
mod spell_out;
mod steady;

pub use crate::surroundings::{Fixed, ParseOptions, Recording, Surroundings};
pub use recordings::log_names;
pub use spell_out::Rename;

use crate::apply::read;
use crate::assign::assign;
use crate::error::{JobFileError, Note, Problem};
use crate::expand::expand;
use crate::job::{Job, OptionPlaces};
use crate::lists::priorities_have_hints;
use crate::option::{Effect, Kind, OptionSpec, Queueing, engine_options, find};
use crate::settings::{Settings, ZoneMode};
use crate::suggest::nearest_option;
use crate::text::{Line, Section, sections};
use blklab_types::Place;
use blklab_types::shown;
use names::own_file_names;

/// Most jobs, clones included (as in fio).
pub const JOBS_MAX: usize = 4096;
/// Most files over all jobs.
pub const FILES_MAX: usize = 1 << 20;

/// The jobs of one or several files.
#[derive(Clone, Debug, Default)]
pub struct JobFile {
    /// In thread order.
    pub jobs: Vec<Job>,
    /// What is worth saying about accepted options.
    pub notes: Vec<Note>,
    /// Logs that the jobs replay, as the job file names them.
    pub logs: Vec<String>,
    /// Options of the global sections as written.
    pub global_options: Vec<(&'static str, Option<String>)>,
    /// The sections that were wanted, with what they include in place.
    sections: Vec<Section>,
}

/// Reads one job file. The name is for messages and for finding included
/// files beside it.
///
/// # Errors
/// Everything that is wrong with the first bad section.
pub fn parse(
    file: &str,
    text: &str,
    options: &ParseOptions,
    around: &dyn Surroundings,
) -> Result<JobFile, JobFileError> {
    parse_files(&[(file, text)], options, around)
}

/// Reads several job files as one run: each starts from the defaults, and the
/// first job of every file but the first waits for all earlier jobs.
///
/// # Errors
/// Everything that is wrong with the first bad section.
pub fn parse_files(
    files: &[(&str, &str)],
    options: &ParseOptions,
    around: &dyn Surroundings,
) -> Result<JobFile, JobFileError> {
    let mut reader = Reader {
        out: JobFile::default(),
        options,
        around,
        jobs_in_group: 0,
        group: 0,
        files_total: 0,
        names: Vec::new(),
    };
    for (at, (file, text)) in files.iter().enumerate() {
        reader.read_file(file, text, at == 0)?;
    }
    if reader.out.jobs.is_empty() {
        let file = files.first().map_or("", |(file, _)| file);
        let place = Place {
            file: file.to_owned(),
            line: 0,
        };
        return Err(JobFileError {
            no_jobs_in: Some(reader.names),
            ..JobFileError::at(&place, "No job(s) defined")
        });
    }
    flows::check(&reader.out.jobs)?;
    steady::check(&reader.out.jobs)?;
    steady::notes(&reader.out.jobs, &mut reader.out.notes);
    recordings::load(&mut reader.out, around)?;
    Ok(reader.out)
}

/// What sections have set so far.
#[derive(Clone, Default)]
struct Given {
    settings: Settings,
    places: OptionPlaces,
}

struct Reader<'a> {
    out: JobFile,
    options: &'a ParseOptions,
    around: &'a dyn Surroundings,
    jobs_in_group: u32,
    group: u32,
    files_total: usize,
    /// The names of all sections that could make jobs.
    names: Vec<String>,
}

impl Reader<'_> {
    fn read_file(&mut self, file: &str, text: &str, first: bool) -> Result<(), JobFileError> {
        let sections = sections(file, text, self.options, self.around)?;
        self.names.extend(sections.names);
        let sections = sections.wanted;
        let mut template = Given::default();
        if first && !self.options.template.is_empty() {
            self.read_template(&mut template)?;
        }
        let mut separate = !first;
        for section in &sections {
            if section.is_global() {
                let options = self.read_options(section, &mut template)?;
                self.out.global_options.extend(options);
                continue;
            }
            let mut given = template.clone();
            if std::mem::take(&mut separate) {
                given.settings.stonewall = true;
            }
            let options = self.read_options(section, &mut given)?;
            let Given { settings, places } = given;
            let place = section.place.clone();
            let job = Job::new(&section.name, place, settings, options, places);
            self.add_with_clones(job)?;
        }
        self.out.sections.extend(sections);
        Ok(())
    }

    fn read_template(&mut self, template: &mut Given) -> Result<(), JobFileError> {
        let place = Place {
            file: "command line".to_owned(),
            line: 0,
        };
        let line = |text: &String| Line {
            place: place.clone(),
            text: text.clone(),
            is_kept: false,
        };
        let lines = self.options.template.iter().map(line).collect();
        let section = Section {
            name: "global".to_owned(),
            place: place.clone(),
            lines,
        };
        let options = self.read_options(&section, template)?;
        self.out.global_options.extend(options);
        Ok(())
    }

    /// Applies the lines of a section and returns what was given.
    fn read_options(
        &mut self,
        section: &Section,
        given: &mut Given,
    ) -> Result<Vec<(&'static str, Option<String>)>, JobFileError> {
        let mut options = Vec::new();
        let mut problems = Vec::new();
        let mut unknown = Vec::new();
        for line in in_order(&section.lines) {
            let Some(spec) = find(split(&line.text).0) else {
                unknown.push(line);
                continue;
            };
            self.read_option(spec, line, given, &mut options, &mut problems);
        }
        for line in unknown {
            let own = engine_options(&given.settings.ioengine);
            match own.iter().find(|spec| spec.is_called(split(&line.text).0)) {
                Some(spec) => self.read_option(spec, line, given, &mut options, &mut problems),
                None => problems.push(Problem {
                    place: line.place.clone(),
                    message: if line.is_kept {
                        "not an option of fio".to_owned()
                    } else {
                        format!("Bad option <{}>", shown(&line.text))
                    },
                    hint: nearest_option(&line.text).map(|name| format!("Did you mean {name}?")),
                }),
            }
        }
        if problems.is_empty() {
            return Ok(options);
        }
        problems.sort_by_key(|problem| problem.place.line);
        Err(JobFileError {
            problems,
            dropped: Some(section.name.clone()),
            no_jobs_in: None,
        })
    }

    fn read_option(
        &mut self,
        spec: &'static OptionSpec,
        line: &Line,
        given: &mut Given,
        options: &mut Vec<(&'static str, Option<String>)>,
        problems: &mut Vec<Problem>,
    ) {
        let settings = &mut given.settings;
        let applied = expand(&line.text, self.around).and_then(|text| {
            let (_, value) = split(&text);
            let read = read(spec, value, settings.kb_base)?;
            assign(settings, spec.name, &read)?;
            match spec.name {
                "directory" => self.check_directories(settings)?,
                "zonemode" => check_zone_mode(settings)?,
                _ => {}
            }
            match spec.effect {
                Effect::Refused(why) if !spec.is_default(value) => Err(why.to_owned()),
                _ => Ok(value.map(str::to_owned)),
            }
        });
        match applied {
            Ok(value) => {
                self.note(spec, line, value.as_deref());
                if spec.effect == Effect::Reporting {
                    let without_value = match spec.kind {
                        Kind::OptionalText => "",
                        _ => "1",
                    };
                    let text = value.clone().unwrap_or_else(|| without_value.to_owned());
                    settings.reporting.insert(spec.name, text);
                }
                given.places.insert(spec.name, line.place.clone());
                options.push((spec.name, value));
            }
            Err(why) => problems.push(Problem {
                place: line.place.clone(),
                message: if line.is_kept {
                    format!("fio: failed parsing {}: {why}", spec.name)
                } else {
                    format!("fio: failed parsing {}: {why}", shown(&line.text))
                },
                hint: None,
            }),
        }
    }

    fn check_directories(&self, settings: &Settings) -> Result<(), String> {
        let list = settings.directory.as_deref().unwrap_or_default();
        match list.split(':').find(|path| !self.around.is_directory(path)) {
            Some(path) => Err(format!("fio: {path} is not a directory")),
            None => Ok(()),
        }
    }

    /// Says so if the option does less here than in fio.
    fn note(&mut self, spec: &OptionSpec, line: &Line, value: Option<&str>) {
        let text = match (spec.effect, spec.kind) {
            _ if spec.name == "cmdprio_bssplit" && value.is_some_and(priorities_have_hints) => {
                "fio 3.33 does not read hints of command duration limits"
            }
            _ if spec.is_default(value) => return,
            (_, Kind::Deprecated { .. }) => "the option is deprecated and does nothing",
            (Effect::Unsupported(text), _) => text,
            _ => return,
        };
        let note = Note {
            place: line.place.clone(),
            option: spec.name,
            text: text.to_owned(),
        };
        if !self.out.notes.contains(&note) {
            self.out.notes.push(note);
        }
    }

    fn say(&mut self, place: &Place, text: String) {
        self.out.notes.push(Note {
            place: place.clone(),
            option: "",
            text,
        });
    }

    /// Adds a section's job and its clones.
    fn add_with_clones(&mut self, job: Job) -> Result<(), JobFileError> {
        let place = job.place.clone();
        let clones = job.settings.numjobs;
        if clones == 0 || self.out.jobs.len() + clones as usize > JOBS_MAX {
            let message =
                format!("error: maximum number of jobs ({JOBS_MAX}) reached: numjobs={clones}");
            return Err(JobFileError {
                dropped: Some(job.section),
                no_jobs_in: None,
                ..JobFileError::at(&place, message)
            });
        }
        self.note_engine(&job);
        let own_files = job.settings.file_names.is_empty();
        let parent = self.out.jobs.len();
        self.add(job, own_files)?;
        for subjob in (1..clones).rev() {
            let clone = self.out.jobs[parent].clone_as(subjob);
            self.add(clone, own_files)?;
        }
        Ok(())
    }

    fn note_engine(&mut self, job: &Job) {
        let place = job.place.clone();
        let name = &job.settings.ioengine;
        match job.engine() {
            None => self.say(
                &place,
                format!("ioengine {name}: fio 3.33 does not have this engine"),
            ),
            Some(engine) if engine.queueing == Queueing::NoData => {
                self.say(
                    &place,
                    format!(
                        "job '{}' is left out: ioengine={name} moves no data; what it does to \
                         processors and files is not modelled",
                        job.name
                    ),
                );
            }
            Some(engine) if engine.queueing == Queueing::NotModelled => {
                self.say(
                    &place,
                    format!("ioengine {name}: this engine is not modelled"),
                );
            }
            Some(_) => {}
        }
    }

    fn add(&mut self, mut job: Job, own_files: bool) -> Result<(), JobFileError> {
        let place = job.place.clone();
        let refuse = |message: String, section: &str| JobFileError {
            dropped: Some(section.to_owned()),
            no_jobs_in: None,
            ..JobFileError::at(&place, message)
        };
        let count = if own_files {
            job.settings.nrfiles as usize
        } else {
            job.settings.file_names.len()
        };
        self.files_total = self.files_total.saturating_add(count);
        if self.files_total > FILES_MAX {
            return Err(refuse(format!("more than {FILES_MAX} files"), &job.section));
        }
        job.files = if own_files {
            own_file_names(&job, self.around)
        } else {
            job.settings.file_names.clone()
        };
        let thread = self.out.jobs.len() as u32 + 1;
        job.release = self.options.release;
        let entropy = self.options.entropy.wrapping_add(u64::from(thread));
        let warnings = job
            .fix_up(thread, entropy)
            .map_err(|message| refuse(message, &job.section))?;
        if let Some(wanted) = &job.settings.wait_for {
            self.check_wait_for(wanted, &job)
                .map_err(|message| refuse(message, &job.section))?;
        }
        if job.subjob == 0 {
            for warning in warnings {
                self.say(&place, warning);
            }
        }
        if (job.settings.stonewall || job.settings.new_group) && self.jobs_in_group > 0 {
            self.jobs_in_group = 0;
            self.group += 1;
        }
        job.group = self.group;
        self.jobs_in_group += 1;
        self.out.jobs.push(job);
        Ok(())
    }

    fn check_wait_for(&self, wanted: &str, job: &Job) -> Result<(), String> {
        if job.name == wanted {
            return Err(format!(
                "{0}: a job cannot wait for itself (wait_for={0})",
                shown(wanted)
            ));
        }
        match self
            .out
            .jobs
            .iter()
            .filter(|other| other.subjob == 0 && other.name == wanted)
            .count()
        {
            1 => Ok(()),
            0 => Err(format!(
                "wait_for={}: no earlier job has that name",
                shown(wanted)
            )),
            _ => Err(format!(
                "wait_for={}: several jobs have that name",
                shown(wanted)
            )),
        }
    }
}

/// Write pointers and resets of zones decide the offsets on a zoned device.
/// None is modelled, and plain offsets would be another workload.
fn check_zone_mode(settings: &Settings) -> Result<(), String> {
    match settings.zonemode {
        ZoneMode::Zbd => Err(
            "zoned devices are not modelled; zonemode=strided works on any device, and \
             zonemode=none"
                .to_owned(),
        ),
        ZoneMode::None | ZoneMode::Strided => Ok(()),
    }
}

/// The lines in the order in which fio evaluates them: what others depend on
/// first, files last.
fn in_order(lines: &[Line]) -> Vec<&Line> {
    let rank = |line: &&Line| match find(split(&line.text).0).map(|spec| spec.name) {
        Some("kb_base" | "unit_base" | "lockfile" | "cpus_allowed_policy") => 0,
        Some("filename" | "filename_format") => 2,
        _ => 1,
    };
    let mut out: Vec<&Line> = lines.iter().collect();
    out.sort_by_key(rank);
    out
}

/// Name and value. Blanks behind the name go, those before the value stay.
fn split(line: &str) -> (&str, Option<&str>) {
    match line.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value)),
        None => (line.trim_end(), None),
    }
}

#[cfg(test)]
mod tests;
