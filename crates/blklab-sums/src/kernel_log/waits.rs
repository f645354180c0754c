// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a task waits for, by the functions of its stack.

/// What functions wait for.
struct Wait {
    functions: &'static [&'static str],
    means: &'static str,
    /// Whose waiting explains others', or which is for I/O itself.
    sort: Sort,
}

/// Where a wait stands in a chain of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// For the device, or something right before it.
    Device,
    /// For what other tasks have or do: a lock, the journal.
    Others,
    /// Not for a disk of this machine.
    Elsewhere,
}

/// What is known, each of what it is called in several kernels. Names are whole.
static WAITS: &[Wait] = &[
    Wait {
        functions: &[
            "blk_mq_get_tag",
            "bt_get",
            "get_request",
            "get_request_wait",
            "sbitmap_queue_get",
        ],
        means: "a free request or tag of the device: all are in use by I/O that has not ended",
        sort: Sort::Device,
    },
    Wait {
        functions: &["wbt_wait"],
        means: "write-back throttling (wbt) to let a write through, which it does as others end",
        sort: Sort::Device,
    },
    Wait {
        functions: &["ioc_rqos_throttle"],
        means: "io.cost to have budget for its control group",
        sort: Sort::Device,
    },
    Wait {
        functions: &["blkcg_iolatency_throttle"],
        means: "io.latency, which holds its control group back for another's target",
        sort: Sort::Device,
    },
    Wait {
        functions: &["blk_mq_freeze_queue_wait", "blk_freeze_queue"],
        means: "all I/O of the device to end, so that a setting can be changed",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "jbd2_log_do_checkpoint",
            "__jbd2_log_wait_for_space",
            "log_do_checkpoint",
            "__log_wait_for_space",
        ],
        means: "room in ext4's journal, which is full: what is in it must be written to its place first",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "jbd2_log_wait_commit",
            "jbd2_complete_transaction",
            "log_wait_commit",
        ],
        means: "a commit of ext4's journal, which jbd2 writes",
        sort: Sort::Others,
    },
    Wait {
        functions: &["wait_transaction_locked", "wait_transaction_switching"],
        means: "the running transaction of ext4's journal to be closed, for which every task with an open handle must be done",
        sort: Sort::Others,
    },
    Wait {
        functions: &["do_get_write_access"],
        means: "a block of ext4's metadata that the journal is writing",
        sort: Sort::Others,
    },
    Wait {
        functions: &["jbd2_journal_wait_updates"],
        means: "tasks to close their handles, so that the journal can be committed",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "xlog_grant_head_wait",
            "xlog_grant_head_check",
            "xfs_log_reserve",
        ],
        means: "room in XFS's log",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "xlog_wait_on_iclog",
            "xfs_log_force_seq",
            "xfs_log_force_lsn",
            "_xfs_log_force_lsn",
            "_xfs_log_force",
            "xfs_log_force",
            "xlog_cil_force_seq",
        ],
        means: "XFS's log to be written",
        sort: Sort::Others,
    },
    Wait {
        functions: &["xfs_buf_iowait", "xfs_buf_submit_wait", "xfs_buf_read_map"],
        means: "a block of XFS's metadata to be read or written",
        sort: Sort::Device,
    },
    Wait {
        functions: &["xfs_buf_lock"],
        means: "a block of XFS's metadata that another task has",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "btrfs_commit_transaction",
            "wait_current_trans",
            "btrfs_wait_for_commit",
            "btrfs_sync_log",
        ],
        means: "a transaction of btrfs to be committed",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "txg_wait_open",
            "txg_wait_synced",
            "txg_wait_synced_impl",
            "zil_commit",
            "zil_commit_waiter",
        ],
        means: "ZFS to write a group of transactions or its log",
        sort: Sort::Others,
    },
    Wait {
        functions: &["zio_wait"],
        means: "an I/O of ZFS, which may wait in its own queue first",
        sort: Sort::Device,
    },
    Wait {
        functions: &["balance_dirty_pages", "balance_dirty_pages_ratelimited"],
        means: "leave to dirty more pages: write-back is behind",
        sort: Sort::Others,
    },
    Wait {
        functions: &["wb_wait_for_completion", "sync_inodes_sb"],
        means: "all dirty data of a filesystem to be written (sync)",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "md_flush_request",
            "md_write_start",
            "md_super_wait",
            "md_update_sb",
        ],
        means: "md, which writes its superblock or empties the caches of the array's disks",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "get_active_stripe",
            "raid5_get_active_stripe",
            "__find_stripe",
        ],
        means: "a free stripe of the RAID 5 or 6 below: all are in use by I/O that has not ended",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "wait_barrier",
            "raise_barrier",
            "_wait_barrier",
            "regular_request_wait",
        ],
        means: "md's resync or freeze to let normal I/O through, or the other way round",
        sort: Sort::Others,
    },
    Wait {
        functions: &[
            "rpc_wait_bit_killable",
            "nfs_wait_on_request",
            "nfs_file_fsync",
            "nfs4_proc_lock",
            "nfs_wb_all",
            "nfs_commit_inode",
        ],
        means: "an NFS server",
        sort: Sort::Elsewhere,
    },
    Wait {
        functions: &[
            "request_wait_answer",
            "fuse_simple_request",
            "__fuse_simple_request",
        ],
        means: "the program that serves a FUSE filesystem",
        sort: Sort::Elsewhere,
    },
    Wait {
        functions: &[
            "ceph_osdc_wait_request",
            "rbd_img_request_submit",
            "wait_request_timeout",
        ],
        means: "a Ceph cluster",
        sort: Sort::Elsewhere,
    },
    Wait {
        functions: &["blkdev_issue_flush", "submit_bio_wait"],
        means: "one bio of its own, often a flush of the device's cache",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "blk_execute_rq",
            "__scsi_execute",
            "scsi_execute_cmd",
            "nvme_submit_sync_cmd",
            "__nvme_submit_sync_cmd",
        ],
        means: "a command that it sent to the device past the filesystem",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "__blockdev_direct_IO",
            "do_blockdev_direct_IO",
            "iomap_dio_rw",
            "__iomap_dio_rw",
            "dio_await_completion",
            "__blkdev_direct_IO",
        ],
        means: "its own direct I/O",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "wait_on_page_writeback",
            "folio_wait_writeback",
            "__filemap_fdatawait_range",
            "filemap_fdatawait_range",
            "wait_on_page_writeback_range",
        ],
        means: "pages that are being written",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "__wait_on_buffer",
            "__bread_gfp",
            "ext4_read_bh",
            "__ext4_get_inode_loc",
            "ext4_bread",
        ],
        means: "a block to be read or written: of metadata, or one that is changed in part and read before",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "wait_on_page_bit",
            "wait_on_page_bit_common",
            "__lock_page",
            "folio_wait_bit_common",
            "filemap_fault",
            "do_swap_page",
        ],
        means: "a page that is being read or written",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "__mutex_lock",
            "__mutex_lock_slowpath",
            "mutex_lock",
            "rwsem_down_write_slowpath",
            "rwsem_down_read_slowpath",
            "rwsem_down_write_failed",
            "rwsem_down_read_failed",
            "call_rwsem_down_write_failed",
            "call_rwsem_down_read_failed",
            "percpu_down_write",
            "__percpu_down_read",
            "__down",
            "down",
        ],
        means: "a lock that another task has",
        sort: Sort::Others,
    },
    Wait {
        functions: &["mempool_alloc"],
        means: "memory that is kept for I/O, which ended I/O gives back",
        sort: Sort::Device,
    },
    Wait {
        functions: &[
            "jbd2_journal_commit_transaction",
            "journal_commit_transaction",
        ],
        means: "what a commit of ext4's journal needs: it is the journal's own thread, and tasks in fsync wait for it",
        sort: Sort::Device,
    },
];

/// Functions that sleep for everybody.
const SLEEPS: [&str; 22] = [
    "__schedule",
    "schedule",
    "io_schedule",
    "io_schedule_timeout",
    "schedule_timeout",
    "schedule_preempt_disabled",
    "schedule_hrtimeout_range",
    "bit_wait",
    "bit_wait_io",
    "bit_wait_timeout",
    "sync_buffer",
    "sleep_on_buffer",
    "sleep_on_page",
    "__wait_on_bit",
    "__wait_on_bit_lock",
    "out_of_line_wait_on_bit",
    "out_of_line_wait_on_bit_lock",
    "wait_for_completion",
    "wait_for_completion_io",
    "__wait_for_common",
    "rq_qos_wait",
    "__switch_to",
];

/// What is said of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The function that waits.
    pub(super) function: String,
    /// For what, the nearest first; none is known of some functions.
    pub(super) waits: Vec<&'static str>,
    /// Of the nearest.
    pub(super) sort: Option<Sort>,
}

/// What a stack says, whose functions are given from the innermost on. Of a doubtful one the first
/// function that is known to wait counts: what is before it may be left from earlier calls.
pub(super) fn told(stack: &[&str], is_doubtful: bool) -> Option<Told> {
    let mut waits: Vec<&'static str> = Vec::new();
    let mut sort = None;
    let mut known_to_wait = None;
    for function in stack {
        let known = WAITS.iter().find(|wait| wait.functions.contains(function));
        if let Some(wait) = known.filter(|wait| !waits.contains(&wait.means)) {
            waits.push(wait.means);
            sort = sort.or(Some(wait.sort));
            known_to_wait = known_to_wait.or(Some(function));
        }
    }
    let nearest = stack.iter().find(|function| !SLEEPS.contains(function));
    let function = known_to_wait.filter(|_| is_doubtful).or(nearest)?;
    Some(Told {
        function: (*function).to_owned(),
        waits,
        sort,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_wait_comes_first() {
        let stack = [
            "__schedule",
            "schedule",
            "jbd2_log_wait_commit",
            "jbd2_log_do_checkpoint",
            "__jbd2_log_wait_for_space",
        ];
        let told = told(&stack, false).unwrap();
        assert_eq!(told.function, "jbd2_log_wait_commit");
        assert_eq!(told.waits.len(), 2);
        assert!(told.waits[1].starts_with("room in ext4's journal"));
        assert_eq!(told.sort, Some(Sort::Others));
    }

    #[test]
    fn names_are_whole_and_stand_once() {
        assert_eq!(
            told(&["schedule", "down_the_road"], false)
                .unwrap()
                .waits
                .len(),
            0
        );
        assert_eq!(told(&["schedule", "io_schedule"], false), None);
        let mut names: Vec<&str> = WAITS.iter().flat_map(|w| w.functions).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
