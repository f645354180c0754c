// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the throttle knows of a task.

use blklab_types::Jiffies;

/// Pages between the first checks of a task.
const FIRST_PAGES: u64 = 32;

/// What the throttle knows of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskDirty {
    /// Pages that it made dirty since its last pause.
    pub(crate) nr_dirtied: u64,
    /// Pages after which it looks at the limits.
    pub(crate) nr_dirtied_pause: u64,
    /// When its last pause ended, or was to end.
    pub(crate) paused_when: Option<Jiffies>,
}

impl Default for TaskDirty {
    fn default() -> TaskDirty {
        TaskDirty {
            nr_dirtied: 0,
            nr_dirtied_pause: FIRST_PAGES,
            paused_when: None,
        }
    }
}
