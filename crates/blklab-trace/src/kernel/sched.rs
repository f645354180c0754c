// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks on CPUs.

/// Why a task does not run (`TASK_*`, include/linux/sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// It could go on: its time is up, or another one comes first.
    Runnable,
    /// It sleeps until something happens or a signal comes.
    Interruptible,
    /// It sleeps until something happens, I/O as a rule.
    Uninterruptible,
    /// Another.
    Other,
}

impl TaskState {
    /// The kernel's letter.
    pub fn letter(self) -> char {
        match self {
            TaskState::Runnable => 'R',
            TaskState::Interruptible => 'S',
            TaskState::Uninterruptible => 'D',
            TaskState::Other => '?',
        }
    }
}
