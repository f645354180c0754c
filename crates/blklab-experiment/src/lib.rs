// SPDX-License-Identifier: MIT OR Apache-2.0
//! One experiment as a plain value: workload, block stack, device.
//!
//! [`load()`] reads an experiment file (TOML, or JSON with the same keys) or a
//! fio job file; [`Experiment::set`] applies one `KEY=VALUE`;
//! [`Experiment::check`] refuses what cannot be run. After that a run cannot
//! fail for a reason that lies in its input. An experiment names models and holds none:
//! what there is to choose from, and what follows from a choice, stands in a
//! [`Catalogue`], which the methods take that need it.

mod catalogue;
mod cgroup;
mod check;
mod choose;
mod costs;
mod dm;

mod filesystem;
mod group;
mod input;
mod load;
mod locate;
mod md;
mod parts;
mod raw;
mod save;
mod set;
pub mod settings;
mod source;
mod trace;
mod tree;
mod without;

pub use catalogue::{Models, SchedulerChoice};

pub use dm::{DM_KINDS, DmKind, DmLayer, DmParam, DmSpec, DmTakes};
pub use filesystem::{FilesystemSpec, MAKE_WORDS, MOUNT_WORDS, OF_KERNELS};
pub use group::Cgroup;
pub use input::{NAMED_BYTES_MAX, ReadFile, read_named};
pub use load::{FORMAT, load, load_device, parse};
pub use md::{MdLevel, MdOptions, MdSpec};
pub use parts::{DeviceSpec, Facts, Published, QueueFacts, Variant};
pub use settings::{Absent, QueueSettings, Setting, Vm, parse_size};
pub use source::Source;
pub use trace::{Placement, Timing, TraceSpec};
pub use without::{can_be_without, change_name};

use blklab_fio::release::Release;
use blklab_kernel::KernelVersion;
use blklab_types::Hz;
use blklab_workload::Process;
use blklab_workload::scenario::Scenario;
use std::sync::Arc;

/// What issues the I/O.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Processes that submit bios without files.
    Processes(Vec<Process>),
    /// A fio job file: its name for messages, and its text.
    Fio {
        /// Name for messages and relative includes.
        name: String,
        /// The text.
        text: String,
    },
    /// A built-in scenario.
    Scenario(Scenario),
    /// The bios of a trace, run again.
    Trace(TraceSpec),
}

/// One experiment, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The file it was read from, for messages; empty if none.
    pub file: String,
    /// Short name.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// The target that runs it; empty: the first of who plans it.
    pub target: String,
    /// Kernel release.
    pub kernel: KernelVersion,
    /// The tree that a real kernel is built from; empty: the release's own source.
    pub kernel_source: String,
    /// Ticks per second.
    pub hz: Hz,
    /// Whether they were chosen, or are the kernel's.
    pub hz_chosen: bool,
    /// I/O scheduler.
    pub scheduler: String,
    /// Whether it was chosen, or is the kernel's default.
    pub scheduler_chosen: bool,
    /// The scheduler's tunables that were set, in order.
    pub tunables: Vec<(String, i64)>,
    /// Patches that are switched on.
    pub patches: Vec<String>,
    /// Queue and driver.
    pub queue: QueueSettings,
    /// The disk.
    pub device: DeviceSpec,
    /// An array of such disks in its place.
    pub md: Option<MdSpec>,
    /// Devices of device mapper on the disk or the array.
    pub dm: DmSpec,
    /// What the files lie on.
    pub filesystem: FilesystemSpec,
    /// Memory.
    pub vm: Vm,
    /// Changes of releases that the models leave out, by name ([`change_name`]).
    pub without: Vec<String>,
    /// The release of fio that job files follow.
    pub fio: Release,
    /// Seed of everything random in the models.
    pub seed: u64,
    /// fio's random numbers follow the seed, unless the job file says `randrepeat` itself: with
    /// its default all runs of a job draw the same.
    pub vary_offsets: bool,
    /// What issues the I/O.
    pub workload: Workload,
    /// Only these sections of the fio job file; all if empty.
    pub sections: Vec<String>,
    /// Control groups, parents first.
    pub cgroups: Vec<Cgroup>,
    /// Numbers published for it.
    pub published: Vec<Published>,
    /// Configurations to compare; itself alone if there are none.
    pub variants: Vec<Variant>,
    /// What a reader of the result should know about how it was made.
    pub remarks: Vec<String>,
}

/// The models that experiments choose from. Clones are the same.
#[derive(Clone)]
pub struct Catalogue(Arc<dyn Models>);
