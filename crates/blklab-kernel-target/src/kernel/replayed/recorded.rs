// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes of a recorded trace, as our own program in the machine runs them
//! (`program/replay.c`): in open loop at their recorded times, in closed loop when what they
//! waited for has ended.
//!
//! ```text
//! head       magic, number of processes, closed loop
//! processes  number of bios, priority, most under way, paced
//! bios       time, sector, sectors, room, operation, marks
//! ```
//!
//! Numbers are little-endian.

use super::{Counts, DEPTH_MAX, IOS_MAX, PROCESSES_MAX};
use blklab_experiment::Timing;
use blklab_infer::{Bio, Marks, Process, Waiting};
use blklab_target::Replay;
use blklab_types::{BioFlags, Error, IoPrio, Op, Pid, PrioClass};

/// What the file begins with: `blktrac1`.
const MAGIC: u64 = u64::from_le_bytes(*b"blktrac1");
/// A bio goes on to the medium.
const FUA: u32 = 1;
/// The device's cache is flushed before it.
const FLUSH: u32 = 2;
/// It is handed over with the next one.
const HELD: u32 = 4;
/// It takes room.
const AWAITED: u32 = 8;
/// Its process went on there.
const WOKE: u32 = 16;

/// What our program is given.
#[derive(Debug, Default)]
pub(in crate::kernel) struct Recorded {
    /// The file that it reads.
    pub(in crate::kernel) file: Vec<u8>,
    /// Pid and name of each process, in the order in which it starts them.
    pub(in crate::kernel) processes: Vec<(Pid, String)>,
    /// What a reader of the result should know.
    pub(in crate::kernel) notes: Vec<String>,
}

/// A trace as our program runs it.
///
/// # Errors
/// If it has more than fits, or what is not done here.
pub(in crate::kernel) fn recorded(replay: &Replay) -> Result<Recorded, Error> {
    check(replay)?;
    let all = &replay.recorded.processes;
    let is_closed = replay.timing == Timing::Closed;
    let mut out = Recorded::default();
    put(&mut out.file, [MAGIC]);
    let nr_processes = u32::try_from(all.len()).unwrap_or(u32::MAX);
    put(&mut out.file, [nr_processes, u32::from(is_closed)]);
    for p in all {
        put(&mut out.file, [p.bios.len() as u64]);
        let paced = u32::from(p.waiting == Waiting::Paced);
        put(&mut out.file, [ioprio(p.prio), depth(p), paced, 0]);
    }
    let mut counts = Counts::default();
    for p in all {
        let mut is_plugged = false;
        for (i, b) in p.bios.iter().enumerate() {
            counts.add(b.op, b.flags);
            is_plugged |= b.marks.has(Marks::PLUGGED);
            is_plugged &= !b.marks.has(Marks::ENDS_PLUG);
            let time = if is_closed && i > 0 { b.think } else { b.at };
            put(&mut out.file, [time.ns(), replay.sector(b)]);
            let (op, marks) = (operation(b.op), marks(b, is_plugged));
            put(&mut out.file, [b.nr_sectors, b.room, op, marks]);
        }
        let unnamed = || format!("pid{}", p.pid);
        out.processes
            .push((p.pid, p.name.clone().unwrap_or_else(unnamed)));
    }
    out.notes = notes(&counts);
    Ok(out)
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
    let nr_bios = replay.recorded.nr_bios();
    if nr_bios > IOS_MAX as u64 {
        return refused(format!(
            "{nr_bios} bios of a trace: {IOS_MAX} fit the memory of the machine"
        ));
    }
    if all.len() > PROCESSES_MAX {
        let n = all.len();
        return refused(format!(
            "{n} recorded processes: there are {PROCESSES_MAX} here at most"
        ));
    }
    Ok(())
}

fn operation(op: Op) -> u32 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

/// Marks of a bio; it is held where its plug does not end behind it.
fn marks(b: &Bio, is_held: bool) -> u32 {
    let is_write = b.op == Op::Write;
    let all = [
        (
            FUA,
            is_write && b.flags.any(BioFlags::FUA | BioFlags::BARRIER),
        ),
        (
            FLUSH,
            is_write && b.flags.any(BioFlags::FLUSH | BioFlags::BARRIER),
        ),
        (HELD, is_held),
        (AWAITED, b.marks.has(Marks::AWAITED)),
        (WOKE, b.marks.has(Marks::WOKE)),
    ];
    let set = all.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(mark, _)| mark).sum()
}

/// A priority as the kernel takes it; 0: none of its own.
fn ioprio(prio: IoPrio) -> u32 {
    const CLASS_SHIFT: u32 = 13;
    let class = match prio.class {
        PrioClass::RealTime => 1,
        PrioClass::BestEffort => 2,
        PrioClass::Idle => 3,
        _ => return 0,
    };
    class << CLASS_SHIFT | u32::from(prio.level)
}

/// Bios that may be under way: as many as there are, up to what a context takes.
fn depth(p: &Process) -> u32 {
    u32::try_from(p.bios.len()).map_or(DEPTH_MAX, |n| n.clamp(1, DEPTH_MAX))
}

fn put<N: Number, const LEN: usize>(to: &mut Vec<u8>, numbers: [N; LEN]) {
    numbers.into_iter().for_each(|n| n.append(to));
}

/// A number of the file.
trait Number {
    fn append(self, to: &mut Vec<u8>);
}

impl Number for u32 {
    fn append(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

impl Number for u64 {
    fn append(self, to: &mut Vec<u8>) {
        to.extend(self.to_le_bytes());
    }
}

fn notes(counts: &Counts) -> Vec<String> {
    let first = "recorded processes are run by a program of blklab's, past the page cache; \
                 processor time between their bios is in their pauses";
    let told = [
        (
            counts.background,
            "writes are synchronous, as all that go past the page cache",
        ),
        (
            counts.flushing,
            "writes or empty bios with a flush: their process waits for it",
        ),
        (
            counts.marked,
            "bios have lost their marks of metadata or read-ahead",
        ),
        (
            counts.discards,
            "discards: their process waits for each of them",
        ),
    ];
    let some = told.into_iter().filter(|(n, _)| *n > 0);
    let some = some.map(|(n, what)| format!("{n} {what}"));
    std::iter::once(first.to_owned()).chain(some).collect()
}

#[cfg(test)]
mod tests {
    use super::{AWAITED, HELD, WOKE, recorded};
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
            let is_write = i == 19;
            let event = Event {
                time: Time(i * 150_000),
                action: Action::Queue,
                pid: 7,
                sector: i * 64,
                bytes: 4096,
                rwbs: if is_write {
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

    fn number(file: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(file[at..at + 8].try_into().expect("eight bytes"))
    }

    fn numbers(file: &[u8], at: usize) -> [u32; 4] {
        [0, 1, 2, 3].map(|i| {
            let at = at + i * 4;
            u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"))
        })
    }

    const PROCESS: usize = 16;
    const BIOS: usize = PROCESS + 24;

    #[test]
    fn in_closed_loop_a_bio_has_room_and_a_pause() {
        let out = recorded(&replay(Timing::Closed)).expect("it can be run");
        assert_eq!(out.processes, [(7, "pid7".to_owned())]);
        assert_eq!(&out.file[..8], b"blktrac1");
        assert_eq!(numbers(&out.file, 8)[..2], [1, 1]);
        assert_eq!(number(&out.file, PROCESS), 20);
        assert_eq!(numbers(&out.file, PROCESS + 8), [0, 20, 0, 0]);
        assert_eq!(out.file.len(), BIOS + 20 * 32);
        let third = BIOS + 2 * 32;
        assert_eq!(number(&out.file, third), 50_000);
        assert_eq!(number(&out.file, third + 8), 128);
        let [sectors, room, op, marks] = numbers(&out.file, third + 16);
        assert_eq!((sectors, room, op), (8, 1, 0));
        assert_eq!(marks & (AWAITED | WOKE | HELD), AWAITED | WOKE);
        let last = BIOS + 19 * 32;
        let [_, _, op, marks] = numbers(&out.file, last + 16);
        assert_eq!((op, marks & super::FUA), (1, super::FUA));
    }

    #[test]
    fn in_open_loop_a_bio_has_its_time() {
        let out = recorded(&replay(Timing::Open)).expect("it can be run");
        assert_eq!(numbers(&out.file, 8)[..2], [1, 0]);
        assert_eq!(number(&out.file, BIOS + 2 * 32), 300_000);
    }

    #[test]
    fn what_begins_anew_is_refused() {
        let mut replay = replay(Timing::Closed);
        replay.for_recorded_time = true;
        let error = recorded(&replay).expect_err("it is refused").to_string();
        assert!(error.contains("begin anew"), "{error}");
    }
}
