// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments written as files, with every default spelled out.

use crate::experiment::QueueSettings;
use crate::set::check_queue;
use crate::{Experiment, ExperimentError, FilesystemSpec, Workload};
use blklab_block::QUEUE_TUNABLES;
use blklab_block::sq::Fetch;
use blklab_fio::release::Release;
use blklab_kernel::tunables_of;
use serde_json::{Map, Value, json};

impl Experiment {
    /// The experiment as TOML that [`crate::load()`] reads back. The text of a
    /// fio job is referred to as `job_file`; names of files stand as they are
    /// and count from the folder of whatever file the TOML goes to.
    ///
    /// # Errors
    /// If a number is larger than TOML has.
    pub fn to_toml(&self, job_file: &str) -> Result<String, ExperimentError> {
        let mut top = Map::new();
        top.insert("id".into(), json!(self.id));
        top.insert("title".into(), json!(self.title));
        top.insert("kernel".into(), json!(self.kernel.to_string()));
        top.insert("hz".into(), json!(self.hz.0));
        top.insert("scheduler".into(), json!(self.scheduler));
        top.insert("seed".into(), json!(self.seed));
        let scenario = matches!(self.workload, Workload::Scenario(_));
        if scenario || self.fio != Release::default() {
            top.insert("fio".into(), json!(self.fio.name()));
        }
        top.insert("patches".into(), json!(self.patches));
        if let Workload::Fio { .. } = self.workload {
            top.insert("job_file".into(), json!(job_file));
            if !self.sections.is_empty() {
                top.insert("sections".into(), json!(self.sections));
            }
        }
        top.insert("tunables".into(), self.tunables_value());
        top.insert("queue".into(), self.queue_value());
        top.insert("device".into(), self.device_value());
        if let Some(md) = &self.md {
            top.insert(
                "md".into(),
                json!({
                    "level": md.level_name(),
                    "members": md.members,
                    "chunk_kb": md.chunk_kb(),
                }),
            );
        }
        if self.filesystem != FilesystemSpec::default() {
            top.insert("filesystem".into(), self.filesystem_value());
        }
        top.insert("vm".into(), self.vm_value());
        if !self.cgroups.is_empty() {
            top.insert("cgroup".into(), self.cgroups_value());
        }
        if let Workload::Scenario(s) = &self.workload {
            let mut table = Map::new();
            table.insert("name".into(), json!(s.spec().name));
            table.extend(s.values().map(|(k, v)| (k.to_owned(), json!(v))));
            top.insert("scenario".into(), Value::Object(table));
        }
        if let Workload::Processes(p) = &self.workload {
            top.insert("processes".into(), json!(p));
        }
        let published: Vec<_> = self.published.iter().filter(|p| p.fits(self)).collect();
        if !published.is_empty() {
            top.insert("published".into(), json!(published));
        }
        let value = without_nulls(Value::Object(top));
        toml::to_string(&value).map_err(|e| {
            ExperimentError::new(format!("the experiment cannot be written as TOML: {e}"))
        })
    }

    /// The tunables that were written. Defaults stay unwritten: the kernel
    /// computes those of times in ticks, and 31 ticks at 250 per second are
    /// not the 32 that a written 125 ms becomes.
    fn tunables_value(&self) -> Value {
        let all = self.tunables.iter();
        Value::Object(all.map(|(name, v)| (name.clone(), json!(v))).collect())
    }

    fn queue_value(&self) -> Value {
        let mut q = Map::new();
        if let (Ok(l), Ok(nr_requests)) = (self.queue_limits(), self.nr_requests()) {
            // Without a scheduler there are no more than the device takes, which
            // may be fewer than anybody can write.
            let writable = check_queue(&QueueSettings {
                nr_requests: Some(nr_requests),
                ..QueueSettings::default()
            });
            if writable.is_ok() {
                q.insert("nr_requests".into(), json!(nr_requests));
            }
            q.insert("max_sectors".into(), json!(l.max_sectors));
            q.insert("max_segments".into(), json!(l.max_segments));
            q.insert("rotational".into(), json!(l.rotational));
            q.insert("nomerges".into(), json!(l.nomerges));
            let words = |on| if on { "write back" } else { "write through" };
            q.insert(
                "write_cache".into(),
                json!(self.queue.write_cache.map(words)),
            );
            q.insert("read_ahead_kb".into(), json!(self.read_ahead_bytes() >> 10));
            q.insert("wbt_lat_usec".into(), json!(self.queue.wbt_lat_usec));
            q.insert("partition_start".into(), json!(self.queue.partition_start));
            let length = self.queue.partition_sectors;
            q.insert("partition_sectors".into(), json!(length));
        }
        // What the kernel does not have cannot be read back.
        q.retain(|name, _| {
            let name = if name == "max_sectors" {
                "max_sectors_kb"
            } else {
                name
            };
            tunables_of(QUEUE_TUNABLES, self.kernel).any(|t| t.name == name)
        });
        Value::Object(q)
    }

    fn device_value(&self) -> Value {
        let mut d = Map::new();
        d.insert("name".into(), json!(self.device.name));
        d.insert("queue_depth".into(), json!(self.queue_depth().unwrap_or(1)));
        let fetch = match self.queue.fetch {
            Fetch::PeekThenCheck => "peek_then_check",
            Fetch::CheckThenPeek => "check_then_peek",
        };
        d.insert("fetch".into(), json!(fetch));
        if let Ok(info) = blklab_device::find(&self.device.name) {
            for p in info.params {
                let default = info.default_of(p);
                if !default.is_empty() {
                    d.insert(p.name.to_owned(), json!(default));
                }
            }
        }
        for (k, v) in &self.device.params {
            d.insert(k.clone(), json!(v));
        }
        Value::Object(d)
    }

    fn filesystem_value(&self) -> Value {
        let mut f = Map::new();
        f.insert("name".into(), json!(self.filesystem.name));
        for (k, v) in &self.filesystem.options {
            f.insert(k.clone(), json!(v));
        }
        Value::Object(f)
    }

    fn cgroups_value(&self) -> Value {
        let group = |g: &crate::Cgroup| {
            let files = g.files().into_iter();
            let files = files.map(|(file, text)| (file.to_owned(), json!(text)));
            (g.name.clone(), Value::Object(files.collect()))
        };
        Value::Object(self.cgroups.iter().map(group).collect())
    }

    fn vm_value(&self) -> Value {
        let vm = &self.vm;
        json!({
            "memory": vm.memory_bytes.unwrap_or(8 << 30).to_string(),
            "dirty_ratio": vm.dirty_ratio,
            "dirty_background_ratio": vm.dirty_background_ratio,
            "dirty_bytes": vm.dirty_bytes,
            "dirty_background_bytes": vm.dirty_background_bytes,
            "dirty_writeback_centisecs": vm.dirty_writeback_centisecs,
            "dirty_expire_centisecs": vm.dirty_expire_centisecs,
            "io_cost_ns": vm.io_cost_ns.unwrap_or(1000),
            "switch_cost_ns": vm.switch_cost_ns,
            "interrupt_cost_ns": vm.interrupt_cost_ns,
            "dispatch_cost_ns": vm.dispatch_cost_ns,
            "driver_copy_ns": vm.driver_copy_ns,
            "writeout_cost_ns": vm.writeout_cost_ns,
            "call_cost_ns": vm.call_cost_ns,
            "reap_cost_ns": vm.reap_cost_ns,
            "job_start_ns": vm.job_start_ns,
            "look_cost_ns": vm.look_cost_ns,
            "cpu_cost_percent": vm.cpu_cost_percent,
            "page_cost_ns": vm.page_cost_ns.unwrap_or(1000),
            "cpus": vm.cpus.unwrap_or(2),
            "adjacent_pages_percent": vm.adjacent_pages_percent.unwrap_or(0),
        })
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
