// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device models: commands in, completion times out.
//!
//! A device is a pure state machine. The driver hands it commands (never more
//! than the queue depth of the experiment), the device asks to be woken at
//! points in virtual time and reports finished commands when it is.

use blklab_types::{BioFlags, Op, Time};

/// The driver's name for a command in flight; small, reused after completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CmdId(pub u32);

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
}

/// A modelled device.
pub trait Device {
    /// Takes a command. The driver guarantees that at most the queue depth of
    /// commands is outstanding and that `cmd.id` is not in use.
    fn submit(&mut self, cx: &mut DeviceCx<'_>, cmd: &Command);

    /// A wake-up that the device asked for is due.
    fn wake(&mut self, cx: &mut DeviceCx<'_>, token: u64);

    /// Capacity in sectors; `None` where the model has no end.
    fn capacity_sectors(&self) -> Option<u64>;
}
