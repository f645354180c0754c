// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes of calls, and the pages that they lie in.

use crate::error::FsError;
use blklab_types::PAGE_BYTES;
use std::ops::Range;

/// The largest file of ext3 with blocks of 4 KiB.
const MAX_FILE_BYTES: u64 = 2 << 40;

/// The bytes of a call, if a file can have them.
pub(crate) fn file_range(offset: u64, bytes: u64) -> Result<Range<u64>, FsError> {
    let end = offset
        .checked_add(bytes)
        .filter(|end| *end <= MAX_FILE_BYTES);
    Ok(offset..end.ok_or(FsError::TooBig)?)
}

/// The pages that bytes lie in.
pub(crate) fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES)
}
