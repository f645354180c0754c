// SPDX-License-Identifier: MIT OR Apache-2.0
//! How true the models are.
//!
//! [`conform`] runs measured cases again and compares them with what the real
//! kernel did, event by event or figure by figure. [`reproduce`] runs published
//! experiments and puts our numbers beside theirs. Both stand on the facade
//! [`blklab`] like any other program that uses it.

pub mod causes;
pub mod conform;
pub mod differential;
pub mod reproduce;
