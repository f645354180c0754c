// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs and explicit processes on a whole machine.

mod cgroups;
mod costs;
mod engines;
mod ext4;
mod md;
mod order;
mod processes;
mod rig;
mod scenarios;
mod settings;
mod syncs;
