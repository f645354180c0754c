// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that lead a process group of their own.

use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Child;

/// Ends a program with all of its group. It may have ended by itself.
pub(crate) fn end(leader: &mut Child) {
    if let Some(group) = Pid::from_raw(leader.id() as i32) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = leader.wait();
}
