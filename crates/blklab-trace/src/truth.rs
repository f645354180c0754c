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
    /// The request shown became part of another one; `arg` is the slot of
    /// that.
    Absorbed,
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
    /// From now on, what waits in scheduler and dispatch list waits for this;
    /// `pid` is the process that is served or waited for, if there is one.
    Wait(Why),
}

/// Why requests wait between their insertion and the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// The queue is plugged.
    Plugged,
    /// The device has as many commands as it takes.
    DeviceFull,
    /// Others come first in the scheduler's order.
    Order,
    /// A batch of reads, or of sync requests, runs.
    ReadBatch,
    /// A batch of writes, or of async requests, runs.
    WriteBatch,
    /// The device has to finish the old batch before the new one starts.
    BatchChange,
    /// Another queue has the slice: that of the process.
    Slice,
    /// The scheduler idles for the next request of the process.
    Idling,
    /// The served queue is empty and its requests at the device are awaited.
    InFlight,
    /// The served queue has its quantum at the device.
    Quantum,
    /// Async requests wait until sync ones are done.
    SyncInFlight,
    /// A queue that idles waits until async requests are done.
    AsyncInFlight,
    /// The depth of async requests is held down after sync ones.
    AsyncRamp,
    /// The idle class waits for a quiet disk.
    IdleClass,
    /// A higher priority class has requests at the device.
    HigherClass,
    /// The kind of request has as many at the device as it may (Kyber).
    Tokens,
}

impl Why {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Why::Plugged => "plugged",
            Why::DeviceFull => "device full",
            Why::Order => "behind others",
            Why::ReadBatch => "read batch",
            Why::WriteBatch => "write batch",
            Why::BatchChange => "batch change",
            Why::Slice => "other queue's slice",
            Why::Idling => "idling",
            Why::InFlight => "served queue in flight",
            Why::Quantum => "quantum reached",
            Why::SyncInFlight => "sync in flight",
            Why::AsyncInFlight => "async in flight",
            Why::AsyncRamp => "async limited",
            Why::IdleClass => "idle class",
            Why::HigherClass => "higher class in flight",
            Why::Tokens => "out of tokens",
        }
    }
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
    /// Slot of the request concerned, reused after it is gone; [`NO_REQUEST`]
    /// where there is none.
    pub request: u32,
}

/// No request.
pub const NO_REQUEST: u32 = u32::MAX;

/// Consumer of truth records.
pub trait TruthSink {
    /// One record, with a text where the kind has one (timer name, message).
    fn truth(&mut self, record: &Truth, text: &str);
}
