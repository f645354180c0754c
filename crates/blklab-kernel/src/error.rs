// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is refused about a kernel, as the error that crosses crates.

use crate::{PatchError, TunableError, VersionError};
use blklab_types::{Error, ErrorKind, no_such};

impl From<TunableError> for Error {
    fn from(e: TunableError) -> Error {
        let key = match &e {
            TunableError::Unknown(name, _) => name.as_str(),
            TunableError::Range(name, ..) => name,
        };
        Error::new(match &e {
            TunableError::Unknown(name, valid) if !valid.is_empty() => {
                no_such("tunable", name, valid)
            }
            TunableError::Range(name, value, (low, high)) => {
                format!("{name}={value}: expected a number from {low} to {high}")
            }
            e => e.to_string(),
        })
        .about(format!("tunables.{key}"))
    }
}

impl From<PatchError> for Error {
    fn from(e: PatchError) -> Error {
        Error::new(match &e {
            PatchError::Unknown(name, valid) => no_such("patch", name, valid),
            e => e.to_string(),
        })
        .about("patches")
    }
}

impl From<VersionError> for Error {
    fn from(e: VersionError) -> Error {
        Error::new(e.to_string())
            .of_kind(ErrorKind::UnknownName)
            .about("kernel")
    }
}
