// SPDX-License-Identifier: MIT OR Apache-2.0
//! What takes longer the first time. A job that only reads has not written to its
//! buffers, so the kernel has to provide each page when the first direct I/O pins it
//! (`faultin_page`); fio fills those of other jobs when it starts
//! (`init_io_u_buffers`). And a process that was forked copies pages of its own as it
//! gets to them: it is slower on its way to its second I/O, and to the first that has
//! ended.
//!
//! Left out: worker threads, I/O through the page cache.

use super::start::fills_buffers;
use blklab_fio::run::{Io, IoOp};
use blklab_fio::settings::Settings;
use blklab_types::{PAGE_BYTES, Span};

/// Processor times of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstCost {
    /// A page of a buffer that the kernel provides.
    pub(crate) page: Span,
    /// A path of the program or the kernel that the job walks for the first time.
    pub(crate) path: Span,
}

/// What a job has done already.
#[derive(Debug)]
pub(crate) struct FirstTimes {
    /// Whether the buffer of each I/O that may be in flight is there; of none if fio
    /// has filled them all.
    is_there: Vec<bool>,
    path: Span,
    /// Pages that the next call has to provide.
    pages: u64,
    has_called: bool,
    has_called_again: bool,
    has_reaped: bool,
}

impl FirstTimes {
    pub(crate) fn new(job: &Settings, cost: FirstCost) -> FirstTimes {
        let is_empty = !fills_buffers(job) && cost.page > Span::ZERO;
        FirstTimes::with_empty_buffers(if is_empty { job.iodepth } else { 0 }, cost)
    }

    fn with_empty_buffers(nr: u32, cost: FirstCost) -> FirstTimes {
        FirstTimes {
            is_there: vec![false; nr as usize],
            path: cost.path,
            pages: 0,
            has_called: false,
            has_called_again: false,
            has_reaped: false,
        }
    }

    /// Whether the next call takes longer.
    pub(crate) fn takes_time(&self) -> bool {
        self.pages > 0 || !self.has_called_again
    }

    /// An I/O is to use the buffer of its record.
    #[inline]
    pub(crate) fn uses_buffer(&mut self, io: &Io) {
        if io.op == IoOp::Read
            && let Some(is_there) = self.is_there.get_mut(io.record as usize)
            && !std::mem::replace(is_there, true)
        {
            self.pages += io.length.div_ceil(PAGE_BYTES);
        }
    }

    /// The pages that a call of the kernel has to provide.
    #[inline]
    pub(crate) fn pages(&mut self) -> u64 {
        std::mem::take(&mut self.pages)
    }

    /// The job calls the kernel: what the way there takes longer.
    #[inline]
    pub(crate) fn call(&mut self) -> Span {
        if !std::mem::replace(&mut self.has_called, true)
            || std::mem::replace(&mut self.has_called_again, true)
        {
            return Span::ZERO;
        }
        self.path
    }

    /// The job takes what has ended: what that takes longer.
    #[inline]
    pub(crate) fn reap(&mut self) -> Span {
        if std::mem::replace(&mut self.has_reaped, true) {
            return Span::ZERO;
        }
        self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: FirstCost = FirstCost {
        page: Span(10),
        path: Span(1000),
    };

    fn io(record: u32, op: IoOp) -> Io {
        Io {
            record,
            op,
            file: 0,
            offset: 0,
            length: 3 * PAGE_BYTES - 1,
            logged_offset: 0,
            verify: false,
            priority: None,
        }
    }

    #[test]
    fn a_buffer_is_provided_once_unless_fio_filled_it() {
        let mut f = FirstTimes::with_empty_buffers(2, COST);
        f.uses_buffer(&io(0, IoOp::Read));
        f.uses_buffer(&io(1, IoOp::Sync));
        assert_eq!(f.pages(), 3);
        f.uses_buffer(&io(0, IoOp::Read));
        f.uses_buffer(&io(1, IoOp::Read));
        assert_eq!(f.pages(), 3);
        assert_eq!(f.pages(), 0);
        let mut f = FirstTimes::with_empty_buffers(0, COST);
        f.uses_buffer(&io(0, IoOp::Read));
        assert_eq!(f.pages(), 0);
    }

    #[test]
    fn the_second_call_and_the_first_end_take_longer() {
        let mut f = FirstTimes::with_empty_buffers(0, COST);
        assert_eq!([(); 3].map(|()| f.call().ns()), [0, 1000, 0]);
        assert!(!f.takes_time());
        assert_eq!([(); 2].map(|()| f.reap().ns()), [1000, 0]);
    }
}
