// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups: their files, written as the kernel's.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller
//! and block/bfq-iosched.rst.

use crate::{Experiment, ExperimentError, Workload, no_such};
use blklab_block::IoMax;
use blklab_fio::job::Job;
use blklab_kernel::KernelVersion;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// The first release with control groups for I/O.
const FIRST: KernelVersion = KernelVersion::v2_6(33);
/// The first release on the multi-queue path: BFQ's weights and `io.max`.
const MULTI_QUEUE: KernelVersion = KernelVersion::new(5, 0);
/// The first release with weights of a group against its children.
const LEAF_WEIGHTS: KernelVersion = KernelVersion::new(3, 9);

/// What the words of `io.max` are called.
const LIMITS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// Weights of BFQ's groups.
const BFQ_WEIGHTS: RangeInclusive<u32> = 1..=1000;

/// A file of a group that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    /// Limits per second.
    IoMax,
    /// Weight under BFQ.
    BfqWeight,
    /// Weight under CFQ.
    BlkioWeight,
    /// The same against its own children.
    BlkioLeafWeight,
}

/// The files that are modelled, by name. `io.weight` is another name of BFQ's
/// weight: in the kernel it belongs to io.cost, and systemd copies it.
const FILES: [(&str, File); 5] = [
    ("io.max", File::IoMax),
    ("io.bfq.weight", File::BfqWeight),
    ("io.weight", File::BfqWeight),
    ("blkio.weight", File::BlkioWeight),
    ("blkio.leaf_weight", File::BlkioLeafWeight),
];

/// Beginnings of the names of files that are not modelled.
const NOT_MODELLED: [&str; 5] = [
    "io.cost.",
    "io.latency",
    "io.prio.class",
    "blkio.throttle.",
    "blkio.bfq.",
];

impl File {
    /// Whether a release has it.
    fn is_in(self, v: KernelVersion) -> bool {
        match self {
            File::IoMax | File::BfqWeight => v >= MULTI_QUEUE,
            File::BlkioWeight => v < MULTI_QUEUE,
            File::BlkioLeafWeight => (LEAF_WEIGHTS..MULTI_QUEUE).contains(&v),
        }
    }
}

/// A control group below the root. `None` is the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path below the root, as `a/b`.
    pub name: String,
    /// `io.max`.
    pub io_max: IoMax,
    /// `io.bfq.weight`, 1 to 1000.
    pub bfq_weight: Option<u32>,
    /// `blkio.weight`, 10 to 1000.
    pub blkio_weight: Option<u32>,
    /// `blkio.leaf_weight`, 10 to 1000.
    pub blkio_leaf_weight: Option<u32>,
}

impl Cgroup {
    /// The group that it belongs to; none: the root.
    pub fn parent(&self) -> Option<&str> {
        self.name.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// `io.max`; none if nothing is limited.
    pub fn limits(&self) -> Option<IoMax> {
        (self.io_max != IoMax::default()).then_some(self.io_max)
    }

    /// What its files hold, by name.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let number = |n: Option<u32>| n.map(|n| n.to_string());
        let all = [
            ("io.max", self.limits().map(|max| io_max_text(&max))),
            ("io.bfq.weight", number(self.bfq_weight)),
            ("blkio.weight", number(self.blkio_weight)),
            ("blkio.leaf_weight", number(self.blkio_leaf_weight)),
        ];
        all.into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }

    /// Writes to one of its files.
    fn write(&mut self, file: &str, text: &str) -> Result<(), String> {
        let Some((_, kind)) = FILES.iter().find(|(name, _)| *name == file) else {
            return Err(no_file(file));
        };
        match kind {
            File::IoMax => write_io_max(&mut self.io_max, text),
            File::BfqWeight => put_weight(&mut self.bfq_weight, file, text, BFQ_WEIGHTS),
            File::BlkioWeight => put_weight(&mut self.blkio_weight, file, text, 10..=1000),
            File::BlkioLeafWeight => put_weight(&mut self.blkio_leaf_weight, file, text, 10..=1000),
        }
    }
}

fn no_file(file: &str) -> String {
    if NOT_MODELLED.iter().any(|start| file.starts_with(start)) {
        return format!(
            "{file} is not modelled; modelled are io.max and io.bfq.weight from 5.0 on, and \
             blkio.weight under cfq before"
        );
    }
    no_such("file", file, &FILES.map(|(name, _)| name))
}

fn put_weight(
    weight: &mut Option<u32>,
    file: &str,
    text: &str,
    range: RangeInclusive<u32>,
) -> Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = match words[..] {
        [number] | ["default", number] => number.parse().ok(),
        _ => None,
    };
    let (low, high) = (range.start(), range.end());
    match number.filter(|n| range.contains(n)) {
        Some(n) => *weight = Some(n),
        None => {
            return Err(format!(
                "{file} = {text}: expected a number from {low} to {high}"
            ));
        }
    }
    Ok(())
}

/// Writes words such as `rbps=1048576`: the limits that they name change.
fn write_io_max(max: &mut IoMax, text: &str) -> Result<(), String> {
    let bad = |what: &str| {
        Err(format!(
            "io.max: {what}; write rbps=, wbps= (bytes per second), riops=, wiops= (I/Os per \
             second) with a number above 0 or max, as in rbps=1048576 wiops=120"
        ))
    };
    let mut any = false;
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else {
            return bad(&format!("'{word}' is not KEY=VALUE"));
        };
        let limit = match value {
            "max" => None,
            _ => match value.parse::<u64>() {
                Ok(n) if n > 0 => Some(n),
                _ => return bad(&format!("'{word}' has no such value")),
            },
        };
        match key {
            "rbps" => max.read_bytes_per_s = limit,
            "wbps" => max.write_bytes_per_s = limit,
            "riops" => max.read_ios_per_s = limit,
            "wiops" => max.write_ios_per_s = limit,
            _ => return bad(&no_such("limit", key, &LIMITS)),
        }
        any = true;
    }
    if any { Ok(()) } else { bad("no limit") }
}

fn io_max_text(max: &IoMax) -> String {
    let values = [
        max.read_bytes_per_s,
        max.write_bytes_per_s,
        max.read_ios_per_s,
        max.write_ios_per_s,
    ];
    let mut text = String::new();
    for (key, value) in LIMITS.iter().zip(values) {
        if let Some(n) = value {
            let blank = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{blank}{key}={n}");
        }
    }
    text
}

/// The name of a group without slashes at its ends.
pub fn cgroup_name(text: &str) -> Result<&str, String> {
    let name = text.trim_matches('/');
    let is_bad = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(char::is_control);
    if name.split('/').any(is_bad) {
        return Err(format!(
            "'{text}' is no name of a control group; write a, or a/b for b below a"
        ));
    }
    Ok(name)
}

/// Splits `NAME.FILE`, as `a.io.max`.
fn split_key(rest: &str) -> Option<(&str, &str)> {
    let at = [".io.", ".blkio."]
        .iter()
        .filter_map(|mark| rest.rfind(mark))
        .max()?;
    Some((&rest[..at], &rest[at + 1..]))
}

/// The line of an experiment file on which `NAME.FILE` is written; else that on
/// which the group begins.
pub(crate) fn line_of(text: &str, rest: &str) -> Option<usize> {
    let (name, file) = split_key(rest).unwrap_or((rest, ""));
    let heads = [
        format!("[cgroup.{name}]"),
        format!("\"{name}\""),
        format!("'{name}'"),
    ];
    let begins = |line: &str| heads.iter().any(|h| line.contains(h));
    let first = text.lines().position(begins)?;
    let writes = |line: &str| !file.is_empty() && line.contains(file);
    let in_group = text.lines().skip(first).position(writes);
    Some(first + in_group.unwrap_or(0) + 1)
}

impl Experiment {
    /// The group of that name, made if there is none, with those above it.
    fn cgroup_mut(&mut self, name: &str) -> Result<&mut Cgroup, String> {
        let name = cgroup_name(name)?;
        for (end, _) in name.match_indices('/').chain([(name.len(), "")]) {
            let name = &name[..end];
            if !self.cgroups.iter().any(|g| g.name == name) {
                self.cgroups.push(Cgroup {
                    name: name.to_owned(),
                    ..Cgroup::default()
                });
            }
        }
        if self.cgroups.len() > usize::from(u16::MAX) {
            return Err("there are more control groups than 65535".to_owned());
        }
        let found = self.cgroups.iter_mut().find(|g| g.name == name);
        Ok(found.expect("it was made"))
    }

    /// Makes a group and writes its files.
    pub(crate) fn add_cgroup(
        &mut self,
        name: &str,
        files: &[(String, String)],
    ) -> Result<(), ExperimentError> {
        let about = |what: String, key: String| {
            ExperimentError::new(format!("cgroup {name}: {what}")).about(key)
        };
        if let Some((one, other)) = both_weights(files) {
            let what = format!("{one} and {other} are the same weight; give one");
            return Err(about(what, format!("cgroup.{name}.{other}")));
        }
        let group = self.cgroup_mut(name);
        let group = group.map_err(|what| about(what, format!("cgroup.{name}")))?;
        for (file, text) in files {
            let written = group.write(file, text);
            written.map_err(|what| about(what, format!("cgroup.{name}.{file}")))?;
        }
        Ok(())
    }

    /// Applies `cgroup.NAME.FILE=VALUE`; `rest` is `NAME.FILE`.
    pub(crate) fn set_cgroup(&mut self, rest: &str, value: &str) -> Result<(), ExperimentError> {
        let Some((name, file)) = split_key(rest) else {
            let what = format!(
                "cgroup.{rest}: write cgroup.NAME.FILE=VALUE, as in cgroup.a.io.max=wbps=1000000"
            );
            return Err(ExperimentError::new(what).about(format!("cgroup.{rest}")));
        };
        self.add_cgroup(name, &[(file.to_owned(), value.to_owned())])
    }

    /// Whether `NAME.FILE` names a file that the kernel has.
    pub(crate) fn can_set_cgroup(&self, rest: &str) -> bool {
        let file = split_key(rest).and_then(|(_, file)| FILES.iter().find(|(n, _)| *n == file));
        file.is_some_and(|(_, file)| file.is_in(self.kernel))
    }

    /// With the groups that fio jobs name: fio makes those that are missing and
    /// writes `cgroup_weight` to them.
    ///
    /// # Errors
    /// If a name is none, or the kernel does not have such groups.
    pub fn with_cgroups_of(&self, jobs: &[Job]) -> Result<Experiment, ExperimentError> {
        let mut e = self.clone();
        let multi_queue = e.kernel >= MULTI_QUEUE;
        for job in jobs {
            let in_job = |what: String| ExperimentError::new(format!("job {}: {what}", job.name));
            let Some(name) = &job.settings.cgroup else {
                if job.settings.cgroup_weight.is_some() {
                    return Err(in_job("cgroup_weight without cgroup".to_owned()));
                }
                continue;
            };
            let group = e.cgroup_mut(name).map_err(in_job)?;
            if let Some(weight) = job.settings.cgroup_weight {
                match multi_queue {
                    true => group.bfq_weight = Some(weight),
                    false => group.blkio_weight = Some(weight),
                }
            }
        }
        e.check_cgroups()?;
        let members = jobs.iter().filter_map(|job| {
            let name = job.settings.cgroup.as_deref()?;
            Some((format!("job {}", job.name), name))
        });
        e.check_members(members)?;
        Ok(e)
    }

    /// Refuses groups that the kernel does not have, and members that are in
    /// none.
    pub(crate) fn check_cgroups(&self) -> Result<(), ExperimentError> {
        for g in &self.cgroups {
            let fail = |file: &str, what: String| {
                let what = format!("cgroup {}: {what}", g.name);
                Err(ExperimentError::new(what).about(format!("cgroup.{}.{file}", g.name)))
            };
            if self.kernel < FIRST {
                let what = "has no control groups for I/O: they came with 2.6.33";
                return fail("", format!("kernel {} {what}", self.kernel));
            }
            for (file, _) in g.files() {
                let kind = FILES.iter().find(|(name, _)| *name == file);
                if kind.is_none_or(|(_, kind)| kind.is_in(self.kernel)) {
                    continue;
                }
                let v = self.kernel;
                let what = match file {
                    "io.max" => {
                        format!(
                            "io.max is modelled from 5.0 on; the limits of kernel {v}, \
                             blkio.throttle, are not modelled"
                        )
                    }
                    "io.bfq.weight" => {
                        format!(
                            "{file} is BFQ's, from 5.0 on; weights of kernel {v} are blkio.weight"
                        )
                    }
                    "blkio.leaf_weight" if v < LEAF_WEIGHTS => {
                        format!("{file} came with 3.9, the kernel is {v}")
                    }
                    _ => {
                        format!("{file} is CFQ's, to 4.20; weights of kernel {v} are io.bfq.weight")
                    }
                };
                return fail(file, what);
            }
            let least = if self.kernel < KernelVersion::new(3, 0) {
                100
            } else {
                10
            };
            if let Some(n) = g.blkio_weight.filter(|n| *n < least) {
                return fail(
                    "blkio.weight",
                    format!(
                        "blkio.weight = {n}: expected a number from {least} to 1000 in kernel {}",
                        self.kernel
                    ),
                );
            }
        }
        let Workload::Processes(processes) = &self.workload else {
            return Ok(());
        };
        let names: Vec<&str> = self.cgroups.iter().map(|g| g.name.as_str()).collect();
        for p in processes {
            if let Some(name) = &p.cgroup
                && !names.contains(&name.trim_matches('/'))
            {
                let what = format!("process '{}': {}", p.name, no_such("cgroup", name, &names));
                return Err(ExperimentError::new(what).about(format!("processes.\"{name}\"")));
            }
        }
        let members = processes.iter().filter_map(|p| {
            let name = p.cgroup.as_deref()?;
            Some((format!("process '{}'", p.name), name))
        });
        self.check_members(members)
    }

    /// Groups of the unified hierarchy have processes or groups below them, not
    /// both ("no internal process").
    fn check_members<'a>(
        &self,
        mut members: impl Iterator<Item = (String, &'a str)>,
    ) -> Result<(), ExperimentError> {
        if self.kernel < MULTI_QUEUE {
            return Ok(());
        }
        let below = |name: &str| {
            let is_below = |g: &&Cgroup| g.parent() == Some(name.trim_matches('/'));
            self.cgroups.iter().find(is_below)
        };
        let wrong = members.find_map(|(who, name)| Some((who, name, below(name)?)));
        let Some((who, name, child)) = wrong else {
            return Ok(());
        };
        Err(ExperimentError::new(format!(
            "{who}: cgroup {name} has {} below it; the kernel lets groups without children alone \
             hold processes",
            child.name
        )))
    }

    /// What a reader of the result should know about the groups.
    pub(crate) fn cgroup_notes(&self) -> Vec<String> {
        let weighted = |g: &&Cgroup| g.bfq_weight.or(g.blkio_weight).is_some();
        let of_scheduler = matches!(self.scheduler.as_str(), "cfq" | "bfq");
        let first = self.cgroups.iter().find(weighted);
        let note = |g: &Cgroup| {
            let (name, scheduler) = (&g.name, &self.scheduler);
            format!("cgroup {name}: {scheduler} does not look at weights of groups")
        };
        first
            .filter(|_| !of_scheduler)
            .map(note)
            .into_iter()
            .collect()
    }
}

/// Two names of the same weight.
fn both_weights(files: &[(String, String)]) -> Option<(&str, &str)> {
    let find = |name: &str| files.iter().find(|(file, _)| file == name);
    Some((&find("io.bfq.weight")?.0, &find("io.weight")?.0))
}

#[cfg(test)]
mod tests;
