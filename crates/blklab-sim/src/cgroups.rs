// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment's control groups as the block layer numbers them.

use crate::Machine;
use blklab_block::{IoGroup, Queue, TaskTable, mq};
use blklab_experiment::{Cgroup, Experiment};
use blklab_target::{CgroupUse, Held, Moved};
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
    table_with(e, |g| g.limits().or(g.throttle_limits()))
}

/// The same for bios that were recorded: what limits held is in their times.
pub(crate) fn table_of_recorded(e: &Experiment) -> TaskTable {
    table_with(e, |_| None)
}

fn table_with(e: &Experiment, io_max: impl Fn(&Cgroup) -> Option<IoMax>) -> TaskTable {
    let mut tasks = TaskTable::default();
    if e.has_groups_of_v1() {
        tasks.limit_each_alone();
    }
    let root = |g: &&Cgroup| g.is_root();
    if let Some(root) = e.cgroups.iter().find(root) {
        tasks.set_cost(
            root.cost_qos.unwrap_or_default(),
            root.cost_model.unwrap_or_default(),
        );
    }
    for g in &e.cgroups {
        tasks.add_group(IoGroup {
            parent: g
                .parent()
                .map_or(TaskTable::ROOT_GROUP, |p| number_of(e, p)),
            weight: g.weight_of_bfq().or(g.blkio_weight),
            leaf_weight: g.blkio_leaf_weight,
            io_max: io_max(g),
            cost_weight: g.weight_of_cost(),
            latency_us: g.latency_us,
            prio: g.prio.unwrap_or_default(),
        });
    }
    tasks
}

/// What was held of each group's bios, what they moved, what their policies say and how long
/// tasks stood still; of groups of the first version, what was held alone, if any has limits.
pub fn cgroup_uses(m: &Machine, e: &Experiment) -> Vec<CgroupUse> {
    let mut uses: Vec<CgroupUse> = m.queue_state(|q| {
        let gate = q.gate();
        let counting = match q {
            Queue::Sq(_) => None,
            Queue::Mq(queue) => Some(queue).filter(|queue| queue.counts_groups()),
        };
        if !gate.has_limits() && counting.is_none() {
            return Vec::new();
        }
        let use_of = |(group, number): (&Cgroup, u16)| {
            let held = || {
                let stats = gate.hold_stats(number);
                Held {
                    bios: stats.bios,
                    longest: ticks(q.hz(), stats.longest),
                }
            };
            CgroupUse {
                name: group.name.clone(),
                held: gate.has_limits().then(held),
                moved: counting.map(|queue| moved(queue, e, &group.name)),
                said: counting
                    .map(|queue| queue.policies_say(number))
                    .unwrap_or_default(),
                pressure: None,
            }
        };
        let groups = e.cgroups.iter().zip(1..);
        let below_root = groups.filter(|(group, _)| !group.is_root());
        below_root.map(use_of).collect()
    });
    // Groups of the first version have no io.pressure.
    if !e.has_groups_of_v1() {
        for group in &mut uses {
            group.pressure = m.pressure(number_of(e, &group.name));
        }
    }
    uses
}

/// What a group and those below it moved.
fn moved(queue: &mq::Queue, e: &Experiment, name: &str) -> Moved {
    let is_in = |group: &Cgroup| {
        let rest = group.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut all = Moved::default();
    for (_, number) in e.cgroups.iter().zip(1..).filter(|(g, _)| is_in(g)) {
        let own = queue.moved(number);
        for what in 0..3 {
            all.bytes[what] += own.bytes[what];
            all.ios[what] += own.ios[what];
        }
    }
    all
}

/// Whether write-back is charged to groups: on the unified hierarchy, which is that
/// of the multi-queue path, by the filesystems that say so (`SB_I_CGROUPWB`).
pub(crate) fn charges_write_back(e: &Experiment) -> bool {
    let traits = crate::filesystem::filesystem_traits(e);
    !e.cgroups.is_empty() && !e.has_groups_of_v1() && traits.cgroup_writeback
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
    } else if !e.has_groups_of_v1() {
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
