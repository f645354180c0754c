// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of an experiment: their names, and who makes them.

mod check;

use crate::settings::{Setting, cgroup_files};
use crate::{Cgroup, Experiment};
use blklab_fio::job::Job;
use blklab_kernel::KernelVersion;
use blklab_types::shown;
use blklab_types::{Error, no_such};

impl Cgroup {
    /// What its files hold, by name.
    pub fn files(&self) -> Vec<(&'static str, String)> {
        let files = cgroup_files();
        files
            .filter_map(|file| Some((file.name(), file.text_of(self)?)))
            .collect()
    }

    /// Writes to one of its files.
    fn write(&mut self, file: &str, text: &str) -> Result<(), String> {
        match find_file(file) {
            Some(row) => row.write_to(self, text),
            None => Err(no_file(file)),
        }
    }
}

/// The name of a group without slashes at its ends.
fn cgroup_name(text: &str) -> Result<&str, String> {
    if text == Cgroup::ROOT {
        return Ok(text);
    }
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

fn find_file(name: &str) -> Option<&'static Setting> {
    cgroup_files().find(|file| file.is_called(name))
}

fn no_file(name: &str) -> String {
    let names: Vec<&str> = cgroup_files().map(Setting::name).collect();
    no_such("file", name, &names)
}

/// Splits `NAME.FILE`, as `a.io.max`.
fn split_key(rest: &str) -> Option<(&str, &str)> {
    let at = [".io.", ".blkio.", ".memory."]
        .iter()
        .filter_map(|mark| rest.rfind(mark))
        .max()?;
    Some((&rest[..at], &rest[at + 1..]))
}

/// The first release whose io.cost is modelled by its own rules.
const COST_AS_MODELLED: KernelVersion = KernelVersion::new(5, 10);

/// Most control groups, with those above them.
pub(crate) const CGROUPS_MAX: usize = 4096;

impl Experiment {
    /// The group of that name, made if there is none, with those above it.
    fn cgroup_mut(&mut self, name: &str) -> Result<&mut Cgroup, String> {
        let name = cgroup_name(name)?;
        let above = name.match_indices('/').filter(|(end, _)| *end > 0);
        for (end, _) in above.chain([(name.len(), "")]) {
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
    ) -> Result<(), Error> {
        let about = |what: String, key: String| {
            Error::new(format!("cgroup {}: {what}", shown(name))).about(key)
        };
        let group = self.cgroup_mut(name);
        let group = group.map_err(|what| about(what, format!("cgroup.{name}")))?;
        for (file, text) in files {
            let written = group.write(file, text);
            written.map_err(|what| about(what, format!("cgroup.{name}.{file}")))?;
        }
        Ok(())
    }

    /// Applies `cgroup.NAME.FILE=VALUE`; `rest` is `NAME.FILE`.
    pub(crate) fn set_cgroup(&mut self, rest: &str, value: &str) -> Result<(), Error> {
        let Some((name, file)) = split_key(rest) else {
            let what = format!(
                "cgroup.{rest}: write cgroup.NAME.FILE=VALUE, as in cgroup.a.io.max=wbps=1000000"
            );
            return Err(Error::new(what).about(format!("cgroup.{rest}")));
        };
        self.add_cgroup(name, &[(file.to_owned(), value.to_owned())])
    }

    /// Whether `NAME.FILE` names a file that the kernel has.
    pub(crate) fn can_set_cgroup(&self, rest: &str) -> bool {
        let file = split_key(rest).and_then(|(_, file)| find_file(file));
        file.is_some_and(|file| file.row_in(self.kernel).is_some())
    }

    /// With the groups that fio jobs name: fio makes those that are missing and
    /// writes `cgroup_weight` to them, but not on the unified hierarchy (cgroup.c of fio
    /// 3.33).
    ///
    /// # Errors
    /// If a name is none, or the kernel does not have such groups or weights.
    pub fn with_cgroups_of(&self, jobs: &[Job]) -> Result<Experiment, Error> {
        let mut e = self.clone();
        let single_queue = e.kernel.has_single_queue();
        for job in jobs {
            let weight_place = job.place_of(&["cgroup_weight"]);
            let in_job = |what: String| Error::new(format!("job {}: {what}", job.name));
            let Some(name) = &job.settings.cgroup else {
                if job.settings.cgroup_weight.is_some() {
                    let what = "cgroup_weight without cgroup".to_owned();
                    return Err(in_job(what).at(weight_place));
                }
                continue;
            };
            let place = job.place_of(&["cgroup"]);
            let group = e.cgroup_mut(name).map_err(|what| in_job(what).at(place))?;
            if let Some(weight) = job.settings.cgroup_weight {
                if !single_queue {
                    let what = format!(
                        "cgroup_weight={weight}: fio refuses it on the unified hierarchy, which kernels \
                         have here from 5.0 on; use cgroup.{name}.io.bfq.weight={weight}"
                    );
                    return Err(in_job(what).at(weight_place));
                }
                group.blkio_weight = Some(weight);
            }
            let checked = group.check(self.kernel);
            checked.map_err(|err| err.at(job.place_of(&["cgroup_weight", "cgroup"])))?;
        }
        for job in jobs {
            if let Some(name) = &job.settings.cgroup {
                e.check_member(&format!("job {}", job.name), name)
                    .map_err(|err| err.at(job.place_of(&["cgroup"])))?;
            }
        }
        Ok(e)
    }

    /// Whether io.cost is switched on.
    pub fn has_io_cost(&self) -> bool {
        let mut qos = self.cgroups.iter().filter_map(|g| g.cost_qos);
        qos.any(|qos| qos.enable)
    }

    /// What a reader of the result should know about the groups.
    pub(crate) fn cgroup_notes(&self) -> Vec<String> {
        let weighted = |g: &&Cgroup| g.weight_of_bfq().or(g.blkio_weight).is_some();
        let is_looked_at = matches!(self.scheduler.as_str(), "cfq" | "bfq") || self.has_io_cost();
        let first = self.cgroups.iter().find(weighted);
        let note = |g: &Cgroup| {
            let (name, scheduler) = (&g.name, &self.scheduler);
            let no_cost = if self.has_groups_of_v1() {
                ""
            } else {
                ", and io.cost is not switched on"
            };
            format!("cgroup {name}: {scheduler} does not look at weights of groups{no_cost}")
        };
        let mut notes: Vec<String> = first
            .filter(|_| !is_looked_at)
            .map(note)
            .into_iter()
            .collect();
        if self.has_io_cost() && !self.kernel.is_from(COST_AS_MODELLED) {
            notes.push(format!(
                "io.cost of {} is modelled as in {COST_AS_MODELLED}, whose rules were read",
                self.kernel
            ));
        }
        notes
    }
}
