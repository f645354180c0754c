// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that fio replays to the microsecond, one for each process, and their job file.

use crate::most_under_way;
use crate::recorded::{Bio, Process, Recorded};
use blklab_fio::iolog::IologWriter;
use blklab_fio::run::IoOp;
use blklab_types::{BioFlags, Op, SECTOR_BYTES};
use std::fmt::Write as _;
use std::io;

/// A job file that replays logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExactJob {
    /// The job file.
    pub job: String,
    /// Names and texts of the logs, version 3.
    pub logs: Vec<(String, String)>,
}

/// Writes every process as a log of its own, `STEM-PID.iolog`. `disk` is the disk as fio
/// names it.
pub fn exact_job(recorded: &Recorded, disk: &str, stem: &str) -> ExactJob {
    let mut out = ExactJob {
        job: String::from(
            "; a trace, bio by bio: times are the recorded ones (open loop)\n\n[global]\ndirect=1\n\
             ioengine=libaio\n",
        ),
        logs: Vec::new(),
    };
    let all = recorded.processes.iter().flat_map(|p| &p.bios);
    let begin_ns = all.map(|b| b.at.ns()).min().unwrap_or(0);
    for (i, p) in recorded.processes.iter().enumerate() {
        let has_data = |b: &Bio| matches!(b.op, Op::Read | Op::Write);
        if !p.bios.iter().any(has_data) {
            let _ = write!(
                out.job,
                "\n; process {} is left out: it neither reads nor writes, and fio replays no such log\n",
                p.pid
            );
            continue;
        }
        // A process may be there twice, as before and after a restart.
        let name = format!("{stem}-{}-{}", i + 1, p.pid);
        let log = format!("{name}.iolog");
        let _ = write!(
            out.job,
            "\n[{name}]\nread_iolog={log}\nreplay_redirect={disk}\niodepth={}\n",
            slots(p)
        );
        out.logs.push((log, log_text(p, disk, begin_ns)));
    }
    out
}

/// Slots for all bios of a process that are under way at a time: fewer would hold it back.
fn slots(p: &Process) -> usize {
    let end = |b: &Bio| b.latency().map_or(u64::MAX, |l| (b.at + l).ns());
    let most = most_under_way(p.bios.iter().map(|b| [b.at.ns(), end(b)]));
    // The device may be slower than the recorded one.
    (most * 2).min(65_536)
}

fn log_text(p: &Process, disk: &str, begin_ns: u64) -> String {
    let written = log(p, disk, begin_ns).expect("memory takes whatever is written to it");
    String::from_utf8(written).expect("a log of text")
}

fn log(p: &Process, disk: &str, begin_ns: u64) -> io::Result<Vec<u8>> {
    let mut log = IologWriter::new(Vec::new(), 0, [disk])?;
    log.open(0, disk)?;
    let mut last = 0;
    for b in &p.bios {
        last = (b.at.ns() - begin_ns) / 1000;
        let (offset, length) = match b.op {
            Op::Flush => (0, 0),
            _ => (
                b.sector * SECTOR_BYTES,
                u64::from(b.nr_sectors) * SECTOR_BYTES,
            ),
        };
        log.transfer(last, disk, b.op.into(), offset, length)?;
        if b.flags.any(BioFlags::FUA | BioFlags::BARRIER) && b.op == Op::Write {
            log.transfer(last, disk, IoOp::Datasync, 0, 0)?;
        }
    }
    log.close(last, disk)?;
    Ok(log.into_inner())
}
