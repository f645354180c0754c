// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a simulated machine tells beside its events: its clock, its processes, its files.

use crate::Machine;

/// Read-only files of the scheduler.
pub(crate) fn sysfs(machine: &Machine) -> Vec<(String, String)> {
    let shown = machine.queue_state(blklab_block::Queue::shows);
    let owned = shown
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text));
    owned.collect()
}

/// Pid of the fio process itself; its jobs follow.
pub(crate) const FIO_PID: u32 = 1000;

/// Milliseconds from 1970 to midnight of 1 January 2009: virtual time has no date, so it is
/// counted from there, and a run's text is the same at any hour.
pub(crate) const EPOCH_MS: u64 = 1_230_768_000_000;
