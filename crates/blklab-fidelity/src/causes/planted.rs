// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment with a cause in it, and what proves that it is one.

use super::change::Change;
use super::proof::Proof;
use super::setup::Setup;

/// An experiment with a cause in it, or with two.
#[derive(Clone, Debug)]
pub(super) struct Planted {
    /// The experiment.
    pub(super) setup: Setup,
    /// The same without the cause.
    pub(super) control: Setup,
    /// Whose I/O suffers, by the names of their jobs; the finding must name one of them.
    /// Empty where nobody is delayed.
    pub(super) victims: &'static [&'static str],
    /// Whose I/O causes it; empty if no process does. Where the finding names causes, one
    /// of these must be the first of them.
    pub(super) culprits: &'static [&'static str],
    /// Kinds of findings that are true of the same construction.
    pub(super) also: Vec<&'static str>,
    /// What shows that the cause is there: all of it.
    pub(super) proof: &'static [Proof],
    /// What is done to the events of the run.
    pub(super) change: Option<Change>,
}

impl Planted {
    /// A cause that no process is to blame for, and beside which nothing else is true.
    pub(super) fn new(
        setup: Setup,
        control: Setup,
        victims: &'static [&'static str],
        proof: &'static [Proof],
    ) -> Planted {
        Planted {
            setup,
            control,
            victims,
            culprits: &[],
            also: Vec::new(),
            proof,
            change: None,
        }
    }
}
