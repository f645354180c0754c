// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of processes.

use blklab_types::Pid;
use std::collections::HashMap;
use std::sync::Arc;

/// Processes whose names are kept: more than any Linux has at a time
/// (`PID_MAX_LIMIT`, include/linux/threads.h).
const NAMES_MAX: usize = 1 << 22;
/// Bytes of a name that are kept; the kernel's have 15.
const NAME_BYTES_MAX: usize = 64;

/// The latest name of each process.
#[derive(Debug, Default)]
pub(crate) struct People(HashMap<Pid, Arc<str>>);

impl People {
    pub(crate) fn name(&mut self, pid: Pid, comm: &str) {
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(&pid) {
            return;
        }
        let mut end = comm.len().min(NAME_BYTES_MAX);
        while !comm.is_char_boundary(end) {
            end -= 1;
        }
        self.0.insert(pid, comm[..end].into());
    }

    pub(crate) fn name_of(&self, pid: Pid) -> Option<Arc<str>> {
        self.0.get(&pid).cloned()
    }
}
