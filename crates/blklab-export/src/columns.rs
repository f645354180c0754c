// SPDX-License-Identifier: MIT OR Apache-2.0
//! Columns of tables: a name, what it holds, and how it is taken from a row.

use blklab_trace::Rwbs;
use blklab_types::{Dev, Time};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, below 2⁶³.
    Number,
    /// Text.
    Text,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// There is none.
    Absent,
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
    /// A device, as `8,0`.
    Device(Dev),
    /// blkparse's letters for direction and flags.
    Letters(Rwbs),
}

impl From<u64> for Value<'_> {
    fn from(n: u64) -> Self {
        Value::Number(n)
    }
}

impl From<Time> for Value<'_> {
    fn from(time: Time) -> Self {
        Value::Number(time.0)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Absent, Into::into)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

/// A column of rows of the type `R`.
pub struct Column<R> {
    /// Its name; times end in `_ns`.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether rows may have no value in it.
    pub is_optional: bool,
    /// What it means.
    pub help: &'static str,
    pub(crate) get: for<'a> fn(&'a R) -> Value<'a>,
}

impl<R> std::fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl<R> Column<R> {
    /// A number that every row has.
    pub(crate) const fn number(
        name: &'static str,
        help: &'static str,
        get: for<'a> fn(&'a R) -> Value<'a>,
    ) -> Column<R> {
        Column {
            name,
            kind: Kind::Number,
            is_optional: false,
            help,
            get,
        }
    }

    /// A text that every row has.
    pub(crate) const fn text(
        name: &'static str,
        help: &'static str,
        get: for<'a> fn(&'a R) -> Value<'a>,
    ) -> Column<R> {
        Column {
            kind: Kind::Text,
            ..Column::number(name, help, get)
        }
    }

    /// A column that a row may leave empty.
    pub(crate) const fn optional(self) -> Column<R> {
        Column {
            is_optional: true,
            ..self
        }
    }
}

/// A value as text; nothing where there is none.
pub(crate) fn shown<'a>(value: Value<'a>, buf: &'a mut String) -> &'a str {
    use std::fmt::Write as _;
    buf.clear();
    // Writing to a string cannot fail.
    let _ = match value {
        Value::Absent => Ok(()),
        Value::Text(text) => return text,
        Value::Number(n) => write!(buf, "{n}"),
        Value::Device(dev) => write!(buf, "{dev}"),
        Value::Letters(rwbs) => write!(buf, "{rwbs}"),
    };
    buf
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;
    use blklab_types::Dev;

    #[test]
    fn values_as_text() {
        let check = |value, expected: &str| assert_eq!(shown(value, &mut String::new()), expected);
        check(Value::Absent, "");
        check(Value::Number(u64::MAX), "18446744073709551615");
        check(
            Value::Device(Dev {
                major: 259,
                minor: 1,
            }),
            "259,1",
        );
        check(Value::Letters(Rwbs::WRITE.with(Rwbs::SYNC)), "WS");
    }
}
