// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracepoints that can be recorded, by group.

use crate::RecordError;
use std::fs;
use std::path::Path;

/// A group of tracepoints: a folder below `events`.
#[derive(Debug)]
pub struct Group {
    /// Its name, which is that of the folder.
    pub name: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
    /// These events alone; all if there is none.
    only: &'static [&'static str],
    /// Where it comes from, if a kernel has none.
    source: &'static str,
}

/// Events of buffers in the page cache, which are no I/O and very many.
const NO_IO: [&str; 2] = ["block_touch_buffer", "block_dirty_buffer"];

/// Events of the CPU scheduler that are recorded, of some tasks each.
pub(crate) const SCHED_EVENTS: [&str; 2] = ["sched_switch", "sched_wakeup"];

/// The group that is always recorded.
pub(crate) static BLOCK: Group = Group {
    name: "block",
    help: "the block layer",
    only: &[],
    source: "CONFIG_BLOCK and CONFIG_TRACEPOINTS (CONFIG_BLK_DEV_IO_TRACE selects them)",
};

/// Groups that can be recorded beside the block layer.
pub static GROUPS: [Group; 9] = [
    Group {
        name: "jbd2",
        help: "commits and checkpoints of ext4's journal",
        only: &[],
        source: "CONFIG_JBD2",
    },
    Group {
        name: "ext4",
        help: "all of ext4",
        only: &[],
        source: "CONFIG_EXT4_FS",
    },
    Group {
        name: "xfs",
        help: "all of XFS",
        only: &[],
        source: "CONFIG_XFS_FS",
    },
    Group {
        name: "writeback",
        help: "write-back of dirty pages",
        only: &[],
        source: "CONFIG_TRACEPOINTS",
    },
    Group {
        name: "wbt",
        help: "write-back throttling",
        only: &[],
        source: "CONFIG_BLK_WBT",
    },
    Group {
        name: "iocost",
        help: "shares of control groups (io.cost)",
        only: &[],
        source: "CONFIG_BLK_CGROUP_IOCOST",
    },
    Group {
        name: "nvme",
        help: "commands of NVMe",
        only: &[],
        source: "CONFIG_BLK_DEV_NVME",
    },
    Group {
        name: "scsi",
        help: "commands of SCSI",
        only: &[],
        source: "CONFIG_SCSI",
    },
    Group {
        name: "sched",
        help: "switches and wake-ups of the tasks that submit I/O",
        only: &SCHED_EVENTS,
        source: "CONFIG_TRACEPOINTS",
    },
];

impl Group {
    /// The events of the group that this kernel has and that are recorded, by name.
    pub(crate) fn events(&self, tracefs: &Path) -> Result<Vec<String>, RecordError> {
        let folder = tracefs.join("events").join(self.name);
        let missing = || {
            RecordError::new(format!(
                "this kernel has no {} events: it needs {}, or the module is not loaded",
                self.name, self.source
            ))
        };
        let entries = fs::read_dir(&folder).map_err(|_| missing())?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| folder.join(name).join("format").is_file())
            .filter(|name| !NO_IO.contains(&name.as_str()))
            .filter(|name| self.only.is_empty() || self.only.contains(&name.as_str()))
            .collect();
        names.sort_unstable();
        if names.is_empty() {
            return Err(missing());
        }
        Ok(names)
    }

    /// Whether its events are those of some tasks only.
    pub(crate) fn is_of_submitters(&self) -> bool {
        self.name == "sched"
    }
}
