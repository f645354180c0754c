// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks of one kind, by what a trace calls them.

use blklab_types::Pid;
use std::collections::BTreeSet;

/// Tasks whose name says that they are of a kind.
#[derive(Debug, Default)]
pub(super) struct Tasks(BTreeSet<Pid>);

impl Tasks {
    /// A task has a name now, of this kind or not: a number may be given to another.
    pub(super) fn named(&mut self, pid: Pid, is_of_kind: bool) {
        if is_of_kind {
            self.0.insert(pid);
        } else {
            self.0.remove(&pid);
        }
    }

    /// Whether a task is one of them.
    pub(super) fn has(&self, pid: Pid) -> bool {
        self.0.contains(&pid)
    }

    /// All of them, in order of their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = Pid> {
        self.0.iter().copied()
    }
}
