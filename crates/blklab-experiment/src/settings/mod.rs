// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of settings: what can be set of the queue, its driver, the machine
//! and the experiment itself.
//!
//! A setting is one row here: its name, where it lives, what it takes, its
//! default in each release, a line about it, and how its value is read and
//! written. Experiment files, `KEY=VALUE` settings, saving, lists, checks and
//! the manual go through the rows; whoever builds the machine reads the typed
//! fields of [`QueueSettings`] and [`Vm`]. To add a setting, add a row and use
//! its field.
//!
//! Tunables of schedulers, parameters of devices and options of filesystems
//! have tables of their own beside their models; files of control groups have
//! one in [`crate::Cgroup`]'s module.

mod machine;
mod queue;
mod top;
mod value;

pub use machine::Vm;
pub use queue::QueueSettings;
pub(crate) use top::SEED_MAX;
pub use value::parse_size;

use crate::Experiment;
use blklab_kernel::{KernelVersion, Tunable, Unit, existence};

const FIRST: KernelVersion = KernelVersion::v2_6(16);
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
}

impl Home {
    /// The table of experiment files that has it; empty for the top.
    pub const fn table(self) -> &'static str {
        match self {
            Home::Top => "",
            Home::Queue => "queue",
            Home::Driver => "device",
            Home::Machine => "vm",
        }
    }

    /// What lists call it. The driver's settings stand among those of the queue.
    pub const fn owner(self) -> &'static str {
        match self {
            Home::Top => "experiment",
            Home::Queue | Home::Driver => "queue",
            Home::Machine => "machine",
        }
    }

    /// The rows that live here, in the order of lists and files.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> {
        all().filter(move |s| s.home == self)
    }
}

/// How values are written.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// A whole number; true and false are 1 and 0.
    Number,
    /// One of these numbers; the words say whose they are.
    OneOf(&'static str, &'static [i64]),
    /// A size such as `2g`.
    Size,
    /// One of these words, or its number. Those after the first two are other
    /// names.
    Words(&'static [(&'static str, i64)]),
    /// A text that only the setting itself can read.
    Text,
}

/// How a value of its own type is read and written. Numbers are in the unit in
/// which the field has them.
#[derive(Clone, Copy)]
enum Access {
    Number {
        get: fn(&Experiment) -> Option<i64>,
        set: fn(&mut Experiment, Option<i64>),
    },
    Text {
        get: fn(&Experiment) -> String,
        set: fn(&mut Experiment, &str) -> Result<(), crate::ExperimentError>,
    },
}

/// Most ranges of releases with a default of their own.
const ERAS_MAX: usize = 3;

/// One setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Where it lives.
    pub home: Home,
    eras: [Tunable; ERAS_MAX],
    nr_eras: usize,
    form: Form,
    /// Units of the field in one of the setting's.
    per_unit: i64,
    /// The name under which files have the field's own unit.
    fine_name: Option<&'static str>,
    /// The value that says what holds where the kernel does not have it.
    without: Option<i64>,
    /// Whether the model looks at it.
    matters: bool,
    /// What it comes to, where the default does not say: the device and others
    /// have a say.
    effective: Option<fn(&Experiment) -> Option<i64>>,
    /// What the manual says, if more than the row's line.
    doc: &'static str,
    /// The default in words, if more than a number.
    default_doc: &'static str,
    /// The field that has it.
    field: &'static str,
    access: Access,
}

/// A row that every release has.
const fn setting(unit: Unit, default: i64, range: (i64, i64)) -> Setting {
    let era = Tunable {
        name: "",
        unit,
        default,
        range,
        since: FIRST,
        until: KernelVersion::FOREVER,
        help: "",
    };
    Setting {
        home: Home::Top,
        eras: [era; ERAS_MAX],
        nr_eras: 1,
        form: Form::Number,
        per_unit: 1,
        fine_name: None,
        without: None,
        matters: true,
        effective: None,
        doc: "",
        default_doc: "",
        field: "",
        access: Access::Number {
            get: |_| None,
            set: |_, _| {},
        },
    }
}

/// What rows say beside unit, default, range and help.
impl Setting {
    /// The first release that has it.
    const fn since(mut self, v: KernelVersion) -> Setting {
        self.eras[0].since = v;
        self
    }

    /// The first release that does not have it any more.
    const fn until(mut self, v: KernelVersion) -> Setting {
        self.eras[self.nr_eras - 1].until = v;
        self
    }

    /// From a release on it has another default.
    const fn then(mut self, v: KernelVersion, default: i64) -> Setting {
        let mut era = self.eras[self.nr_eras - 1];
        era.help = "";
        self.eras[self.nr_eras - 1].until = v;
        era.since = v;
        era.default = default;
        self.eras[self.nr_eras] = era;
        self.nr_eras += 1;
        self
    }

    /// The last of its releases take these values.
    const fn range(mut self, low: i64, high: i64) -> Setting {
        self.eras[self.nr_eras - 1].range = (low, high);
        self
    }

    /// In the last of its releases it is this.
    const fn help(mut self, help: &'static str) -> Setting {
        self.eras[self.nr_eras - 1].help = help;
        self
    }

    /// Its name where the field has another.
    const fn named(mut self, name: &'static str) -> Setting {
        self.eras[0].name = name;
        self
    }

    const fn form(mut self, form: Form) -> Setting {
        self.form = form;
        self
    }

    /// The field counts in a finer unit.
    const fn per_unit(mut self, n: i64) -> Setting {
        self.per_unit = n;
        self
    }

    /// Files may give it in the finer unit under this name.
    const fn or_finer(mut self, name: &'static str) -> Setting {
        self.fine_name = Some(name);
        self
    }

    /// The value that every kernel behaves like that does not have it.
    const fn without(mut self, value: i64) -> Setting {
        self.without = Some(value);
        self
    }

    /// The model does not look at it.
    const fn without_effect(mut self) -> Setting {
        self.matters = false;
        self
    }

    /// What it comes to in an experiment.
    const fn effective(mut self, get: fn(&Experiment) -> Option<i64>) -> Setting {
        self.effective = Some(get);
        self
    }

    /// It belongs to the driver.
    const fn of_driver(mut self) -> Setting {
        self.home = Home::Driver;
        self
    }

    /// What the manual says of it and of its default; empty: what the row says.
    const fn manual(mut self, doc: &'static str, default: &'static str) -> Setting {
        self.doc = doc;
        self.default_doc = default;
        self
    }

    /// The row complete: with its home, its field, and the way to it.
    const fn at(
        mut self,
        home: Home,
        field: &'static str,
        help: &'static str,
        access: Access,
    ) -> Setting {
        if !matches!(self.home, Home::Driver) {
            self.home = home;
        }
        self.field = field;
        self.access = access;
        let name = match self.eras[0].name.is_empty() {
            true => field,
            false => self.eras[0].name,
        };
        let mut i = 0;
        while i < ERAS_MAX {
            self.eras[i].name = name;
            if self.eras[i].help.is_empty() {
                self.eras[i].help = help.trim_ascii_start();
            }
            i += 1;
        }
        self
    }
}

impl Setting {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.eras[0].name
    }

    /// What it is in each range of releases, oldest first. A default outside the
    /// range is that of what is not set.
    pub fn rows(&self) -> &[Tunable] {
        &self.eras[..self.nr_eras]
    }

    /// What it is in a release, if that has it.
    pub fn row_in(&self, v: KernelVersion) -> Option<&Tunable> {
        self.rows().iter().find(|t| t.is_in(v))
    }

    /// The releases that have it, in words.
    pub fn exists(&self) -> String {
        existence(self.rows(), self.name()).unwrap_or_default()
    }

    /// The name under which files have it in the finer unit of its field.
    pub(crate) fn fine_name(&self) -> Option<&'static str> {
        self.fine_name
    }

    /// Whether it is a text, of which unit, range and default say nothing.
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Text)
    }

    /// Whether the model looks at it.
    pub fn matters(&self) -> bool {
        self.matters
    }

    /// What the manual says of it.
    pub fn doc(&self) -> &'static str {
        match self.doc {
            "" => self.rows()[0].help,
            doc => doc,
        }
    }

    /// Its default for the manual: `40 to 2.6.21, 10 to 2.6.29, then 20`.
    pub fn default_doc(&self) -> String {
        if !self.default_doc.is_empty() {
            return self.default_doc.to_owned();
        }
        let rows = self.rows();
        let shown = |t: &Tunable| match (t.range.0..=t.range.1).contains(&t.default) {
            true => t.default.to_string(),
            false => "unset".to_owned(),
        };
        let before = |v| blklab_kernel::releases().take_while(|r| *r < v).last();
        let mut text = String::new();
        for (i, row) in rows.iter().enumerate() {
            match (i + 1 == rows.len(), before(row.until)) {
                (true, _) if i > 0 => text += &format!("then {}", shown(row)),
                (false, Some(last)) => text += &format!("{} to {last}, ", shown(row)),
                _ => text += &shown(row),
            }
        }
        text
    }

    /// Whether all releases have it, with one default: then saved experiments
    /// spell it out.
    fn is_for_ever(&self) -> bool {
        let row = &self.eras[0];
        self.nr_eras == 1 && row.since == FIRST && row.until == KernelVersion::FOREVER
    }
}

/// All settings, in the order of lists.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let tables = [queue::SETTINGS, machine::SETTINGS, top::SETTINGS];
    tables.into_iter().flatten()
}

/// The setting of that name.
pub fn find(name: &str) -> Option<&'static Setting> {
    all().find(|s| s.name() == name)
}

/// A type that fields of settings have.
trait Value: Copy {
    fn number(self) -> i64;
    /// The value of a number that is in the setting's range.
    fn of(number: i64) -> Self;
}

macro_rules! number_values {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn number(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MAX)
            }

            fn of(number: i64) -> $type {
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

    fn of(number: i64) -> bool {
        number != 0
    }
}

/// The default of a field in a release, in the field's own unit; that of its
/// first releases where there is none.
fn default_of<T: Value>(table: &[Setting], field: &str, v: KernelVersion) -> T {
    let s = table.iter().find(|s| s.field == field);
    let s = s.expect("the field is made of its row");
    let row = s.row_in(v).unwrap_or(&s.eras[0]);
    T::of(row.default * s.per_unit)
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
                set: |e, value| e.$place.$key = value.map(<$type as Value>::of),
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
