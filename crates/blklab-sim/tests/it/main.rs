// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs and explicit processes on a whole machine.

mod cgroups;
mod costs;
mod engines;
mod experiment_cgroups;
mod experiment_files;
mod experiment_settings;
mod ext4;
mod md;
mod memory;
mod migration;
mod order;
mod processes;
mod processors;
mod rig;
mod rq_affinity;
mod scenarios;
mod scheduler_time;
mod settings;
mod syncs;
mod trims;
mod units;
