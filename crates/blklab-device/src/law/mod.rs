// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact laws: devices whose service time is a formula, for comparison with
//! measurements made on the same formula, event by event.

pub(crate) mod fitted;
pub(crate) mod iocost;
pub(crate) mod iocost_drives;
pub(crate) mod measured;
pub(crate) mod null_blk;
mod order;
pub(crate) mod parallel;
mod percentiles;
pub(crate) mod platter;
pub(crate) mod scsi_debug;
pub(crate) mod seek;
pub(crate) mod serial;
pub(crate) mod server;
pub(crate) mod simdisk;
pub(crate) mod simdisk_cached;
pub(crate) mod volume;

#[cfg(test)]
mod replay;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod truth;
