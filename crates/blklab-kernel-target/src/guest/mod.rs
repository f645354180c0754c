// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's memory, and the rings of requests in it.
//!
//! Nothing that is read here is trusted: addresses, lengths and chains are checked, and
//! what is wrong is an error.

mod chain;
mod memory;
mod ring;

pub(crate) use chain::Chain;
pub(crate) use memory::{Memory, Region, Segment, wrong};
pub(crate) use ring::{Ring, RingAddresses};
