// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a request waited for, in words.

use blklab_block::SleepsFor;
use blklab_experiment::{Catalogue, Experiment};
use blklab_trace::truth::Why;
use blklab_types::Pid;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its task slept for a request or tag.
    NoRequest,
    /// Its task slept until fewer writes were under way.
    WriteBackThrottling,
    /// Its task slept for the sake of a sibling group's `io.latency`.
    GroupLatency,
    /// Its task slept for its group's share by `io.cost`.
    GroupCost,
    /// It lay on the plug of its task.
    TaskPlug,
    /// The device's cache had to be flushed first.
    Flush,
    /// What the queue or the scheduler decided.
    Decided(Why),
    /// The driver had been shown it; the device was full.
    Driver,
}

/// A cause and how long it held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reason {
    /// A name for programs: `idling`.
    pub cause: &'static str,
    /// The process that was served or waited for, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// How long, ns.
    pub ns: u64,
    /// In words.
    pub words: String,
}

impl Cause {
    pub(crate) fn of_sleep(sleep: SleepsFor) -> Cause {
        match sleep {
            SleepsFor::Request => Cause::NoRequest,
            SleepsFor::WriteBack => Cause::WriteBackThrottling,
            SleepsFor::GroupLatency => Cause::GroupLatency,
            SleepsFor::GroupCost => Cause::GroupCost,
        }
    }

    /// A name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NoRequest => "no-request",
            Cause::WriteBackThrottling => "write-back-throttling",
            Cause::GroupLatency => "io-latency",
            Cause::GroupCost => "io-cost",
            Cause::TaskPlug => "task-plug",
            Cause::Flush => "flush",
            Cause::Driver => "driver",
            Cause::Decided(why) => match why {
                Why::Plugged => "plugged",
                Why::DeviceFull => "device-full",
                Why::Order => "order",
                Why::ReadBatch => "read-batch",
                Why::WriteBatch => "write-batch",
                Why::BatchChange => "batch-change",
                Why::Slice => "slice",
                Why::Idling => "idling",
                Why::InFlight => "in-flight",
                Why::Quantum => "quantum",
                Why::SyncInFlight => "sync-in-flight",
                Why::AsyncInFlight => "async-in-flight",
                Why::AsyncRamp => "async-ramp",
                Why::IdleClass => "idle-class",
                Why::HigherClass => "higher-class",
                Why::Tokens => "tokens",
            },
        }
    }
}

/// Says causes in words, with the settings that they depend on.
#[derive(Debug)]
pub(crate) struct Words {
    scheduler: String,
    tunables: BTreeMap<&'static str, i64>,
    depth: u32,
    nr_requests: u32,
}

impl Words {
    pub(crate) fn new(e: &Experiment, catalogue: &Catalogue, nr_requests: u32) -> Words {
        let tunables = e.scheduler(catalogue).map(|(_, t)| t).ok();
        let values = tunables
            .iter()
            .flat_map(|t| t.names().map(|n| (n, t.get(n))));
        Words {
            scheduler: e.scheduler.clone(),
            tunables: values.collect(),
            depth: e.queue_depth(catalogue).unwrap_or_default(),
            nr_requests,
        }
    }

    /// The scheduler's values of these tunables, as far as it has them.
    fn with(&self, names: &[&str]) -> String {
        let known = names
            .iter()
            .filter_map(|n| Some((n, self.tunables.get(n)?)));
        let shown: Vec<String> = known.map(|(n, v)| format!("{n}={v}")).collect();
        if shown.is_empty() {
            String::new()
        } else {
            format!(" ({})", shown.join(", "))
        }
    }

    /// A cause in words. `who` names a process.
    pub(crate) fn cause(&self, cause: Cause, pid: Pid, who: impl Fn(Pid) -> String) -> String {
        let sched = &self.scheduler;
        let whose = |some: &str, none: &str| match pid {
            0 => none.to_owned(),
            pid => some.replace('*', &who(pid)),
        };
        match cause {
            Cause::NoRequest => format!(
                "its task slept for a request: all {} were in use",
                self.nr_requests
            ),
            Cause::WriteBackThrottling => {
                "its task slept until fewer writes were under way: write-back throttling (wbt)"
                    .to_owned()
            }
            Cause::GroupLatency => {
                "its task slept until fewer bios of its group were under way: a group beside it missed \
                 its io.latency"
                    .to_owned()
            }
            Cause::GroupCost => {
                "its task slept until its group's share of the device allowed it: io.cost".to_owned()
            }
            Cause::TaskPlug => "on its task's plug, for more requests to follow".to_owned(),
            Cause::Flush => "the device emptied its write cache first (flush)".to_owned(),
            Cause::Driver => format!("at the driver: {}", self.full()),
            Cause::Decided(why) => match why {
                Why::Plugged => {
                    "the queue was plugged: for more requests, until a task waited or the timer \
                     ended it"
                        .to_owned()
                }
                Why::DeviceFull => self.full(),
                Why::Order => whose(
                    &format!("others of *'s queue came first in {sched}'s order"),
                    &format!("others came first in {sched}'s order"),
                ),
                Why::ReadBatch => format!(
                    "{sched} served a batch of reads{}",
                    self.with(&["fifo_batch", "writes_starved", "read_batch_expire"])
                ),
                Why::WriteBatch => format!(
                    "{sched} served a batch of writes{}",
                    self.with(&["fifo_batch", "write_batch_expire"])
                ),
                Why::BatchChange => {
                    format!("{sched} let the old batch end before the next began")
                }
                Why::Slice => whose(
                    &format!("*'s slice: {sched} served its queue{}", self.slice()),
                    &format!("the slice of a queue of no single process{}", self.slice()),
                ),
                Why::Idling => whose(
                    &format!(
                        "{sched} kept the device idle for *'s next request{}",
                        self.idle()
                    ),
                    &format!(
                        "{sched} kept the device idle for another's request{}",
                        self.idle()
                    ),
                ),
                Why::InFlight => whose(
                    &format!("{sched} awaited *'s requests at the device"),
                    &format!("{sched} awaited the served queue's requests at the device"),
                ),
                Why::Quantum => format!(
                    "the served queue had all the requests at the device that it may{}",
                    self.with(&["quantum", "async_depth"])
                ),
                Why::SyncInFlight => {
                    format!("{sched} held async requests back while sync ones were at the device")
                }
                Why::AsyncInFlight => {
                    format!("{sched} would idle, and awaited async requests at the device first")
                }
                Why::AsyncRamp => {
                    format!("{sched} held the depth of async requests down after sync ones")
                }
                Why::IdleClass => "of the idle class: until the disk was quiet".to_owned(),
                Why::HigherClass => "a higher priority class had requests at the device".to_owned(),
                Why::Tokens => format!(
                    "{sched} let no more of its kind to the device{}",
                    self.with(&["read_lat_nsec", "write_lat_nsec"])
                ),
            },
        }
    }

    fn full(&self) -> String {
        match self.depth {
            1 => "the device had a command, and takes one at a time".to_owned(),
            n => format!("the device had all {n} commands that it takes"),
        }
    }

    fn slice(&self) -> String {
        self.with(&["slice_sync", "slice_async", "timeout_sync", "max_budget"])
    }

    fn idle(&self) -> String {
        self.with(&["slice_idle", "group_idle", "antic_expire"])
    }
}
