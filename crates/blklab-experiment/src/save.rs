// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments written as files, with every default spelled out.

use crate::settings::Home;
use crate::{Catalogue, Experiment, FilesystemSpec, Workload};
use blklab_types::Error;
use serde_json::{Map, Value, json};

impl Experiment {
    /// The experiment as TOML that [`crate::load()`] reads back. The text of a
    /// fio job is referred to as `job_file`; names of files stand as they are
    /// and count from the folder of whatever file the TOML goes to.
    ///
    /// # Errors
    /// If a number is larger than TOML has.
    pub fn to_toml(&self, job_file: &str, catalogue: &Catalogue) -> Result<String, Error> {
        let settings_of = |home: Home| self.settings_of(home, catalogue);
        let mut top = Map::new();
        top.insert("format".into(), json!(crate::FORMAT));
        top.insert("id".into(), json!(self.id));
        top.insert("title".into(), json!(self.title));
        top.insert("kernel".into(), json!(self.kernel.to_string()));
        top.insert("scheduler".into(), json!(self.scheduler));
        top.extend(settings_of(Home::Top));
        // A table below says more.
        top.remove("filesystem");
        top.insert("patches".into(), json!(self.patches));
        if let Workload::Fio { .. } = self.workload {
            top.insert("job_file".into(), json!(job_file));
            if !self.sections.is_empty() {
                top.insert("sections".into(), json!(self.sections));
            }
        }
        let tunables = settings_of(Home::Scheduler);
        top.insert("tunables".into(), Value::Object(tunables));
        top.insert("queue".into(), Value::Object(settings_of(Home::Queue)));
        top.insert("device".into(), self.device_value(catalogue));
        if let Some(md) = &self.md {
            top.insert(
                "md".into(),
                json!({
                    "level": md.level_name(),
                    "members": md.members,
                    "chunk_kb": md.chunk_kb(),
                    "layout": md.layout(),
                    "bitmap": Some(md.bitmap()).filter(|b| *b != "none"),
                }),
            );
        }
        top.remove("dm");
        if !self.dm.is_none() {
            top.insert("dm".into(), self.dm_value());
        }
        if self.filesystem != FilesystemSpec::default() {
            top.insert("filesystem".into(), self.filesystem_value(catalogue));
        }
        top.insert("vm".into(), Value::Object(settings_of(Home::Machine)));
        if !self.cgroups.is_empty() {
            top.insert("cgroup".into(), self.cgroups_value());
        }
        if let Workload::Scenario(s) = &self.workload {
            let mut table = Map::new();
            table.insert("name".into(), json!(s.spec().name));
            table.extend(s.values().map(|(k, v)| (k.to_owned(), json!(v))));
            top.insert("scenario".into(), Value::Object(table));
        }
        if let Workload::Trace(trace) = &self.workload {
            top.insert("replay".into(), trace.to_value());
        }
        if let Workload::Processes(p) = &self.workload {
            top.insert("processes".into(), json!(p));
        }
        let depth = self.queue_depth(catalogue).ok();
        let published = self.published.iter().filter(|p| p.fits(self, depth));
        let published: Vec<_> = published.collect();
        if !published.is_empty() {
            top.insert("published".into(), json!(published));
        }
        let value = without_nulls(Value::Object(top));
        toml::to_string(&value)
            .map_err(|e| Error::new(format!("the experiment cannot be written as TOML: {e}")))
    }

    /// Settings by name, as files have them.
    fn settings_of(&self, home: Home, catalogue: &Catalogue) -> Map<String, Value> {
        let rows = self.rows(home, catalogue);
        let saved = rows.iter().filter_map(|row| row.saved(self, catalogue));
        saved
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    fn device_value(&self, catalogue: &Catalogue) -> Value {
        let mut d = Map::new();
        d.insert("name".into(), json!(self.device.name));
        d.extend(self.settings_of(Home::Driver, catalogue));
        d.extend(self.settings_of(Home::Device, catalogue));
        Value::Object(d)
    }

    fn filesystem_value(&self, catalogue: &Catalogue) -> Value {
        let mut f = Map::new();
        f.insert("name".into(), json!(self.filesystem.name));
        f.extend(self.settings_of(Home::Filesystem, catalogue));
        Value::Object(f)
    }

    fn dm_value(&self) -> Value {
        let layer = |layer: &crate::DmLayer| {
            let mut d = Map::new();
            d.insert("kind".into(), json!(layer.kind.name));
            d.extend(layer.values().map(|(param, value)| {
                let value = match value.parse::<u64>() {
                    Ok(n) => json!(n),
                    Err(_) => json!(value),
                };
                (param.name.to_owned(), value)
            }));
            Value::Object(d)
        };
        Value::Array(self.dm.layers.iter().map(layer).collect())
    }

    fn cgroups_value(&self) -> Value {
        let group = |g: &crate::Cgroup| {
            let files = g.files().into_iter();
            let files = files.map(|(file, text)| (file.to_owned(), json!(text)));
            (g.name.clone(), Value::Object(files.collect()))
        };
        Value::Object(self.cgroups.iter().map(group).collect())
    }
}

/// TOML has no null: what is not set is left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, v)| !v.is_null())
                .map(|(k, v)| (k, without_nulls(v)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(
            list.into_iter()
                .filter(|v| !v.is_null())
                .map(without_nulls)
                .collect(),
        ),
        other => other,
    }
}
