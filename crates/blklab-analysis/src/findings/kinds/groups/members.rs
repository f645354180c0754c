// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which process is in which control group, as far as the context says it.

use crate::findings::Context;
use blklab_types::Pid;
use std::collections::BTreeMap;

/// Processes with their names, and their groups once these were looked up.
#[derive(Debug, Default)]
pub struct Members {
    comms: BTreeMap<Pid, String>,
    groups: BTreeMap<Pid, Option<String>>,
}

impl Members {
    /// A process has this name from now on.
    pub fn named(&mut self, pid: Pid, comm: &str) {
        self.comms.insert(pid, comm.to_owned());
        self.groups.remove(&pid);
    }

    /// The group of a process.
    pub fn group_of(&mut self, pid: Pid, context: &Context) -> Option<&str> {
        let comm = self.comms.get(&pid).map(String::as_str);
        let found = || context.group_of(pid, comm).map(str::to_owned);
        self.groups.entry(pid).or_insert_with(found).as_deref()
    }
}
