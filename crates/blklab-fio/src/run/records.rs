// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request records of a job: `iodepth` of them on a stack.
//!
//! A record keeps the "map ignored" mark from the moment it is set until its
//! I/O completes, even when the record goes back to the stack unused: fio
//! 3.33 behaves so, and later I/Os can tell. Records get memory when they are
//! first used.

use super::IoOp;

/// One request record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) op: IoOp,
    /// Its file, while it has an I/O.
    pub(super) file: Option<u32>,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// Do not mark blocks in the random map.
    pub(super) map_ignored: bool,
    /// A read that verifies an earlier write.
    pub(super) verify: bool,
    /// Id in the history of writes.
    pub(super) history: Option<u64>,
    /// The engine has it.
    pub(super) in_flight: bool,
    /// When it was fully built.
    pub(super) start_ns: u64,
}

/// All records of a job.
#[derive(Clone, Debug)]
pub(super) struct Records {
    all: Vec<Record>,
    free: Vec<u32>,
    /// Records never used so far.
    fresh: u32,
    /// Refused requests, to be handed over again.
    refused: Vec<u32>,
    /// Records handed over and not yet back; refused ones are not counted.
    pub(super) depth: u32,
}

impl Records {
    pub(super) fn new(iodepth: u32) -> Records {
        Records {
            all: Vec::new(),
            free: Vec::new(),
            fresh: iodepth,
            refused: Vec::new(),
            depth: 0,
        }
    }

    pub(super) fn none_free(&self) -> bool {
        self.free.is_empty() && self.fresh == 0
    }

    /// A refused record (with its I/O) or else a free one (without file).
    #[inline(always)]
    pub(super) fn take(&mut self, full: bool) -> Option<u32> {
        let index = match self.refused.pop() {
            Some(index) => index,
            None if full => return None,
            None => self.take_free()?,
        };
        let record = &mut self.all[index as usize];
        record.verify = false;
        record.history = None;
        self.depth += 1;
        Some(index)
    }

    #[inline(always)]
    fn take_free(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            let record = &mut self.all[index as usize];
            record.file = None;
            record.length = 0;
            return Some(index);
        }
        self.fresh = self.fresh.checked_sub(1)?;
        self.all.push(Record {
            op: IoOp::Read,
            file: None,
            offset: 0,
            length: 0,
            map_ignored: false,
            verify: false,
            history: None,
            in_flight: false,
            start_ns: 0,
        });
        Some(self.all.len() as u32 - 1)
    }

    /// Back on the stack.
    pub(super) fn put(&mut self, index: u32) {
        self.all[index as usize].file = None;
        self.free.push(index);
        self.depth -= 1;
    }

    /// Refused by the engine: to be handed over again.
    pub(super) fn put_refused(&mut self, index: u32) {
        self.refused.push(index);
        self.depth -= 1;
    }

    pub(super) fn get(&mut self, index: u32) -> &mut Record {
        &mut self.all[index as usize]
    }

    pub(super) fn peek(&self, index: u32) -> &Record {
        &self.all[index as usize]
    }

    /// The records that the engine has.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Record> {
        self.all.iter().filter(|record| record.in_flight)
    }

    /// The record if it is in use.
    pub(super) fn used(&self, index: u32) -> Option<Record> {
        self.all
            .get(index as usize)
            .copied()
            .filter(|record| record.file.is_some())
    }
}
