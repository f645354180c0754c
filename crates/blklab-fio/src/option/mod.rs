// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every option that a fio 3.33 job file may contain, as data.
//!
//! Source: the output of `fio --cmdhelp=NAME` and `fio --enghelp=ENGINE,NAME`
//! of Debian's fio 3.33 build. One row per option: the parser, the checks, the
//! hints for misspelt names and the notes about options without effect all
//! read the same table ([`ALL`] for every job, [`engine_options`] for those
//! that belong to one I/O engine).

mod engine;
mod keywords;
mod table;

pub use engine::{ENGINES, EngineSpec, Queueing, engine, engine_options};
pub use table::ALL;

/// What text an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text that is not empty.
    Text,
    /// Any text, or none at all.
    OptionalText,
    /// What fills buffers: numbers, texts and files in quotes.
    Pattern {
        /// Whether `%o`, the offset, may stand in it.
        with_offset: bool,
    },
    /// One of these words, perhaps with a postfix after a colon.
    Keyword(&'static [&'static str]),
    /// One of these words with a number after a colon; several may be listed.
    Multi(&'static [&'static str]),
    /// A 32-bit number, one to three values.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A 64-bit number, one to three values.
    Long {
        /// Smallest value.
        min: u64,
    },
    /// A 64-bit number, a percentage, or a number of zones.
    ZoneSize,
    /// A time, kept in microseconds.
    Time {
        /// What a number without suffix means.
        unit: Unit,
    },
    /// 0 or 1.
    Bool,
    /// 0 or 1, or no value at all for 1.
    Flag,
    /// Real numbers between colons.
    Floats {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
        /// How many there may be.
        count: usize,
    },
    /// One to three ranges `a-b`.
    Ranges,
    /// An option of old versions.
    Deprecated {
        /// Whether fio refuses it (else it only says so).
        refused: bool,
    },
}

/// The unit of a time without suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Microseconds.
    Microsecond,
}

/// What an option is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Names and files.
    Naming,
    /// Read, write, trim, and their mixture.
    Direction,
    /// Lengths of I/Os.
    BlockSize,
    /// How much is transferred, and where.
    Amount,
    /// Random numbers and distributions.
    Random,
    /// Engine and queue depth.
    Depth,
    /// Page cache and flushing.
    Cache,
    /// When jobs start and end.
    Time,
    /// Rates and pauses.
    Pacing,
    /// Verification of contents.
    Verify,
    /// Recorded I/O.
    Replay,
    /// Zones.
    Zone,
    /// The machine around the job.
    Host,
    /// Contents of buffers.
    Buffer,
    /// Logs and statistics.
    Report,
    /// Belongs to one I/O engine.
    Engine,
}

/// What an option does here. None is ignored without a word, except those that
/// cannot matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Shapes the I/Os or their timing, as in fio.
    Shapes,
    /// Changes only what is reported, as in fio.
    Reporting,
    /// Cannot matter here, for this reason.
    Nothing(&'static str),
    /// fio would act on it, this library does not: a note says what happens
    /// instead.
    Unsupported(&'static str),
    /// The job would do something else than in fio: it is refused.
    Refused(&'static str),
}

impl Effect {
    /// The class of the option in a word.
    pub fn class(self) -> &'static str {
        match self {
            Effect::Shapes => "acts",
            Effect::Reporting => "acts (results)",
            Effect::Nothing(_) => "cannot matter",
            Effect::Unsupported(_) => "noted",
            Effect::Refused(_) => "refused",
        }
    }

    /// The reason, or what happens instead.
    pub fn reason(self) -> &'static str {
        match self {
            Effect::Shapes | Effect::Reporting => "as in fio 3.33",
            Effect::Nothing(why) | Effect::Unsupported(why) | Effect::Refused(why) => why,
        }
    }
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name, as fio prints it.
    pub name: &'static str,
    /// Another name, or nothing.
    pub alias: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The default as text; empty for none.
    pub default: &'static str,
    /// What it is about.
    pub group: Group,
    /// What it does here.
    pub effect: Effect,
}

impl OptionSpec {
    /// Whether a value is what the option has without one: nothing is asked for.
    pub fn is_default(&self, value: Option<&str>) -> bool {
        let off = matches!(self.kind, Kind::Bool | Kind::Flag) && self.default.is_empty();
        value.is_some_and(|value| value == self.default || (off && value == "0"))
    }

    /// Whether the option goes by this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || (!self.alias.is_empty() && self.alias == name)
    }
}

/// The option of that name or alias among those of every job.
pub fn find(name: &str) -> Option<&'static OptionSpec> {
    ALL.iter().find(|spec| spec.is_called(name))
}

/// One row of a table.
const fn row(
    name: &'static str,
    alias: &'static str,
    kind: Kind,
    default: &'static str,
    group: Group,
    effect: Effect,
) -> OptionSpec {
    OptionSpec {
        name,
        alias,
        kind,
        default,
        group,
        effect,
    }
}

/// The highest value of a 32-bit option.
const U32: i64 = u32::MAX as i64;
/// A 32-bit number without further limits.
const INT: Kind = Kind::Int { min: 0, max: U32 };
/// Percent.
const PERCENT: Kind = Kind::Int { min: 0, max: 100 };
/// A 64-bit number without further limits.
const LONG: Kind = Kind::Long { min: 0 };
/// A time whose plain numbers are seconds.
const SECONDS: Kind = Kind::Time { unit: Unit::Second };
/// A time whose plain numbers are microseconds.
const MICROSECONDS: Kind = Kind::Time {
    unit: Unit::Microsecond,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut names: Vec<&str> = ALL
            .iter()
            .flat_map(|spec| [spec.name, spec.alias])
            .collect();
        names.retain(|name| !name.is_empty());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn aliases_are_found() {
        assert_eq!(find("readwrite").map(|spec| spec.name), Some("rw"));
        assert_eq!(find("timeout").map(|spec| spec.name), Some("runtime"));
        assert!(find("sizee").is_none());
    }
}
