// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processor time of requests, and the locks of schedulers, for which processors
//! wait.
//!
//! Whoever submits a bio owes the time that its request takes on its whole way, that of
//! its end included, and pays before its next bio: until then it was free to sleep. A
//! lock is held for the sum of a request's turns at once. Who finds it taken by another
//! processor waits spinning, first come, first served (`queued_spin_lock_slowpath` of
//! kernel/locking/qspinlock.c), and then finds the lock and the data that it protects in
//! another cache at each of its turns, since others come in between; who finds it free
//! but used by another processor, at the first.
//!
//! Left out: the dispatch by kblockd on a processor of its own turn, and processors that
//! are interrupted while they wait.

use blklab_block::mq::Work;
use blklab_types::{Span, Time};

/// Times of the requests of a queue.
#[derive(Clone, Debug)]
pub struct SchedulerTime {
    /// A request outside of the lock that processors share.
    request: Span,
    /// A bio that the scheduler merged, likewise.
    merge: Span,
    locks: Vec<Lock>,
    /// A turn with the lock.
    turn: Span,
    /// Turns of a request.
    turns: u64,
    /// What a turn takes more after one of another processor.
    transfer: Span,
}

/// What [`SchedulerTime`] is made of, for one request.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    /// Without a scheduler.
    pub request: Span,
    /// What the scheduler adds.
    pub scheduler: Span,
    /// How often it takes a lock, at least once.
    pub turns: u32,
    /// How many of those take a lock that processors share.
    pub shared_turns: u32,
    /// What a turn takes more after one of another processor.
    pub transfer: Span,
    /// Locks that processors share, taken by the number of the processor; none if
    /// nobody waits for another.
    pub nr_locks: u16,
}

/// A lock.
#[derive(Clone, Copy, Debug, Default)]
struct Lock {
    free_at: Time,
    /// The processor that had it last.
    holder: u16,
}

impl SchedulerTime {
    /// The times of a queue; none if nothing takes time.
    pub fn new(times: RequestTimes) -> Option<SchedulerTime> {
        if times.request == Span::ZERO && times.scheduler == Span::ZERO {
            return None;
        }
        let turn = Span(times.scheduler.ns() / u64::from(times.turns));
        let is_shared = times.scheduler > Span::ZERO && times.shared_turns > 0;
        let nr_locks = if is_shared { times.nr_locks } else { 0 };
        let turns = if nr_locks > 0 {
            u64::from(times.shared_turns)
        } else {
            0
        };
        let held = turn.ns() * turns;
        Some(SchedulerTime {
            request: Span(times.request.ns() + times.scheduler.ns() - held),
            merge: if nr_locks > 0 { Span::ZERO } else { turn },
            locks: vec![Lock::default(); usize::from(nr_locks)],
            turn,
            turns,
            transfer: times.transfer,
        })
    }

    /// A processor does some work from `now` on: when it is done.
    #[inline]
    pub(super) fn charge(&mut self, now: Time, cpu: u16, work: Work) -> Time {
        let (requests, merges) = (u64::from(work.requests), u64::from(work.merges));
        let outside = Span(self.request.ns() * requests + self.merge.ns() * merges);
        let nr_locks = self.locks.len();
        if nr_locks == 0 {
            return now + outside;
        }
        let turns = self.turns * requests + merges;
        self.hold(now, cpu, turns) + outside
    }

    /// Takes the lock that is the processor's as soon as it is free, for some turns.
    fn hold(&mut self, now: Time, cpu: u16, turns: u64) -> Time {
        let at = usize::from(cpu) % self.locks.len();
        let lock = &mut self.locks[at];
        let transfers = if lock.holder == cpu {
            0
        } else if lock.free_at > now {
            turns
        } else {
            1
        };
        let held = Span(self.turn.ns() * turns + self.transfer.ns() * transfers);
        lock.free_at = lock.free_at.max(now) + held;
        lock.holder = cpu;
        lock.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: RequestTimes = RequestTimes {
        request: Span(1000),
        scheduler: Span(600),
        turns: 3,
        shared_turns: 3,
        transfer: Span(400),
        nr_locks: 1,
    };
    const ONE: Work = Work {
        requests: 1,
        merges: 0,
    };

    fn time(times: RequestTimes) -> SchedulerTime {
        SchedulerTime::new(times).expect("something takes time")
    }

    #[test]
    fn nobody_waits_for_a_lock_of_its_own() {
        let mut t = time(RequestTimes {
            nr_locks: 2,
            ..TIMES
        });
        assert_eq!(t.charge(Time(5000), 0, ONE), Time(6600));
        // Its first: the lines are nobody's, which counts as another's.
        assert_eq!(t.charge(Time(5000), 1, ONE), Time(7000));
        assert_eq!(t.charge(Time(8000), 1, ONE), Time(9600));
        // The third processor shares the lock of the first.
        assert_eq!(t.charge(Time(5100), 2, ONE), Time(5600 + 600 + 1200 + 1000));
    }

    #[test]
    fn who_comes_second_waits_and_finds_the_lines_elsewhere() {
        let mut t = time(TIMES);
        assert_eq!(t.charge(Time(5000), 0, ONE), Time(6600));
        // Held until 5600; three turns, each after one of another processor.
        assert_eq!(t.charge(Time(5100), 1, ONE), Time(5600 + 600 + 1200 + 1000));
        // Free again: the lines come over once.
        assert_eq!(t.charge(Time(9000), 0, ONE), Time(9000 + 400 + 600 + 1000));
        assert_eq!(t.charge(Time(12_000), 0, ONE), Time(13_600));
    }

    #[test]
    fn a_merge_takes_one_turn_and_nothing_else() {
        let merge = Work {
            requests: 0,
            merges: 1,
        };
        assert_eq!(time(TIMES).charge(Time(0), 0, merge), Time(200));
        let alone = RequestTimes {
            nr_locks: 0,
            ..TIMES
        };
        assert_eq!(time(alone).charge(Time(0), 0, merge), Time(200));
        assert_eq!(time(alone).charge(Time(0), 0, ONE), Time(1600));
    }

    #[test]
    fn what_takes_no_time_is_not_charged() {
        let nothing = RequestTimes {
            request: Span::ZERO,
            scheduler: Span::ZERO,
            ..TIMES
        };
        assert!(SchedulerTime::new(nothing).is_none());
        let none = RequestTimes {
            scheduler: Span::ZERO,
            ..TIMES
        };
        let mut t = time(none);
        assert_eq!(t.charge(Time(0), 0, ONE), Time(1000));
        assert_eq!(t.charge(Time(0), 1, ONE), Time(1000));
    }
}
