// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real kernels in virtual time, whose disks are the models of `blklab-device`.
//!
//! ```text
//! release, folder ── build ──► Built, in the Cache
//!                                │
//! Plan ── Kernel, the target ──► Machine ──► events, fio's results
//!                                │     ▲
//!                              Host: clock and Disks
//! ```
//!
//! [`build()`] makes a User Mode Linux of a kernel's source and keeps it in a [`Cache`].
//! A [`Machine`] runs it once, with a [`Userland`] that does something, while a [`Host`]
//! keeps its clock and serves its [`Disk`]s. [`Kernel`] makes a machine of a plan.

mod build;
mod calendar;
mod channel;
mod cpio;
mod disk;
mod engine;
mod failed;
mod group;
mod guest;
mod host;
mod kernel;
mod machine;
mod qemu;
mod request;
mod shared_clock;
mod store;
mod userland;
mod vhost;
mod workplace;

pub use build::{
    Added, Built, Cache, Engine, FLAVOUR, HZ, Source, Step, Watch, add, build, built, fetch,
};
pub use cpio::TakeFile;
pub use disk::{Disk, ENDLESS_SECTORS};
pub use host::{GoOn, Host, Traffic};
pub use kernel::Kernel;
pub use machine::{Clock, EPOCH_MS, Ended, Machine};
pub use userland::Userland;
