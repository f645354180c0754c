// SPDX-License-Identifier: MIT OR Apache-2.0
//! blklab for Python: the facade `blklab`, as the module `blklab._native`.
//!
//! What Python sees of it are the types and functions of the package beside it
//! (`python/blklab`), which is written in Python: words, defaults and conversions stand there.
//! This crate has what needs the models: experiments, plans, runs, traces, tables. Every call
//! that takes long leaves Python's lock to others, and ends early at Ctrl-C.

mod changes;
mod compare;
mod errors;
mod experiment;
mod json;
mod list;
mod plan;
mod run;
mod scheduler;
mod sweep;
mod table;
mod trace;
mod waiting;

/// The module `blklab._native`.
#[pyo3::pymodule(name = "_native", gil_used = false)]
mod native {
    #[pymodule_export]
    use super::changes::changes;
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::errors::{
        BlklabError, InputError, Interrupted, InvariantError, MissingFileError, NotModelledError,
        TargetError, UnknownNameError,
    };
    #[pymodule_export]
    use super::experiment::Experiment;
    #[pymodule_export]
    use super::list::{entries, metrics};
    #[pymodule_export]
    use super::plan::{Plan, plan};
    #[pymodule_export]
    use super::run::{Run, run};
    #[pymodule_export]
    use super::scheduler::{Queue, register};
    #[pymodule_export]
    use super::sweep::sweep;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::{Trace, report};

    /// The version of blklab.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const version: &str = env!("CARGO_PKG_VERSION");
}
