// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of a recorded trace: at their recorded times.

use super::{DEPTH_MAX, Script, Step};
use blklab_experiment::Timing;
use blklab_infer::{Bio, Process, most_under_way};
use blklab_target::Replay;
use blklab_types::{Error, Op};

/// What fio does for a trace. What it leaves out is told.
///
/// # Errors
/// In closed loop, which fio has no log for.
pub(super) fn scripts(replay: &Replay, notes: &mut Vec<String>) -> Result<Vec<Script>, Error> {
    check(replay.timing)?;
    if replay.for_recorded_time {
        let what = "processes that begin anew until their recorded time is over: a log of fio has \
                    an end";
        return Err(Error::not_modelled(what));
    }
    let all = &replay.recorded.processes;
    let bios = all.iter().flat_map(|p| &p.bios);
    let discards = bios.filter(|b| b.op == Op::Discard).count();
    if discards > 0 {
        notes.push(format!(
            "{discards} discards are left out: fio replays none of a log"
        ));
    }
    Ok(all.iter().map(|p| script(replay, p)).collect())
}

/// Refuses a trace in closed loop.
///
/// # Errors
/// If that is wanted.
pub(in crate::kernel) fn check(timing: Timing) -> Result<(), Error> {
    match timing {
        Timing::Open => Ok(()),
        Timing::Closed => Err(Error::not_modelled(
            "a trace in closed loop: fio, which runs it on the target kernel, counts the pauses of \
             a log from the start of the I/O before, not from its end; loop=open can be had",
        )
        .about("replay.loop")),
    }
}

fn script(replay: &Replay, p: &Process) -> Script {
    let bios = p.bios.iter().filter(|b| b.op != Op::Discard);
    let ios = bios.map(|b| Step {
        at_us: b.at.ns() / 1000,
        op: b.op,
        flags: b.flags,
        sector: replay.sector(b),
        nr_sectors: b.nr_sectors,
    });
    Script {
        pid: p.pid,
        name: p.name.clone().unwrap_or_else(|| format!("pid{}", p.pid)),
        prio: p.prio,
        group: p.group.clone(),
        depth: depth(p),
        batch: 1,
        ios: ios.collect(),
        ..Script::default()
    }
}

/// Room for all bios of a process that are under way at a time: with less it would be held
/// back. The device may be slower than the recorded one.
fn depth(p: &Process) -> u32 {
    let end = |b: &Bio| b.latency().map_or(u64::MAX, |l| (b.at + l).ns());
    let most = most_under_way(p.bios.iter().map(|b| [b.at.ns(), end(b)]));
    u32::try_from(most.saturating_mul(2)).map_or(DEPTH_MAX, |n| n.clamp(1, DEPTH_MAX))
}
