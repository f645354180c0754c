// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of an experiment: their names, and who makes them.

mod check;
mod file;
#[cfg(test)]
mod tests;

use self::file::{FILES, MULTI_QUEUE, io_max_text};
use crate::{Experiment, ExperimentError};
use blklab_block::IoMax;
use blklab_fio::job::Job;
use blklab_types::shown;

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
}

/// The name of a group without slashes at its ends.
fn cgroup_name(text: &str) -> Result<&str, String> {
    let name = text.trim_matches('/');
    let is_bad = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(char::is_control);
    if name.split('/').any(is_bad) {
        return Err(format!(
            "'{}' is no name of a control group; write a, or a/b for b below a",
            shown(text)
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

/// Most control groups, with those above them.
pub(crate) const CGROUPS_MAX: usize = 4096;

impl Experiment {
    /// The group of that name, made if there is none, with those above it.
    fn cgroup_mut(&mut self, name: &str) -> Result<&mut Cgroup, String> {
        let name = cgroup_name(name)?;
        for (end, _) in name.match_indices('/').chain([(name.len(), "")]) {
            let name = &name[..end];
            if !self.cgroups.iter().any(|g| g.name == name) {
                if self.cgroups.len() == CGROUPS_MAX {
                    return Err(format!("more control groups than {CGROUPS_MAX}"));
                }
                self.cgroups.push(Cgroup {
                    name: name.to_owned(),
                    ..Cgroup::default()
                });
            }
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
            ExperimentError::new(format!("cgroup {}: {what}", shown(name))).about(key)
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
