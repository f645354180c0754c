// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs that fio replays to the microsecond, one for each process, and their job file.

use crate::recorded::{Process, Recorded};
use blklab_types::{BioFlags, Op};
use std::fmt::Write as _;

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
        // A process may be there twice, as before and after a restart.
        let name = format!("{stem}-{}-{}", i + 1, p.pid);
        let log = format!("{name}.iolog");
        let _ = write!(
            out.job,
            "\n[{name}]\nread_iolog={log}\nreplay_redirect={disk}\niodepth={}\n",
            most_under_way(p)
        );
        out.logs.push((log, log_text(p, disk, begin_ns)));
    }
    out
}

/// Most bios of a process under way at a time: fewer slots would hold it back.
fn most_under_way(p: &Process) -> usize {
    let mut ends: Vec<u64> = p
        .bios
        .iter()
        .map(|b| b.latency().map_or(u64::MAX, |l| (b.at + l).ns()))
        .collect();
    ends.sort_unstable();
    let (mut most, mut ended) = (1, 0);
    for (i, b) in p.bios.iter().enumerate() {
        while ends.get(ended).is_some_and(|e| *e <= b.at.ns()) {
            ended += 1;
        }
        most = most.max(i + 1 - ended.min(i));
    }
    // The device may be slower than the recorded one.
    (most * 2).min(65_536)
}

fn log_text(p: &Process, disk: &str, begin_ns: u64) -> String {
    let mut text = format!("fio version 3 iolog\n0 {disk} add\n0 {disk} open\n");
    let mut last = 0;
    for b in &p.bios {
        last = (b.at.ns() - begin_ns) / 1000;
        let (offset, length) = (b.sector.saturating_mul(512), u64::from(b.nr_sectors) * 512);
        let _ = match b.op {
            Op::Read => writeln!(text, "{last} {disk} read {offset} {length}"),
            Op::Write => writeln!(text, "{last} {disk} write {offset} {length}"),
            Op::Discard => writeln!(text, "{last} {disk} trim {offset} {length}"),
            Op::Flush => writeln!(text, "{last} {disk} sync 0 0"),
        };
        if b.flags.any(BioFlags::FUA | BioFlags::BARRIER) && b.op == Op::Write {
            let _ = writeln!(text, "{last} {disk} datasync 0 0");
        }
    }
    let _ = writeln!(text, "{last} {disk} close");
    text
}
