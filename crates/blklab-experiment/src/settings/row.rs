// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row of the table of settings, and how rows are written down.

use super::{Home, Place};
use crate::{Catalogue, Cgroup, Experiment};
use blklab_kernel::{KernelVersion, Tunable, Unit, existence};
use blklab_types::Error;
use std::borrow::Cow;

const FIRST: KernelVersion = KernelVersion::v2_6(16);

/// How values are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// A whole number; true and false are 1 and 0.
    Number,
    /// One of these numbers; the words say whose they are.
    OneOf(&'static str, &'static [i64]),
    /// A size such as `2g`.
    Size,
    /// One of these words, or its number. Those after the first two are other
    /// names.
    Words(&'static [(&'static str, i64)]),
    /// One of these words and no other.
    Choice(&'static [&'static str]),
    /// A text that only the setting itself, or the model that has it, can read.
    Text,
}

/// How a value of its own type is read and written. Numbers are in the unit in
/// which the field has them.
#[derive(Clone, Copy)]
pub(crate) enum Access {
    Number {
        get: fn(&Experiment) -> Option<i64>,
        set: fn(&mut Experiment, Option<i64>),
    },
    Text {
        get: fn(&Experiment) -> String,
        set: fn(&mut Experiment, &str, &Catalogue) -> Result<(), Error>,
    },
    /// A number of a control group.
    GroupNumber {
        get: fn(&Cgroup) -> Option<u32>,
        set: fn(&mut Cgroup, u32),
    },
    /// A text of a control group.
    GroupText {
        get: fn(&Cgroup) -> Option<String>,
        set: fn(&mut Cgroup, &str) -> Result<(), String>,
    },
    /// By its name among the tunables of the scheduler.
    Tunable,
    /// By its name among the parameters of the device.
    Param,
    /// By its name among the options of the filesystem.
    MountOption,
}

/// Most ranges of releases with a default of their own.
const ERAS_MAX: usize = 4;

/// One setting.
#[derive(Clone)]
pub struct Setting {
    /// Where it lives.
    pub home: Home,
    /// The scheduler, device or filesystem that has it.
    owner: &'static str,
    eras: [Tunable; ERAS_MAX],
    nr_eras: usize,
    pub(super) form: Form,
    /// Units of the field in one of the setting's.
    pub(super) per_unit: i64,
    /// The name under which files have the field's own unit.
    pub(super) fine_name: Option<&'static str>,
    /// What a text may be, in words.
    takes: Cow<'static, str>,
    /// Whether its text is the path of a file.
    is_path: bool,
    /// Where a kernel takes it, if elsewhere than its home says.
    pub(super) place: Option<Place>,
    /// The value that says what holds where the kernel does not have it.
    pub(super) without: Option<i64>,
    /// What is said of a kernel that does not have it, if more than its releases.
    pub(super) elsewhere: &'static str,
    /// Whether the model looks at it.
    pub(super) matters: bool,
    /// What it comes to, where the default does not say: the device and others
    /// have a say.
    pub(super) effective: Option<fn(&Experiment, &Catalogue) -> Option<i64>>,
    /// What the manual says, if more than the row's line.
    doc: &'static str,
    /// The default in words, if more than a number.
    pub(super) default_doc: &'static str,
    /// The field that has it.
    pub(super) field: &'static str,
    pub(super) access: Access,
}

/// A row that every release has.
pub(crate) const fn setting(unit: Unit, default: i64, range: (i64, i64)) -> Setting {
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
        owner: "",
        eras: [era; ERAS_MAX],
        nr_eras: 1,
        form: Form::Number,
        per_unit: 1,
        fine_name: None,
        takes: Cow::Borrowed(""),
        is_path: false,
        place: None,
        without: None,
        elsewhere: "",
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
    pub(crate) const fn since(mut self, v: KernelVersion) -> Setting {
        self.eras[0].since = v;
        self
    }

    /// The first release that does not have it any more.
    pub(crate) const fn until(mut self, v: KernelVersion) -> Setting {
        self.eras[self.nr_eras - 1].until = v;
        self
    }

    /// From a release on it has another default.
    pub(crate) const fn then(mut self, v: KernelVersion, default: i64) -> Setting {
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
    pub(crate) const fn range(mut self, low: i64, high: i64) -> Setting {
        self.eras[self.nr_eras - 1].range = (low, high);
        self
    }

    /// In the last of its releases it is this.
    pub(crate) const fn help(mut self, help: &'static str) -> Setting {
        self.eras[self.nr_eras - 1].help = help;
        self
    }

    /// Its name where the field has another.
    pub(crate) const fn named(mut self, name: &'static str) -> Setting {
        self.eras[0].name = name;
        self
    }

    pub(super) const fn form(mut self, form: Form) -> Setting {
        self.form = form;
        self
    }

    /// The field counts in a finer unit.
    pub(crate) const fn per_unit(mut self, n: i64) -> Setting {
        self.per_unit = n;
        self
    }

    /// Files may give it in the finer unit under this name.
    pub(crate) const fn or_finer(mut self, name: &'static str) -> Setting {
        self.fine_name = Some(name);
        self
    }

    /// The value that every kernel behaves like that does not have it.
    pub(crate) const fn without(mut self, value: i64) -> Setting {
        self.without = Some(value);
        self
    }

    /// What to do where the kernel does not have it.
    pub(crate) const fn elsewhere(mut self, hint: &'static str) -> Setting {
        self.elsewhere = hint;
        self
    }

    /// The model does not look at it.
    pub(crate) const fn without_effect(mut self) -> Setting {
        self.matters = false;
        self
    }

    /// What it comes to in an experiment.
    pub(crate) const fn effective(
        mut self,
        get: fn(&Experiment, &Catalogue) -> Option<i64>,
    ) -> Setting {
        self.effective = Some(get);
        self
    }

    /// It belongs to the driver.
    pub(crate) const fn of_driver(mut self) -> Setting {
        self.home = Home::Driver;
        self
    }

    /// What the manual says of it and of its default; empty: what the row says.
    pub(crate) const fn manual(mut self, doc: &'static str, default: &'static str) -> Setting {
        self.doc = doc;
        self.default_doc = default;
        self
    }

    /// The row complete: with its home, its field, and the way to it.
    pub(crate) const fn at(
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
        let name = if self.eras[0].name.is_empty() {
            field
        } else {
            self.eras[0].name
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

    /// What lists call its owner: the scheduler, the device, the filesystem, the
    /// queue, the machine. The driver's settings stand among those of the queue.
    pub fn owner(&self) -> &'static str {
        match self.owner {
            "" => self.home.owner(),
            owner => owner,
        }
    }

    /// Whether it is called so.
    pub fn is_called(&self, name: &str) -> bool {
        self.name() == name
    }

    /// What it takes, in words.
    pub fn takes(&self) -> &str {
        &self.takes
    }

    /// The values that it takes, where they are few; empty where they are a range or
    /// a text.
    pub fn words(&self) -> Vec<String> {
        match self.form {
            Form::OneOf(_, values) => values.iter().map(i64::to_string).collect(),
            Form::Words(words) => words.iter().map(|(word, _)| (*word).to_owned()).collect(),
            Form::Choice(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            Form::Number | Form::Size | Form::Text => Vec::new(),
        }
    }

    /// Whether its value is the path of a file.
    pub fn is_path(&self) -> bool {
        self.is_path
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
        matches!(self.form, Form::Text | Form::Choice(_))
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
        if !self.default_doc.is_empty() || self.home == Home::Device {
            return self.default_doc.to_owned();
        }
        let rows = self.rows();
        let shown = |t: &Tunable| {
            let default = t.default_value();
            default.map_or("unset".to_owned(), |n| n.to_string())
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
    pub(super) fn is_for_ever(&self) -> bool {
        let row = &self.eras[0];
        self.nr_eras == 1 && row.since == FIRST && row.until == KernelVersion::FOREVER
    }
}

/// Rows of what is chosen by name.
impl Setting {
    /// The tunables of a scheduler: one row a name, with all its releases.
    ///
    /// # Panics
    /// If a table has more ranges of releases of a name than a row has room for:
    /// a fault of the table.
    pub fn tunables(scheduler: &'static str, table: &[Tunable]) -> Vec<Setting> {
        let mut rows: Vec<Setting> = Vec::new();
        for t in table {
            match rows.iter_mut().find(|row| row.name() == t.name) {
                Some(row) => {
                    row.eras[row.nr_eras] = *t;
                    row.nr_eras += 1;
                }
                None => rows.push(Setting {
                    home: Home::Scheduler,
                    owner: scheduler,
                    eras: [*t; ERAS_MAX],
                    access: Access::Tunable,
                    ..setting(t.unit, t.default, t.range)
                }),
            }
        }
        rows
    }

    /// A parameter of a device, whose plain numbers count units.
    pub fn param(
        device: &'static str,
        name: &'static str,
        unit: Unit,
        takes: String,
        default: &'static str,
        help: &'static str,
    ) -> Setting {
        Setting {
            owner: device,
            takes: takes.into(),
            form: Form::Text,
            ..setting(unit, 0, (0, 0)).manual("", default).at(
                Home::Device,
                name,
                help,
                Access::Param,
            )
        }
    }

    /// The same, whose value is the path of a file.
    #[must_use]
    pub fn of_a_file(mut self) -> Setting {
        self.is_path = true;
        self
    }

    /// An option of a filesystem that takes one of some words.
    pub fn choice(
        filesystem: &'static str,
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        help: &'static str,
    ) -> Setting {
        Setting {
            owner: filesystem,
            takes: words.join(", ").into(),
            form: Form::Choice(words),
            ..setting(Unit::Count, 0, (0, 0)).manual("", default).at(
                Home::Filesystem,
                name,
                help,
                Access::MountOption,
            )
        }
    }

    /// An option of a filesystem that takes a number of units.
    pub fn number(
        filesystem: &'static str,
        name: &'static str,
        unit: Unit,
        range: (i64, i64),
        default: &'static str,
        help: &'static str,
    ) -> Setting {
        let takes = match unit {
            Unit::Count => format!("{} to {}", range.0, range.1),
            unit => format!("{} to {} {unit}", range.0, range.1),
        };
        Setting {
            owner: filesystem,
            takes: takes.into(),
            ..setting(unit, Tunable::UNSET, range).manual("", default).at(
                Home::Filesystem,
                name,
                help,
                Access::MountOption,
            )
        }
    }

    /// What is said to the programs of a real kernel's filesystem, in their own words.
    pub(crate) fn words_of_kernel(name: &'static str, help: &'static str) -> Setting {
        Setting {
            takes: "words".into(),
            form: Form::Text,
            ..setting(Unit::Count, 0, (0, 0)).at(Home::Filesystem, name, help, Access::MountOption)
        }
    }
}
