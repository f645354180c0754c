// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors as exceptions: one class for each kind, the command's words in each.

use blklab::types::{Error, ErrorKind};
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    blklab,
    BlklabError,
    PyException,
    "What blklab refuses, or could not do."
);
create_exception!(
    blklab,
    InputError,
    BlklabError,
    "A file, key or value is wrong; the text says what would be right."
);
create_exception!(
    blklab,
    UnknownNameError,
    InputError,
    "Nothing has the name that was given."
);
create_exception!(
    blklab,
    MissingFileError,
    BlklabError,
    "A file is not there."
);
create_exception!(
    blklab,
    NotModelledError,
    BlklabError,
    "The input is right, and no model knows what it asks for."
);
create_exception!(
    blklab,
    TargetError,
    BlklabError,
    "A target failed at an experiment that it had accepted."
);
create_exception!(
    blklab,
    Interrupted,
    BlklabError,
    "The run was asked to end before it was done."
);

create_exception!(
    blklab,
    InvariantError,
    BlklabError,
    "A scheduler did what none may do."
);

/// The exception of an error.
pub(crate) fn raise(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let text = error.to_string();
    match error.kind {
        ErrorKind::UnknownName => UnknownNameError::new_err(text),
        ErrorKind::MissingFile => MissingFileError::new_err(text),
        ErrorKind::NotModelled => NotModelledError::new_err(text),
        ErrorKind::TargetFailed => TargetError::new_err(text),
        ErrorKind::Interrupted => Interrupted::new_err(text),
        _ => InputError::new_err(text),
    }
}

/// The exception of what could not be read or written, in one line.
pub(crate) fn refuse(what: impl ToString) -> PyErr {
    InputError::new_err(what.to_string())
}

/// The name of the exception's class of a kind, as failed runs of sweeps carry it.
pub(crate) fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownName => "UnknownNameError",
        ErrorKind::MissingFile => "MissingFileError",
        ErrorKind::NotModelled => "NotModelledError",
        ErrorKind::TargetFailed => "TargetError",
        ErrorKind::Interrupted => "Interrupted",
        _ => "InputError",
    }
}
