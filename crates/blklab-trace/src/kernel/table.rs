// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of tracepoints that are read. From a row come its variant of [`Tracepoint`], its
//! entries in [`POINTS`], its name, its part, and how it is shown.

use super::{
    CommitStep, IclogStep, MmcRequest, NvmeCommand, ScsiCommand, ScsiResult, TaskState, WbtStatus,
    WritebackReason, WritebackStep,
};
use crate::{GroupPath, GroupShare};
use blklab_types::Pid;
use std::fmt;

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

impl Point {
    const fn new(
        part: Part,
        name: &'static str,
        source: &'static str,
        since: &'static str,
    ) -> Point {
        Point {
            name,
            part,
            source,
            since,
        }
    }
}

/// Makes everything of the rows. A part has its folder below `events` of tracefs and its
/// rows; a row has
///
/// - its variant, with the fields that matter;
/// - the kernel's names for it: file, first release, and behind `for` which values of the
///   variant have this name. A name without `for` is read, and shown by another one of its row;
/// - behind `shows` the text of its fields.
macro_rules! tracepoints {
    ($(
        $(#[$part_doc:meta])*
        $part:ident $folder:literal {
            $(
                $(#[$doc:meta])*
                $variant:ident
                $({ $( $(#[$field_doc:meta])* $field:ident: $field_type:ty, )* })?
                $(( $inner:ident: $inner_type:ty ))?
                [ $( $name:literal $source:literal $since:literal $(for $values:pat)?, )+ ]
                shows $text:literal $(, $argument:expr)*;
            )*
        }
    )*) => {
        /// What happened, with the fields that matter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Tracepoint {
            $($(
                $(#[$doc])*
                $variant
                $({ $( $(#[$field_doc])* $field: $field_type, )* })?
                $(( $inner_type ))?,
            )*)*
        }

        /// A part of the kernel whose events are read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Part {
            $( $(#[$part_doc])* $part, )*
        }

        impl Part {
            /// All of them.
            pub const ALL: &[Part] = &[ $(Part::$part,)* ];

            /// The name of its folder below `events` of tracefs.
            pub fn name(self) -> &'static str {
                match self {
                    $(Part::$part => $folder,)*
                }
            }
        }

        /// Every event that is read.
        pub static POINTS: &[Point] = &[
            $($($( Point::new(Part::$part, $name, $source, $since), )+)*)*
        ];

        impl Tracepoint {
            /// Whose event it is.
            pub fn part(&self) -> Part {
                match self {
                    $($( Tracepoint::$variant { .. } => Part::$part, )*)*
                }
            }

            /// As the kernel calls it; one of the names of [`POINTS`].
            pub fn name(&self) -> &'static str {
                match self {
                    $($($( $( $values => $name, )? )+)*)*
                }
            }
        }

        /// The name, and the fields that matter: `jbd2_start_commit: transaction 7`.
        impl fmt::Display for Tracepoint {
            // A field that the name tells is not shown again.
            #[allow(unused_variables)]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())?;
                match *self {
                    $($(
                        Tracepoint::$variant $({ $($field),* })? $(( $inner ))? => {
                            write!(f, $text $(, $argument)*)
                        }
                    )*)*
                }
            }
        }
    };
}

use Tracepoint as T;

tracepoints! {
    /// The journal of ext4.
    Jbd2 "jbd2" {
        /// `jbd2_start_commit` to `jbd2_end_commit`.
        Commit {
            /// How far the commit is.
            step: CommitStep,
            /// The transaction's number.
            tid: u32,
        }
        [
            "jbd2_start_commit" "fs/jbd2/commit.c" "2.6.31" for T::Commit { step: CommitStep::Start, .. },
            "jbd2_commit_locking" "fs/jbd2/commit.c" "2.6.31" for T::Commit { step: CommitStep::Locking, .. },
            "jbd2_commit_flushing" "fs/jbd2/commit.c" "2.6.31" for T::Commit { step: CommitStep::Flushing, .. },
            "jbd2_commit_logging" "fs/jbd2/commit.c" "2.6.31" for T::Commit { step: CommitStep::Logging, .. },
            "jbd2_end_commit" "fs/jbd2/commit.c" "2.6.31" for T::Commit { step: CommitStep::End, .. },
        ]
        shows ": transaction {tid}";

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
        }
        ["jbd2_run_stats" "fs/jbd2/commit.c" "2.6.33" for T::CommitStats { .. },]
        shows ": transaction {tid}, wait {wait_ticks} request_delay {request_delay_ticks} \
               locked {locked_ticks} flushing {flushing_ticks} logging {logging_ticks} ticks, \
               {handles} handles, {blocks_logged} blocks logged";

        /// `jbd2_checkpoint`: a task frees room in the journal.
        Checkpoint
        ["jbd2_checkpoint" "fs/jbd2/checkpoint.c" "2.6.31" for T::Checkpoint,]
        shows "";

        /// `jbd2_checkpoint_stats`: a transaction is written back.
        CheckpointStats {
            /// The transaction's number.
            tid: u32,
            /// Buffers that had to be written for it.
            written: u32,
        }
        ["jbd2_checkpoint_stats" "fs/jbd2/checkpoint.c" "2.6.33" for T::CheckpointStats { .. },]
        shows ": transaction {tid}, {written} written";

        /// `jbd2_handle_start`: a task takes part in a transaction.
        HandleStart {
            /// The transaction's number.
            tid: u32,
        }
        ["jbd2_handle_start" "fs/jbd2/transaction.c" "3.9" for T::HandleStart { .. },]
        shows ": transaction {tid}";

        /// `jbd2_handle_stats`: it is done with it.
        HandleEnd {
            /// The transaction's number.
            tid: u32,
            /// Whether the transaction is to be committed at once.
            is_sync: bool,
            /// Blocks that it changed.
            dirtied_blocks: u32,
        }
        ["jbd2_handle_stats" "fs/jbd2/transaction.c" "3.9" for T::HandleEnd { .. },]
        shows ": transaction {tid}, {dirtied_blocks} blocks dirtied{}", if is_sync { ", sync" } else { "" };

        /// `jbd2_lock_buffer_stall`: a task waited for a buffer that the commit has.
        LockBufferStall {
            /// How long.
            stall_ms: u32,
        }
        ["jbd2_lock_buffer_stall" "fs/jbd2/transaction.c" "3.9" for T::LockBufferStall { .. },]
        shows ": {stall_ms} ms";
    }

    /// ext4 itself.
    Ext4 "ext4" {
        /// `ext4_sync_file_enter`: fsync or fdatasync begins.
        SyncFileEnter {
            /// The file.
            ino: u64,
            /// Whether it is fdatasync.
            is_datasync: bool,
        }
        ["ext4_sync_file_enter" "fs/ext4/fsync.c" "2.6.38" for T::SyncFileEnter { .. },]
        shows ": inode {ino}{}", if is_datasync { ", datasync" } else { "" };

        /// `ext4_sync_file_exit`: it is done.
        SyncFileExit {
            /// The file.
            ino: u64,
            /// 0, or a negative errno.
            ret: i32,
        }
        ["ext4_sync_file_exit" "fs/ext4/fsync.c" "2.6.38" for T::SyncFileExit { .. },]
        shows ": inode {ino}, returns {ret}";

        /// `ext4_da_write_pages`: delayed allocation writes pages of a file.
        WritePages {
            /// The file.
            ino: u64,
            /// Pages that may still be written.
            nr_to_write: u64,
        }
        ["ext4_da_write_pages" "fs/ext4/inode.c" "2.6.31" for T::WritePages { .. },]
        shows ": inode {ino}, {nr_to_write} pages to write";

        /// `ext4_fc_commit_start`: a fast commit begins.
        FastCommitStart
        ["ext4_fc_commit_start" "fs/ext4/fast_commit.c" "5.10" for T::FastCommitStart,]
        shows "";

        /// `ext4_fc_commit_stop`: it ends.
        FastCommitStop {
            /// Blocks that it wrote.
            blocks: u32,
            /// Why there was a full commit instead; 0 if there was none.
            reason: i32,
        }
        ["ext4_fc_commit_stop" "fs/ext4/fast_commit.c" "5.10" for T::FastCommitStop { .. },]
        shows ": {blocks} blocks, reason {reason}";
    }

    /// XFS.
    Xfs "xfs" {
        /// `xfs_file_fsync`: fsync begins.
        XfsFsync {
            /// The file.
            ino: u64,
        }
        ["xfs_file_fsync" "fs/xfs/xfs_file.c" "2.6.39" for T::XfsFsync { .. },]
        shows ": inode {ino}";

        /// `xfs_log_force`: the log is to be on the device.
        LogForce
        ["xfs_log_force" "fs/xfs/xfs_log.c" "3.8" for T::LogForce,]
        shows "";

        /// `xfs_log_grant_sleep`: a task sleeps until there is room in the log.
        GrantSleep
        ["xfs_log_grant_sleep" "fs/xfs/xfs_log.c" "3.0" for T::GrantSleep,]
        shows "";

        /// `xfs_log_grant_wake`: it goes on.
        GrantWake
        ["xfs_log_grant_wake" "fs/xfs/xfs_log.c" "3.0" for T::GrantWake,]
        shows "";

        /// `xlog_iclog_*`: what becomes of a buffer of the log.
        Iclog {
            /// How far it is.
            step: IclogStep,
            /// Where the log goes on with it.
            lsn: u64,
        }
        [
            "xlog_iclog_wait_on" "fs/xfs/xfs_log.c" "5.14"
                for T::Iclog { step: IclogStep::WaitOn | IclogStep::Idle, .. },
            "xlog_iclog_write" "fs/xfs/xfs_log.c" "5.14" for T::Iclog { step: IclogStep::Write, .. },
            "xlog_iclog_sync_done" "fs/xfs/xfs_log.c" "5.14" for T::Iclog { step: IclogStep::SyncDone, .. },
            "xlog_iclog_clean" "fs/xfs/xfs_log.c" "5.14" for T::Iclog { step: IclogStep::Clean, .. },
        ]
        shows ": lsn {lsn:#x}";
    }

    /// Shares of control groups (io.cost).
    Iocost "iocost" {
        /// `iocost_iocg_activate`: a control group that had no I/O has some again.
        CostActivate {
            /// The group.
            group: GroupPath,
            /// Its share of the device.
            share: GroupShare,
        }
        ["iocost_iocg_activate" "block/blk-iocost.c" "5.4" for T::CostActivate { .. },]
        shows ": {group}, share {share}";

        /// `iocost_inuse_shortage`: a control group had given away a part of its share, and needs
        /// it again.
        CostShortage {
            /// The group.
            group: GroupPath,
            /// Its weight before and now.
            inuse: [u32; 2],
        }
        ["iocost_inuse_shortage" "block/blk-iocost.c" "5.10" for T::CostShortage { .. },]
        shows ": {group}, weight {} -> {}", inuse[0], inuse[1];

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
        }
        ["iocost_ioc_vrate_adj" "block/blk-iocost.c" "5.4" for T::CostRate { .. },]
        shows ": {} % -> {} % of the model, missed {}:{} ppm, requests exhausted \
               {rq_wait_percent} %, {nr_lagging} lagging, {nr_shortages} short",
            permille[0] / 10, permille[1] / 10, missed_ppm[0], missed_ppm[1];

        /// `iocost_iocg_forgive_debt`: what a control group owes for I/O that could not wait, as
        /// that of reclaim, is cut.
        CostDebt {
            /// The group.
            group: GroupPath,
            /// How long its tasks are held back for it, us.
            delay_us: u32,
        }
        ["iocost_iocg_forgive_debt" "block/blk-iocost.c" "5.10" for T::CostDebt { .. },]
        shows ": {group}, tasks held back for {delay_us} us";
    }

    /// Write-back of the page cache.
    Writeback "writeback" {
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
        }
        ["balance_dirty_pages" "mm/page-writeback.c" "3.2" for T::BalanceDirtyPages { .. },]
        shows ": pause {pause_ms} ms, {dirtied_pages} pages dirtied, {dirty_pages} of \
               {limit_pages} dirty, task {task_ratelimit_kib} KiB/s";

        /// `writeback_queue`, `writeback_start`, `writeback_written`, `writeback_wait`.
        Writeback {
            /// What became of the work.
            step: WritebackStep,
            /// Pages that are still to be written.
            nr_pages: i64,
            /// Why it is done.
            reason: WritebackReason,
        }
        [
            "writeback_queue" "fs/fs-writeback.c" "2.6.36" for T::Writeback { step: WritebackStep::Queue, .. },
            "writeback_start" "fs/fs-writeback.c" "3.1" for T::Writeback { step: WritebackStep::Start, .. },
            "writeback_written" "fs/fs-writeback.c" "3.1" for T::Writeback { step: WritebackStep::Written, .. },
            "writeback_wait" "fs/fs-writeback.c" "3.1" for T::Writeback { step: WritebackStep::Wait, .. },
        ]
        shows ": {nr_pages} pages, {}", reason.word();
    }

    /// Write-back throttling.
    Wbt "wbt" {
        /// `wbt_lat`: a read waits for longer than it should.
        WbtLat {
            /// How long so far.
            lat_us: u64,
        }
        ["wbt_lat" "block/blk-wbt.c" "4.10" for T::WbtLat { .. },]
        shows ": {lat_us} us";

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
        }
        ["wbt_stat" "block/blk-wbt.c" "4.10" for T::WbtStat { .. },]
        shows ": {nr_reads} reads, min {} us mean {} us, {nr_writes} writes",
            read_min_ns / 1000, read_mean_ns / 1000;

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
        }
        ["wbt_step" "block/blk-wbt.c" "4.10" for T::WbtStep { .. },]
        shows ": step {step}, window {window_us} us, background {background}, normal {normal}, \
               max {max}";

        /// `wbt_timer`: a window has ended.
        WbtTimer {
            /// What came of it.
            status: WbtStatus,
            /// As in [`Tracepoint::WbtStep`].
            step: i32,
            /// Writes under way.
            inflight: u32,
        }
        ["wbt_timer" "block/blk-wbt.c" "4.10" for T::WbtTimer { .. },]
        shows ": {}, step {step}, {inflight} in flight", status.word();
    }

    /// The driver of NVMe.
    Nvme "nvme" {
        /// `nvme_setup_cmd`: a command is made.
        NvmeSetup {
            /// Which.
            command: NvmeCommand,
            /// Its opcode; of admin commands where the queue is 0.
            opcode: u8,
            /// Its first logical block, where it has one.
            slba: u64,
            /// Its logical blocks; 0 where the event does not say it.
            blocks: u32,
        }
        ["nvme_setup_cmd" "drivers/nvme/host/core.c" "4.18" for T::NvmeSetup { .. },]
        shows ": {command}, opcode {opcode:#04x}, slba {slba} + {blocks}";

        /// `nvme_complete_rq`: the request of a command is done, or will be tried again.
        NvmeComplete {
            /// Which.
            command: NvmeCommand,
            /// Status of the last try: 0 is success.
            status: u16,
            /// How often it was tried again before.
            retries: u8,
        }
        ["nvme_complete_rq" "drivers/nvme/host/core.c" "4.17" for T::NvmeComplete { .. },]
        shows ": {command}, status {status:#x}, {retries} retries";
    }

    /// The middle layer of SCSI.
    Scsi "scsi" {
        /// `scsi_dispatch_cmd_start`: the low-level driver gets a command.
        ScsiStart(command: ScsiCommand)
        ["scsi_dispatch_cmd_start" "drivers/scsi/scsi_lib.c" "2.6.35" for T::ScsiStart(_),]
        shows ": {command}";

        /// `scsi_dispatch_cmd_error`: the driver did not take it.
        ScsiRefused {
            /// The command.
            command: ScsiCommand,
            /// What the driver said (`SCSI_MLQUEUE_*`).
            rtn: i32,
        }
        ["scsi_dispatch_cmd_error" "drivers/scsi/scsi_lib.c" "2.6.35" for T::ScsiRefused { .. },]
        shows ": {command}, rtn {rtn:#x}";

        /// `scsi_dispatch_cmd_done`: the driver is done with it.
        ScsiDone {
            /// The command.
            command: ScsiCommand,
            /// How it ended.
            result: ScsiResult,
        }
        ["scsi_dispatch_cmd_done" "drivers/scsi/scsi_lib.c" "2.6.35" for T::ScsiDone { .. },]
        shows ": {command}, {result}";

        /// `scsi_dispatch_cmd_timeout`: the driver took too long; error handling begins.
        ScsiTimeout(command: ScsiCommand)
        ["scsi_dispatch_cmd_timeout" "drivers/scsi/scsi_error.c" "2.6.35" for T::ScsiTimeout(_),]
        shows ": {command}";

        /// `scsi_eh_wakeup`: error handling of a host begins.
        ScsiEhWakeup {
            /// The host.
            host: u32,
        }
        ["scsi_eh_wakeup" "drivers/scsi/scsi_error.c" "2.6.35" for T::ScsiEhWakeup { .. },]
        shows ": host {host}";
    }

    /// The driver of UFS.
    Ufs "ufs" {
        /// `ufshcd_command` and `ufshcd_command_status`: a command of UFS goes or comes.
        UfsCommand {
            /// Whether it goes to the device; else it comes back.
            is_sent: bool,
            /// Its tag.
            tag: u32,
            /// Its first logical block.
            lba: u64,
            /// What it does: the first byte of the CDB; 0 where the event does not say it.
            opcode: u8,
            /// Bytes that it moves.
            bytes: u32,
        }
        ["ufshcd_command" "drivers/ufs/core/ufshcd.c" "4.11" for T::UfsCommand { .. },]
        shows ": {}, tag {tag}, opcode {opcode:#04x}, lba {lba} + {bytes} bytes",
            if is_sent { "sent" } else { "done" };
    }

    /// The host controllers of MMC and SD.
    Mmc "mmc" {
        /// `mmc_request_start`: a host controller gets a request.
        MmcStart {
            /// Which.
            request: MmcRequest,
            /// The command; 0 for a task of a command queue.
            opcode: u32,
            /// Its argument.
            arg: u32,
            /// First block of its data.
            block: u32,
            /// Blocks of its data.
            blocks: u32,
            /// Bytes of a block.
            block_bytes: u32,
            /// Where the data go (`MMC_DATA_*`).
            data_flags: u32,
        }
        ["mmc_request_start" "drivers/mmc/core/core.c" "4.10" for T::MmcStart { .. },]
        shows ": {request}, opcode {opcode}, arg {arg:#x}, block {block} + {blocks}";

        /// `mmc_request_done`: the request is done.
        MmcDone {
            /// Which.
            request: MmcRequest,
            /// Errno of its command or data, positive; 0 is success.
            error: u16,
        }
        ["mmc_request_done" "drivers/mmc/core/core.c" "4.10" for T::MmcDone { .. },]
        shows ": {request}, error {error}";
    }

    /// The CPU scheduler.
    Sched "sched" {
        /// `sched_switch`: a CPU goes on with another task.
        Switch {
            /// The task that ran.
            prev: Pid,
            /// Why it does not go on.
            prev_state: TaskState,
            /// The task that runs now.
            next: Pid,
        }
        ["sched_switch" "kernel/sched/core.c" "2.6.28" for T::Switch { .. },]
        shows ": {prev} {} => {next}", prev_state.letter();

        /// `sched_waking`, `sched_wakeup`: a task can go on.
        Wakeup {
            /// Which.
            pid: Pid,
        }
        [
            "sched_waking" "kernel/sched/core.c" "4.3",
            "sched_wakeup" "kernel/sched/core.c" "2.6.28" for T::Wakeup { .. },
        ]
        shows ": {pid}";
    }
}
