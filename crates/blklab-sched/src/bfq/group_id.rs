// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups by number.

use blklab_block::TaskTable;

/// Number of a group: that of the control group, 0 for the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupId(pub(super) u16);

blklab_types::impl_id!(GroupId(u16));

impl GroupId {
    pub(super) const ROOT: GroupId = GroupId(TaskTable::ROOT_GROUP);
}

impl From<GroupId> for usize {
    fn from(id: GroupId) -> usize {
        usize::from(id.0)
    }
}
