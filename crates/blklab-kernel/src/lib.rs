// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about Linux by version, as data: releases and tunables.

mod tunable;
mod version;

pub use tunable::{Tunable, TunableError, Tunables, Unit};
pub use version::{KernelVersion, PRESETS, Preset, VersionError};
