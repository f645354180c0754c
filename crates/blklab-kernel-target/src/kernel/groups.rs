// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of an experiment in a machine: who mounts and makes them, and what the
//! kernel says of them at the end.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller.rst. fio puts
//! jobs into their groups itself (`cgroup=`).

use blklab_experiment::{Cgroup, Experiment};
use blklab_target::{CgroupUse, Moved, Pressure, Stall};
use blklab_types::Error;
use std::fmt::Write as _;

/// Where a hierarchy is mounted.
const V2: &str = "/sys/fs/cgroup";
/// The first version has a hierarchy for each controller, below a file system in memory.
const V1: &str = "/sys/fs/cgroup/blkio";
/// Files whose lines begin with the number of the disk, by how they are called.
const OF_DISK: [&str; 4] = ["io.max", "io.latency", "io.cost.", "blkio.throttle."];
/// What files for results are called: this, the number of the group, what it is.
const RESULT: &str = "group.";

/// The same of the machine, and where a kernel that counts pressure has it.
const MACHINE: &str = "machine";
const OF_MACHINE: &str = "/proc/pressure/io";

/// Which hierarchy the groups are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// One for each controller.
    V1,
    /// The unified one.
    V2,
}

/// The hierarchy that the files are of; the unified one where none says.
fn version(groups: &[Cgroup]) -> Version {
    if groups.iter().any(Cgroup::is_of_v1) {
        Version::V1
    } else {
        Version::V2
    }
}

/// Refuses groups that no kernel can have.
///
/// # Errors
/// If they have files of both versions, or names that a shell would take apart.
pub(super) fn check(groups: &[Cgroup]) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/+=@ ".contains(c);
    if let Some(group) = groups.iter().find(|g| !g.name.chars().all(is_plain)) {
        let name = blklab_types::shown(&group.name);
        return Err(Error::not_modelled(format!(
            "cgroup {name}: the target kernel takes names of letters, digits and ._-/+=@"
        ))
        .about("cgroups"));
    }
    Cgroup::check_versions(groups)
}

/// What the kernel's command line says so that it tells more of groups.
pub(super) fn argument(e: &Experiment) -> Option<String> {
    let files = e.cgroups.iter().flat_map(Cgroup::files);
    let mut files = files.map(|(file, _)| file);
    let tells_more = files.any(|file| matches!(file, "io.latency" | "io.cost.qos"));
    tells_more.then(|| "blk_cgroup.blkcg_debug_stats=1".to_owned())
}

/// The file that takes processes into one of the groups.
pub(super) fn members_file(groups: &[Cgroup], name: &str) -> String {
    format!("{}/{name}/cgroup.procs", root(version(groups)))
}

/// Mounts the hierarchy and makes the groups. The disk has its scheduler.
pub(super) fn make(s: &mut String, disk: &str, groups: &[Cgroup]) {
    if groups.is_empty() {
        return;
    }
    let version = version(groups);
    let _ = match version {
        Version::V2 => writeln!(
            s,
            "step 'mounting control groups' mount -t cgroup2 none {V2}\n\
             put {V2}/cgroup.subtree_control '+io +memory'"
        ),
        Version::V1 => writeln!(
            s,
            "step 'mounting control groups' mount -t tmpfs none {V2}\n\
             mkdir -p {V1}\n\
             step 'mounting blkio groups of version 1' mount -t cgroup -o blkio none {V1}"
        ),
    };
    let _ = writeln!(s, "DISK=$(cat /sys/block/{disk}/dev)");
    let root = root(version);
    for group in groups {
        let folder = folder(root, group);
        if !group.is_root() {
            let _ = writeln!(s, "mkdir -p '{folder}'");
        }
        let has_children = groups.iter().any(|g| g.parent() == Some(&group.name));
        if version == Version::V2 && has_children {
            let _ = writeln!(s, "put '{folder}/cgroup.subtree_control' '+io +memory'");
        }
        for (file, text) in group.files() {
            if OF_DISK.iter().any(|begin| file.starts_with(begin)) {
                let _ = writeln!(s, "put '{folder}/{file}' \"$DISK {text}\"");
            } else {
                let _ = writeln!(s, "put '{folder}/{file}' '{text}'");
            }
            // BFQ's weight and io.cost's are two files; systemd writes both, too.
            let twin = match file {
                "io.bfq.weight" if group.cost_weight.is_none() => "io.weight",
                "io.weight" if group.bfq_weight.is_none() => "io.bfq.weight",
                _ => continue,
            };
            let _ = writeln!(
                s,
                "[ ! -e '{folder}/{twin}' ] || put '{folder}/{twin}' '{text}'"
            );
        }
    }
}

fn root(version: Version) -> &'static str {
    match version {
        Version::V2 => V2,
        Version::V1 => V1,
    }
}

fn folder(root: &str, group: &Cgroup) -> String {
    if group.is_root() {
        return root.to_owned();
    }
    format!("{root}/{}", group.name)
}

/// Keeps what the kernel says of each group.
pub(super) fn keep_results(s: &mut String, groups: &[Cgroup]) {
    let version = version(groups);
    for (i, group) in groups.iter().enumerate().filter(|(_, g)| !g.is_root()) {
        let folder = folder(root(version), group);
        let _ = match version {
            Version::V2 => writeln!(
                s,
                "cat '{folder}/io.stat' > {RESULT}{i}.stat\n\
                 cat '{folder}/io.pressure' > {RESULT}{i}.pressure 2>/dev/null || :"
            ),
            Version::V1 => writeln!(
                s,
                "cat '{folder}/blkio.throttle.io_service_bytes_recursive' > {RESULT}{i}.bytes\n\
                 cat '{folder}/blkio.throttle.io_serviced_recursive' > {RESULT}{i}.ios"
            ),
        };
    }
    if !groups.is_empty() {
        let _ = writeln!(s, "cat {OF_MACHINE} > {RESULT}{MACHINE} 2>/dev/null || :");
    }
}

/// What was found of groups, by their places in the experiment.
#[derive(Debug, Default)]
pub(super) struct Uses {
    groups: Vec<(usize, CgroupUse)>,
    /// Of the machine.
    pub(super) pressure: Option<Pressure>,
}

impl Uses {
    /// Takes one of the files; whether it is one.
    pub(super) fn is_result(name: &str) -> bool {
        name.starts_with(RESULT)
    }

    /// Takes the text of a file.
    pub(super) fn take(&mut self, name: &str, text: &str) {
        if name.strip_prefix(RESULT) == Some(MACHINE) {
            self.pressure = read_pressure(text);
            return;
        }
        let Some((number, what)) = name.strip_prefix(RESULT).and_then(|n| n.split_once('.')) else {
            return;
        };
        let Ok(place) = number.parse() else {
            return;
        };
        let at = match self.groups.iter().position(|(other, _)| *other == place) {
            Some(at) => at,
            None => {
                self.groups.push((place, CgroupUse::default()));
                self.groups.len() - 1
            }
        };
        let group = &mut self.groups[at].1;
        match what {
            "stat" => read_stat(group, text),
            "pressure" => group.pressure = read_pressure(text),
            "bytes" => group.moved.get_or_insert_default().bytes = read_v1(text),
            _ => group.moved.get_or_insert_default().ios = read_v1(text),
        }
    }

    /// In the order of the experiment.
    pub(super) fn into_uses(mut self, groups: &[Cgroup]) -> Vec<CgroupUse> {
        self.groups.sort_by_key(|(place, _)| *place);
        let named = self.groups.into_iter().filter_map(|(place, group)| {
            let name = groups.get(place)?.name.clone();
            Some(CgroupUse { name, ..group })
        });
        named.collect()
    }
}

/// What io.latency did, as far as the kernel says so: how many requests a group may have
/// at a time, at the end. How long that was so it does not say.
pub(super) fn notes(groups: &[CgroupUse]) -> Vec<String> {
    let held = |group: &CgroupUse| {
        let depth = group.said.iter().find_map(|w| w.strip_prefix("depth="))?;
        (depth != "max").then(|| {
            format!(
                "io.latency held {} to a depth of {depth} at the end, for the sake of groups beside \
                 it; for how long the kernel does not say",
                group.name
            )
        })
    };
    groups.iter().filter_map(held).collect()
}

/// `254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`, and more behind it.
fn read_stat(group: &mut CgroupUse, text: &str) {
    const COUNTED: [[&str; 3]; 2] = [["rbytes", "wbytes", "dbytes"], ["rios", "wios", "dios"]];
    let mut moved = Moved::default();
    // There is one disk.
    for word in text.lines().take(1).flat_map(str::split_whitespace).skip(1) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse().unwrap_or(0);
        let place = |names: &[&str; 3]| names.iter().position(|name| *name == key);
        if let Some(i) = place(&COUNTED[0]) {
            moved.bytes[i] = number();
        } else if let Some(i) = place(&COUNTED[1]) {
            moved.ios[i] = number();
        } else {
            group.said.push(word.to_owned());
        }
    }
    group.moved = Some(moved);
}

/// `some avg10=0.00 avg60=1.25 avg300=0.30 total=12345`, and the same of `full`; none of a
/// kernel that does not count it.
fn read_pressure(text: &str) -> Option<Pressure> {
    let line = |which: &str| {
        let mut lines = text.lines().map(str::split_whitespace);
        let words = lines.find_map(|mut words| (words.next() == Some(which)).then_some(words))?;
        let mut stall = Stall::default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            if let Some(i) = Stall::AVERAGES.iter().position(|average| *average == name) {
                let percent: f64 = value.parse().ok()?;
                stall.percent_hundredths[i] = (percent * 100.0).round() as u32;
            } else if name == "total" {
                stall.total_us = value.parse().ok()?;
            }
        }
        Some(stall)
    };
    Some(Pressure {
        some: line("some")?,
        full: line("full")?,
    })
}

/// `254:0 Read 4096`, a line each.
fn read_v1(text: &str) -> [u64; 3] {
    ["Read", "Write", "Discard"].map(|what| {
        let of_it = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            (words.next() == Some(what)).then(|| words.next()?.parse::<u64>().ok())?
        };
        text.lines().filter_map(of_it).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_experiment::Workload;
    use blklab_sim::catalogue;

    fn group(name: &str, files: &[(&'static str, &str)]) -> Cgroup {
        let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
        for (file, text) in files {
            let key = format!("cgroup.{name}.{file}");
            e.set(&key, text, &catalogue()).expect("a file of a group");
        }
        e.cgroups.pop().unwrap_or_else(|| Cgroup {
            name: name.to_owned(),
            ..Cgroup::default()
        })
    }

    #[test]
    fn groups_are_made_above_first_and_told_the_disk() {
        let mut below = group("a/b", &[("io.latency", "target=500")]);
        below.io_max.read_bytes_per_s = Some(1 << 20);
        let mut s = String::new();
        make(
            &mut s,
            "vda",
            &[
                group("/", &[("io.cost.qos", "enable=1")]),
                group("a", &[("io.prio.class", "idle")]),
                below,
            ],
        );
        let expected = "put /sys/fs/cgroup/cgroup.subtree_control '+io +memory'\n\
            DISK=$(cat /sys/block/vda/dev)\n\
            put '/sys/fs/cgroup/io.cost.qos' \"$DISK enable=1\"\n\
            mkdir -p '/sys/fs/cgroup/a'\n\
            put '/sys/fs/cgroup/a/cgroup.subtree_control' '+io +memory'\n\
            put '/sys/fs/cgroup/a/io.prio.class' 'idle'\n\
            mkdir -p '/sys/fs/cgroup/a/b'\n\
            put '/sys/fs/cgroup/a/b/io.max' \"$DISK rbps=1048576\"\n\
            put '/sys/fs/cgroup/a/b/io.latency' \"$DISK target=500\"\n";
        assert!(s.ends_with(expected), "{s}");
    }

    #[test]
    fn the_two_versions_are_not_mixed() {
        let old = group("a", &[("blkio.throttle.read_bps_device", "1048576")]);
        check(std::slice::from_ref(&old)).expect("one version");
        let new = group("b", &[("io.latency", "target=1")]);
        let error = check(&[old, new]).expect_err("two versions").to_string();
        assert!(error.contains("io.latency is of the unified"), "{error}");
    }

    #[test]
    fn pressure_of_groups_and_of_the_machine_is_read() {
        let text = "some avg10=42.19 avg60=1.05 avg300=0.00 total=7763263\n\
                    full avg10=41.53 avg60=1.00 avg300=0.00 total=7640508\n";
        let mut uses = Uses::default();
        uses.take("group.machine", text);
        uses.take("group.0.pressure", text);
        uses.take("group.1.pressure", "");
        let machine = uses.pressure.expect("it is counted");
        assert_eq!(machine.some.percent_hundredths, [4219, 105, 0]);
        assert_eq!(machine.full.total_us, 7_640_508);
        let uses = uses.into_uses(&[group("a", &[]), group("b", &[])]);
        assert_eq!(uses[0].pressure, Some(machine));
        assert_eq!(uses[1].pressure, None);
    }

    #[test]
    fn what_groups_moved_is_read() {
        let mut uses = Uses::default();
        uses.take(
            "group.1.stat",
            "254:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=0 dios=0 depth=1 avg_lat=7\n",
        );
        uses.take(
            "group.0.bytes",
            "254:0 Read 512\n254:0 Write 1024\nTotal 1536\n",
        );
        uses.take("group.0.ios", "254:0 Read 1\n254:0 Write 2\nTotal 3\n");
        let uses = uses.into_uses(&[group("a", &[]), group("b", &[])]);
        assert_eq!(uses[0].name, "a");
        let moved = uses[0].moved.expect("it is counted");
        assert_eq!((moved.bytes, moved.ios), ([512, 1024, 0], [1, 2, 0]));
        let moved = uses[1].moved.expect("it is counted");
        assert_eq!((moved.bytes, moved.ios), ([8192, 4096, 0], [2, 1, 0]));
        assert_eq!(uses[1].said, ["depth=1", "avg_lat=7"]);
        let notes = notes(&uses);
        assert!(
            notes[0].starts_with("io.latency held b to a depth of 1"),
            "{notes:?}"
        );
    }
}
