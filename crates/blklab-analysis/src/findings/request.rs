// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request with what its bios say of it.

use crate::lifecycle::RequestLife;
use blklab_trace::Rwbs;
use blklab_types::{Op, Pid, SECTOR_BYTES, Time};

/// A request with what its bios say.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its life.
    pub life: RequestLife,
    /// Who queued its first bio, or began it.
    pub pid: Pid,
    /// Whether that is known: a request whose D or I is the first that the trace shows
    /// of it may be anybody's.
    pub is_owner_known: bool,
    /// Whether a thread that writes back for others hands it to the device, and nobody waits for
    /// it: then it is write-back of that thread, though nothing shows who queued it.
    pub is_write_back: bool,
    /// The first Q of its bios.
    pub queue: Option<Time>,
    /// The last Q of its bios.
    pub last_queue: Option<Time>,
    /// The first S of its first bio.
    pub sleep: Option<Time>,
    /// Flags of all its bios together, and its own.
    pub flags: Rwbs,
    /// Whether somebody waits for it: a read, a write with the sync flag, a flush.
    pub is_sync: bool,
    /// Whether another request of the section ends where it begins.
    pub is_behind: bool,
    /// Whether another request of the section begins where it ends.
    pub is_followed: bool,
}

impl Request {
    /// One whose bios are not known, and whose neighbours are not looked for yet.
    pub(super) fn new(life: &RequestLife) -> Request {
        Request {
            life: *life,
            pid: life.pid,
            is_owner_known: life.get.is_some() || life.nr_bios > 0,
            is_write_back: false,
            queue: None,
            last_queue: None,
            sleep: None,
            flags: life.rwbs,
            is_sync: false,
            is_behind: false,
            is_followed: false,
        }
    }

    /// Whether it is known whose it is.
    pub fn has_owner(&self) -> bool {
        self.is_owner_known || self.is_write_back
    }

    /// Whether the trace shows nothing of it before its D.
    pub fn begins_with_issue(&self) -> bool {
        !self.is_owner_known && self.life.insert.is_none()
    }

    /// What it does.
    pub fn op(&self) -> Option<Op> {
        self.flags.op()
    }

    /// Whether it reads.
    pub fn is_read(&self) -> bool {
        self.op() == Some(Op::Read)
    }

    /// Whether it writes.
    pub fn is_write(&self) -> bool {
        self.op() == Some(Op::Write)
    }

    /// Whether it is a command that empties the device's cache.
    pub fn is_flush(&self) -> bool {
        let flags = self.life.rwbs;
        self.life.bytes == 0 && (flags.has(Rwbs::FLUSH) || flags.has(Rwbs::BARRIER))
    }

    /// When the block layer had it.
    pub fn start(&self) -> Option<Time> {
        let life = &self.life;
        self.queue.or(life.get).or(life.insert).or(life.issue)
    }

    /// When the scheduler, or the list in its place, had it.
    pub fn handed_over(&self) -> Option<Time> {
        self.life.insert.or(self.life.get).or(self.queue)
    }

    /// The sector behind its last one.
    pub fn end(&self) -> u64 {
        self.life.end()
    }

    /// Its length in sectors.
    pub fn sectors(&self) -> u64 {
        self.life.bytes / SECTOR_BYTES
    }

    /// From D to C.
    pub fn d2c(&self) -> Option<u64> {
        Some(self.life.complete?.since(self.life.issue?).0)
    }

    /// From the beginning to C.
    pub fn whole(&self) -> Option<u64> {
        Some(self.life.complete?.since(self.start()?).0)
    }
}
