// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why calls fail.

use std::fmt;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FsError {
    /// The descriptor, file or context does not exist (`EBADF`).
    BadHandle,
    /// A direct I/O or a discard is not aligned to 512 bytes (`EINVAL`).
    Unaligned,
    /// The disk is full (`ENOSPC`).
    NoSpace,
    /// The range ends beyond 2 TiB, the largest file of ext3 (`EFBIG`).
    TooBig,
    /// It is not a directory (`ENOTDIR`).
    NotDirectory,
    /// The directory is not empty, or is the root (`ENOTEMPTY`, `EBUSY`).
    NotEmpty,
    /// The kernel or the file knows no such request (`ENOTTY`).
    NoSuchRequest,
    /// The device cannot do it (`EOPNOTSUPP`).
    NotSupported,
    /// The range ends behind the device (`EINVAL`).
    BehindEnd,
    /// The filesystem has no direct I/O (`EINVAL`).
    NoDirect,
    /// It would have to sleep, and was told not to (`EAGAIN`).
    WouldBlock,
    /// The device reported an error (`EIO`).
    Io,
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FsError::BadHandle => "no such file, descriptor or context",
            FsError::Unaligned => {
                "offset and length of direct I/O and discards must be multiples of 512 bytes"
            }
            FsError::NoSpace => "no space left in the layout",
            FsError::TooBig => "the range ends beyond the largest file",
            FsError::NotDirectory => "not a directory",
            FsError::NotEmpty => "the directory is not empty",
            FsError::NoSuchRequest => "inappropriate ioctl for the file",
            FsError::NotSupported => "operation not supported by the device",
            FsError::BehindEnd => "the range ends behind the device",
            FsError::NoDirect => "the filesystem has no direct I/O",
            FsError::WouldBlock => "resource temporarily unavailable",
            FsError::Io => "input/output error",
        })
    }
}

impl std::error::Error for FsError {}
