// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of other parts of the kernel than the block layer, out of their fields: the same
//! for all readers. Names of fields are those of the binary record, and of the text where
//! that has others; what the events mean is said in [`blklab_trace::POINTS`].

mod commands;
mod cost;
mod sched;
mod text;

pub(crate) use text::TextFields;

use crate::fields::Fields;
use blklab_trace::{
    CommitStep, IclogStep, KernelEvent, Tracepoint, WbtStatus, WritebackReason, WritebackStep,
};
use blklab_types::{Dev, Pid, Time};
pub(crate) use commands::EIO;

/// What is read of an event: the device that it names, and what happened.
pub(crate) type Happened = (Dev, Tracepoint);

/// What happened, when, and in which task.
pub(crate) fn event(time: Time, pid: Pid, cpu: u16, (dev, point): Happened) -> KernelEvent {
    KernelEvent {
        time,
        pid,
        dev,
        cpu,
        point,
    }
}

/// Fields without a value: to ask which names are known.
struct Nothing;

impl Fields for Nothing {
    fn number(&self, _: &str) -> Option<u64> {
        None
    }
}

/// Whether an event of this name is read.
pub(crate) fn is_known(name: &[u8]) -> bool {
    decode(name, &Nothing).is_some()
}

/// What an event says; none if it is none that is read, and none inside if its fields do
/// not fit.
pub(crate) fn decode(name: &[u8], f: &impl Fields) -> Option<Option<Happened>> {
    Some(match name {
        b"jbd2_start_commit" => commit(f, CommitStep::Start),
        b"jbd2_commit_locking" => commit(f, CommitStep::Locking),
        b"jbd2_commit_flushing" => commit(f, CommitStep::Flushing),
        b"jbd2_commit_logging" => commit(f, CommitStep::Logging),
        b"jbd2_end_commit" => commit(f, CommitStep::End),
        b"jbd2_run_stats" => on_device(f, commit_stats),
        b"jbd2_checkpoint" => on_device(f, |_| Some(Tracepoint::Checkpoint)),
        b"jbd2_checkpoint_stats" => on_device(f, |f| {
            Some(Tracepoint::CheckpointStats {
                tid: small(f, "tid")?,
                written: small(f, "written")?,
            })
        }),
        b"jbd2_handle_start" => on_device(f, |f| {
            let tid = small(f, "tid")?;
            Some(Tracepoint::HandleStart { tid })
        }),
        b"jbd2_handle_stats" => on_device(f, |f| {
            Some(Tracepoint::HandleEnd {
                tid: small(f, "tid")?,
                is_sync: f.number("sync")? != 0,
                dirtied_blocks: small(f, "dirtied_blocks")?,
            })
        }),
        b"jbd2_lock_buffer_stall" => on_device(f, |f| {
            let stall_ms = small(f, "stall_ms")?;
            Some(Tracepoint::LockBufferStall { stall_ms })
        }),
        b"ext4_sync_file_enter" => on_device(f, |f| {
            Some(Tracepoint::SyncFileEnter {
                ino: f.number("ino")?,
                is_datasync: f.number("datasync")? != 0,
            })
        }),
        b"ext4_sync_file_exit" => on_device(f, |f| {
            Some(Tracepoint::SyncFileExit {
                ino: f.number("ino")?,
                ret: f.number("ret")? as i32,
            })
        }),
        b"ext4_da_write_pages" => on_device(f, |f| {
            Some(Tracepoint::WritePages {
                ino: f.number("ino")?,
                nr_to_write: f.number("nr_to_write")?,
            })
        }),
        b"ext4_fc_commit_start" => on_device(f, |_| Some(Tracepoint::FastCommitStart)),
        b"ext4_fc_commit_stop" => on_device(f, |f| {
            Some(Tracepoint::FastCommitStop {
                blocks: small(f, "nblks")?,
                reason: f.number("reason")? as i32,
            })
        }),
        b"xfs_file_fsync" => on_device(f, |f| {
            let ino = f.number("ino")?;
            Some(Tracepoint::XfsFsync { ino })
        }),
        b"xfs_log_force" => on_device(f, |_| Some(Tracepoint::LogForce)),
        b"xlog_iclog_wait_on" => on_device(f, iclog_wait),
        b"xlog_iclog_write" => iclog(f, IclogStep::Write),
        b"xlog_iclog_sync_done" => iclog(f, IclogStep::SyncDone),
        b"xlog_iclog_clean" => iclog(f, IclogStep::Clean),
        b"xfs_log_grant_sleep" => on_device(f, |_| Some(Tracepoint::GrantSleep)),
        b"xfs_log_grant_wake" => on_device(f, |_| Some(Tracepoint::GrantWake)),
        b"balance_dirty_pages" | b"writeback_balance_dirty_pages" => on_bdi(f, balance),
        b"writeback_queue" => writeback(f, WritebackStep::Queue),
        b"writeback_start" => writeback(f, WritebackStep::Start),
        b"writeback_written" => writeback(f, WritebackStep::Written),
        b"writeback_wait" => writeback(f, WritebackStep::Wait),
        b"wbt_lat" => on_bdi(f, |f| {
            let lat_us = number(f, &["lat", "latency"])?;
            Some(Tracepoint::WbtLat { lat_us })
        }),
        b"wbt_stat" => on_bdi(f, |f| {
            Some(Tracepoint::WbtStat {
                read_min_ns: f.number("rmin")?,
                read_mean_ns: f.number("rmean")?,
                nr_reads: number(f, &["rnr_samples", "rsamples"])? as u32,
                nr_writes: number(f, &["wnr_samples", "wsamples"])? as u32,
            })
        }),
        b"wbt_step" => on_bdi(f, |f| {
            Some(Tracepoint::WbtStep {
                step: f.number("step")? as i32,
                window_us: f.number("window")?,
                background: number(f, &["bg", "background"])? as u32,
                normal: small(f, "normal")?,
                max: small(f, "max")?,
            })
        }),
        b"wbt_timer" => on_bdi(f, |f| {
            Some(Tracepoint::WbtTimer {
                status: match f.number("status")? {
                    1 => WbtStatus::Ok,
                    3 => WbtStatus::UnknownWrites,
                    4 => WbtStatus::Exceeded,
                    _ => WbtStatus::Unknown,
                },
                step: f.number("step")? as i32,
                inflight: small(f, "inflight")?,
            })
        }),
        b"iocost_iocg_activate" => cost::on_disk(f, cost::activate),
        b"iocost_inuse_shortage" => cost::on_disk(f, cost::shortage),
        b"iocost_ioc_vrate_adj" => cost::on_disk(f, cost::rate),
        b"iocost_iocg_forgive_debt" => cost::on_disk(f, cost::debt),
        b"nvme_setup_cmd" => anywhere(commands::nvme_setup(f)),
        b"nvme_complete_rq" => anywhere(commands::nvme_complete(f)),
        b"scsi_dispatch_cmd_start" => anywhere(commands::scsi(f).map(Tracepoint::ScsiStart)),
        b"scsi_dispatch_cmd_error" => anywhere(commands::scsi_refused(f)),
        b"scsi_dispatch_cmd_done" => anywhere(commands::scsi_done(f)),
        b"scsi_dispatch_cmd_timeout" => anywhere(commands::scsi(f).map(Tracepoint::ScsiTimeout)),
        b"scsi_eh_wakeup" => {
            anywhere(small(f, "host_no").map(|host| Tracepoint::ScsiEhWakeup { host }))
        }
        b"ufshcd_command" => anywhere(commands::ufs(f)),
        b"mmc_request_start" => anywhere(commands::mmc_start(f)),
        b"mmc_request_done" => anywhere(commands::mmc_done(f)),
        b"sched_switch" => anywhere(sched::switch(f)),
        b"sched_waking" | b"sched_wakeup" | b"sched_wakeup_new" => anywhere(sched::wakeup(f)),
        _ => return None,
    })
}

/// Of an event that names a device by its number.
fn on_device<F: Fields>(f: &F, decode: impl FnOnce(&F) -> Option<Tracepoint>) -> Option<Happened> {
    Some((f.device("dev")?, decode(f)?))
}

/// Of one that names the bdi, which is called by its device's number. Others, as those of
/// btrfs and of networks, have a number that no disk has.
fn on_bdi<F: Fields>(f: &F, decode: impl FnOnce(&F) -> Option<Tracepoint>) -> Option<Happened> {
    let name = f.text("bdi").or_else(|| f.text("name"))?;
    Some((text::device(name).unwrap_or_default(), decode(f)?))
}

fn anywhere(point: Option<Tracepoint>) -> Option<Happened> {
    Some((Dev::default(), point?))
}

/// A number of 32 bits; of more, the largest.
fn small(f: &impl Fields, name: &str) -> Option<u32> {
    Some(u32::try_from(f.number(name)?).unwrap_or(u32::MAX))
}

/// A number that has another name in text.
fn number(f: &impl Fields, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| f.number(name))
}

fn commit(f: &impl Fields, step: CommitStep) -> Option<Happened> {
    on_device(f, |f| {
        let tid = small(f, "transaction")?;
        Some(Tracepoint::Commit { step, tid })
    })
}

fn iclog(f: &impl Fields, step: IclogStep) -> Option<Happened> {
    on_device(f, |f| {
        let lsn = f.number("lsn")?;
        Some(Tracepoint::Iclog { step, lsn })
    })
}

/// Who asks for a buffer that is still filled, or is done with, does not wait: states 0 and 5
/// of `xlog_iclog_state` (fs/xfs/xfs_log_priv.h, 5.14).
fn iclog_wait(f: &impl Fields) -> Option<Tracepoint> {
    let is_idle = match f.text("state") {
        Some(b"XLOG_STATE_ACTIVE" | b"XLOG_STATE_DIRTY") => true,
        _ => matches!(f.number("state"), Some(0 | 5)),
    };
    let lsn = f.number("lsn")?;
    let step = if is_idle {
        IclogStep::Idle
    } else {
        IclogStep::WaitOn
    };
    Some(Tracepoint::Iclog { step, lsn })
}

fn commit_stats(f: &impl Fields) -> Option<Tracepoint> {
    Some(Tracepoint::CommitStats {
        tid: small(f, "tid")?,
        wait_ticks: small(f, "wait")?,
        // From 2.6.39 on.
        request_delay_ticks: small(f, "request_delay").unwrap_or(0),
        locked_ticks: small(f, "locked")?,
        flushing_ticks: small(f, "flushing")?,
        logging_ticks: small(f, "logging")?,
        handles: small(f, "handle_count")?,
        blocks_logged: small(f, "blocks_logged")?,
    })
}

fn balance(f: &impl Fields) -> Option<Tracepoint> {
    Some(Tracepoint::BalanceDirtyPages {
        pause_ms: f.number("pause")? as i32,
        dirtied_pages: small(f, "dirtied")?,
        dirty_pages: small(f, "dirty")?,
        limit_pages: small(f, "limit").unwrap_or(0),
        task_ratelimit_kib: small(f, "task_ratelimit")?,
    })
}

fn writeback(f: &impl Fields, step: WritebackStep) -> Option<Happened> {
    on_bdi(f, |f| {
        let reason = match f.number("reason") {
            Some(0) => WritebackReason::Background,
            Some(1) => WritebackReason::Vmscan,
            Some(2) => WritebackReason::Sync,
            Some(3) => WritebackReason::Periodic,
            Some(_) => WritebackReason::Other,
            None => match f.text("reason") {
                Some(b"background") => WritebackReason::Background,
                Some(b"vmscan" | b"try_to_free_pages") => WritebackReason::Vmscan,
                Some(b"sync") => WritebackReason::Sync,
                Some(b"periodic") => WritebackReason::Periodic,
                // Before 3.2 there is no reason.
                _ => WritebackReason::Other,
            },
        };
        Some(Tracepoint::Writeback {
            step,
            nr_pages: f.number("nr_pages")? as i64,
            reason,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::POINTS;

    #[test]
    fn every_point_is_read() {
        for point in POINTS {
            assert!(is_known(point.name.as_bytes()), "{}", point.name);
        }
        assert!(!is_known(b"ext4_es_lookup_extent_enter"));
    }

    /// What the text of an event says.
    fn read(name: &str, line: &str) -> String {
        match decode(name.as_bytes(), &TextFields(line.as_bytes())) {
            Some(Some((dev, point))) => format!("{dev} {point}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn texts_of_kernels() {
        for (name, line, expected) in [
            (
                "jbd2_start_commit",
                "dev 8,1 transaction 42 sync 0",
                "8,1 jbd2_start_commit: transaction 42",
            ),
            (
                "jbd2_end_commit",
                "dev 259,2 transaction 42 sync 0 head 41",
                "259,2 jbd2_end_commit: transaction 42",
            ),
            (
                "jbd2_run_stats",
                "dev 7,0 tid 9 wait 1 request_delay 2 running 5000 locked 3 flushing 4 logging 12 handle_count 77 blocks 6 blocks_logged 7",
                "7,0 jbd2_run_stats: transaction 9, wait 1 request_delay 2 locked 3 flushing 4 logging 12 ticks, 77 handles, 7 blocks logged",
            ),
            (
                "ext4_sync_file_exit",
                "dev 8,1 ino 12 ret -5",
                "8,1 ext4_sync_file_exit: inode 12, returns -5",
            ),
            (
                "xfs_log_grant_sleep",
                "dev 253:0 tic 0xffff888 t_ocnt 2 t_cnt 2 t_curr_res 170 t_unit_res 170 t_flags XLOG_TIC_PERM_RESERV reserveq empty",
                "253,0 xfs_log_grant_sleep",
            ),
            (
                "xlog_iclog_wait_on",
                "dev 259:1 state XLOG_STATE_SYNCING refcnt 0 offset 32256 lsn 0x700005408 flags XLOG_ICL_NEED_FLUSH|XLOG_ICL_NEED_FUA caller xlog_force_lsn+0x1a0",
                "259,1 xlog_iclog_wait_on: lsn 0x700005408",
            ),
            (
                "iocost_iocg_activate",
                "[sda:/blkcg1] now=689065289:57986587662878 vrate=137438 period=22->22 vtime=0->57986365150756 weight=50/50 hweight=32768/65536",
                "8,0 iocost_iocg_activate: /blkcg1, share 50 %",
            ),
            (
                "iocost_ioc_vrate_adj",
                "[vdd] vrate=137438->68719 busy=4 missed_ppm=1000000:500 rq_wait_pct=3 lagging=1 shortages=2 surpluses=1",
                "0,0 iocost_ioc_vrate_adj: 100 % -> 50 % of the model, missed 1000000:500 ppm, requests exhausted 3 %, 1 lagging, 2 short",
            ),
            (
                "iocost_inuse_shortage",
                "[sdb:/a] now=689065289 inuse=5->100 hw_inuse=3000->60000",
                "8,16 iocost_inuse_shortage: /a, weight 5 -> 100",
            ),
            (
                "iocost_iocg_forgive_debt",
                "[sda:/a] now=1:2 usage=9 debt=800->400 delay=250000->0",
                "8,0 iocost_iocg_forgive_debt: /a, tasks held back for 250000 us",
            ),
            (
                "xfs_file_fsync",
                "dev 8:17 ino 0x84",
                "8,17 xfs_file_fsync: inode 132",
            ),
            (
                "balance_dirty_pages",
                "bdi 8:0: limit=28000 setpoint=21000 dirty=22000 bdi_setpoint=900 bdi_dirty=880 dirty_ratelimit=1020 task_ratelimit=512 dirtied=32 dirtied_pause=32 paused=0 pause=248 period=250 think=2 cgroup=/",
                "8,0 balance_dirty_pages: pause 248 ms, 32 pages dirtied, 22000 of 28000 dirty, task 512 KiB/s",
            ),
            (
                "writeback_written",
                "bdi 8:0: sb_dev 0:0 nr_pages=-3 sync_mode=0 kupdate=0 range_cyclic=1 background=1 reason=background cgroup_ino=1",
                "8,0 writeback_written: -3 pages, background",
            ),
            ("wbt_lat", "8:0: latency 75013us", "8,0 wbt_lat: 75013 us"),
            (
                "wbt_step",
                "8:0: scale down: step=2, window=57735us, background=1, normal=2, max=4",
                "8,0 wbt_step: step 2, window 57735 us, background 1, normal 2, max 4",
            ),
            (
                "wbt_timer",
                "8:0: status=4, step=1, inflight=7",
                "8,0 wbt_timer: latency exceeded, step 1, 7 in flight",
            ),
            (
                "wbt_stat",
                "8:0: rmean=81000000, rmin=76000000, rmax=90000000, rsamples=3, wmean=1, wmin=1, wmax=1, wsamples=9",
                "8,0 wbt_stat: 3 reads, min 76000 us mean 81000 us, 9 writes",
            ),
            (
                "jbd2_handle_stats",
                "dev 8,1 tid 5 type 2 line_no 99 interval 3 sync 1 requested_blocks 8 dirtied_blocks 2",
                "8,1 jbd2_handle_stats: transaction 5, 2 blocks dirtied, sync",
            ),
            ("jbd2_start_commit", "dev 8,1 trans", "Some(None)"),
            ("balance_dirty_pages", "", "Some(None)"),
        ] {
            assert_eq!(read(name, line), expected, "{name}: {line}");
        }
    }
}
