// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of devices: one table describes a parameter for the parser, the
//! help text and the documentation alike.
//!
//! The last word of a name is the unit of a plain number; a suffix on the value
//! says otherwise: `read_ns=2000000` and `read_ns=2ms` are the same. Decimal
//! numbers are read exactly, without going through a float, except for the
//! dimensionless [`Kind::Real`].

use crate::error::DeviceError;
use blklab_types::{Unit, nearest_name};
use std::fmt;

/// One parameter of a device.
#[derive(Clone, Copy, Debug)]
pub struct ParamInfo {
    /// Name, in lower case with underscores; the last word is the unit.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What a plain number counts.
    pub unit: Unit,
    /// Value if not given, as text; empty if it follows from others, as the
    /// help says.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// Of a parameter in microseconds, up to ten seconds.
pub(crate) const TIME_US: Kind = Kind::Time {
    unit_ns: 1_000,
    max_ns: 10_000_000_000,
};

/// A row of a table of parameters. Numbers that are no times and no sizes are plain
/// ones, if [`in_unit`](ParamInfo::in_unit) does not say more.
pub(crate) const fn param(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> ParamInfo {
    ParamInfo {
        name,
        kind,
        unit: kind.unit(),
        default,
        help,
    }
}

impl ParamInfo {
    /// The same, of numbers that count this.
    pub(crate) const fn in_unit(mut self, unit: Unit) -> ParamInfo {
        assert!(
            matches!(self.kind, Kind::Count { .. } | Kind::Real { .. }),
            "times and sizes say themselves what they count"
        );
        self.unit = unit;
        self
    }

    /// What it takes, in words, as in error messages and help.
    pub fn takes(&self) -> String {
        match self.kind {
            Kind::Count { .. } | Kind::Real { .. } if self.unit != Unit::Count => {
                format!("{} {}", self.kind, self.unit)
            }
            kind => kind.to_string(),
        }
    }
}

/// What values a parameter takes, with its range in the base unit.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A time; a plain number counts `unit_ns` nanoseconds. Suffixes ns, us,
    /// ms, s.
    Time {
        /// Nanoseconds in the unit of a plain number.
        unit_ns: u64,
        /// Largest value in nanoseconds.
        max_ns: u64,
    },
    /// A number of sectors, or of bytes with a suffix (B, kB, KiB, MB, MiB …).
    Sectors {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A number of bytes. Suffixes as for sectors.
    Bytes {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A whole number.
    Count {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A decimal number.
    Real {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// One of a list of words.
    Choice(&'static [&'static str]),
    /// `on` or `off` (also 1, 0, true, false, yes, no).
    Switch,
    /// The path of a file.
    Path,
    /// Free text with a grammar of its own; the help describes it.
    Text,
}

impl Kind {
    /// What a plain number of the kind counts.
    const fn unit(self) -> Unit {
        match self {
            Kind::Time { unit_ns, .. } => unit_of_time(unit_ns),
            Kind::Sectors { .. } => Unit::Sectors,
            Kind::Bytes { .. } => Unit::Bytes,
            Kind::Count { .. }
            | Kind::Real { .. }
            | Kind::Choice(_)
            | Kind::Switch
            | Kind::Path
            | Kind::Text => Unit::Count,
        }
    }
}

impl fmt::Display for Kind {
    /// The range in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Kind::Time { unit_ns, max_ns } => {
                let (unit, max_s) = (unit_of_time(unit_ns), max_ns / 1_000_000_000);
                write!(
                    f,
                    "a time from 0 to {max_s}s (plain numbers are {unit}; or ns, us, ms, s)"
                )
            }
            Kind::Sectors { min, max } => {
                write!(
                    f,
                    "{min} to {max} sectors (or bytes with B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)"
                )
            }
            Kind::Bytes { min, max } => {
                write!(
                    f,
                    "{min} to {max} bytes (suffixes B, kB, KiB, MB, MiB, GB, GiB, TB, TiB)"
                )
            }
            Kind::Count { min, max } => write!(f, "a whole number from {min} to {max}"),
            Kind::Real { min, max } => write!(f, "a number from {min} to {max}"),
            Kind::Choice(list) => write!(f, "one of {}", list.join(", ")),
            Kind::Switch => f.write_str("on or off"),
            Kind::Path => f.write_str("the path of a file"),
            Kind::Text => f.write_str("text"),
        }
    }
}

const fn unit_of_time(unit_ns: u64) -> Unit {
    match unit_ns {
        1 => Unit::Ns,
        1_000 => Unit::Us,
        1_000_000 => Unit::Ms,
        _ => Unit::S,
    }
}

/// Sizes by suffix, in bytes.
const SIZES: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("kib", 1 << 10),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
];

/// Times by suffix, in nanoseconds.
const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
];

/// A value in its base unit.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// Nanoseconds, sectors, bytes, a count, the place in a list, 0 or 1.
    Int(u64),
    Real(f64),
    Text(String),
    /// Not given, and without a default of its own.
    Absent,
}

/// The checked parameters of one device.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    device: &'static str,
    table: &'static [ParamInfo],
    values: Vec<Value>,
}

impl Values {
    /// Reads `given` over the `preset` over the defaults of the `table`.
    pub(crate) fn parse(
        device: &'static str,
        table: &'static [ParamInfo],
        preset: &[(&str, &str)],
        given: &[(String, String)],
    ) -> Result<Values, DeviceError> {
        let mut values = Vec::with_capacity(table.len());
        for param in table {
            let default = preset.iter().find(|(name, _)| *name == param.name);
            values.push(match default.map_or(param.default, |(_, value)| value) {
                "" => Value::Absent,
                text => parse_value(device, param, text)?,
            });
        }
        let mut seen = vec![false; table.len()];
        for (name, text) in given {
            let Some(i) = table.iter().position(|p| p.name == name) else {
                return Err(DeviceError::UnknownParam {
                    device,
                    param: name.clone(),
                    nearest: nearest_name(name, table.iter().map(|p| p.name)),
                    known: table.iter().map(|p| p.name).collect(),
                });
            };
            if std::mem::replace(&mut seen[i], true) {
                return Err(DeviceError::RepeatedParam {
                    device,
                    param: table[i].name,
                });
            }
            values[i] = parse_value(device, &table[i], text)?;
        }
        Ok(Values {
            device,
            table,
            values,
        })
    }

    /// A parameter of the table. That there is one is up to the code of the
    /// device: no input names parameters here.
    fn value(&self, name: &str) -> &Value {
        match self.table.iter().position(|p| p.name == name) {
            Some(i) => &self.values[i],
            None => panic!("device {} has no parameter {name}", self.device),
        }
    }

    /// Somebody asks for another kind of value than the table says.
    fn misread(&self, name: &str, as_what: &str) -> ! {
        panic!("parameter {name} of device {} is no {as_what}", self.device)
    }

    /// The device these belong to.
    pub(crate) fn device(&self) -> &'static str {
        self.device
    }

    /// A time, size, count or place in a list; `None` if it was left open.
    pub(crate) fn opt(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Int(v) => Some(*v),
            Value::Absent => None,
            Value::Real(_) | Value::Text(_) => self.misread(name, "whole number"),
        }
    }

    /// A time, size, count or place in a list that has a default.
    pub(crate) fn int(&self, name: &str) -> u64 {
        let value = self.opt(name);
        value.unwrap_or_else(|| self.misread(name, "whole number with a default"))
    }

    /// A count, as the type its range guarantees.
    pub(crate) fn count(&self, name: &str) -> u32 {
        u32::try_from(self.int(name)).expect("the range of a count fits 32 bits")
    }

    /// Whether a switch is on.
    pub(crate) fn on(&self, name: &str) -> bool {
        self.int(name) != 0
    }

    /// A decimal number.
    pub(crate) fn real(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Real(v) => *v,
            _ => self.misread(name, "decimal number with a default"),
        }
    }

    /// A decimal number; `None` if it was left open.
    pub(crate) fn opt_real(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Value::Real(v) => Some(*v),
            Value::Absent => None,
            Value::Int(_) | Value::Text(_) => self.misread(name, "decimal number"),
        }
    }

    /// Free text; empty if not given.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(t) => t,
            Value::Absent => "",
            Value::Int(_) | Value::Real(_) => self.misread(name, "text"),
        }
    }

    /// An error about a value that passed the table's check.
    pub(crate) fn bad(&self, name: &'static str, expected: String) -> DeviceError {
        let value = match self.value(name) {
            Value::Int(v) => v.to_string(),
            Value::Real(v) => v.to_string(),
            Value::Text(t) => t.clone(),
            Value::Absent => String::new(),
        };
        DeviceError::BadValue {
            device: self.device,
            param: name,
            value,
            expected,
        }
    }
}

fn parse_value(
    device: &'static str,
    param: &'static ParamInfo,
    text: &str,
) -> Result<Value, DeviceError> {
    parse_kind(param.kind, text.trim()).ok_or_else(|| DeviceError::BadValue {
        device,
        param: param.name,
        value: text.to_owned(),
        expected: param.takes(),
    })
}

fn parse_kind(kind: Kind, text: &str) -> Option<Value> {
    let within = |v: u64, min: u64, max: u64| (min..=max).contains(&v).then_some(Value::Int(v));
    match kind {
        Kind::Time { unit_ns, max_ns } => within(scaled(text, unit_ns, TIMES)?, 0, max_ns),
        Kind::Bytes { min, max } => within(scaled(text, 1, SIZES)?, min, max),
        Kind::Sectors { min, max } if text.ends_with(|c: char| c.is_ascii_alphabetic()) => within(
            scaled(text, 1, SIZES)? / blklab_types::SECTOR_BYTES,
            min,
            max,
        ),
        Kind::Sectors { min, max } | Kind::Count { min, max } => {
            within(scaled(text, 1, &[])?, min, max)
        }
        Kind::Real { min, max } => {
            let v: f64 = text.parse().ok()?;
            (v >= min && v <= max).then_some(Value::Real(v))
        }
        Kind::Choice(list) => {
            let i = list
                .iter()
                .position(|word| word.eq_ignore_ascii_case(text))?;
            Some(Value::Int(i as u64))
        }
        Kind::Switch => match text {
            "on" | "1" | "true" | "yes" => Some(Value::Int(1)),
            "off" | "0" | "false" | "no" => Some(Value::Int(0)),
            _ => None,
        },
        Kind::Path if text.is_empty() => None,
        Kind::Text | Kind::Path => Some(Value::Text(text.to_owned())),
    }
}

/// A time of a list, in ns; a plain number counts nanoseconds.
pub(crate) fn parse_time_ns(text: &str) -> Option<u64> {
    scaled(text, 1, TIMES)
}

/// A decimal number with an optional suffix, in base units; what it says must
/// be a whole number of them.
fn scaled(text: &str, plain: u64, suffixes: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, suffix) = text.split_at(digits.unwrap_or(text.len()));
    let suffix = suffix.trim();
    let unit = if suffix.is_empty() {
        plain
    } else {
        suffixes
            .iter()
            .find(|(s, _)| s.eq_ignore_ascii_case(suffix))?
            .1
    };
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 15 || whole.len() > 20 {
        return None;
    }
    let value: u128 = format!("0{whole}{fraction}").parse().ok()?;
    let product = value.checked_mul(u128::from(unit))?;
    let divisor = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    if !product.is_multiple_of(divisor) {
        return None;
    }
    u64::try_from(product / divisor).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        let ms = |t| scaled(t, 1_000_000, TIMES);
        assert_eq!(ms("0.8"), Some(800_000));
        assert_eq!(ms("8.5ms"), Some(8_500_000));
        assert_eq!(ms("150 us"), Some(150_000));
        assert_eq!(ms("1s"), Some(1_000_000_000));
        assert_eq!(ms(".5"), Some(500_000));
        assert_eq!(ms("0.0000001"), None, "a tenth of a nanosecond");
        assert_eq!(
            scaled("99999999999999999999.999999999999999 TB", 1, SIZES),
            None
        );
        for bad in ["", ".", "-1", "1 h", "1e3", "1.2.3", "1KiB"] {
            assert_eq!(ms(bad), None, "{bad:?}");
        }
        assert_eq!(scaled("16MiB", 1, SIZES), Some(16 << 20));
        assert_eq!(scaled("1.5 kB", 1, SIZES), Some(1500));
        assert_eq!(scaled("976_773_168", 1, &[]), Some(976_773_168));
    }

    const TABLE: &[ParamInfo] = &[
        param("jobs", Kind::Count { min: 0, max: 9 }, "3", ""),
        param("rate", Kind::Real { min: 0.0, max: 1.0 }, "0.5", ""),
        param("open", Kind::Count { min: 0, max: 9 }, "", ""),
        param("note", Kind::Text, "", ""),
    ];

    fn values() -> Values {
        Values::parse("test", TABLE, &[], &[]).expect("defaults")
    }

    #[test]
    fn values_are_what_the_table_says() {
        let v = values();
        assert_eq!(
            (v.int("jobs"), v.real("rate"), v.text("note")),
            (3, 0.5, "")
        );
        assert_eq!((v.opt("jobs"), v.opt("open")), (Some(3), None));
    }

    #[test]
    #[should_panic(expected = "device test has no parameter jbos")]
    fn a_mistyped_name_is_not_answered() {
        values().opt("jbos");
    }

    #[test]
    #[should_panic(expected = "device test has no parameter raet")]
    fn nor_a_mistyped_decimal_one() {
        values().real("raet");
    }

    #[test]
    #[should_panic(expected = "parameter jobs of device test is no decimal number")]
    fn a_count_is_not_read_as_a_decimal_number() {
        values().real("jobs");
    }

    #[test]
    #[should_panic(expected = "parameter open of device test is no whole number with a default")]
    fn what_is_left_open_has_no_value() {
        values().int("open");
    }

    #[test]
    fn sectors_may_be_given_in_bytes() {
        let kind = Kind::Sectors {
            min: 1,
            max: 1 << 40,
        };
        assert_eq!(parse_kind(kind, "4KiB"), Some(Value::Int(8)));
        assert_eq!(parse_kind(kind, "8"), Some(Value::Int(8)));
        assert_eq!(parse_kind(kind, "0"), None);
    }
}
