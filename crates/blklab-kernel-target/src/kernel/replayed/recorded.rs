// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of a recorded trace: in open loop at their recorded times, in closed loop
//! when what they waited for has ended.

use super::file::{Kind, Step, Submitter};
use super::{DEPTH_MAX, LIMITS};
use blklab_experiment::Timing;
use blklab_infer::{Marks, Process, Waiting};
use blklab_target::Replay;
use blklab_types::Error;

/// The processes of a trace.
///
/// # Errors
/// If it has what is not done here.
pub(super) fn submitters(replay: &Replay) -> Result<Vec<Submitter>, Error> {
    check(replay)?;
    let all = &replay.recorded.processes;
    Ok(all.iter().map(|p| submitter(replay, p)).collect())
}

fn submitter(replay: &Replay, p: &Process) -> Submitter {
    let kind = match (replay.timing, p.waiting) {
        (Timing::Open, _) => Kind::Timed,
        (Timing::Closed, Waiting::Paced) => Kind::Paced,
        (Timing::Closed, _) => Kind::Room,
    };
    let unnamed = || format!("pid{}", p.pid);
    let name = p.name.clone().unwrap_or_else(unnamed);
    let mut out = Submitter::new(p.pid, name, kind);
    out.prio = p.prio;
    // As many as there are, up to what is had.
    out.depth = u32::try_from(p.bios.len()).map_or(DEPTH_MAX, |n| n.clamp(1, DEPTH_MAX));
    let mut is_plugged = false;
    for (i, b) in p.bios.iter().enumerate() {
        is_plugged |= b.marks.has(Marks::PLUGGED);
        is_plugged &= !b.marks.has(Marks::ENDS_PLUG);
        let is_first = i == 0;
        let time = if kind == Kind::Timed || is_first {
            b.at
        } else {
            b.think
        };
        out.push(&Step {
            time_ns: time.ns(),
            sector: replay.sector(b),
            nr_sectors: b.nr_sectors,
            room: b.room,
            op: b.op,
            flags: b.flags,
            is_held: is_plugged,
            is_awaited: b.marks.has(Marks::AWAITED),
            woke: b.marks.has(Marks::WOKE),
        });
    }
    out
}

/// Refuses what our program does not do.
fn check(replay: &Replay) -> Result<(), Error> {
    let all = &replay.recorded.processes;
    let refused = |what: String| Err(Error::not_modelled(what));
    if replay.for_recorded_time {
        return refused(
            "processes that begin anew until their recorded time is over: on a kernel a trace \
             runs once"
                .to_owned(),
        );
    }
    if all.iter().any(|p| !p.links.is_empty()) {
        return refused("processes that wait for one another: on a kernel none does".to_owned());
    }
    if let Some(p) = all.iter().find(|p| !p.group.is_empty()) {
        let (pid, group) = (p.pid, &p.group);
        return refused(format!(
            "recorded process {pid} in the group {group}: on a kernel all are in the root"
        ));
    }
    LIMITS.check(replay.recorded.nr_bios(), all.len())
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::submitters;
    use blklab_experiment::Timing;
    use blklab_infer::Collector;
    use blklab_target::Replay;
    use blklab_trace::{Action, Actions, Event, Rwbs, TraceSink as _};
    use blklab_types::{Dev, Time};
    use std::sync::Arc;

    /// A process that reads one block after another and thinks 50 us before each, with a
    /// write that goes on to the medium at the end.
    fn replay(timing: Timing) -> Replay {
        let mut collector = Collector::default();
        for i in 0..20_u64 {
            let event = Event {
                time: Time(i * 150_000),
                action: Action::Queue,
                pid: 7,
                sector: i * 64,
                bytes: 4096,
                rwbs: if i == 19 {
                    Rwbs::WRITE.with(Rwbs::FUA).with(Rwbs::SYNC)
                } else {
                    Rwbs::READ
                },
                arg: 0,
                dev: Dev { major: 8, minor: 0 },
                from_dev: Dev::default(),
                error: 0,
                cpu: 0,
            };
            let end = Event {
                time: Time(i * 150_000 + 100_000),
                action: Action::Complete,
                pid: 0,
                ..event
            };
            collector.event(&event);
            collector.event(&end);
        }
        let recorded = collector.finish(Actions::ALL, None).expect("a trace");
        let mut replay = Replay::for_recorded_time(Arc::new(recorded), timing);
        replay.for_recorded_time = false;
        replay
    }

    /// The bios of the only process, as words.
    fn bios(replay: &Replay) -> Vec<[u32; 8]> {
        let file = file::write(&submitters(replay).expect("it can be run"));
        let words = file.chunks(4);
        let words = words.map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")));
        let words: Vec<u32> = words.collect();
        let first = 16 + file::GROUP_BYTES / 4;
        let bios = words[first..].chunks(8);
        bios.map(|bio| bio.try_into().expect("eight words"))
            .collect()
    }

    #[test]
    fn in_closed_loop_a_bio_has_room_and_a_pause() {
        let bios = bios(&replay(Timing::Closed));
        assert_eq!(bios.len(), 20);
        // Takes room, and the process went on there.
        assert_eq!(bios[2], [50_000, 0, 128, 0, 8, 1, 0, 0b11000]);
        assert_eq!(bios[19][6], 1);
        assert_eq!(bios[19][7] & 1, 1, "it goes on to the medium");
    }

    #[test]
    fn in_open_loop_a_bio_has_its_time() {
        assert_eq!(bios(&replay(Timing::Open))[2][..2], [300_000, 0]);
    }

    #[test]
    fn what_begins_anew_is_refused() {
        let mut replay = replay(Timing::Closed);
        replay.for_recorded_time = true;
        let error = submitters(&replay).expect_err("it is refused").to_string();
        assert!(error.contains("begin anew"), "{error}");
    }
}
