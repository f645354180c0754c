// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of settings: everything that can be set of an experiment.
//!
//! A setting is one row: its name, where it lives, what it takes, its default in
//! each release, a line about it, and how its value is read and written.
//! Experiment files, `KEY=VALUE` settings, saving, lists, checks and the manual go
//! through the rows. To add a setting, add a row and use it.
//!
//! Rows of the queue, the machine, control groups and the experiment itself stand
//! here; whoever builds the machine reads the typed fields of [`QueueSettings`],
//! [`Vm`] and [`crate::Cgroup`]. Schedulers, devices and filesystems have their rows
//! beside their models, and the catalogue shows them ([`crate::Models`]); what is set
//! of them is kept by name, for the model to read.

mod amount;
pub(crate) mod cgroup;
mod chosen;
mod io_cost;
mod io_max;
mod machine;
mod place;
mod queue;
mod row;
mod told;
mod top;
mod value;

pub use amount::parse_size;
pub use machine::Vm;
pub use place::Place;
pub use queue::QueueSettings;
pub use row::Setting;
pub(crate) use top::SEED_MAX;

use blklab_kernel::KernelVersion;
use row::{Access, Form, setting};

const MULTI_QUEUE: KernelVersion = KernelVersion::new(5, 0);

/// Where a setting lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The experiment as a whole: a key at the top of its file.
    Top,
    /// `/sys/block/X/queue`: the table `[queue]`.
    Queue,
    /// The driver of the disk: keys beside the parameters in `[device]`.
    Driver,
    /// Memory, processors and `/proc/sys/vm`: the table `[vm]`.
    Machine,
    /// `/sys/block/X/queue/iosched`: the table `[tunables]`.
    Scheduler,
    /// A parameter of the device: the table `[device]`.
    Device,
    /// An option of the mount: the table `[filesystem]`.
    Filesystem,
    /// A file of a control group: the tables `[cgroup.NAME]`.
    Cgroup,
}

impl Home {
    /// The table of experiment files that has it; empty for the top.
    pub const fn table(self) -> &'static str {
        match self {
            Home::Top => "",
            Home::Queue => "queue",
            Home::Driver | Home::Device => "device",
            Home::Machine => "vm",
            Home::Scheduler => "tunables",
            Home::Filesystem => "filesystem",
            Home::Cgroup => "cgroup",
        }
    }

    /// What lists call it. The driver's settings stand among those of the queue.
    pub const fn owner(self) -> &'static str {
        match self {
            Home::Top => "experiment",
            Home::Queue | Home::Driver => "queue",
            Home::Machine => "machine",
            Home::Scheduler => "scheduler",
            Home::Device => "device",
            Home::Filesystem => "filesystem",
            Home::Cgroup => "cgroup",
        }
    }

    /// The rows that live here in every experiment, in the order of lists and files.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> {
        all().filter(move |s| s.home == self)
    }
}

/// A setting that the kernel does not have, as [`crate::Experiment::absent`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Where experiment files have it: `queue`, `device` or `vm`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The releases that have it, in words.
    pub exists: String,
}

/// The settings that every experiment has, in the order of lists: without those of
/// its scheduler, device and filesystem ([`crate::Experiment::settings`]) and the
/// files of its control groups ([`cgroup_files`]).
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let tables = [queue::SETTINGS, machine::SETTINGS, top::SETTINGS];
    tables.into_iter().flatten()
}

/// The setting of that name.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|s| s.name() == name)
}

/// The files of a control group.
pub fn cgroup_files() -> impl Iterator<Item = &'static Setting> {
    cgroup::FILES.iter()
}

/// A type that fields of settings have.
trait Value: Copy {
    fn number(self) -> i64;
    /// The value of a number that is in the setting's range.
    fn from_number(number: i64) -> Self;
}

macro_rules! number_values {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn number(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }

            fn from_number(number: i64) -> $type {
                <$type>::try_from(number).expect("the row's range fits the field")
            }
        }
    )*};
}

number_values!(u8, u32, u64);

impl Value for bool {
    fn number(self) -> i64 {
        i64::from(self)
    }

    fn from_number(number: i64) -> bool {
        number != 0
    }
}

/// The default of a field in a release, in the field's own unit; that of its
/// first releases where there is none.
fn default_of<T: Value>(table: &[Setting], field: &str, v: KernelVersion) -> T {
    let s = table.iter().find(|s| s.field == field);
    let s = s.expect("the field is made of its row");
    let row = s.row_in(v).unwrap_or(&s.rows()[0]);
    T::from_number(row.default * s.per_unit)
}

/// Makes a struct of a table of rows: a field for each, `None` where nothing was
/// set. A row's comment is its line in lists. With `with values` the struct has a
/// method for each field, too: the value that holds in a release.
macro_rules! settings {
    (
        $(#[$meta:meta])*
        struct $name:ident at $place:ident, $home:expr;
        $( #[doc = $help:literal] $key:ident: $type:ty = $row:expr; )*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $( #[doc = $help] pub $key: Option<$type>, )*
        }

        pub(super) static SETTINGS: &[Setting] = &[$(
            $row.at($home, stringify!($key), $help, Access::Number {
                get: |e| e.$place.$key.map(Value::number),
                set: |e, value| e.$place.$key = value.map(<$type as Value>::from_number),
            }),
        )*];
    };
    (
        $(#[$meta:meta])*
        struct $name:ident with values at $place:ident, $home:expr;
        $( #[doc = $help:literal] $key:ident: $type:ty = $row:expr; )*
    ) => {
        settings! {
            $(#[$meta])*
            struct $name at $place, $home;
            $( #[doc = $help] $key: $type = $row; )*
        }

        impl $name {$(
            #[doc = concat!($help, ": as it was set, else the default of the release")]
            pub fn $key(&self, v: KernelVersion) -> $type {
                self.$key.unwrap_or_else(|| default_of(SETTINGS, stringify!($key), v))
            }
        )*}
    };
}

use settings;

#[cfg(test)]
mod tests;
