// SPDX-License-Identifier: MIT OR Apache-2.0
//! What control groups move (`io.stat`).

use crate::mq::Queue;
use blklab_types::{Bio, Completion, Op, SECTOR_BYTES, Span, Time};

/// What a control group's own tasks moved: reads, writes, discards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMoved {
    /// Bytes.
    pub bytes: [u64; 3],
    /// Bios; the parts of one that was split count each.
    pub ios: [u64; 3],
}

impl Queue {
    /// Whether groups have policies that may hold their tasks up.
    pub fn has_group_policies(&self) -> bool {
        self.has_group_policies
    }

    /// Whether what groups move is counted: there are some, in the unified hierarchy.
    pub fn counts_groups(&self) -> bool {
        self.counts_groups
    }

    /// What the tasks of a group moved so far; nothing unless that is counted.
    pub fn moved(&self, group: u16) -> GroupMoved {
        let moved = self.moved.get(usize::from(group));
        moved.copied().unwrap_or_default()
    }

    /// How long a task of a group is held up before it returns to its program.
    pub fn hold_up(&mut self, group: u16, now: Time) -> Span {
        self.policies.hold_up(group, now)
    }

    /// What policies say of a group, in words of its `io.stat`.
    pub fn policies_say(&self, group: u16) -> Vec<String> {
        self.policies.says(group)
    }

    /// A bio is queued for a group, or what is left of one whose front was cut off: its
    /// bytes count once, the bio as often as it is queued (`blk_cgroup_bio_start` of
    /// block/blk-cgroup.c, the same in 5.10, 6.1, 6.12 and 7.3).
    pub(crate) fn count_for_group(&mut self, bio: &Bio) {
        if !self.counts_groups {
            return;
        }
        let n = usize::from(bio.group);
        if self.moved.len() <= n {
            self.moved.resize(n + 1, GroupMoved::default());
        }
        let what = match bio.op {
            Op::Read => 0,
            Op::Write | Op::Flush => 1,
            Op::Discard => 2,
        };
        if !matches!(bio.completion, Completion::Split { .. }) {
            self.moved[n].bytes[what] += u64::from(bio.nr_sectors) * SECTOR_BYTES;
        }
        self.moved[n].ios[what] += 1;
    }
}
