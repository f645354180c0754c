// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's control groups as the block layer numbers them.

use crate::Machine;
use blklab_block::{IoGroup, Queue, TaskTable};
use blklab_experiment::{Cgroup, Experiment};
use blklab_target::{CgroupUse, Held};
use blklab_types::{Hz, IoMax, Span};

/// The number of a group of an experiment by its name; 0, the root, if there is none.
pub fn number_of(e: &Experiment, name: &str) -> u16 {
    let name = name.trim_matches('/');
    let place = e.cgroups.iter().position(|g| g.name == name);
    place.map_or(TaskTable::ROOT_GROUP, |i| i as u16 + 1)
}

/// A task table without tasks, with the groups: their numbers are their places
/// in the experiment, from 1.
pub(crate) fn table(e: &Experiment) -> TaskTable {
    table_with(e, Cgroup::limits)
}

/// The same for bios that were recorded: what limits held is in their times.
pub(crate) fn table_of_recorded(e: &Experiment) -> TaskTable {
    table_with(e, |_| None)
}

fn table_with(e: &Experiment, io_max: impl Fn(&Cgroup) -> Option<IoMax>) -> TaskTable {
    let mut tasks = TaskTable::default();
    for g in &e.cgroups {
        tasks.add_group(IoGroup {
            parent: g
                .parent()
                .map_or(TaskTable::ROOT_GROUP, |p| number_of(e, p)),
            weight: g.bfq_weight.or(g.blkio_weight),
            leaf_weight: g.blkio_leaf_weight,
            io_max: io_max(g),
        });
    }
    tasks
}

/// What was held of each group's bios; empty if no group has limits.
pub fn cgroup_uses(m: &Machine, e: &Experiment) -> Vec<CgroupUse> {
    m.queue_state(|q| {
        let Queue::Mq(queue) = q else {
            return Vec::new();
        };
        if !queue.has_group_limits() {
            return Vec::new();
        }
        let use_of = |(name, number): (&str, u16)| {
            let stats = queue.hold_stats(number);
            CgroupUse {
                name: name.to_owned(),
                held: Some(Held {
                    bios: stats.bios,
                    longest: ticks(q.hz(), stats.longest),
                }),
                ..CgroupUse::default()
            }
        };
        let names = e.cgroups.iter().map(|g| g.name.as_str());
        names.zip(1..).map(use_of).collect()
    })
}

/// Whether write-back is charged to groups: on the unified hierarchy, which is that
/// of the multi-queue path, by the filesystems that say so (`SB_I_CGROUPWB`).
pub(crate) fn charges_write_back(e: &Experiment) -> bool {
    let traits = crate::filesystem::filesystem_traits(e);
    !e.cgroups.is_empty() && !e.kernel.has_single_queue() && traits.cgroup_writeback
}

/// Whose the write-back of files is.
pub(crate) fn write_back_note(e: &Experiment) -> Option<String> {
    if e.cgroups.is_empty() {
        return None;
    }
    Some(if charges_write_back(e) {
        "control groups: write-back of a file is charged to the group that first wrote to it; \
         of the machine's dirty limits each group has the share that it has of what is written"
            .to_owned()
    } else if !e.kernel.has_single_queue() {
        format!(
            "control groups: write-back of {} is charged to the root group",
            e.filesystem.name
        )
    } else {
        "control groups: write-back by the flusher is charged to the root group".to_owned()
    })
}

fn ticks(hz: Hz, n: u64) -> Span {
    Span(n.saturating_mul(1_000_000_000 / u64::from(hz.0)))
}
