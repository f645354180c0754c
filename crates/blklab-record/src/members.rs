// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which control groups the tasks are in that have I/O.

use crate::Roots;
use std::collections::BTreeMap;
use std::fs;

/// The groups of tasks, by their numbers.
#[derive(Debug, Default)]
pub struct Members {
    group_of: BTreeMap<u32, String>,
}

impl Members {
    /// Looks at all processes that were not seen before; to be called now and then, since those
    /// that have ended show nothing.
    pub fn look(&mut self, roots: &Roots) {
        let entries = fs::read_dir(&roots.proc).into_iter().flatten().flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let unknown: Vec<u32> = pids
            .filter(|pid| !self.group_of.contains_key(pid))
            .collect();
        for pid in unknown {
            self.look_at(roots, pid);
        }
    }

    /// The group of a task: threads are no entries of `/proc`, and can be asked for all the same.
    fn look_at(&mut self, roots: &Roots, pid: u32) {
        let text = fs::read_to_string(roots.proc.join(pid.to_string()).join("cgroup"));
        if let Some(group) = text.ok().as_deref().and_then(group) {
            self.group_of.insert(pid, group);
        }
    }

    /// The lines `cgroup.GROUP.submitters=PID PID` of these tasks, as far as their groups are
    /// known; the root group is `/`.
    pub fn lines(&mut self, roots: &Roots, tasks: impl IntoIterator<Item = u32>) -> Vec<String> {
        let mut by_group: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pid in tasks {
            if !self.group_of.contains_key(&pid) {
                self.look_at(roots, pid);
            }
            if let Some(group) = self.group_of.get(&pid) {
                by_group
                    .entry(group.clone())
                    .or_default()
                    .push(pid.to_string());
            }
        }
        let line = |(group, pids): (String, Vec<String>)| {
            format!("cgroup.{group}.submitters={}", pids.join(" "))
        };
        by_group.into_iter().map(line).collect()
    }
}

/// The group of a task: that of the hierarchy with `blkio` (version 1), else that of the unified
/// one. Groups are named without the first `/`.
fn group(text: &str) -> Option<String> {
    let fields = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let of_blkio = fields
        .clone()
        .find(|(controllers, _)| controllers.split(',').any(|c| c == "blkio"));
    let unified = fields
        .clone()
        .find(|(controllers, _)| controllers.is_empty());
    let (_, path) = of_blkio.or(unified)?;
    let name = path.trim_start_matches('/');
    match name {
        "" => Some("/".to_owned()),
        // A name with = in it could not be told from its value.
        name => (!name.contains('=')).then(|| name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_that_limits_io_counts() {
        assert_eq!(group("0::/a/b\n").as_deref(), Some("a/b"));
        assert_eq!(group("0::/\n").as_deref(), Some("/"));
        let both = "12:cpu,cpuacct:/x\n5:blkio:/slow\n0::/user.slice\n";
        assert_eq!(group(both).as_deref(), Some("slow"));
        assert_eq!(group("1:name=systemd:/x\n"), None);
        assert_eq!(group(""), None);
    }

    #[test]
    fn tasks_are_listed_by_their_groups() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        let process = |pid: u32, group: &str| {
            let folder = root.join(pid.to_string());
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("cgroup"), format!("0::{group}\n")).expect("room");
        };
        let roots = Roots::at(root.into(), root.into(), root.into());
        process(7, "/slow");
        let mut members = Members::default();
        members.look(&roots);
        // It ends; another begins and is not looked at before the end.
        fs::remove_dir_all(root.join("7")).expect("removed");
        process(9, "/");
        process(10, "/slow");
        let lines = members.lines(&roots, [7, 9, 10, 11]);
        assert_eq!(
            lines,
            ["cgroup./.submitters=9", "cgroup.slow.submitters=7 10"]
        );
    }
}
