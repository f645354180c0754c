// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes wrong with a kernel, its build or its machine.

use blklab_types::{Error, ErrorKind};

/// The target has failed: in one line.
pub(crate) fn failed(what: &str) -> Error {
    Error::new(what).of_kind(ErrorKind::TargetFailed)
}
