// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the files lie on: names and options of filesystems, checked.
//!
//! Values stay text here; who builds the filesystem gives them their types.

use crate::settings::{Setting, filesystem_rows};
use crate::{Experiment, ExperimentError, no_such};
use blklab_types::shown;
use std::fmt;

/// A filesystem and the options that differ from its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesystemSpec {
    /// One of [`blklab_fs::ALL`].
    pub name: String,
    /// Options in order.
    pub options: Vec<(String, String)>,
}

impl Default for FilesystemSpec {
    fn default() -> FilesystemSpec {
        FilesystemSpec {
            name: "extents".to_owned(),
            options: Vec::new(),
        }
    }
}

/// As [`FilesystemSpec::parse`] reads it.
impl fmt::Display for FilesystemSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let mut options = self.options.iter();
        options.try_for_each(|(key, value)| write!(f, ":{key}={value}"))
    }
}

fn fail(what: String) -> ExperimentError {
    ExperimentError::new(what).about("filesystem")
}

impl FilesystemSpec {
    /// Checks names and values.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn new(
        name: &str,
        options: Vec<(String, String)>,
    ) -> Result<FilesystemSpec, ExperimentError> {
        let Some(kind) = blklab_fs::find(name) else {
            let names: Vec<&str> = blklab_fs::ALL.iter().map(|kind| kind.name).collect();
            return Err(fail(no_such("filesystem", name, &names)));
        };
        let rows = filesystem_rows(kind);
        for (key, value) in &options {
            let Some(row) = rows.iter().find(|row| row.is_called(key)) else {
                return Err(fail(no_option(name, &rows, key)));
            };
            row.check_text(value)
                .map_err(|err| err.about("filesystem"))?;
            if let Some((_, other)) = options.iter().find(|(k, v)| k == key && v != value) {
                return Err(fail(format!("{key} has two values, {value} and {other}")));
            }
        }
        Ok(FilesystemSpec {
            name: name.to_owned(),
            options,
        })
    }

    /// `NAME` or `NAME:KEY=VALUE:KEY=VALUE`.
    ///
    /// # Errors
    /// As [`FilesystemSpec::new`].
    pub fn parse(text: &str) -> Result<FilesystemSpec, ExperimentError> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let options = parts.map(|part| match part.split_once('=') {
            Some((k, v)) => Ok((k.trim().to_owned(), v.trim().to_owned())),
            None => Err(fail(format!(
                "filesystem={}: expected key=value after the name, as in ext3:data=writeback",
                shown(text)
            ))),
        });
        FilesystemSpec::new(name, options.collect::<Result<_, _>>()?)
    }

    /// The value given to an option.
    pub fn option(&self, key: &str) -> Option<&str> {
        let found = self.options.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// The same for a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.option(key)?.parse().ok()
    }
}

fn no_option(filesystem: &str, rows: &[Setting], key: &str) -> String {
    if rows.is_empty() {
        return format!("{filesystem} has no options, and so no '{}'", shown(key));
    }
    let known: Vec<&str> = rows.iter().map(Setting::name).collect();
    no_such(&format!("option of {filesystem}"), key, &known)
}

impl Experiment {
    /// Chooses what the files lie on.
    ///
    /// # Errors
    /// As [`FilesystemSpec::new`].
    pub fn choose_filesystem(&mut self, text: &str) -> Result<(), ExperimentError> {
        self.filesystem = FilesystemSpec::parse(text)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_checked() {
        let spec = FilesystemSpec::parse("ext3:data=writeback:commit_s=30").unwrap();
        assert_eq!(spec.option("data"), Some("writeback"));
        assert_eq!(spec.number("commit_s"), Some(30));
        let fails = |text: &str, with: &str| {
            let e = FilesystemSpec::parse(text).unwrap_err().to_string();
            assert!(e.contains(with), "{e}");
        };
        fails("ext5", "did you mean 'ext2'? valid: extents, ext2, ext3");
        fails("extents:data=ordered", "extents has no options");
        fails("ext2:data=ordered", "no option of ext2 is called 'data'");
        fails(
            "ext3:data=both",
            "expected one of ordered, writeback, journal",
        );
        fails("ext3:commit_s=0", "expected a number from 1 to 3600");
        fails("ext3:inode_ratio=512", "expected a number from 1024");
        fails("ext3:data", "expected key=value");
    }
}
