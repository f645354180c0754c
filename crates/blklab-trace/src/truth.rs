// SPDX-License-Identifier: MIT OR Apache-2.0
//! The truth stream: what a simulator knows and no kernel records.
//!
//! Only tests and `conform` read it. Its records carry the *owner* of a
//! request (the task of its first bio) and the sync property, which the trace
//! events of old kernels hide, and the steps between the driver and the
//! device.

use blklab_types::{Op, Pid, Time};

/// Kind of a truth record. Kinds named like a blktrace action accompany that
/// event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A bio was submitted.
    Queue,
    /// A bio was merged at the back of a request.
    BackMerge,
    /// A bio was merged at the front of a request.
    FrontMerge,
    /// The request shown absorbed another one; `arg` is where that started.
    RequestMerge,
    /// A request was granted.
    GetRequest,
    /// A task goes to sleep for a request.
    SleepRequest,
    /// A request entered the scheduler.
    Insert,
    /// The driver was shown the request.
    Issue,
    /// The driver handed the request to the device; `arg` counts those in flight.
    HandOver,
    /// The device finished the request; `arg` counts those left.
    Complete,
    /// A bio finished; `arg` is the time since its Q in ns.
    BioDone,
    /// The queue or task list was plugged.
    Plug,
    /// Unplugged by a waiter; `arg` is the count shown.
    Unplug,
    /// Unplugged by the timer; `arg` is the count shown.
    UnplugTimer,
    /// Unplugged because the process had to sleep for a request.
    UnplugSleep,
    /// A timer was armed; `arg` is the delay in jiffies.
    TimerArm,
    /// A timer was cancelled.
    TimerCancel,
    /// A timer fired.
    TimerFire,
    /// A process ended.
    Exit,
    /// The scheduler's own message.
    Message,
}

/// One truth record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// When.
    pub time: Time,
    /// What.
    pub kind: Kind,
    /// The task concerned: submitter of the bio, owner of the request.
    pub pid: Pid,
    /// Direction.
    pub op: Op,
    /// Whether the request or bio is sync.
    pub sync: bool,
    /// First sector.
    pub sector: u64,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// See [`Kind`].
    pub arg: u64,
}

/// Consumer of truth records.
pub trait TruthSink {
    /// One record, with a text where the kind has one (timer name, message).
    fn truth(&mut self, record: &Truth, text: &str);
}
