// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment of a scenario, as the text of an experiment file: what is examined
//! can be shown, saved and run again.

use std::fmt::Write as _;

/// An experiment that is put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup {
    /// Release.
    pub(super) kernel: &'static str,
    /// Scheduler.
    pub(super) scheduler: &'static str,
    /// `[device]`, as key and value.
    pub(super) device: Vec<(&'static str, String)>,
    /// `[queue]`.
    pub(super) queue: Vec<(&'static str, String)>,
    /// `[tunables]`.
    pub(super) tunables: Vec<(&'static str, String)>,
    /// `[vm]`.
    pub(super) vm: Vec<(&'static str, String)>,
    /// Filesystem with options.
    pub(super) filesystem: Option<String>,
    /// Groups: name, file, content.
    pub(super) cgroups: Vec<(&'static str, &'static str, String)>,
    /// Jobs of fio: name, and options in words.
    pub(super) jobs: Vec<(&'static str, String)>,
    /// How long the jobs run.
    pub(super) runtime_ms: u64,
    /// Explicit processes, in place of jobs.
    pub(super) processes: String,
    /// Of everything random in the run.
    pub(super) seed: u64,
    /// Whether the kernel that is asked for cannot have it.
    pub(super) is_impossible: bool,
}

impl Setup {
    /// Adds a job: `rw=read bs=4k`.
    pub(super) fn job(&mut self, name: &'static str, options: impl Into<String>) {
        self.jobs.push((name, options.into()));
    }

    /// The same without a job.
    pub(super) fn without(&self, name: &str) -> Setup {
        let mut other = self.clone();
        other.jobs.retain(|(job, _)| *job != name);
        other
    }

    /// The same with one setting of the queue.
    pub(super) fn with_queue(&self, key: &'static str, value: impl ToString) -> Setup {
        let mut other = self.clone();
        other.queue.retain(|(k, _)| *k != key);
        other.queue.push((key, value.to_string()));
        other
    }

    /// The experiment file.
    pub(super) fn text(&self, title: &str) -> String {
        let mut text = format!(
            "title = \"{title}\"\nkernel = \"{}\"\nscheduler = \"{}\"\nseed = {}\n",
            self.kernel, self.scheduler, self.seed
        );
        if let Some(filesystem) = &self.filesystem {
            add(&mut text, format_args!("filesystem = \"{filesystem}\"\n"));
        }
        if !self.jobs.is_empty() {
            add(&mut text, format_args!("job = \"\"\"\n[global]\n"));
            let runtime_ms = self.runtime_ms;
            add(
                &mut text,
                format_args!("runtime={runtime_ms}ms\ntime_based\n"),
            );
            for (name, options) in &self.jobs {
                let options = options.split_whitespace().collect::<Vec<_>>().join("\n");
                add(&mut text, format_args!("\n[{name}]\n{options}\n"));
            }
            text.push_str("\"\"\"\n");
        }
        table(&mut text, "device", &self.device);
        table(&mut text, "queue", &self.queue);
        table(&mut text, "tunables", &self.tunables);
        table(&mut text, "vm", &self.vm);
        let mut last = None;
        for (group, file, content) in &self.cgroups {
            if last.replace(group) != Some(group) {
                add(&mut text, format_args!("\n[cgroup.\"{group}\"]\n"));
            }
            add(&mut text, format_args!("\"{file}\" = \"{content}\"\n"));
        }
        text.push_str(&self.processes);
        text
    }
}

fn table(text: &mut String, name: &str, rows: &[(&'static str, String)]) {
    if rows.is_empty() {
        return;
    }
    add(text, format_args!("\n[{name}]\n"));
    for (key, value) in rows {
        if value.parse::<i64>().is_ok() {
            add(text, format_args!("{key} = {value}\n"));
        } else {
            add(text, format_args!("{key} = \"{value}\"\n"));
        }
    }
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes everything");
}
