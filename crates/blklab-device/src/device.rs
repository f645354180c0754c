// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seam between driver and device: commands in, completions out.
//!
//! A device is a pure state machine without clock or I/O of its own. The
//! driver hands it commands, the device asks to be woken at points in virtual
//! time, and reports finished commands during such a wake-up (or, if it needs
//! no time, during the hand-over itself):
//!
//! ```text
//!          submit(cmd)                wake(token)
//! driver ─────────────► device ◄───────────────── event queue
//!        ◄───────────── done[]  ─── wakes[] ────►
//! ```
//!
//! Times are nanoseconds of virtual time, addresses sectors of 512 bytes.

use blklab_types::{BioFlags, Op, Time, impl_id};

/// A modelled device.
pub trait Device: Send + Sync {
    /// Another device in the same state. Tables that never change are shared: a
    /// copy of a device is made faster than the device.
    fn copy(&self) -> Box<dyn Device>;

    /// Takes a command. The driver guarantees that at most the queue depth of
    /// commands is outstanding and that `cmd.id` is not in use.
    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command);

    /// A wake-up that the device asked for is due. By the time it returns, a
    /// device that has more to do has already begun it: the driver cannot slip
    /// a command in between a completion and the start of the next one.
    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64);

    /// Capacity in sectors; `None` where the model has no end. A command that
    /// reaches beyond it fails with `EIO`.
    fn capacity_sectors(&self) -> Option<u64>;
}

/// The driver's name for a command in flight; small, reused after completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CmdId(pub u32);

impl_id!(CmdId(u32));

/// One command as the driver hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name for the completion.
    pub id: CmdId,
    /// Direction; [`Op::Flush`] writes the volatile cache out.
    pub op: Op,
    /// Sync, FUA, meta … as the request carries them.
    pub flags: BioFlags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
}

impl Command {
    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(u64::from(self.nr_sectors))
    }

    /// Whether it reaches beyond a device of so many sectors. A flush, whose
    /// address means nothing, does not.
    pub fn exceeds(&self, capacity_sectors: u64) -> bool {
        self.op != Op::Flush && self.end() > capacity_sectors
    }
}

/// A finished command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which one.
    pub id: CmdId,
    /// When the device began to serve it.
    pub started: Time,
    /// Positive errno, 0 for success.
    pub error: u16,
}

/// The errno of a command that reaches beyond the end of the device.
pub const EIO: u16 = 5;

/// What a device may see and ask for during a call.
#[derive(Debug)]
pub struct DeviceCx<'a> {
    /// The present.
    pub now: Time,
    /// Wake-ups asked for: [`Device::wake`] is called with the token at that
    /// time (never before `now`). They cannot be taken back; a device ignores
    /// tokens that have become stale.
    pub wakes: &'a mut Vec<(Time, u64)>,
    /// Commands that finish now, in order.
    pub done: &'a mut Vec<Done>,
}

impl DeviceCx<'_> {
    /// Asks for a call of [`Device::wake`] with `token` at `time`.
    pub fn wake_at(&mut self, time: Time, token: u64) {
        debug_assert!(time >= self.now, "a wake-up in the past");
        self.wakes.push((time, token));
    }

    /// Reports a command as finished without error.
    pub fn finish(&mut self, id: CmdId, started: Time) {
        self.done.push(Done {
            id,
            started,
            error: 0,
        });
    }

    /// Reports a command as failed.
    pub fn fail(&mut self, id: CmdId, error: u16) {
        self.done.push(Done {
            id,
            started: self.now,
            error,
        });
    }
}
