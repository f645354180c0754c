// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stack that stands in lines behind its event.

use crate::order::Held;
use blklab_trace::BETWEEN_FRAMES;
use blklab_types::{Pid, Time};

/// Bytes of a stack that are kept.
const BYTES_MAX: usize = 1 << 14;

/// What was read of it.
#[derive(Debug, Default)]
pub(super) struct Frames {
    of: Option<(Time, Pid, u16)>,
    functions: String,
}

impl Frames {
    /// What comes next may be the stack of this task.
    pub(super) fn begin(&mut self, time: Time, pid: Pid, cpu: u16) {
        self.of = Some((time, pid, cpu));
        self.functions.clear();
    }

    /// A function, which is called by the next.
    pub(super) fn add(&mut self, name: &[u8]) {
        if self.of.is_none() || self.functions.len() > BYTES_MAX {
            return;
        }
        if !self.functions.is_empty() {
            self.functions.push_str(BETWEEN_FRAMES);
        }
        self.functions.push_str(&String::from_utf8_lossy(name));
    }

    /// It has ended, if there was one.
    pub(super) fn end(&mut self) -> Option<Held> {
        let (time, pid, cpu) = self.of.take()?;
        let functions = std::mem::take(&mut self.functions);
        (!functions.is_empty()).then(|| Held::stack(time, pid, cpu, functions))
    }
}
