// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which jobs a row is about: those of one name, or several names together
//! where there are too many for a row each.

use blklab_target::JobResult;

/// Jobs of one name in one control group: a section and its clones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobKey {
    /// Name to display.
    pub name: String,
    /// Control group, if the job names one.
    pub cgroup: Option<String>,
}

impl JobKey {
    /// That of a job.
    pub(super) fn new(job: &JobResult) -> JobKey {
        JobKey {
            name: job.job.name.clone(),
            cgroup: job.job.settings.cgroup.clone(),
        }
    }

    /// Whether both names are one with different numbers.
    fn is_kin(&self, other: &JobKey) -> bool {
        self.cgroup == other.cgroup && stem(&self.name) == stem(&other.name)
    }
}

/// A name without the number at its end.
pub(crate) fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Jobs of a reporting group that share a row; never none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    keys: Vec<JobKey>,
}

/// Longest list of names in a heading.
const LIST_MAX: usize = 44;

impl Part {
    /// All of these jobs.
    pub(crate) fn new(keys: Vec<JobKey>) -> Part {
        assert!(!keys.is_empty(), "a part without jobs has no row");
        Part { keys }
    }

    /// Whether a job belongs to it.
    pub fn has(&self, key: &JobKey) -> bool {
        self.keys.contains(key)
    }

    /// Its names, `slow in tenant/slow`, for the label of a row.
    pub fn label(&self) -> String {
        match self.cgroup() {
            Some(group) => format!("{} in {group}", self.names()),
            None => self.names(),
        }
    }

    /// The part in a heading: `job writer`, `4 jobs (reader1…reader4)`.
    pub fn heading(&self, jobs: usize) -> String {
        let names = self.names();
        let who = match jobs {
            1 if names.starts_with("job") => names,
            1 => format!("job {names}"),
            n => format!("{n} jobs ({names})"),
        };
        match self.cgroup() {
            Some(group) => format!("{who} in cgroup {group}"),
            None => who,
        }
    }

    /// The control group, if all have the same.
    fn cgroup(&self) -> Option<&str> {
        let first = &self.keys[0].cgroup;
        let same = self.keys.iter().all(|k| k.cgroup == *first);
        first.as_deref().filter(|_| same)
    }

    /// Whether its names are one with different numbers.
    pub(crate) fn is_family(&self) -> bool {
        self.keys.iter().all(|key| key.is_kin(&self.keys[0]))
    }

    /// One name, `reader1…reader4`, or a list.
    fn names(&self) -> String {
        let first = &self.keys[0];
        let last = &self.keys[self.keys.len() - 1];
        let list: Vec<&str> = self.keys.iter().map(|k| k.name.as_str()).collect();
        let list = list.join(", ");
        let is_family = self.is_family();
        match self.keys.len() {
            1 => list,
            3.. if is_family => format!("{}…{}", first.name, last.name),
            _ if list.chars().count() <= LIST_MAX => list,
            _ => format!("{}…{}", first.name, last.name),
        }
    }
}

/// Jobs divided into at most `max` parts: by name, by names that differ in
/// their numbers only, or all in one.
pub(super) fn parts(keys: &[JobKey], max: usize) -> Vec<Part> {
    if keys.len() <= max {
        return keys.iter().map(|k| Part::new(vec![k.clone()])).collect();
    }
    let mut families: Vec<Vec<JobKey>> = Vec::new();
    for key in keys {
        match families.iter_mut().find(|f| f[0].is_kin(key)) {
            Some(family) => family.push(key.clone()),
            None => families.push(vec![key.clone()]),
        }
    }
    if families.len() > max {
        families = vec![keys.to_vec()];
    }
    families.into_iter().map(Part::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Vec<JobKey> {
        let key = |name: &&str| match name.split_once('@') {
            Some((name, group)) => JobKey {
                name: name.to_owned(),
                cgroup: Some(group.to_owned()),
            },
            None => JobKey {
                name: (*name).to_owned(),
                cgroup: None,
            },
        };
        names.iter().map(key).collect()
    }

    fn shown(names: &[&str], max: usize) -> Vec<String> {
        let all = parts(&keys(names), max);
        all.iter().map(Part::label).collect()
    }

    #[test]
    fn few_names_have_a_part_each() {
        assert_eq!(
            shown(&["a", "b@x/y", "a@x"], 3),
            ["a", "b in x/y", "a in x"]
        );
    }

    #[test]
    fn many_names_are_gathered_by_what_is_before_their_numbers() {
        assert_eq!(shown(&["r1", "w", "r2", "r3"], 2), ["r1…r3", "w"]);
        assert_eq!(shown(&["r1", "r2", "w1", "w2"], 2), ["r1, r2", "w1, w2"]);
        assert_eq!(shown(&["r1@a", "r2@a", "r3@a"], 2), ["r1…r3 in a"]);
        assert_eq!(shown(&["1", "2", "3"], 2), ["1…3"]);
    }

    #[test]
    fn too_many_are_one_part() {
        assert_eq!(shown(&["a", "b", "c@x"], 2), ["a, b, c"]);
        let long = "a-rather-long-name-of-a-job";
        assert_eq!(shown(&[long, "b", "c"], 2), [format!("{long}, b, c")]);
        let longer = "a-name-of-a-job-that-is-longer-than-that-of-others";
        assert_eq!(shown(&[longer, "b", "c"], 2), [format!("{longer}…c")]);
    }

    #[test]
    fn headings_count_jobs() {
        let all = parts(&keys(&["r"]), 1);
        assert_eq!(all[0].heading(1), "job r");
        assert_eq!(all[0].heading(4), "4 jobs (r)");
        let all = parts(&keys(&["job1@g", "job2@g"]), 1);
        assert_eq!(all[0].heading(2), "2 jobs (job1, job2) in cgroup g");
        let all = parts(&keys(&["job1@g"]), 1);
        assert_eq!(all[0].heading(1), "job1 in cgroup g");
    }
}
