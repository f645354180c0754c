// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an I/O of a job does.

use crate::settings::Dir;
use blklab_types::Op;

/// Operation of one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Trim.
    Trim,
    /// fsync.
    Sync,
    /// fdatasync.
    Datasync,
    /// sync_file_range.
    SyncFileRange,
}

impl From<Op> for IoOp {
    /// What fio does for a bio of that direction.
    fn from(op: Op) -> IoOp {
        match op {
            Op::Read => IoOp::Read,
            Op::Write => IoOp::Write,
            Op::Discard => IoOp::Trim,
            Op::Flush => IoOp::Sync,
        }
    }
}

impl IoOp {
    /// The direction, for I/Os with data.
    pub fn dir(self) -> Option<Dir> {
        match self {
            IoOp::Read => Some(Dir::Read),
            IoOp::Write => Some(Dir::Write),
            IoOp::Trim => Some(Dir::Trim),
            IoOp::Sync | IoOp::Datasync | IoOp::SyncFileRange => None,
        }
    }

    /// fio's word in logs.
    pub fn name(self) -> &'static str {
        match self {
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::Trim => "trim",
            IoOp::Sync => "sync",
            IoOp::Datasync => "datasync",
            IoOp::SyncFileRange => "sync_file_range",
        }
    }
}

impl From<Dir> for IoOp {
    fn from(dir: Dir) -> IoOp {
        match dir {
            Dir::Read => IoOp::Read,
            Dir::Write => IoOp::Write,
            Dir::Trim => IoOp::Trim,
        }
    }
}
