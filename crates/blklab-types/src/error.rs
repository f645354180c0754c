// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one error that crosses crates: what kind it is, where it arose, and one line
//! that says what is wrong and what would be right.

use crate::visible;
use std::fmt;
use std::io;

/// A place in a text file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// The file's name as given.
    pub file: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            f.write_str(&self.file)
        } else {
            write!(f, "{}:{}", self.file, self.line)
        }
    }
}

/// What went wrong, for programs that decide by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file, key or value is wrong; the line says what would be right.
    #[default]
    BadInput,
    /// Nothing has the name that was given, and more have one than a line can list; the
    /// key says what kind of thing was meant.
    UnknownName,
    /// A file is not there.
    MissingFile,
    /// The input is right, and no model knows what it asks for.
    NotModelled,
    /// A target failed at a plan that it had accepted, or at the plan itself for a
    /// reason that is not in the input.
    TargetFailed,
    /// The caller asked for an end before the work was done.
    Interrupted,
}

impl From<io::ErrorKind> for ErrorKind {
    /// That of a file that cannot be read.
    fn from(kind: io::ErrorKind) -> ErrorKind {
        match kind {
            io::ErrorKind::NotFound => ErrorKind::MissingFile,
            _ => ErrorKind::BadInput,
        }
    }
}

/// Why something was refused or failed: one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Error {
    /// What kind of error it is.
    pub kind: ErrorKind,
    /// The file, or what else the text came from.
    pub file: Option<String>,
    /// Line in it, from 1.
    pub line: Option<usize>,
    /// The key that it is about, as `device.rpm`; empty if none.
    pub key: Box<str>,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl Error {
    /// Bad input, without a place.
    pub fn new(what: impl Into<String>) -> Error {
        Error {
            what: what.into(),
            ..Error::default()
        }
    }

    /// What is asked for is right, and is not modelled.
    pub fn not_modelled(what: impl Into<String>) -> Error {
        Error::new(what).of_kind(ErrorKind::NotModelled)
    }

    /// The caller asked for an end.
    pub fn interrupted() -> Error {
        Error::new("interrupted").of_kind(ErrorKind::Interrupted)
    }

    /// The same error, of another kind.
    #[must_use]
    pub fn of_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }

    /// The same error, with the words that say what it is part of before its line.
    #[must_use]
    pub fn within(mut self, whole: &str) -> Error {
        self.what = format!("{whole}: {}", self.what);
        self
    }

    /// The same error, about `key` unless it names one already.
    #[must_use]
    pub fn about(mut self, key: impl Into<Box<str>>) -> Error {
        if self.key.is_empty() {
            self.key = key.into();
        }
        self
    }

    /// The same error, at a place in a job file unless it names a file already.
    #[must_use]
    pub fn at(mut self, place: &Place) -> Error {
        if self.file.is_none() {
            self.file = Some(place.file.clone());
            self.line = (place.line > 0).then_some(place.line as usize);
        }
        self
    }

    /// The same error, on a line, from 1, unless it names one already.
    #[must_use]
    pub fn on_line(mut self, line: Option<u64>) -> Error {
        self.line = self.line.or(line.and_then(|n| usize::try_from(n).ok()));
        self
    }

    /// The same error, in `file` unless it names one already.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Error {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(&visible(file))?;
            f.write_str(":")?;
            if let Some(line) = self.line {
                write!(f, "{line}:")?;
            }
            f.write_str(" ")?;
        }
        // Names and values from files stand in messages: a line feed or an escape code in them
        // must not reach the terminal as such.
        f.write_str(&visible(&self.what))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::no_such;

    #[test]
    fn a_message_is_one_line_of_visible_characters() {
        let name = format!("a\n\u{1b}[31m{}", "x".repeat(100));
        let text = Error::new(no_such("key", &name, &["b"])).to_string();
        assert!(
            text.starts_with("no key is called 'a\\n\\u{1b}[31mxxx"),
            "{text}"
        );
        assert!(text.ends_with("x…'; valid: b"), "{text}");
    }

    #[test]
    fn errors_name_file_line_and_choice() {
        let mut e = Error::new(no_such("scheduler", "nop", &["noop", "cfq"]));
        e.line = Some(3);
        assert_eq!(
            e.in_file("a.toml").to_string(),
            "a.toml:3: no scheduler is called 'nop'; did you mean 'noop'? valid: noop, cfq"
        );
    }
}
