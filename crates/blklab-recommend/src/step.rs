// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something that may be set: the changes that it comes to, and what one would write where.

use blklab::whatif::Change;
use serde::Serialize;

/// A place where people set something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "where", rename_all = "snake_case")]
pub enum Paste {
    /// An attribute of the disk in sysfs, which a rule of udev writes: `queue/scheduler`.
    Attribute {
        /// Below the disk's folder.
        path: String,
        /// What is written there.
        value: String,
    },
    /// A file of `/proc/sys`.
    Sysctl {
        /// As `sysctl` calls it: `vm.dirty_bytes`.
        key: String,
        /// What is written there.
        value: String,
    },
    /// A file of a job's control group.
    Group {
        /// The job, whose unit it is.
        job: String,
        /// The file: `io.max`.
        file: String,
        /// What is written there, without the disk's number.
        value: String,
    },
    /// A file of the root group, of the disk.
    RootGroup {
        /// The file: `io.cost.qos`.
        file: String,
        /// What is written there, without the disk's number.
        value: String,
    },
    /// What the job itself is to do.
    Application {
        /// The job.
        job: String,
        /// In words.
        advice: String,
    },
}

/// What a step turns: of each, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Knob {
    /// Who is next.
    Scheduler,
    /// One of its tunables.
    Tunable(String),
    /// An attribute of the queue.
    Queue(&'static str),
    /// When dirty pages are written.
    Dirty,
    /// How much a job gets at most, by its control group.
    Limit(String),
    /// What a job gets beside others, by control groups.
    Share,
    /// What a job does.
    Job(String),
}

/// One thing that may be set.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) knob: Knob,
    /// In words: `io.max of backup: wbps=100000000`.
    pub(crate) what: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) pastes: Vec<Paste>,
}

/// A change of a setting.
pub(crate) fn set(key: &str, value: &str) -> Change {
    Change::Set {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

/// A change of a job's option.
pub(crate) fn option(job: &str, option: &str) -> Change {
    Change::Job {
        process: job.to_owned(),
        option: option.to_owned(),
    }
}

impl Step {
    /// Another scheduler.
    pub(crate) fn scheduler(name: &str) -> Step {
        Step {
            knob: Knob::Scheduler,
            what: format!("scheduler {name}"),
            changes: vec![Change::Scheduler {
                name: name.to_owned(),
            }],
            pastes: vec![attribute("queue/scheduler", name)],
        }
    }

    /// A tunable of the scheduler.
    pub(crate) fn tunable(name: &str, value: &str) -> Step {
        Step {
            knob: Knob::Tunable(name.to_owned()),
            what: format!("{name}={value}"),
            changes: vec![set(name, value)],
            pastes: vec![attribute(&format!("queue/iosched/{name}"), value)],
        }
    }

    /// An attribute of the queue.
    pub(crate) fn queue(name: &'static str, value: u64) -> Step {
        let value = value.to_string();
        Step {
            knob: Knob::Queue(name),
            what: format!("{name}={value}"),
            changes: vec![set(name, &value)],
            pastes: vec![attribute(&format!("queue/{name}"), &value)],
        }
    }

    /// Fewer dirty pages: background writing begins at half of them.
    pub(crate) fn dirty_bytes(bytes: u64) -> Step {
        let pairs = [
            ("dirty_bytes", bytes),
            ("dirty_background_bytes", bytes / 2),
        ];
        let sysctl = |(key, value): (&str, u64)| Paste::Sysctl {
            key: format!("vm.{key}"),
            value: value.to_string(),
        };
        Step {
            knob: Knob::Dirty,
            what: format!("dirty_bytes={}m", bytes >> 20),
            changes: pairs
                .map(|(key, value)| set(key, &value.to_string()))
                .to_vec(),
            pastes: pairs.map(sysctl).to_vec(),
        }
    }

    /// Whether both can be set at once.
    pub(crate) fn goes_with(&self, other: &Step) -> bool {
        let sets_scheduler = |s: &Step| {
            let mut changes = s.changes.iter();
            changes.any(|c| matches!(c, Change::Scheduler { .. }))
        };
        let is_tunable = |s: &Step| matches!(s.knob, Knob::Tunable(_));
        let both_choose = sets_scheduler(self) && (sets_scheduler(other) || is_tunable(other))
            || sets_scheduler(other) && is_tunable(self);
        self.knob != other.knob && !both_choose
    }
}

/// An attribute in sysfs.
pub(crate) fn attribute(path: &str, value: &str) -> Paste {
    Paste::Attribute {
        path: path.to_owned(),
        value: value.to_owned(),
    }
}

/// Steps that are made together: schedulers first, as tunables are of the one that is chosen.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) steps: Vec<Step>,
}

impl Candidate {
    pub(crate) fn new(steps: Vec<Step>) -> Candidate {
        Candidate { steps }
    }

    /// With one step more.
    pub(crate) fn and(&self, step: &Step) -> Candidate {
        let mut steps = self.steps.clone();
        steps.push(step.clone());
        Candidate { steps }
    }

    /// With several steps more.
    pub(crate) fn and_all(&self, steps: &[Step]) -> Candidate {
        let all = self.steps.iter().chain(steps);
        Candidate::new(all.cloned().collect())
    }

    /// Whether both have the same steps, in whatever order.
    pub(crate) fn is_same(&self, other: &Candidate) -> bool {
        let has = |step: &Step| other.steps.iter().any(|s| s.what == step.what);
        self.steps.len() == other.steps.len() && self.steps.iter().all(has)
    }

    /// Its steps that another one does not have.
    pub(crate) fn without(&self, other: &Candidate) -> Candidate {
        let has = |step: &&Step| other.steps.iter().any(|s| s.what == step.what);
        let steps = self.steps.iter().filter(|s| !has(s));
        Candidate::new(steps.cloned().collect())
    }

    /// Whether all steps of both can be made at once.
    pub(crate) fn goes_with(&self, other: &Candidate) -> bool {
        let mut own = self.steps.iter();
        own.all(|step| other.steps.iter().all(|s| step.goes_with(s)))
    }

    /// In words.
    pub(crate) fn what(&self) -> String {
        let all: Vec<&str> = self.steps.iter().map(|s| s.what.as_str()).collect();
        all.join(", ")
    }

    /// All changes. What several steps say alike is said once: a job has one group.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let all = self.steps.iter().flat_map(|s| &s.changes);
        let is_scheduler = |c: &&Change| matches!(c, Change::Scheduler { .. });
        let (mut first, rest): (Vec<&Change>, Vec<&Change>) = all.partition(is_scheduler);
        first.extend(rest);
        let mut changes: Vec<Change> = Vec::new();
        for change in first {
            if !changes.contains(change) {
                changes.push(change.clone());
            }
        }
        changes
    }

    /// What one would write where.
    pub(crate) fn pastes(&self) -> Vec<Paste> {
        let mut pastes: Vec<Paste> = Vec::new();
        for paste in self.steps.iter().flat_map(|s| &s.pastes) {
            if !pastes.contains(paste) {
                pastes.push(paste.clone());
            }
        }
        pastes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunables_go_with_the_scheduler_that_runs_and_with_no_other() {
        let kyber = Step::scheduler("kyber");
        let batch = Step::tunable("fifo_batch", "1");
        let requests = Step::queue("nr_requests", 32);
        assert!(!kyber.goes_with(&Step::scheduler("bfq")));
        assert!(!kyber.goes_with(&batch) && !batch.goes_with(&kyber));
        assert!(kyber.goes_with(&requests) && batch.goes_with(&requests));
        assert!(!requests.goes_with(&Step::queue("nr_requests", 64)));
    }

    #[test]
    fn the_scheduler_is_chosen_before_what_belongs_to_it() {
        let candidate = Candidate::new(vec![Step::queue("nr_requests", 32)]);
        let candidate = candidate.and(&Step::scheduler("bfq"));
        let changes = candidate.changes();
        assert!(matches!(&changes[0], Change::Scheduler { name } if name == "bfq"));
        assert_eq!(candidate.what(), "nr_requests=32, scheduler bfq");
    }
}
