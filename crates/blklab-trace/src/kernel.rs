// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of other parts of the kernel than the block layer: what the journal, write-back,
//! throttling, drivers and the CPU scheduler did beside the I/O.
//!
//! Only what something is concluded from is kept. [`POINTS`] says of each event what it is,
//! in which file of the kernel it is raised, and from which release on it is there.

use crate::{GroupPath, GroupShare};
use blklab_types::{Dev, Pid, Time};
use std::fmt;

/// An event of another part of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelEvent {
    /// When.
    pub time: Time,
    /// Task in whose context it happened; 0 in interrupts of an idle CPU.
    pub pid: Pid,
    /// The device that it names, of a file system often a partition; 0,0 if it names none.
    pub dev: Dev,
    /// CPU on which it happened.
    pub cpu: u16,
    /// What happened.
    pub point: Tracepoint,
}

/// What happened, with the fields that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracepoint {
    /// `jbd2_start_commit` to `jbd2_end_commit`.
    Commit {
        /// How far the commit is.
        step: CommitStep,
        /// The transaction's number.
        tid: u32,
    },
    /// `jbd2_run_stats`: how long the parts of a commit took, in ticks: jiffies in binary and
    /// in what trace-cmd and perf print, ms in the kernel's own text.
    CommitStats {
        /// The transaction's number.
        tid: u32,
        /// The longest wait of a task for a handle.
        wait_ticks: u32,
        /// From the request for the commit to its beginning.
        request_delay_ticks: u32,
        /// Waiting for handles that are open.
        locked_ticks: u32,
        /// Submitting ordered data.
        flushing_ticks: u32,
        /// Waiting for data, writing the journal and the commit record.
        logging_ticks: u32,
        /// Handles that took part.
        handles: u32,
        /// Blocks written to the journal.
        blocks_logged: u32,
    },
    /// `jbd2_checkpoint`: a task frees room in the journal.
    Checkpoint,
    /// `jbd2_checkpoint_stats`: a transaction is written back.
    CheckpointStats {
        /// The transaction's number.
        tid: u32,
        /// Buffers that had to be written for it.
        written: u32,
    },
    /// `jbd2_handle_start`: a task takes part in a transaction.
    HandleStart {
        /// The transaction's number.
        tid: u32,
    },
    /// `jbd2_handle_stats`: it is done with it.
    HandleEnd {
        /// The transaction's number.
        tid: u32,
        /// Whether the transaction is to be committed at once.
        is_sync: bool,
        /// Blocks that it changed.
        dirtied_blocks: u32,
    },
    /// `jbd2_lock_buffer_stall`: a task waited for a buffer that the commit has.
    LockBufferStall {
        /// How long.
        stall_ms: u32,
    },
    /// `ext4_sync_file_enter`: fsync or fdatasync begins.
    SyncFileEnter {
        /// The file.
        ino: u64,
        /// Whether it is fdatasync.
        is_datasync: bool,
    },
    /// `ext4_sync_file_exit`: it is done.
    SyncFileExit {
        /// The file.
        ino: u64,
        /// 0, or a negative errno.
        ret: i32,
    },
    /// `ext4_da_write_pages`: delayed allocation writes pages of a file.
    WritePages {
        /// The file.
        ino: u64,
        /// Pages that may still be written.
        nr_to_write: u64,
    },
    /// `ext4_fc_commit_start`: a fast commit begins.
    FastCommitStart,
    /// `ext4_fc_commit_stop`: it ends.
    FastCommitStop {
        /// Blocks that it wrote.
        blocks: u32,
        /// Why there was a full commit instead; 0 if there was none.
        reason: i32,
    },
    /// `xfs_file_fsync`: fsync begins.
    XfsFsync {
        /// The file.
        ino: u64,
    },
    /// `xfs_log_force`: the log is to be on the device.
    LogForce,
    /// `xlog_iclog_*`: what becomes of a buffer of the log.
    Iclog {
        /// How far it is.
        step: IclogStep,
        /// Where the log goes on with it.
        lsn: u64,
    },
    /// `xfs_log_grant_sleep`: a task sleeps until there is room in the log.
    GrantSleep,
    /// `xfs_log_grant_wake`: it goes on.
    GrantWake,
    /// `balance_dirty_pages`: a task that dirties pages is held back, or not.
    BalanceDirtyPages {
        /// How long it is about to sleep; 0 or less if not at all.
        pause_ms: i32,
        /// Pages that it dirtied since it was here last.
        dirtied_pages: u32,
        /// Dirty pages of all.
        dirty_pages: u32,
        /// How many there may be.
        limit_pages: u32,
        /// How fast the task may dirty pages, in KiB per second.
        task_ratelimit_kib: u32,
    },
    /// `writeback_queue`, `writeback_start`, `writeback_written`, `writeback_wait`.
    Writeback {
        /// What became of the work.
        step: WritebackStep,
        /// Pages that are still to be written.
        nr_pages: i64,
        /// Why it is done.
        reason: WritebackReason,
    },
    /// `wbt_lat`: a read waits for longer than it should.
    WbtLat {
        /// How long so far.
        lat_us: u64,
    },
    /// `wbt_stat`: latencies of the last window.
    WbtStat {
        /// The shortest of reads, which is compared with the target.
        read_min_ns: u64,
        /// The mean of reads.
        read_mean_ns: u64,
        /// Reads.
        nr_reads: u32,
        /// Writes.
        nr_writes: u32,
    },
    /// `wbt_step`: how many writes may be under way was changed.
    WbtStep {
        /// How often it was halved; negative if more than the default are allowed.
        step: i32,
        /// The window.
        window_us: u64,
        /// Writes that write-back may have.
        background: u32,
        /// Writes of those that are waited for.
        normal: u32,
        /// Writes of kswapd and of those that ask for all.
        max: u32,
    },
    /// `wbt_timer`: a window has ended.
    WbtTimer {
        /// What came of it.
        status: WbtStatus,
        /// As in [`Tracepoint::WbtStep`].
        step: i32,
        /// Writes under way.
        inflight: u32,
    },
    /// `iocost_iocg_activate`: a control group that had no I/O has some again.
    CostActivate {
        /// The group.
        group: GroupPath,
        /// Its share of the device.
        share: GroupShare,
    },
    /// `iocost_inuse_shortage`: a control group had given away a part of its share, and needs
    /// it again.
    CostShortage {
        /// The group.
        group: GroupPath,
        /// Its weight before and now.
        inuse: [u32; 2],
    },
    /// `iocost_ioc_vrate_adj`: how fast the device is taken to be.
    CostRate {
        /// Before and now, in thousandths of what its model says.
        permille: [u32; 2],
        /// Reads and writes that missed the latency that io.cost.qos asks for, in millionths.
        missed_ppm: [u32; 2],
        /// Part of the time in which requests were exhausted.
        rq_wait_percent: u32,
        /// Control groups whose I/O takes long.
        nr_lagging: u32,
        /// Control groups that want more than they get.
        nr_shortages: u32,
    },
    /// `iocost_iocg_forgive_debt`: what a control group owes for I/O that could not wait, as
    /// that of reclaim, is cut.
    CostDebt {
        /// The group.
        group: GroupPath,
        /// How long its tasks are held back for it, us.
        delay_us: u32,
    },
    /// `nvme_setup_cmd`: a command is made.
    NvmeSetup {
        /// Which.
        command: NvmeCommand,
        /// Its opcode; of admin commands where the queue is 0.
        opcode: u8,
        /// Its first logical block, where it has one.
        slba: u64,
    },
    /// `nvme_complete_rq`: the request of a command is done, or will be tried again.
    NvmeComplete {
        /// Which.
        command: NvmeCommand,
        /// Status of the last try: 0 is success.
        status: u16,
        /// How often it was tried again before.
        retries: u8,
    },
    /// `scsi_dispatch_cmd_start`: the low-level driver gets a command.
    ScsiStart(ScsiCommand),
    /// `scsi_dispatch_cmd_error`: the driver did not take it.
    ScsiRefused {
        /// The command.
        command: ScsiCommand,
        /// What the driver said (`SCSI_MLQUEUE_*`).
        rtn: i32,
    },
    /// `scsi_dispatch_cmd_done`: the driver is done with it.
    ScsiDone {
        /// The command.
        command: ScsiCommand,
        /// How it ended.
        result: ScsiResult,
    },
    /// `scsi_dispatch_cmd_timeout`: the driver took too long; error handling begins.
    ScsiTimeout(ScsiCommand),
    /// `scsi_eh_wakeup`: error handling of a host begins.
    ScsiEhWakeup {
        /// The host.
        host: u32,
    },
    /// `ufshcd_command` and `ufshcd_command_status`: a command of UFS goes or comes.
    UfsCommand {
        /// Whether it goes to the device; else it comes back.
        is_sent: bool,
        /// Its tag.
        tag: u32,
        /// Its first logical block.
        lba: u64,
    },
    /// `sched_switch`: a CPU goes on with another task.
    Switch {
        /// The task that ran.
        prev: Pid,
        /// Why it does not go on.
        prev_state: TaskState,
        /// The task that runs now.
        next: Pid,
    },
    /// `sched_waking`, `sched_wakeup`: a task can go on.
    Wakeup {
        /// Which.
        pid: Pid,
    },
}

/// How far a commit of jbd2 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitStep {
    /// `jbd2_start_commit`.
    Start,
    /// `jbd2_commit_locking`: no handle begins any more; those that are open are waited for.
    Locking,
    /// `jbd2_commit_flushing`: ordered data are submitted.
    Flushing,
    /// `jbd2_commit_logging`: the journal's blocks are submitted; then data and journal are
    /// waited for, and the commit record is written.
    Logging,
    /// `jbd2_end_commit`.
    End,
}

/// How far a buffer of XFS's log is (`xlog_iclog_*`, fs/xfs/xfs_log.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IclogStep {
    /// `xlog_iclog_wait_on`: a task waits for it.
    WaitOn,
    /// The same of a task that need not wait: it is still filled, or done with.
    Idle,
    /// `xlog_iclog_write`: it is submitted.
    Write,
    /// `xlog_iclog_sync_done`: it is on the device.
    SyncDone,
    /// `xlog_iclog_clean`: who waited for it goes on.
    Clean,
}

/// What becomes of work for a flusher thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackStep {
    /// It is asked for.
    Queue,
    /// A round of it begins.
    Start,
    /// A round of it ends.
    Written,
    /// It waits for an inode that somebody else writes.
    Wait,
}

/// Why pages are written back (`enum wb_reason`, include/linux/backing-dev-defs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackReason {
    /// More than the background limit is dirty.
    Background,
    /// Memory is short.
    Vmscan,
    /// sync, fsync.
    Sync,
    /// Pages have been dirty for long.
    Periodic,
    /// Another, or not known.
    Other,
}

/// What came of a window of wbt (block/blk-wbt.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtStatus {
    /// Reads were fast enough.
    Ok,
    /// Too little was going on.
    Unknown,
    /// Only writes were going on.
    UnknownWrites,
    /// Reads took too long.
    Exceeded,
}

/// Why a task does not run (`TASK_*`, include/linux/sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It could go on: its time is up, or another one comes first.
    Runnable,
    /// It sleeps until something happens or a signal comes.
    Interruptible,
    /// It sleeps until something happens, I/O as a rule.
    Uninterruptible,
    /// Another.
    Other,
}

/// Which command of NVMe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvmeCommand {
    /// The controller.
    pub ctrl: u16,
    /// The queue; 0 is that of admin commands.
    pub qid: u16,
    /// The tag; from 5.15 on the command's identifier has a generation above it, which is
    /// left out.
    pub tag: u16,
}

/// Which command of SCSI, and for which blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiCommand {
    /// Host, channel, target.
    pub host: u16,
    /// The channel.
    pub channel: u16,
    /// The target.
    pub id: u16,
    /// The logical unit.
    pub lun: u16,
    /// What it does: the first byte of the CDB.
    pub opcode: u8,
    /// First logical block, where it has one.
    pub lba: u64,
    /// Logical blocks.
    pub blocks: u32,
}

/// How a command of SCSI ended (include/scsi/scsi_status.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiResult {
    /// What the driver says: `DID_*`, 0 is `DID_OK`.
    pub host: u8,
    /// What the device says: `SAM_STAT_*`, 0 is `SAM_STAT_GOOD`.
    pub status: u8,
}

/// A part of the kernel whose events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The journal of ext4.
    Jbd2,
    /// ext4 itself.
    Ext4,
    /// XFS.
    Xfs,
    /// Write-back of the page cache.
    Writeback,
    /// Write-back throttling.
    Wbt,
    /// Shares of control groups (io.cost).
    Iocost,
    /// The driver of NVMe.
    Nvme,
    /// The middle layer of SCSI.
    Scsi,
    /// The driver of UFS.
    Ufs,
    /// The CPU scheduler.
    Sched,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 10] = [
        Part::Jbd2,
        Part::Ext4,
        Part::Xfs,
        Part::Writeback,
        Part::Wbt,
        Part::Iocost,
        Part::Nvme,
        Part::Scsi,
        Part::Ufs,
        Part::Sched,
    ];

    /// The name of its folder below `events` of tracefs.
    pub fn name(self) -> &'static str {
        match self {
            Part::Jbd2 => "jbd2",
            Part::Ext4 => "ext4",
            Part::Xfs => "xfs",
            Part::Writeback => "writeback",
            Part::Wbt => "wbt",
            Part::Iocost => "iocost",
            Part::Nvme => "nvme",
            Part::Scsi => "scsi",
            Part::Ufs => "ufs",
            Part::Sched => "sched",
        }
    }
}

/// An event of the kernel that is read.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// As the kernel calls it.
    pub name: &'static str,
    /// Whose it is.
    pub part: Part,
    /// The file of the kernel that raises it.
    pub source: &'static str,
    /// The first release that has it, as far as it was looked up.
    pub since: &'static str,
}

/// Every event that is read.
pub static POINTS: &[Point] = &[
    point("jbd2_start_commit", Part::Jbd2, COMMIT, "2.6.31"),
    point("jbd2_commit_locking", Part::Jbd2, COMMIT, "2.6.31"),
    point("jbd2_commit_flushing", Part::Jbd2, COMMIT, "2.6.31"),
    point("jbd2_commit_logging", Part::Jbd2, COMMIT, "2.6.31"),
    point("jbd2_end_commit", Part::Jbd2, COMMIT, "2.6.31"),
    point("jbd2_run_stats", Part::Jbd2, COMMIT, "2.6.33"),
    point(
        "jbd2_checkpoint",
        Part::Jbd2,
        "fs/jbd2/checkpoint.c",
        "2.6.31",
    ),
    point(
        "jbd2_checkpoint_stats",
        Part::Jbd2,
        "fs/jbd2/checkpoint.c",
        "2.6.33",
    ),
    point(
        "jbd2_handle_start",
        Part::Jbd2,
        "fs/jbd2/transaction.c",
        "3.9",
    ),
    point(
        "jbd2_handle_stats",
        Part::Jbd2,
        "fs/jbd2/transaction.c",
        "3.9",
    ),
    point(
        "jbd2_lock_buffer_stall",
        Part::Jbd2,
        "fs/jbd2/transaction.c",
        "3.9",
    ),
    point(
        "ext4_sync_file_enter",
        Part::Ext4,
        "fs/ext4/fsync.c",
        "2.6.38",
    ),
    point(
        "ext4_sync_file_exit",
        Part::Ext4,
        "fs/ext4/fsync.c",
        "2.6.38",
    ),
    point(
        "ext4_da_write_pages",
        Part::Ext4,
        "fs/ext4/inode.c",
        "2.6.31",
    ),
    point(
        "ext4_fc_commit_start",
        Part::Ext4,
        "fs/ext4/fast_commit.c",
        "5.10",
    ),
    point(
        "ext4_fc_commit_stop",
        Part::Ext4,
        "fs/ext4/fast_commit.c",
        "5.10",
    ),
    point("xfs_file_fsync", Part::Xfs, "fs/xfs/xfs_file.c", "2.6.39"),
    point("xfs_log_force", Part::Xfs, "fs/xfs/xfs_log.c", "3.8"),
    point("xfs_log_grant_sleep", Part::Xfs, "fs/xfs/xfs_log.c", "3.0"),
    point("xfs_log_grant_wake", Part::Xfs, "fs/xfs/xfs_log.c", "3.0"),
    point("xlog_iclog_wait_on", Part::Xfs, "fs/xfs/xfs_log.c", "5.14"),
    point("xlog_iclog_write", Part::Xfs, "fs/xfs/xfs_log.c", "5.14"),
    point(
        "xlog_iclog_sync_done",
        Part::Xfs,
        "fs/xfs/xfs_log.c",
        "5.14",
    ),
    point("xlog_iclog_clean", Part::Xfs, "fs/xfs/xfs_log.c", "5.14"),
    point("iocost_iocg_activate", Part::Iocost, IOCOST, "5.4"),
    point("iocost_inuse_shortage", Part::Iocost, IOCOST, "5.10"),
    point("iocost_ioc_vrate_adj", Part::Iocost, IOCOST, "5.4"),
    point("iocost_iocg_forgive_debt", Part::Iocost, IOCOST, "5.10"),
    point(
        "balance_dirty_pages",
        Part::Writeback,
        "mm/page-writeback.c",
        "3.2",
    ),
    point(
        "writeback_queue",
        Part::Writeback,
        "fs/fs-writeback.c",
        "2.6.36",
    ),
    point(
        "writeback_start",
        Part::Writeback,
        "fs/fs-writeback.c",
        "3.1",
    ),
    point(
        "writeback_written",
        Part::Writeback,
        "fs/fs-writeback.c",
        "3.1",
    ),
    point(
        "writeback_wait",
        Part::Writeback,
        "fs/fs-writeback.c",
        "3.1",
    ),
    point("wbt_lat", Part::Wbt, "block/blk-wbt.c", "4.10"),
    point("wbt_stat", Part::Wbt, "block/blk-wbt.c", "4.10"),
    point("wbt_step", Part::Wbt, "block/blk-wbt.c", "4.10"),
    point("wbt_timer", Part::Wbt, "block/blk-wbt.c", "4.10"),
    point(
        "nvme_setup_cmd",
        Part::Nvme,
        "drivers/nvme/host/core.c",
        "4.18",
    ),
    point(
        "nvme_complete_rq",
        Part::Nvme,
        "drivers/nvme/host/core.c",
        "4.17",
    ),
    point(
        "scsi_dispatch_cmd_start",
        Part::Scsi,
        "drivers/scsi/scsi_lib.c",
        "2.6.35",
    ),
    point(
        "scsi_dispatch_cmd_error",
        Part::Scsi,
        "drivers/scsi/scsi_lib.c",
        "2.6.35",
    ),
    point(
        "scsi_dispatch_cmd_done",
        Part::Scsi,
        "drivers/scsi/scsi_lib.c",
        "2.6.35",
    ),
    point(
        "scsi_dispatch_cmd_timeout",
        Part::Scsi,
        "drivers/scsi/scsi_error.c",
        "2.6.35",
    ),
    point(
        "scsi_eh_wakeup",
        Part::Scsi,
        "drivers/scsi/scsi_error.c",
        "2.6.35",
    ),
    point(
        "ufshcd_command",
        Part::Ufs,
        "drivers/ufs/core/ufshcd.c",
        "4.11",
    ),
    point("sched_switch", Part::Sched, "kernel/sched/core.c", "2.6.28"),
    point("sched_waking", Part::Sched, "kernel/sched/core.c", "4.3"),
    point("sched_wakeup", Part::Sched, "kernel/sched/core.c", "2.6.28"),
];

const COMMIT: &str = "fs/jbd2/commit.c";

const IOCOST: &str = "block/blk-iocost.c";

const fn point(name: &'static str, part: Part, source: &'static str, since: &'static str) -> Point {
    Point {
        name,
        part,
        source,
        since,
    }
}

impl Tracepoint {
    /// Whose event it is.
    pub fn part(&self) -> Part {
        match self {
            Tracepoint::Commit { .. }
            | Tracepoint::CommitStats { .. }
            | Tracepoint::Checkpoint
            | Tracepoint::CheckpointStats { .. }
            | Tracepoint::HandleStart { .. }
            | Tracepoint::HandleEnd { .. }
            | Tracepoint::LockBufferStall { .. } => Part::Jbd2,
            Tracepoint::SyncFileEnter { .. }
            | Tracepoint::SyncFileExit { .. }
            | Tracepoint::WritePages { .. }
            | Tracepoint::FastCommitStart
            | Tracepoint::FastCommitStop { .. } => Part::Ext4,
            Tracepoint::XfsFsync { .. }
            | Tracepoint::LogForce
            | Tracepoint::Iclog { .. }
            | Tracepoint::GrantSleep
            | Tracepoint::GrantWake => Part::Xfs,
            Tracepoint::CostActivate { .. }
            | Tracepoint::CostShortage { .. }
            | Tracepoint::CostRate { .. }
            | Tracepoint::CostDebt { .. } => Part::Iocost,
            Tracepoint::BalanceDirtyPages { .. } | Tracepoint::Writeback { .. } => Part::Writeback,
            Tracepoint::WbtLat { .. }
            | Tracepoint::WbtStat { .. }
            | Tracepoint::WbtStep { .. }
            | Tracepoint::WbtTimer { .. } => Part::Wbt,
            Tracepoint::NvmeSetup { .. } | Tracepoint::NvmeComplete { .. } => Part::Nvme,
            Tracepoint::ScsiStart(_)
            | Tracepoint::ScsiRefused { .. }
            | Tracepoint::ScsiDone { .. }
            | Tracepoint::ScsiTimeout(_)
            | Tracepoint::ScsiEhWakeup { .. } => Part::Scsi,
            Tracepoint::UfsCommand { .. } => Part::Ufs,
            Tracepoint::Switch { .. } | Tracepoint::Wakeup { .. } => Part::Sched,
        }
    }

    /// As the kernel calls it; one of the names of [`POINTS`].
    pub fn name(&self) -> &'static str {
        match self {
            Tracepoint::Commit { step, .. } => match step {
                CommitStep::Start => "jbd2_start_commit",
                CommitStep::Locking => "jbd2_commit_locking",
                CommitStep::Flushing => "jbd2_commit_flushing",
                CommitStep::Logging => "jbd2_commit_logging",
                CommitStep::End => "jbd2_end_commit",
            },
            Tracepoint::CommitStats { .. } => "jbd2_run_stats",
            Tracepoint::Checkpoint => "jbd2_checkpoint",
            Tracepoint::CheckpointStats { .. } => "jbd2_checkpoint_stats",
            Tracepoint::HandleStart { .. } => "jbd2_handle_start",
            Tracepoint::HandleEnd { .. } => "jbd2_handle_stats",
            Tracepoint::LockBufferStall { .. } => "jbd2_lock_buffer_stall",
            Tracepoint::SyncFileEnter { .. } => "ext4_sync_file_enter",
            Tracepoint::SyncFileExit { .. } => "ext4_sync_file_exit",
            Tracepoint::WritePages { .. } => "ext4_da_write_pages",
            Tracepoint::FastCommitStart => "ext4_fc_commit_start",
            Tracepoint::FastCommitStop { .. } => "ext4_fc_commit_stop",
            Tracepoint::XfsFsync { .. } => "xfs_file_fsync",
            Tracepoint::LogForce => "xfs_log_force",
            Tracepoint::Iclog { step, .. } => match step {
                IclogStep::WaitOn | IclogStep::Idle => "xlog_iclog_wait_on",
                IclogStep::Write => "xlog_iclog_write",
                IclogStep::SyncDone => "xlog_iclog_sync_done",
                IclogStep::Clean => "xlog_iclog_clean",
            },
            Tracepoint::GrantSleep => "xfs_log_grant_sleep",
            Tracepoint::GrantWake => "xfs_log_grant_wake",
            Tracepoint::CostActivate { .. } => "iocost_iocg_activate",
            Tracepoint::CostShortage { .. } => "iocost_inuse_shortage",
            Tracepoint::CostRate { .. } => "iocost_ioc_vrate_adj",
            Tracepoint::CostDebt { .. } => "iocost_iocg_forgive_debt",
            Tracepoint::BalanceDirtyPages { .. } => "balance_dirty_pages",
            Tracepoint::Writeback { step, .. } => match step {
                WritebackStep::Queue => "writeback_queue",
                WritebackStep::Start => "writeback_start",
                WritebackStep::Written => "writeback_written",
                WritebackStep::Wait => "writeback_wait",
            },
            Tracepoint::WbtLat { .. } => "wbt_lat",
            Tracepoint::WbtStat { .. } => "wbt_stat",
            Tracepoint::WbtStep { .. } => "wbt_step",
            Tracepoint::WbtTimer { .. } => "wbt_timer",
            Tracepoint::NvmeSetup { .. } => "nvme_setup_cmd",
            Tracepoint::NvmeComplete { .. } => "nvme_complete_rq",
            Tracepoint::ScsiStart(_) => "scsi_dispatch_cmd_start",
            Tracepoint::ScsiRefused { .. } => "scsi_dispatch_cmd_error",
            Tracepoint::ScsiDone { .. } => "scsi_dispatch_cmd_done",
            Tracepoint::ScsiTimeout(_) => "scsi_dispatch_cmd_timeout",
            Tracepoint::ScsiEhWakeup { .. } => "scsi_eh_wakeup",
            Tracepoint::UfsCommand { .. } => "ufshcd_command",
            Tracepoint::Switch { .. } => "sched_switch",
            Tracepoint::Wakeup { .. } => "sched_wakeup",
        }
    }
}

/// The name, and the fields that matter: `jbd2_start_commit: transaction 7`.
impl fmt::Display for Tracepoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Tracepoint::Commit { tid, .. } | Tracepoint::HandleStart { tid } => {
                write!(f, ": transaction {tid}")
            }
            Tracepoint::CommitStats {
                tid,
                wait_ticks,
                request_delay_ticks,
                locked_ticks,
                flushing_ticks,
                logging_ticks,
                handles,
                blocks_logged,
            } => write!(
                f,
                ": transaction {tid}, wait {wait_ticks} request_delay {request_delay_ticks} \
                 locked {locked_ticks} flushing {flushing_ticks} logging {logging_ticks} ticks, \
                 {handles} handles, {blocks_logged} blocks logged"
            ),
            Tracepoint::CheckpointStats { tid, written } => {
                write!(f, ": transaction {tid}, {written} written")
            }
            Tracepoint::HandleEnd {
                tid,
                is_sync,
                dirtied_blocks,
            } => {
                let sync = if is_sync { ", sync" } else { "" };
                write!(
                    f,
                    ": transaction {tid}, {dirtied_blocks} blocks dirtied{sync}"
                )
            }
            Tracepoint::LockBufferStall { stall_ms } => write!(f, ": {stall_ms} ms"),
            Tracepoint::SyncFileEnter { ino, is_datasync } => {
                let data = if is_datasync { ", datasync" } else { "" };
                write!(f, ": inode {ino}{data}")
            }
            Tracepoint::SyncFileExit { ino, ret } => write!(f, ": inode {ino}, returns {ret}"),
            Tracepoint::WritePages { ino, nr_to_write } => {
                write!(f, ": inode {ino}, {nr_to_write} pages to write")
            }
            Tracepoint::FastCommitStop { blocks, reason } => {
                write!(f, ": {blocks} blocks, reason {reason}")
            }
            Tracepoint::XfsFsync { ino } => write!(f, ": inode {ino}"),
            Tracepoint::Iclog { lsn, .. } => write!(f, ": lsn {lsn:#x}"),
            Tracepoint::CostActivate { group, share } => {
                write!(f, ": {group}, share {share}")
            }
            Tracepoint::CostShortage {
                group,
                inuse: [before, now],
            } => write!(f, ": {group}, weight {before} -> {now}"),
            Tracepoint::CostRate {
                permille: [before, now],
                missed_ppm: [reads, writes],
                rq_wait_percent,
                nr_lagging,
                nr_shortages,
            } => write!(
                f,
                ": {} % -> {} % of the model, missed {reads}:{writes} ppm, requests exhausted \
                 {rq_wait_percent} %, {nr_lagging} lagging, {nr_shortages} short",
                before / 10,
                now / 10
            ),
            Tracepoint::CostDebt { group, delay_us } => {
                write!(f, ": {group}, tasks held back for {delay_us} us")
            }
            Tracepoint::Checkpoint
            | Tracepoint::FastCommitStart
            | Tracepoint::LogForce
            | Tracepoint::GrantSleep
            | Tracepoint::GrantWake => Ok(()),
            Tracepoint::BalanceDirtyPages {
                pause_ms,
                dirtied_pages,
                dirty_pages,
                limit_pages,
                task_ratelimit_kib,
            } => write!(
                f,
                ": pause {pause_ms} ms, {dirtied_pages} pages dirtied, {dirty_pages} of \
                 {limit_pages} dirty, task {task_ratelimit_kib} KiB/s"
            ),
            Tracepoint::Writeback {
                nr_pages, reason, ..
            } => {
                write!(f, ": {nr_pages} pages, {}", reason.word())
            }
            Tracepoint::WbtLat { lat_us } => write!(f, ": {lat_us} us"),
            Tracepoint::WbtStat {
                read_min_ns,
                read_mean_ns,
                nr_reads,
                nr_writes,
            } => write!(
                f,
                ": {nr_reads} reads, min {} us mean {} us, {nr_writes} writes",
                read_min_ns / 1000,
                read_mean_ns / 1000
            ),
            Tracepoint::WbtStep {
                step,
                window_us,
                background,
                normal,
                max,
            } => write!(
                f,
                ": step {step}, window {window_us} us, background {background}, normal {normal}, \
                 max {max}"
            ),
            Tracepoint::WbtTimer {
                status,
                step,
                inflight,
            } => write!(f, ": {}, step {step}, {inflight} in flight", status.word()),
            Tracepoint::NvmeSetup {
                command,
                opcode,
                slba,
            } => write!(f, ": {command}, opcode {opcode:#04x}, slba {slba}"),
            Tracepoint::NvmeComplete {
                command,
                status,
                retries,
            } => write!(f, ": {command}, status {status:#x}, {retries} retries"),
            Tracepoint::ScsiStart(command) | Tracepoint::ScsiTimeout(command) => {
                write!(f, ": {command}")
            }
            Tracepoint::ScsiRefused { command, rtn } => write!(f, ": {command}, rtn {rtn:#x}"),
            Tracepoint::ScsiDone { command, result } => write!(f, ": {command}, {result}"),
            Tracepoint::ScsiEhWakeup { host } => write!(f, ": host {host}"),
            Tracepoint::UfsCommand { is_sent, tag, lba } => {
                let way = if is_sent { "sent" } else { "done" };
                write!(f, ": {way}, tag {tag}, lba {lba}")
            }
            Tracepoint::Switch {
                prev,
                prev_state,
                next,
            } => write!(f, ": {prev} {} => {next}", prev_state.letter()),
            Tracepoint::Wakeup { pid } => write!(f, ": {pid}"),
        }
    }
}

impl WritebackReason {
    /// As the kernel prints it.
    pub fn word(self) -> &'static str {
        match self {
            WritebackReason::Background => "background",
            WritebackReason::Vmscan => "vmscan",
            WritebackReason::Sync => "sync",
            WritebackReason::Periodic => "periodic",
            WritebackReason::Other => "other",
        }
    }
}

impl WbtStatus {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            WbtStatus::Ok => "latency ok",
            WbtStatus::Unknown => "latency unknown",
            WbtStatus::UnknownWrites => "latency unknown, writes only",
            WbtStatus::Exceeded => "latency exceeded",
        }
    }
}

impl TaskState {
    /// The kernel's letter.
    pub fn letter(self) -> char {
        match self {
            TaskState::Runnable => 'R',
            TaskState::Interruptible => 'S',
            TaskState::Uninterruptible => 'D',
            TaskState::Other => '?',
        }
    }
}

/// `nvme0 queue 1 tag 17`.
impl fmt::Display for NvmeCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nvme{} queue {} tag {}", self.ctrl, self.qid, self.tag)
    }
}

/// `0:0:1:0 opcode 0x2a lba 2048 + 8`.
impl fmt::Display for ScsiCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}:{} opcode {:#04x} lba {} + {}",
            self.host, self.channel, self.id, self.lun, self.opcode, self.lba, self.blocks
        )
    }
}

impl ScsiResult {
    /// Names of what drivers say, by their number.
    pub const HOST: [&'static str; 16] = [
        "DID_OK",
        "DID_NO_CONNECT",
        "DID_BUS_BUSY",
        "DID_TIME_OUT",
        "DID_BAD_TARGET",
        "DID_ABORT",
        "DID_PARITY",
        "DID_ERROR",
        "DID_RESET",
        "DID_BAD_INTR",
        "DID_PASSTHROUGH",
        "DID_SOFT_ERROR",
        "DID_IMM_RETRY",
        "DID_REQUEUE",
        "DID_TRANSPORT_DISRUPTED",
        "DID_TRANSPORT_FAILFAST",
    ];

    /// Names of what devices say, with their number.
    pub const STATUS: [(u8, &'static str); 8] = [
        (0x00, "SAM_STAT_GOOD"),
        (0x02, "SAM_STAT_CHECK_CONDITION"),
        (0x04, "SAM_STAT_CONDITION_MET"),
        (0x08, "SAM_STAT_BUSY"),
        (0x18, "SAM_STAT_RESERVATION_CONFLICT"),
        (0x28, "SAM_STAT_TASK_SET_FULL"),
        (0x30, "SAM_STAT_ACA_ACTIVE"),
        (0x40, "SAM_STAT_TASK_ABORTED"),
    ];

    /// Whether the command succeeded.
    pub fn is_good(self) -> bool {
        self.host == 0 && matches!(self.status, 0 | 0x04)
    }
}

/// `DID_OK SAM_STAT_GOOD`.
impl fmt::Display for ScsiResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ScsiResult::HOST.get(usize::from(self.host)) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "host {:#04x}", self.host)?,
        }
        match ScsiResult::STATUS.iter().find(|(n, _)| *n == self.status) {
            Some((_, name)) => write!(f, " {name}"),
            None => write!(f, " status {:#04x}", self.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_by_name() {
        let steps = [CommitStep::Start, CommitStep::End];
        let shown = steps.map(|step| Tracepoint::Commit { step, tid: 7 }.to_string());
        assert_eq!(
            shown,
            [
                "jbd2_start_commit: transaction 7",
                "jbd2_end_commit: transaction 7"
            ]
        );
        let result = ScsiResult {
            host: 3,
            status: 0x28,
        };
        assert_eq!(result.to_string(), "DID_TIME_OUT SAM_STAT_TASK_SET_FULL");
        assert!(!result.is_good());
    }

    #[test]
    fn names_belong_to_their_part() {
        for (i, point) in POINTS.iter().enumerate() {
            let begins = [point.part.name(), "balance_dirty_pages", "xlog_iclog"];
            assert!(
                begins.iter().any(|b| point.name.starts_with(b)),
                "{}",
                point.name
            );
            let first = POINTS.iter().position(|p| p.name == point.name);
            assert_eq!(first, Some(i), "{}", point.name);
        }
    }

    /// Items of a trace are handed over by value.
    #[test]
    fn an_event_is_small() {
        assert!(
            size_of::<KernelEvent>() <= 72,
            "{}",
            size_of::<KernelEvent>()
        );
    }
}
