// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O priority of single requests (`cmdprio` and its kin).
//!
//! Behaviour of fio 3.33: a share of the reads or writes, all or those of one
//! length, is drawn from a generator of its own. Without a class it is real
//! time.

use super::{IoOp, JobRun};
use crate::settings::{CmdPrio, Dir};

/// Class real time.
const REAL_TIME: u32 = 1;

/// Class and level for requests of a direction that do not say.
fn implied(prio: &CmdPrio, dir: usize) -> (u32, u32) {
    let class = match prio.class[dir] {
        0 => REAL_TIME,
        class => class,
    };
    (class, prio.level[dir])
}

/// The priorities that requests of a job may get beside the job's own, in fio's
/// order.
pub fn priorities(prio: &CmdPrio) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    for dir in [Dir::Read as usize, Dir::Write as usize] {
        if prio.percentage[dir] != 0 {
            out.push(implied(prio, dir));
        }
        let splits = prio.splits[dir].iter();
        out.extend(splits.map(|s| s.priority.unwrap_or(implied(prio, dir))));
    }
    out
}

impl JobRun {
    /// The priority of a request, for engines that set it per request. Asked
    /// once for each time that it is handed over.
    #[inline]
    pub(super) fn drawn_priority(&mut self, op: IoOp, length: u64) -> Option<(u32, u32)> {
        let prio = &self.job.settings.cmdprio;
        let dir = op.dir().filter(|dir| *dir != Dir::Trim)? as usize;
        if prio.percentage[dir] == 0 && prio.splits[dir].is_empty() {
            return None;
        }
        self.draw_priority(dir, length)
    }

    fn draw_priority(&mut self, dir: usize, length: u64) -> Option<(u32, u32)> {
        let prio = &self.job.settings.cmdprio;
        let of_length = prio.splits[dir].iter().filter(|s| s.bytes == length);
        let percent = match prio.percentage[dir] {
            0 => of_length.clone().map(|s| s.percent).sum(),
            percent => percent,
        };
        if percent == 0 {
            return None;
        }
        let drawn = self.generators.priority.between(0, 99) as u32;
        if drawn >= percent {
            return None;
        }
        let mut below = 0;
        let split = of_length.clone().find(|s| {
            below += s.percent;
            drawn < below
        });
        let given = split.and_then(|s| s.priority);
        Some(given.unwrap_or(implied(prio, dir)))
    }
}
