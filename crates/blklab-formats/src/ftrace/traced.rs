// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as `perf trace` prints them: fields by name, and none that is 0.

use super::head::Head;
use crate::fields::Fields;
use crate::kernel::TextFields;
use blklab_types::{Dev, Pid};

/// No process has a number above this (`PID_MAX_LIMIT`, include/linux/threads.h of 6.12): those
/// that are named without their number get such.
const PID_MAX: Pid = 4 << 20;

/// Tasks that are named without their number, at most; the others are one.
const TASKS_MAX: usize = 4096;

/// Fields of which those are 0 that are not there.
pub(super) struct Traced<'a>(TextFields<'a>);

impl<'a> Traced<'a> {
    pub(super) fn new(fields: &'a [u8]) -> Traced<'a> {
        Traced(TextFields(fields))
    }
}

impl Fields for Traced<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        let is_left_out = matches!(name, "sector" | "nr_sector");
        self.0.number(name).or(is_left_out.then_some(0))
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        self.0.text(name)
    }

    fn device(&self, name: &str) -> Option<Dev> {
        self.0.device(name)
    }
}

/// Numbers for tasks of which only the name is known: perf calls a task that it has not seen
/// begin `:0/0`, and the event's own field says its name.
#[derive(Debug, Default)]
pub(super) struct Unnumbered(Vec<Vec<u8>>);

impl Unnumbered {
    /// Gives the task of an event the name that its fields say, if it has none.
    pub(super) fn name<'a>(&mut self, head: &mut Head<'a>, fields: &Traced<'a>) {
        if head.comm != b":" || head.pid != 0 {
            return;
        }
        head.comm = fields.0.word("comm").unwrap_or_default();
        if head.known_comm().is_some() && !head.comm.starts_with(b"swapper") {
            head.pid = self.number(head.comm);
        }
    }

    fn number(&mut self, comm: &[u8]) -> Pid {
        let place = self.0.iter().position(|known| known == comm);
        let place = place.unwrap_or_else(|| {
            if self.0.len() < TASKS_MAX {
                self.0.push(comm.to_vec());
            }
            self.0.len() - 1
        });
        PID_MAX + 1 + place as Pid
    }
}
