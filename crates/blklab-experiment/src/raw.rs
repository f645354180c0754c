// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files as they are written.

use crate::choose::{DEFAULT_KERNEL, MEASURED_KERNEL};
use crate::input::ReadFile;
use crate::settings::{Home, Setting};
use crate::{
    Catalogue, Cgroup, DeviceSpec, DmLayer, DmSpec, Experiment, FilesystemSpec, MdOptions, MdSpec,
    Published, TraceSpec, Variant, Workload,
};
use blklab_kernel::{KernelVersion, is_file_of_queue};
use blklab_types::{Error, ErrorKind, no_such, shown};
use blklab_workload::Process;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A scalar of a table whose keys are known only to whoever it is for.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, a text, true or false")]
pub(crate) enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Scalar::Bool(b) => u8::from(*b).to_string(),
            Scalar::Int(i) => i.to_string(),
            Scalar::Float(x) => x.to_string(),
            Scalar::Text(s) => s.clone(),
        }
    }
}

impl Scalar {
    /// A whole number, or the text of one, as written to sysfs.
    fn whole(&self) -> Option<i64> {
        match self {
            Scalar::Bool(b) => Some(i64::from(*b)),
            Scalar::Int(i) => Some(*i),
            Scalar::Float(_) => None,
            Scalar::Text(s) => s.trim().parse().ok(),
        }
    }
}

type Table = BTreeMap<String, Scalar>;

/// The keys of an experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawExperiment {
    /// Format of the file; files of people need not say it.
    #[serde(rename = "format")]
    _format: Option<u32>,
    id: Option<String>,
    #[serde(default)]
    title: String,
    /// Free text for readers of the file.
    #[serde(default, rename = "notes")]
    _notes: String,
    kernel: Option<String>,
    hz: Option<u32>,
    without: Option<String>,
    target: Option<String>,
    kernel_source: Option<String>,
    scheduler: Option<String>,
    #[serde(default)]
    tunables: Table,
    /// The same, by the name of the folder in sysfs.
    #[serde(default)]
    iosched: Table,
    #[serde(default)]
    patches: Vec<String>,
    #[serde(default)]
    queue: Table,
    device: Option<Table>,
    md: Option<RawMd>,
    dm: Option<RawDm>,
    filesystem: Option<RawFilesystem>,
    fs: Option<RawMounted>,
    #[serde(default)]
    vm: Table,
    fio: Option<Scalar>,
    seed: Option<u64>,
    vary_offsets: Option<bool>,
    #[serde(default)]
    cgroup: BTreeMap<String, BTreeMap<String, RawFile>>,
    processes: Option<Vec<Process>>,
    job: Option<String>,
    job_file: Option<String>,
    scenario: Option<Table>,
    replay: Option<Table>,
    #[serde(default)]
    sections: Vec<String>,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default, rename = "variant")]
    variants: Vec<RawVariant>,
    /// Of a measured case: files of the root group.
    #[serde(default)]
    guest: BTreeMap<String, RawFile>,
    /// Of a measured case: how long it was measured, in s.
    seconds: Option<u32>,
    /// Of a measured case: whether its block events were recorded.
    trace: Option<bool>,
}

/// What is written to a file of a control group. The name of the file may have
/// been taken apart at its dots.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number or a text")]
enum RawFile {
    Text(Scalar),
    Below(BTreeMap<String, RawFile>),
}

impl RawFile {
    /// Names of files and texts, with the dots put back.
    fn collect(self, name: String, out: &mut Vec<(String, String)>) {
        match self {
            RawFile::Text(text) => out.push((name, text.text())),
            RawFile::Below(files) => {
                for (part, file) in files {
                    file.collect(format!("{name}.{part}"), out);
                }
            }
        }
    }
}

/// The filesystem of a measured case: made and mounted with its defaults.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMounted {
    #[serde(rename = "type")]
    name: String,
}

/// Devices of device mapper: a text as the option takes it, a table with a `kind`, or
/// several of these, the lowest first.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the kind of a device of device mapper, or tables with one"
)]
enum RawDm {
    Text(String),
    One(Table),
    Several(Vec<Table>),
}

impl RawDm {
    fn resolve(self) -> Result<DmSpec, Error> {
        let tables = match self {
            RawDm::Text(text) => return DmSpec::parse(&text),
            RawDm::One(table) => vec![table],
            RawDm::Several(tables) => tables,
        };
        let layers = tables.into_iter().map(|mut table| {
            let Some(kind) = table.remove("kind") else {
                let what = "dm: no 'kind', as in kind = \"crypt\"";
                return Err(Error::new(what).about("dm"));
            };
            let params = table.into_iter().map(|(k, v)| (k, v.text()));
            DmLayer::new(&kind.text(), &params.collect::<Vec<_>>())
        });
        DmSpec::new(layers.collect::<Result<_, _>>()?)
    }
}

/// A name, perhaps with options, or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected the name of a filesystem, or a table with one"
)]
enum RawFilesystem {
    Name(String),
    Table(Table),
}

impl RawFilesystem {
    fn resolve(self, catalogue: &Catalogue) -> Result<FilesystemSpec, Error> {
        match self {
            RawFilesystem::Name(text) => FilesystemSpec::parse(&text, catalogue),
            RawFilesystem::Table(mut table) => {
                let Some(name) = table.remove("name") else {
                    let what = "filesystem: no 'name', as in name = \"ext3\"";
                    return Err(Error::new(what).about("filesystem"));
                };
                let options = table.into_iter().map(|(k, v)| (k, v.text()));
                FilesystemSpec::new(&name.text(), options.collect(), catalogue)
            }
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    name: String,
    kernel: Option<String>,
    scheduler: Option<String>,
    #[serde(default)]
    patches: Vec<String>,
    #[serde(default)]
    set: Table,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMd {
    level: String,
    members: Option<u32>,
    chunk_kb: Option<u32>,
    layout: Option<String>,
    bitmap: Option<String>,
}

impl RawExperiment {
    /// Whether the file describes a measurement: then it is one on
    /// [`MEASURED_KERNEL`] unless it names another kernel.
    fn is_measured(&self) -> bool {
        self.seconds.is_some() || self.trace.is_some()
    }

    /// The scheduler, which the file may name at the top or, as sysfs does,
    /// among the files of the queue.
    fn scheduler(&mut self) -> Result<Option<String>, Error> {
        let in_queue = self.queue.remove("scheduler");
        match (self.scheduler.take(), in_queue.map(|name| name.text())) {
            (Some(_), Some(_)) => Err(Error::new(
                "the scheduler is given twice: as scheduler and in [queue]",
            )
            .about("queue.scheduler")),
            (top, queue) => Ok(top.or(queue)),
        }
    }

    /// The tunables that the file has among the files of the queue, as newer kernels do.
    fn tunables_of_queue(&mut self) -> Table {
        let all = std::mem::take(&mut self.queue).into_iter();
        let (tunables, files) =
            all.partition(|(name, _)| is_file_of_queue(name, KernelVersion::FOREVER));
        self.queue = files;
        tunables
    }

    /// The scheduler's tunables: `[tunables]`, then `[iosched]`, then those in `[queue]`.
    fn tunables(&self, in_queue: &Table) -> Result<Vec<(String, i64)>, Error> {
        let mut all: Vec<(String, i64)> = Vec::new();
        for (table, values) in [
            ("tunables", &self.tunables),
            ("iosched", &self.iosched),
            ("queue", in_queue),
        ] {
            for (key, value) in values {
                let place = format!("{table}.{key}");
                let value = value.whole().ok_or_else(|| {
                    let what = format!(
                        "{table}: {} = {}: not a whole number",
                        shown(key),
                        shown(&value.text())
                    );
                    Error::new(what).about(place.as_str())
                })?;
                if all.iter().any(|(k, _)| k == key) {
                    let is_first = self.tunables.contains_key(key);
                    let first = if is_first { "tunables" } else { "iosched" };
                    let what = format!("{key} is given twice: in [{first}] and in [{table}]");
                    return Err(Error::new(what).about(place));
                }
                all.push((key.clone(), value));
            }
        }
        Ok(all)
    }

    /// The filesystem: `filesystem`, or the table `[fs]` of a measured case.
    fn filesystem(&mut self, catalogue: &Catalogue) -> Result<Option<FilesystemSpec>, Error> {
        match (self.filesystem.take(), self.fs.take()) {
            (Some(_), Some(_)) => Err(Error::new(
                "the filesystem is given twice: as filesystem and in [fs]",
            )
            .about("fs")),
            (Some(f), None) => f.resolve(catalogue).map(Some),
            (None, Some(fs)) => FilesystemSpec::new(&fs.name, Vec::new(), catalogue)
                .map(Some)
                .map_err(|e| Error {
                    key: "fs.type".into(),
                    ..e
                }),
            (None, None) => Ok(None),
        }
    }

    /// Refuses a second workload.
    fn check_workloads(&self) -> Result<(), Error> {
        let all = [
            ("processes", self.processes.is_some()),
            ("job", self.job.is_some()),
            ("job_file", self.job_file.is_some()),
            ("scenario", self.scenario.is_some()),
            ("replay", self.replay.is_some()),
        ];
        let mut given = all.iter().filter(|(_, is_given)| *is_given);
        match given.nth(1) {
            None => Ok(()),
            Some((second, _)) => Err(Error::new(
                "more than one workload: give one of 'processes', 'job', 'job_file', 'scenario' and \
                 'replay'",
            )
            .about(*second)),
        }
    }

    /// The value, with job files read through `read_file`.
    pub(crate) fn resolve(
        mut self,
        name: &str,
        stem: &str,
        read_file: &ReadFile<'_>,
        catalogue: &Catalogue,
    ) -> Result<Experiment, Error> {
        self.check_workloads()?;
        let scheduler = self.scheduler()?;
        let in_queue = self.tunables_of_queue();
        check_names(Home::Queue, "key", &self.queue)?;
        check_names(Home::Machine, "setting", &self.vm)?;
        let tunables = self.tunables(&in_queue)?;
        let filesystem = self.filesystem(catalogue)?;
        let is_measured = self.is_measured();
        let scenario = self
            .scenario
            .map(|table| resolve_scenario(table, catalogue))
            .transpose()?;
        let replay = self.replay.map(|table| resolve_replay(name, table));
        let replay = replay.transpose()?;
        let is_scenario = scenario.is_some();
        let workload = match (self.processes, self.job, self.job_file, replay) {
            _ if is_scenario => Workload::Processes(Vec::new()),
            (Some(p), ..) => Workload::Processes(p),
            (_, Some(text), ..) => Workload::Fio {
                name: format!("{name} (job)"),
                text,
            },
            (_, _, Some(file), _) => {
                let (name, text) = read_file(&file).map_err(|e| {
                    let what = format!("job_file: {e}");
                    Error::new(what).about("job_file")
                })?;
                Workload::Fio { name, text }
            }
            (.., Some(spec)) => Workload::Trace(spec),
            (None, None, None, None) => {
                return Err(Error::new(
                    "no workload: give 'processes', 'job' (fio job text), 'job_file', 'scenario' or \
                     'replay'",
                ));
            }
        };
        let id = self.id.as_deref().unwrap_or(stem);
        let mut e = match scenario {
            Some(e) => Experiment {
                id: id.to_owned(),
                ..e
            },
            None => Experiment::new(id, workload),
        };
        e.file = name.to_owned();
        if !self.title.is_empty() || !is_scenario {
            e.title = self.title;
        }
        match &self.kernel {
            Some(v) => e.choose_kernel(v.parse()?, catalogue),
            None if is_scenario => {}
            None if is_measured => e.choose_kernel(MEASURED_KERNEL, catalogue),
            None => e.choose_kernel(DEFAULT_KERNEL, catalogue),
        }
        if let Some(scheduler) = scheduler {
            e.scheduler = scheduler;
            e.scheduler_chosen = true;
        }
        e.tunables = tunables;
        e.patches = self.patches;
        if let Some(target) = &self.target {
            e.set("target", target, catalogue)?;
        }
        if let Some(tree) = &self.kernel_source {
            e.set("kernel_source", tree, catalogue)?;
        }
        if let Some(without) = &self.without {
            e.set("without", without, catalogue)?;
        }
        if let Some(hz) = self.hz {
            e.set("hz", &hz.to_string(), catalogue)?;
        }
        if let Some(fio) = self.fio {
            e.set("fio", &fio.text(), catalogue)?;
        }
        e.seed = self.seed.unwrap_or(0);
        e.vary_offsets = self.vary_offsets.unwrap_or(false);
        read_settings(&mut e, Home::Queue, &self.queue, catalogue)?;
        if let Some(table) = self.device {
            resolve_device(&mut e, table, catalogue)?;
        }
        if let Some(md) = self.md {
            let members = md.members.unwrap_or(2);
            let options = MdOptions {
                chunk_kb: md.chunk_kb,
                layout: md.layout,
                bitmap: md.bitmap,
            };
            e.md = Some(MdSpec::new(&md.level, members, &options)?);
        }
        if let Some(dm) = self.dm {
            e.dm = dm.resolve()?;
        }
        if let Some(filesystem) = filesystem {
            e.filesystem = filesystem;
        }
        read_settings(&mut e, Home::Machine, &self.vm, catalogue)?;
        let root = (!self.guest.is_empty()).then_some((Cgroup::ROOT.to_owned(), self.guest));
        for (name, table) in root.into_iter().chain(self.cgroup) {
            let mut files = Vec::new();
            for (file, text) in table {
                text.collect(file, &mut files);
            }
            e.add_cgroup(&name, &files)?;
        }
        e.sections = self.sections;
        e.published = self.published;
        for v in self.variants {
            let v = v.resolve()?;
            if e.variants.iter().any(|o| o.name == v.name) {
                let what = format!("two variants are called '{}'", shown(&v.name));
                return Err(Error::new(what).about(format!("variant.\"{}\"", v.name)));
            }
            e.variants.push(v);
        }
        Ok(e)
    }
}

impl RawVariant {
    fn resolve(self) -> Result<Variant, Error> {
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            let what = "variant: its name is empty or has a control character";
            return Err(Error::new(what).about("variant"));
        }
        let kernel = self.kernel.map(|v| v.parse()).transpose()?;
        let settings = self.set.into_iter().map(|(k, v)| (k, v.text()));
        Ok(Variant {
            name: self.name,
            kernel,
            scheduler: self.scheduler,
            patches: self.patches,
            settings: settings.collect(),
        })
    }
}

/// Reads a table of settings.
fn read_settings(
    e: &mut Experiment,
    home: Home,
    table: &Table,
    catalogue: &Catalogue,
) -> Result<(), Error> {
    let name = home.table();
    for (key, value) in table {
        let place = format!("{name}.{key}");
        let about = |err: Error| Error {
            key: place.as_str().into(),
            ..err
        };
        if let Some(row) = home.settings().find(|s| s.name() == key) {
            row.set_in_file(e, &value.text(), catalogue)
                .map_err(about)?;
        } else if let Some(row) = home.settings().find(|s| s.fine_name() == Some(key)) {
            if table.contains_key(row.name()) {
                let what = format!("{name}: give {key} or {}, not both", row.name());
                return Err(about(Error::new(what)));
            }
            row.set_fine_in_file(e, &value.text()).map_err(about)?;
        }
    }
    Ok(())
}

/// Refuses a key of a table of settings that names none. A message calls it a
/// `what`.
fn check_names(home: Home, what: &str, table: &Table) -> Result<(), Error> {
    let is_known = |key: &&String| {
        let mut names = home.settings().map(|s| (s.name(), s.fine_name()));
        names.any(|(name, fine)| name == *key || fine == Some(key))
    };
    match table.keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let valid: Vec<&str> = home.settings().map(Setting::name).collect();
            let name = home.table();
            let what = format!("{name}: {}", no_such(what, key, &valid));
            Err(Error::new(what).about(format!("{name}.{key}")))
        }
    }
}

/// `trace` names the trace, which counts from the folder of the experiment file `name`.
fn resolve_replay(name: &str, mut table: Table) -> Result<TraceSpec, Error> {
    let Some(file) = table.remove("trace") else {
        let what = "replay: no 'trace', as in trace = \"sda.blktrace.0\"";
        return Err(Error::new(what).about("replay"));
    };
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let mut spec = TraceSpec::new(&folder.join(file.text()).display().to_string());
    for (key, value) in table {
        spec.set(&key, &value.text())?;
    }
    Ok(spec)
}

/// `name` names the scenario; everything else is a parameter of it.
fn resolve_scenario(mut table: Table, catalogue: &Catalogue) -> Result<Experiment, Error> {
    let Some(name) = table.remove("name") else {
        let what = "scenario: no 'name', as in name = \"dd+ssh\"";
        return Err(Error::new(what)
            .of_kind(ErrorKind::UnknownName)
            .about("scenario"));
    };
    let mut e = Experiment::of_scenario(&name.text(), catalogue)?;
    if let Workload::Scenario(s) = &mut e.workload {
        for (key, value) in table {
            s.set(&key, &value.text())
                .map_err(|e| e.within("scenario").about(format!("scenario.{key}")))?;
        }
    }
    Ok(e)
}

fn resolve_device(e: &mut Experiment, table: Table, catalogue: &Catalogue) -> Result<(), Error> {
    let device = device_spec(table, &e.file, catalogue)?;
    e.choose_device(device, catalogue)
}

/// The keys of a file that describes a device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDevice {
    /// Format of the file; files of people need not say it.
    #[serde(rename = "format")]
    _format: Option<u32>,
    device: Table,
}

impl RawDevice {
    /// The device of such a file.
    pub(crate) fn resolve(self, file: &str, catalogue: &Catalogue) -> Result<DeviceSpec, Error> {
        device_spec(self.device, file, catalogue)
    }
}

/// `law`, `name` or `kind` names the device; `queue_depth` and `fetch` are the
/// driver's; everything else is a parameter of the device. Paths count from
/// the folder of the file.
fn device_spec(mut table: Table, file: &str, catalogue: &Catalogue) -> Result<DeviceSpec, Error> {
    let name = ["law", "name", "kind"]
        .iter()
        .find_map(|k| table.remove(*k));
    let Some(name) = name else {
        return Err(
            Error::new("device: no 'name', as in name = \"sata-7200-2008\"")
                .of_kind(ErrorKind::UnknownName)
                .about("device"),
        );
    };
    let name = name.text();
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let rows = catalogue.device_rows(&name).unwrap_or_default();
    let is_path = |key: &str| rows.iter().any(|row| row.is_called(key) && row.is_path());
    let value = |key: &str, value: &Scalar| {
        if is_path(key) {
            folder.join(value.text()).display().to_string()
        } else {
            value.text()
        }
    };
    let params = table.iter().map(|(k, v)| (k.clone(), value(k, v)));
    let params = params.collect();
    Ok(DeviceSpec { name, params })
}
