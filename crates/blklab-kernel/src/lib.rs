// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about Linux by version, as data: releases, tunables and patches.

mod change;
mod error;
mod features;
mod known;
mod name;
mod patch;
mod preset;
mod scheduler;
mod tunable;
mod version;

pub use blklab_types::Unit;
pub use change::check_changes;
pub use known::Knowledge;
pub use patch::{Evidence, PATCHES, Patch, PatchError, Patches};
pub use preset::{PRESETS, Preset};
pub use scheduler::{CHANGES as DEFAULT_SCHEDULER_CHANGES, default_scheduler};
pub use tunable::{Tunable, TunableError, Tunables, existence, is_file_of_queue, tunables_of};
pub use version::{
    Basis, Change, DISTRIBUTIONS, Distribution, Fact, KernelVersion, Level, Part, Schedulers,
    VersionError, releases, single_queue_releases,
};
