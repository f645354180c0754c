// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes: of the machine, and of what applications do.

use crate::programs::{OfExperiment, Otherwise, Programs};
use blklab_experiment::{Catalogue, DeviceSpec, Experiment};
use blklab_types::{Error, IoPrio, PrioClass, no_such, shown};
use serde::Serialize;
use std::fmt;

/// One thing that is changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Another scheduler, with its default tunables.
    Scheduler {
        /// Its name.
        name: String,
    },
    /// A tunable, an attribute of the queue, a file of a control group.
    Set {
        /// As in sysfs: `nr_requests`, `queue/iosched/slice_idle`, `cgroup.a.io.max`.
        key: String,
        /// Its value.
        value: String,
    },
    /// A patch of the kernel.
    Patch {
        /// Its name.
        name: String,
    },
    /// Another device.
    Device {
        /// Name and parameters.
        spec: String,
    },
    /// A process keeps fewer bios under way.
    Depth {
        /// The process, by name or pid.
        process: String,
        /// So many.
        depth: u32,
    },
    /// A process submits several bios under one plug and waits for them.
    Batch {
        /// The process, by name or pid.
        process: String,
        /// So many.
        bios: u32,
    },
    /// A process has another I/O priority.
    Prio {
        /// The process, by name or pid.
        process: String,
        /// Of the class best effort, 0 (best) to 7, or `idle`.
        level: String,
    },
    /// The writes of a process carry the sync flag.
    Sync {
        /// The process, by name or pid.
        process: String,
    },
    /// A job of fio has an option otherwise.
    Job {
        /// The job, by its name or a pid.
        process: String,
        /// As a job file has it: `cgroup=bulk`, `direct=1`.
        option: String,
    },
}

/// Names of changes as they are written, with an example of each.
const KEYS: [(&str, &str); 9] = [
    ("sched", "sched=mq-deadline"),
    ("set", "set=slice_idle=0"),
    ("patch", "patch=NAME"),
    ("device", "device=nvme-datacenter"),
    ("depth", "depth=fio:4"),
    ("batch", "batch=fio:32"),
    ("prio", "prio=fio:5"),
    ("sync", "sync=fio"),
    ("job", "job=backup:direct=1"),
];

/// Reads `sched=…,set=KEY=VALUE,device=NAME,parameter=value,depth=PROCESS:N`: what does not
/// begin with the name of a change belongs to the one before.
///
/// # Errors
/// One line: what is wrong, what would be right.
pub fn parse(text: &str) -> Result<Vec<Change>, Error> {
    let mut changes: Vec<Change> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let is_key = KEYS.iter().any(|(name, _)| *name == key);
        match changes.last_mut() {
            Some(Change::Device { spec }) if !is_key && part.contains('=') => {
                *spec += &format!(",{part}");
            }
            Some(Change::Set { .. }) if !is_key && part.contains('=') => {
                changes.push(setting(part)?);
            }
            _ => changes.push(one(key, value)?),
        }
    }
    if changes.is_empty() {
        return Err(Error::new(
            "nothing is changed; write sched=NAME, set=KEY=VALUE, …",
        ));
    }
    Ok(changes)
}

fn setting(text: &str) -> Result<Change, Error> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok(Change::Set {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            })
        }
        _ => Err(Error::new(format!(
            "set={}: write set=KEY=VALUE, as in set=slice_idle=0",
            shown(text)
        ))),
    }
}

fn one(key: &str, value: &str) -> Result<Change, Error> {
    let Some((_, example)) = KEYS.iter().find(|(name, _)| *name == key) else {
        let valid: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
        return Err(Error::new(no_such("change", key, &valid)));
    };
    let bad = || Error::new(format!("{key}={}: write {example}", shown(value)));
    if value.is_empty() {
        return Err(bad());
    }
    let value = value.trim().to_owned();
    let of_process = || {
        let (process, n) = value.rsplit_once(':').ok_or_else(bad)?;
        Ok::<(String, String), Error>((process.to_owned(), n.to_owned()))
    };
    let number = || {
        let (process, n) = of_process()?;
        match n.parse::<u32>() {
            Ok(n) if (1..=65_536).contains(&n) => Ok((process, n)),
            _ => Err(bad()),
        }
    };
    Ok(match key {
        "sched" => Change::Scheduler { name: value },
        "set" => setting(&value)?,
        "patch" => Change::Patch { name: value },
        "device" => Change::Device { spec: value },
        "depth" => {
            let (process, depth) = number()?;
            Change::Depth { process, depth }
        }
        "batch" => {
            let (process, bios) = number()?;
            Change::Batch { process, bios }
        }
        "prio" => {
            let (process, level) = of_process()?;
            prio(&level).ok_or_else(bad)?;
            Change::Prio { process, level }
        }
        "job" => {
            let (process, option) = value.split_once(':').ok_or_else(bad)?;
            let is_option = |o: &str| !o.contains(['\n', '[', ']']) && !o.starts_with('=');
            if process.is_empty() || option.is_empty() || !is_option(option) {
                return Err(bad());
            }
            Change::Job {
                process: process.to_owned(),
                option: option.to_owned(),
            }
        }
        _ => Change::Sync { process: value },
    })
}

/// 0 to 7, or idle.
fn prio(level: &str) -> Option<IoPrio> {
    if level == "idle" {
        return Some(IoPrio {
            class: PrioClass::Idle,
            level: 0,
        });
    }
    let level = level.parse().ok().filter(|n| *n <= 7)?;
    Some(IoPrio {
        class: PrioClass::BestEffort,
        level,
    })
}

impl Change {
    /// Makes the change.
    ///
    /// # Errors
    /// If it is not possible: one line.
    fn apply(
        &self,
        e: &mut Experiment,
        programs: &mut dyn Programs,
        catalogue: &Catalogue,
    ) -> Result<(), Error> {
        match self {
            Change::Scheduler { name } => {
                // Tunables of the other one say nothing about this.
                e.tunables.clear();
                e.choose_scheduler(name, catalogue)
            }
            Change::Set { key, value } => set(e, programs, (key, value), catalogue),
            Change::Patch { name } => {
                e.patches.push(name.clone());
                e.patches().map(drop)
            }
            Change::Device { spec } => {
                let mut parts = spec.split(',');
                let name = parts.next().unwrap_or_default().to_owned();
                let params = parts.filter_map(|p| p.split_once('='));
                let params = params.map(|(k, v)| (k.trim().to_owned(), v.trim().to_owned()));
                let device = DeviceSpec {
                    name,
                    params: params.collect(),
                };
                // What the recorded device had of the queue is not the new one's.
                e.queue.queue_depth = None;
                e.queue.rotational = None;
                e.queue.write_cache = None;
                e.queue.discard_max_bytes = None;
                e.choose_device(device, catalogue)
            }
            Change::Depth { process, depth } => {
                programs.change(e, process, &Otherwise::Depth(*depth))
            }
            Change::Batch { process, bios } => {
                programs.change(e, process, &Otherwise::Batch(*bios))
            }
            Change::Prio { process, level } => {
                let prio = prio(level).ok_or_else(|| Error::new(format!("no priority {level}")))?;
                programs.change(e, process, &Otherwise::Prio(prio))
            }
            Change::Sync { process } => programs.change(e, process, &Otherwise::Sync),
            Change::Job { process, option } => {
                programs.change(e, process, &Otherwise::Option(option.clone()))
            }
        }
    }

    /// Whether what an application does is changed: then what it would do open loop is not
    /// known.
    pub fn is_of_application(&self) -> bool {
        match self {
            Change::Depth { .. } | Change::Batch { .. } | Change::Job { .. } => true,
            Change::Set { key, .. } => name_of(key) == "read_ahead_kb",
            _ => false,
        }
    }
}

/// An experiment with changes. Its jobs are those of its file, by their names.
///
/// # Errors
/// The first that is not possible: one line.
pub fn changed(
    e: &Experiment,
    changes: &[Change],
    catalogue: &Catalogue,
) -> Result<Experiment, Error> {
    let mut e = e.clone();
    let mut programs = OfExperiment {
        recorded: None,
        catalogue,
    };
    apply_all(changes, &mut e, &mut programs, catalogue)?;
    // Errors are about the change, not about a line of the file.
    e.file.clear();
    Ok(e)
}

/// Makes all of them.
///
/// # Errors
/// The first that is not possible: one line.
pub(crate) fn apply_all(
    changes: &[Change],
    e: &mut Experiment,
    programs: &mut dyn Programs,
    catalogue: &Catalogue,
) -> Result<(), Error> {
    let had = e.scheduler.clone();
    for change in changes {
        change.apply(e, programs, catalogue)?;
        if e.scheduler != had && matches!(change, Change::Scheduler { .. }) {
            // The kernel gives another scheduler its own number of requests.
            e.queue.nr_requests = None;
        }
    }
    Ok(())
}

/// `nr_requests` of `queue/nr_requests`, `dirty_ratio` of `vm.dirty_ratio`.
fn name_of(key: &str) -> &str {
    let name = key.rsplit('/').next().unwrap_or(key);
    name.strip_prefix("vm.").unwrap_or(name)
}

fn set(
    e: &mut Experiment,
    programs: &mut dyn Programs,
    (key, value): (&str, &str),
    catalogue: &Catalogue,
) -> Result<(), Error> {
    let number = || {
        let n = value.parse::<u32>();
        n.map_err(|_| Error::new(format!("{key}={}: expected a number", shown(value))))
    };
    if let Some(group) = key
        .strip_prefix("cgroup.")
        .and_then(|k| k.strip_suffix(".io.max"))
    {
        // `max` takes every limit away, as an empty file does.
        e.cgroups.retain(|g| value != "max" || g.name != group);
        return match value {
            "max" => Ok(()),
            _ => e.set(key, value, catalogue),
        };
    }
    if key.starts_with("cgroup.") {
        return e.set(key, value, catalogue);
    }
    match name_of(key) {
        "scheduler" => Change::Scheduler {
            name: value.to_owned(),
        }
        .apply(e, programs, catalogue),
        "read_ahead_kb" => programs.read_ahead(e, number()?),
        "max_sectors_kb" => {
            e.queue.max_sectors = Some(number()?.saturating_mul(2).max(8));
            Ok(())
        }
        "write_cache" => {
            e.queue.write_cache = Some(match value {
                "write back" => true,
                "write through" => false,
                _ => {
                    let shown = shown(value);
                    let what = format!("{key}={shown}: write back or write through");
                    return Err(Error::new(what));
                }
            });
            Ok(())
        }
        "queue_depth" => {
            e.queue.queue_depth = Some(number()?.clamp(1, 65_536));
            Ok(())
        }
        name => e.set(name, value, catalogue),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Scheduler { name } => write!(f, "scheduler {name}"),
            Change::Set { key, value } => write!(f, "{} = {value}", name_of(key)),
            Change::Patch { name } => write!(f, "patch {name}"),
            Change::Device { spec } => write!(f, "device {spec}"),
            Change::Depth { process, depth } => {
                write!(f, "{process} keeps at most {depth} under way")
            }
            Change::Batch { process, bios } => {
                write!(f, "{process} submits {bios} under one plug")
            }
            Change::Prio { process, level } if level == "idle" => {
                write!(f, "{process} has priority idle")
            }
            Change::Prio { process, level } => {
                write!(f, "{process} has priority {level} of best effort")
            }
            Change::Sync { process } => write!(f, "writes of {process} are sync"),
            Change::Job { process, option } => write!(f, "{process}: {option}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_said() {
        let changes = parse("sched=bfq,set=slice_idle=0,low_latency=0,depth=fio:4").expect("sound");
        let said: Vec<String> = changes.iter().map(Change::to_string).collect();
        assert_eq!(
            said,
            [
                "scheduler bfq",
                "slice_idle = 0",
                "low_latency = 0",
                "fio keeps at most 4 under way"
            ]
        );
        let device = parse("device=sata-7200-2008,rpm=5400,sync=12").expect("sound");
        assert_eq!(device[0].to_string(), "device sata-7200-2008,rpm=5400");
        assert_eq!(device.len(), 2);
        let job = parse("job=backup:cgroup=bulk").expect("sound");
        assert_eq!(job[0].to_string(), "backup: cgroup=bulk");
    }

    #[test]
    fn an_experiment_has_its_jobs_changed_by_name() {
        let workload = blklab_experiment::Workload::Fio {
            name: "a.fio".to_owned(),
            text: "[a]\nrw=read\n[b]\nrw=read\n".to_owned(),
        };
        let e = Experiment::new("a", workload);
        let catalogue = blklab_sim::catalogue();
        let changes = parse("job=b:direct=1").expect("sound");
        let e = changed(&e, &changes, &catalogue).expect("it has that job");
        let blklab_experiment::Workload::Fio { text, .. } = &e.workload else {
            panic!("it is a job file")
        };
        assert_eq!(text, "[a]\nrw=read\n[b]\nrw=read\ndirect=1\n");
        let cost = parse("set=cgroup./.io.cost.qos=enable=1").expect("sound");
        let e = changed(&e, &cost, &catalogue).expect("a file of the root group");
        assert!(e.cgroups.iter().any(|g| g.cost_qos.is_some()));
        let none = changed(&e, &parse("job=c:direct=1").expect("sound"), &catalogue);
        assert!(none.is_err_and(|err| err.what.contains("section of the job file")));
    }

    #[test]
    fn what_is_none_says_what_would_be_right() {
        let told = |text| parse(text).expect_err("refused").what;
        assert!(told("").contains("write sched="));
        assert!(told("shed=bfq").contains("did you mean 'sched'?"));
        assert_eq!(told("depth=fio"), "depth=fio: write depth=fio:4");
        assert_eq!(told("prio=fio:8"), "prio=fio:8: write prio=fio:5");
        assert_eq!(
            told("set=slice_idle"),
            "set=slice_idle: write set=KEY=VALUE, as in set=slice_idle=0"
        );
        assert_eq!(told("sched="), "sched=: write sched=mq-deadline");
        for wrong in ["job=a", "job=a:", "job=:direct=1", "job=a:x=1\n[b]"] {
            assert!(
                told(wrong).ends_with("write job=backup:direct=1"),
                "{wrong}"
            );
        }
    }
}
