// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the files lie on: names and options of filesystems, checked.
//!
//! Values stay text here; who builds the filesystem gives them their types.

use crate::settings::Setting;
use crate::{Catalogue, Experiment};
use blklab_types::shown;
use blklab_types::{Error, no_such};
use std::fmt;

/// A filesystem and the options that differ from its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesystemSpec {
    /// One of those of the catalogue.
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

fn fail(what: String) -> Error {
    Error::new(what).about("filesystem")
}

impl FilesystemSpec {
    /// Checks names and values.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn new(
        name: &str,
        options: Vec<(String, String)>,
        catalogue: &Catalogue,
    ) -> Result<FilesystemSpec, Error> {
        let Some(rows) = catalogue.filesystem_rows(name) else {
            let names = catalogue.filesystems();
            return Err(fail(no_such("filesystem", name, &names)));
        };
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
    pub fn parse(text: &str, catalogue: &Catalogue) -> Result<FilesystemSpec, Error> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let options = parts.map(|part| match part.split_once('=') {
            Some((k, v)) => Ok((k.trim().to_owned(), v.trim().to_owned())),
            None => Err(fail(format!(
                "filesystem={}: expected key=value after the name, as in ext3:data=writeback",
                shown(text)
            ))),
        });
        FilesystemSpec::new(name, options.collect::<Result<_, _>>()?, catalogue)
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
    pub fn choose_filesystem(&mut self, text: &str, catalogue: &Catalogue) -> Result<(), Error> {
        self.filesystem = FilesystemSpec::parse(text, catalogue)?;
        Ok(())
    }
}
