// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long tasks slept, and for what.

use blklab_types::{Span, TaskId};
use std::fmt;

/// What a task slept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// A free request of the queue.
    Request,
    /// The end of write congestion.
    Congestion,
    /// A pause by the clock (2.6.32 and later).
    Pause,
    /// The inode's mutex.
    Mutex,
    /// A page of the file that somebody else has locked.
    Page,
    /// A page of the file that is being written.
    Data,
    /// A metadata block that is being read.
    MetadataRead,
    /// A metadata block on its way to its place.
    MetadataWrite,
    /// A metadata block on its way to the log.
    Log,
    /// A transaction that is being closed, or is full.
    Transaction,
    /// Room in the log.
    LogSpace,
    /// Memory.
    Memory,
    /// The daemon that is the filesystem.
    Daemon,
}

/// All kinds with the words for them, in the order of [`Sleep`].
const KINDS: [(Sleep, &str); 13] = [
    (Sleep::Request, "request allocation"),
    (Sleep::Congestion, "congestion"),
    (Sleep::Pause, "pauses"),
    (Sleep::Mutex, "the inode's mutex"),
    (Sleep::Page, "locked pages"),
    (Sleep::Data, "pages being written"),
    (Sleep::MetadataRead, "metadata being read"),
    (Sleep::MetadataWrite, "metadata on its way to its place"),
    (Sleep::Log, "metadata on its way to the log"),
    (Sleep::Transaction, "a transaction being closed"),
    (Sleep::LogSpace, "room in the log"),
    (Sleep::Memory, "memory"),
    (Sleep::Daemon, "the filesystem's daemon"),
];

/// How long somebody slept, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sleeps {
    /// Outside of the dirty throttle, and in it.
    pub(crate) spans: [[Span; KINDS.len()]; 2],
}

impl Sleeps {
    /// Time slept for one thing, in the dirty throttle or not.
    pub fn slept_for(&self, what: Sleep) -> Span {
        self.spans[0][what as usize] + self.spans[1][what as usize]
    }

    /// Time slept in the dirty throttle.
    pub fn throttled(&self) -> Span {
        self.spans[1].iter().fold(Span::ZERO, |a, b| a + *b)
    }

    /// Time slept.
    pub fn total(&self) -> Span {
        self.spans[0].iter().fold(self.throttled(), |a, b| a + *b)
    }

    /// What was slept since `earlier`, an earlier state of the same account.
    #[must_use]
    pub fn since(&self, earlier: &Sleeps) -> Sleeps {
        self.combine(earlier, |a, b| Span(a.0.saturating_sub(b.0)))
    }

    /// Both accounts in one.
    #[must_use]
    pub fn plus(&self, other: &Sleeps) -> Sleeps {
        self.combine(other, |a, b| a + b)
    }

    fn combine(&self, other: &Sleeps, f: impl Fn(Span, Span) -> Span) -> Sleeps {
        let mut out = *self;
        for (row, theirs) in out.spans.iter_mut().zip(&other.spans) {
            for (a, b) in row.iter_mut().zip(theirs) {
                *a = f(*a, *b);
            }
        }
        out
    }
}

/// The accounts that are not empty, the longest first:
/// `2.110 s for request allocation while throttled, …`.
impl fmt::Display for Sleeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accounts = self.spans.iter().zip(["", " while throttled"]);
        let mut all: Vec<(Span, &str, &str)> = accounts
            .flat_map(|(row, how)| {
                let row = row.iter().zip(KINDS);
                row.map(move |(span, (_, words))| (*span, words, how))
            })
            .filter(|(span, ..)| *span > Span::ZERO)
            .collect();
        all.sort_by_key(|(span, ..)| std::cmp::Reverse(span.0));
        if all.is_empty() {
            return f.write_str("no sleep");
        }
        for (i, (span, words, how)) in all.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            let ms = (span.0 + 500_000) / 1_000_000;
            write!(
                f,
                "{comma}{}.{:03} s for {words}{how}",
                ms / 1000,
                ms % 1000
            )?;
        }
        Ok(())
    }
}

/// The account of one task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) sleeps: Sleeps,
    pub(crate) asleep: bool,
    pub(crate) throttled: bool,
}

/// The account of a task.
pub(crate) fn account(accounts: &mut Vec<Account>, task: TaskId) -> &mut Account {
    if accounts.len() <= task.idx() {
        accounts.resize(task.idx() + 1, Account::default());
    }
    &mut accounts[task.idx()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_add_up_and_read_longest_first() {
        let mut a = Sleeps::default();
        assert_eq!(a.to_string(), "no sleep");
        a.spans[1][Sleep::Request as usize] = Span::from_ms(2_110);
        a.spans[0][Sleep::Log as usize] = Span::from_ms(3_500);
        assert_eq!(
            a.to_string(),
            "3.500 s for metadata on its way to the log, 2.110 s for request allocation while \
             throttled"
        );
        assert_eq!(a.throttled(), Span::from_ms(2_110));
        let twice = a.plus(&a);
        assert_eq!(twice.since(&a), a);
        assert_eq!(twice.total(), Span::from_ms(11_220));
        assert_eq!(twice.slept_for(Sleep::Log), Span::from_ms(7_000));
    }

    #[test]
    fn words_stand_in_the_order_of_the_kinds() {
        for (i, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, i);
        }
    }
}
