// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of processes, as the kernel has them: 15 bytes and a NUL.

use blklab_types::Pid;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Length of a name with its NUL (`TASK_COMM_LEN`, include/linux/sched.h).
pub(crate) const COMM_BYTES: usize = 16;

/// Processes whose names are kept: more than any Linux has at a time
/// (`PID_MAX_LIMIT`, include/linux/threads.h, is 2²²). The names of further
/// ones are not known, so that memory stays below 200 MiB.
const PROCESSES_MAX: usize = 1 << 22;

/// A name, with zeros behind it.
pub(crate) type Comm = [u8; COMM_BYTES];

/// The name before its first NUL, cut to what a [`Comm`] holds.
pub(crate) fn comm(text: &[u8]) -> Comm {
    let mut comm = [0; COMM_BYTES];
    for (to, from) in comm[..COMM_BYTES - 1].iter_mut().zip(text) {
        if *from == 0 {
            break;
        }
        *to = *from;
    }
    comm
}

/// The bytes of a name.
pub(crate) fn bytes(comm: &Comm) -> &[u8] {
    let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
    &comm[..end]
}

/// Names by process.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Pid, Comm>);

impl Names {
    /// Gives the process a name unless it has one.
    pub(crate) fn add(&mut self, pid: Pid, text: &[u8]) {
        if self.0.len() < PROCESSES_MAX {
            self.0.entry(pid).or_insert_with(|| comm(text));
        }
    }

    /// Gives the process a name; says whether it had another or none.
    pub(crate) fn change(&mut self, pid: Pid, text: &[u8]) -> bool {
        let has_room = self.0.len() < PROCESSES_MAX;
        let new = comm(text);
        match self.0.entry(pid) {
            Entry::Occupied(mut known) => known.insert(new) != new,
            Entry::Vacant(place) => {
                if has_room {
                    place.insert(new);
                }
                true
            }
        }
    }

    /// The name of a process.
    #[inline]
    pub(crate) fn get(&self, pid: Pid) -> Option<&[u8]> {
        self.0.get(&pid).map(bytes)
    }

    /// The name of a process, which is forgotten: a name is noted once.
    #[inline]
    pub(crate) fn take(&mut self, pid: Pid) -> Option<Comm> {
        self.0
            .get_mut(&pid)
            .filter(|c| **c != NOTED)
            .map(|c| std::mem::replace(c, NOTED))
    }
}

/// Stands for a name that was noted. No name has bytes behind a NUL.
const NOTED: Comm = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_fifteen_bytes_or_a_nul() {
        assert_eq!(bytes(&comm(b"pdflush")), b"pdflush");
        assert_eq!(bytes(&comm(b"a name of twenty bytes")), b"a name of twent");
        assert_eq!(bytes(&comm(b"a\0b")), b"a");
    }

    #[test]
    fn a_name_is_new_once_and_taken_once() {
        let mut names = Names::default();
        assert!(names.change(1, b"a") && !names.change(1, b"a") && names.change(1, b"b"));
        assert_eq!(names.get(1), Some(&b"b"[..]));
        assert_eq!(names.take(1).as_ref().map(bytes), Some(&b"b"[..]));
        names.add(1, b"c");
        assert_eq!(names.take(1), None);
        names.add(2, b"");
        assert_eq!(names.take(2).as_ref().map(bytes), Some(&b""[..]));
    }

    /// Two million processes took 300 MB when each name was a string.
    #[test]
    fn a_process_costs_few_bytes() {
        assert!(size_of::<(Pid, Comm)>() <= 20);
    }
}
