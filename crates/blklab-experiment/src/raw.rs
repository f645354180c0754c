// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiment files as they are written.

use crate::experiment::{DEFAULT_KERNEL, DeviceSpec, Published, QueueSettings, Variant, Vm};
use crate::load::ReadFile;
use crate::set::MACHINE_TUNABLES;
use crate::{Experiment, ExperimentError, Workload, no_such, set};
use blklab_block::Fetch;
use blklab_types::Hz;
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
    id: Option<String>,
    #[serde(default)]
    title: String,
    /// Free text for readers of the file.
    #[serde(default, rename = "notes")]
    _notes: String,
    kernel: Option<String>,
    hz: Option<u32>,
    scheduler: Option<String>,
    #[serde(default)]
    tunables: Table,
    #[serde(default)]
    patches: Vec<String>,
    #[serde(default)]
    queue: RawQueue,
    device: Option<Table>,
    #[serde(default)]
    vm: Table,
    seed: Option<u64>,
    processes: Option<Vec<Process>>,
    job: Option<String>,
    job_file: Option<String>,
    #[serde(default)]
    sections: Vec<String>,
    #[serde(default)]
    published: Vec<Published>,
    #[serde(default, rename = "variant")]
    variants: Vec<RawVariant>,
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQueue {
    nr_requests: Option<u32>,
    max_sectors: Option<u32>,
    max_sectors_kb: Option<u32>,
    max_segments: Option<u32>,
    rotational: Option<bool>,
    nomerges: Option<u8>,
    read_ahead_kb: Option<u32>,
    partition_start: Option<u32>,
}

impl RawExperiment {
    /// The value, with job files read through `read_file`.
    pub(crate) fn resolve(
        self,
        name: &str,
        stem: &str,
        read_file: &ReadFile<'_>,
    ) -> Result<Experiment, ExperimentError> {
        let workload = match (self.processes, self.job, self.job_file) {
            (Some(p), None, None) => Workload::Processes(p),
            (None, Some(text), None) => Workload::Fio {
                name: format!("{name} (job)"),
                text,
            },
            (None, None, Some(file)) => {
                let (name, text) = read_file(&file).map_err(|e| {
                    let what = format!("job_file: {e}");
                    ExperimentError::new(what).about("job_file")
                })?;
                Workload::Fio { name, text }
            }
            (None, None, None) => {
                return Err(ExperimentError::new(
                    "no workload: give 'processes', 'job' (fio job text) or 'job_file'",
                ));
            }
            _ => {
                return Err(ExperimentError::new(
                    "more than one workload: give one of 'processes', 'job' and 'job_file'",
                ));
            }
        };
        let mut e = Experiment::new(self.id.as_deref().unwrap_or(stem), workload);
        e.file = name.to_owned();
        e.title = self.title;
        e.choose_kernel(match &self.kernel {
            Some(v) => v.parse()?,
            None => DEFAULT_KERNEL,
        });
        if let Some(hz) = self.hz {
            e.hz = set::parse_hz(hz)?;
        } else {
            e.hz = Hz::default();
        }
        if let Some(scheduler) = self.scheduler {
            e.scheduler = scheduler;
            e.scheduler_chosen = true;
        }
        for (key, value) in &self.tunables {
            let value = value.whole().ok_or_else(|| {
                let what = format!("tunables: {key} = {}: not a whole number", value.text());
                ExperimentError::new(what).about(format!("tunables.{key}"))
            })?;
            e.tunables.push((key.clone(), value));
        }
        e.patches = self.patches;
        e.queue = self.queue.resolve()?;
        if let Some(table) = self.device {
            resolve_device(&mut e, table)?;
        }
        e.vm = Vm::default();
        for (key, value) in self.vm {
            let place = format!("vm.{key}");
            if !MACHINE_TUNABLES.iter().any(|t| t.name == key) {
                let valid: Vec<&str> = MACHINE_TUNABLES.iter().map(|t| t.name).collect();
                let what = format!("vm: {}", no_such("setting", &key, &valid));
                return Err(ExperimentError::new(what).about(place));
            }
            e.set(&key, &value.text())
                .map_err(|e| ExperimentError { key: place, ..e })?;
        }
        e.seed = self.seed.unwrap_or(0);
        e.sections = self.sections;
        e.published = self.published;
        for v in self.variants {
            let v = v.resolve()?;
            if e.variants.iter().any(|o| o.name == v.name) {
                let what = format!("two variants are called '{}'", v.name);
                return Err(ExperimentError::new(what).about("variant"));
            }
            e.variants.push(v);
        }
        Ok(e)
    }
}

impl RawVariant {
    fn resolve(self) -> Result<Variant, ExperimentError> {
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            let what = "variant: its name is empty or has a control character";
            return Err(ExperimentError::new(what).about("variant"));
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

impl RawQueue {
    fn resolve(self) -> Result<QueueSettings, ExperimentError> {
        let max_sectors = match (self.max_sectors, self.max_sectors_kb) {
            (Some(_), Some(_)) => {
                return Err(ExperimentError::new(
                    "queue: give max_sectors or max_sectors_kb, not both",
                )
                .about("queue.max_sectors"));
            }
            (sectors, kb) => sectors.or(kb.map(|kb| kb.saturating_mul(2))),
        };
        let settings = QueueSettings {
            nr_requests: self.nr_requests,
            max_sectors,
            max_segments: self.max_segments,
            rotational: self.rotational,
            nomerges: self.nomerges,
            read_ahead_kb: self.read_ahead_kb,
            partition_start: self.partition_start,
            ..QueueSettings::default()
        };
        set::check_queue(&settings)?;
        Ok(settings)
    }
}

/// `law`, `name` or `kind` names the device; `queue_depth` and `fetch` are the
/// driver's; everything else is a parameter of the device. Paths count from
/// the folder of the experiment file.
fn resolve_device(e: &mut Experiment, mut table: Table) -> Result<(), ExperimentError> {
    let name = ["law", "name", "kind"]
        .iter()
        .find_map(|k| table.remove(*k));
    let Some(name) = name else {
        return Err(ExperimentError::new(
            "device: no 'name', as in name = \"sata-7200-2008\"; blklab list devices shows all",
        )
        .about("device"));
    };
    if let Some(depth) = table.remove("queue_depth") {
        e.set("queue_depth", &depth.text())
            .map_err(|e| e.about("device.queue_depth"))?;
    }
    if let Some(fetch) = table.remove("fetch") {
        e.queue.fetch = match fetch.text().as_str() {
            "peek_then_check" => Fetch::PeekThenCheck,
            "check_then_peek" => Fetch::CheckThenPeek,
            other => {
                return Err(ExperimentError::new(format!(
                    "device: fetch '{other}' is neither peek_then_check nor check_then_peek"
                ))
                .about("device.fetch"));
            }
        };
    }
    let name = name.text();
    let folder = Path::new(&e.file).parent().unwrap_or(Path::new(""));
    let is_path = |key: &str| {
        let known = blklab_device::find(&name).is_ok();
        known && blklab_device::is_path(&name, key)
    };
    let value = |k: &str, v: &Scalar| match is_path(k) {
        true => folder.join(v.text()).display().to_string(),
        false => v.text(),
    };
    let params = table.iter().map(|(k, v)| (k.clone(), value(k, v)));
    let params = params.collect();
    e.device = DeviceSpec { name, params };
    Ok(())
}
