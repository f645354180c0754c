// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a running job says and hears: steps, I/Os, answers, completions.

use crate::io_op::IoOp;

/// One I/O to hand to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Its request record, below `iodepth`; free again once completed.
    pub record: u32,
    /// Operation.
    pub op: IoOp,
    /// Index of the file in the job.
    pub file: u32,
    /// First byte; for `SyncFileRange` the start of what was written.
    pub offset: u64,
    /// Length; 0 for syncs except `SyncFileRange`.
    pub length: u64,
    /// The offset that fio's log shows: for syncs, the record's last one.
    pub logged_offset: u64,
    /// A read that checks an earlier write.
    pub verify: bool,
    /// Class and level of its I/O priority, if it differs from the job's.
    pub priority: Option<(u32, u32)>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Open a file (drop its cached pages and advise as the job says).
    Open {
        /// Index of the file.
        file: u32,
    },
    /// Close a file.
    Close {
        /// Index of the file.
        file: u32,
        /// fsync it first.
        fsync: bool,
    },
    /// Drop a file's cached pages, if the job asks for it: a job bound by time
    /// starts over.
    Invalidate {
        /// Index of the file.
        file: u32,
    },
    /// Ask the job's flow whether it may issue, then call
    /// [`JobRun::may_issue`](super::JobRun::may_issue).
    Flow,
    /// The flow holds the job back, which spins: wait until another job of the
    /// flow has issued, or until this time.
    FlowHeld {
        /// End of the run time, if there is one.
        until_ns: Option<u64>,
    },
    /// Hand an I/O to the engine, then call [`JobRun::answer`](super::JobRun::answer).
    Issue(Io),
    /// Submit what the engine holds, if it holds anything.
    Commit,
    /// Submit what the engine holds, wait for `min` completions, take up to
    /// `max`, then call [`JobRun::reaped`](super::JobRun::reaped).
    Reap {
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
    },
    /// Wait until this time.
    Wait {
        /// Until when.
        until_ns: u64,
        /// Busy instead of asleep.
        spin: bool,
    },
    /// A pass over the files begins.
    PassStart,
    /// A pass has ended; its time counts as the job's run time.
    PassEnd,
    /// Reading back what a pass wrote begins.
    VerifyStart,
    /// Reading back has ended; its time counts as run time of reads.
    VerifyEnd,
    /// Forget all statistics: the time that does not count is over.
    ResetStats,
    /// The job has ended. Asking again gives the same.
    Done(Outcome),
    /// The job turns round without a step: a fault of this library, not of the
    /// job file.
    Stalled,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The error that ended it, as a Linux error number; 0 for none.
    pub error: i32,
    /// Errors that it met, the one that ended it included.
    pub errors: u64,
    /// The first of them; 0 for none.
    pub first_error: i32,
}

/// The engine's answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done within the call.
    Completed {
        /// Linux error number, or 0.
        error: i32,
    },
    /// Taken; it completes later.
    Queued,
    /// Not now: the same request comes again.
    Busy,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its record.
    pub record: u32,
    /// Linux error number, or 0.
    pub error: i32,
}
