// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who waits for writes in a trace that does not say it.
//!
//! biosnoop, iosnoop and the events of drivers show no sync flag. Who waits is then told by
//! what a task is and by what it does: a flusher writes for nobody in particular; behind a
//! journal's thread is whoever is in fsync; any other process that writes by itself does so
//! with direct I/O or in fsync, and if it waits, its next write comes only when the one before
//! has ended. It stays an inference, and is told as one.

use super::request::Request;
use super::threads::{hands_on, is_flusher, is_journal};
use crate::names::Names;
use blklab_types::Pid;
use serde::Serialize;
use std::collections::BTreeMap;

/// So many times a write comes after the one before, so that it is no chance.
const TURNS_MIN: u64 = 3;

/// In so many of ten of its turns who waits begins after the end of the one before.
const IN_TURN_OF_TEN: u64 = 9;

/// Why a process is taken to wait for its writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behaviour {
    /// It is the thread of a journal.
    pub is_journal: bool,
    /// Its writes.
    pub writes: u64,
    /// Writes that follow another one of it.
    pub turns: u64,
    /// Those of them that came only when the one before had ended.
    pub in_turn: u64,
}

impl Behaviour {
    /// Whether it needs something unusual that it does not wait.
    pub fn is_likely(&self) -> bool {
        let in_turn = self.in_turn * 10 >= self.turns * IN_TURN_OF_TEN;
        self.is_journal || (self.turns >= TURNS_MIN && in_turn)
    }

    /// Why, in words that follow "since".
    pub fn words(&self) -> String {
        if self.is_journal {
            return "it is a journal's thread, for which whoever is in fsync waits".to_owned();
        }
        if self.is_likely() {
            return format!(
                "{} of {} of its writes come only when the one before has ended",
                self.in_turn, self.turns
            );
        }
        "it is no thread that writes back for others".to_owned()
    }

    /// Adds what another section shows.
    pub(super) fn add(&mut self, other: &Behaviour) {
        self.is_journal |= other.is_journal;
        self.writes += other.writes;
        self.turns += other.turns;
        self.in_turn += other.in_turn;
    }
}

/// What is told of the writes of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Who is taken to wait.
    pub(super) waits: BTreeMap<Pid, Behaviour>,
    /// Writes of which it is not known whose they are.
    pub(super) nr_unknown: u64,
}

/// Marks the writes that somebody is taken to wait for among requests whose sync flag is not
/// shown.
pub(super) fn mark(requests: &mut [Request], names: &Names) -> Told {
    let mut told = Told::default();
    let mut of_pid: BTreeMap<Pid, Vec<usize>> = BTreeMap::new();
    for (place, r) in requests.iter().enumerate() {
        if r.is_write() && !r.is_sync && !r.is_flush() {
            of_pid.entry(r.pid).or_default().push(place);
        }
    }
    for (pid, mut places) in of_pid {
        let comm = names.get(pid);
        if comm.is_some_and(is_flusher) {
            continue;
        }
        if pid == 0 || comm.is_some_and(hands_on) {
            told.nr_unknown += places.len() as u64;
            continue;
        }
        places.sort_by_key(|i| (requests[*i].start(), requests[*i].life.number));
        let mut behaviour = Behaviour {
            is_journal: comm.is_some_and(is_journal),
            writes: places.len() as u64,
            ..Behaviour::default()
        };
        for pair in places.windows(2) {
            let ended = requests[pair[0]].life.complete;
            let next = requests[pair[1]].start();
            behaviour.turns += 1;
            behaviour.in_turn += u64::from(ended.is_some() && ended <= next);
        }
        for i in places {
            requests[i].is_sync = true;
        }
        told.waits.insert(pid, behaviour);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::RequestLife;
    use blklab_trace::Rwbs;
    use blklab_types::{Dev, Time};

    fn write(number: u64, pid: Pid, [issue, complete]: [u64; 2]) -> Request {
        Request::new(&RequestLife {
            number,
            dev: Dev { major: 8, minor: 0 },
            pid,
            rwbs: Rwbs::WRITE,
            sector: number * 1000,
            bytes: 4096,
            get: None,
            insert: None,
            issue: Some(Time(issue)),
            complete: Some(Time(complete)),
            error: 0,
            nr_bios: 1,
            nr_back_merges: 0,
            nr_front_merges: 0,
            nr_absorbed: 0,
            nr_silent_merges: 0,
            nr_requeues: 0,
        })
    }

    #[test]
    fn who_waits_is_told_by_name_and_by_turns() {
        let mut names = Names::default();
        for (pid, comm) in [
            (1, "kworker/u8:2"),
            (2, "jbd2/sda1-8"),
            (3, "app"),
            (4, "aio"),
            (5, "kworker/0:1H"),
        ] {
            names.set(pid, comm);
        }
        let mut all = Vec::new();
        for pid in [1, 2, 3, 4, 5, 0] {
            for n in 0..5_u64 {
                let from = n * 100;
                let took = if pid == 4 { 450 } else { 90 };
                all.push(write(u64::from(pid) * 10 + n, pid, [from, from + took]));
            }
        }
        let told = mark(&mut all, &names);
        let waits: Vec<Pid> = told.waits.keys().copied().collect();
        assert_eq!((waits, told.nr_unknown), (vec![2, 3, 4], 10));
        let likely: Vec<bool> = told.waits.values().map(Behaviour::is_likely).collect();
        assert_eq!(likely, [true, true, false]);
        assert!(told.waits[&3].words().starts_with("4 of 4 of its writes"));
        let marked = |pid| all.iter().filter(|r| r.pid == pid).all(|r| r.is_sync);
        assert_eq!(
            [1, 2, 3, 4, 5].map(marked),
            [false, true, true, true, false]
        );
    }
}
