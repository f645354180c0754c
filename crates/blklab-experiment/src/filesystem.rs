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

/// Filesystems that real kernels have and no model is of: how they are chosen, and what
/// they are.
pub const OF_KERNELS: &[(&str, &str)] = &[
    ("f2fs", "F2FS: logs for flash drives"),
    ("jfs", "JFS: extents and a journal of metadata"),
    (
        "bcachefs",
        "bcachefs: copy on write, buckets; Linux 6.7 to 6.17",
    ),
    ("ntfs3", "NTFS in the kernel"),
    ("exfat", "exFAT: no journal"),
    (
        "vfat",
        "FAT with long names: no journal, files of 4 GiB at most",
    ),
    ("udf", "UDF: no journal"),
];

/// The option that has more words for the mount of a real kernel.
pub const MOUNT_WORDS: &str = "mount";
/// The option that has more words for the program that makes its filesystem.
pub const MAKE_WORDS: &str = "mkfs";

impl Catalogue {
    /// All options of a filesystem, of a model or of a real kernel; none if there is none
    /// of that name.
    pub(crate) fn mount_rows(&self, name: &str) -> Option<Vec<Setting>> {
        let of_kernel = OF_KERNELS.iter().any(|(known, _)| *known == name);
        let rows = self.filesystem_rows(name);
        let mut rows = rows.or_else(|| of_kernel.then(Vec::new))?;
        if name != FilesystemSpec::default().name {
            rows.extend([
                Setting::words_of_kernel(MOUNT_WORDS, "options of the mount; real kernels alone"),
                Setting::words_of_kernel(MAKE_WORDS, "options of mkfs; real kernels alone"),
            ]);
        }
        Some(rows)
    }
}

impl FilesystemSpec {
    /// Refuses what no model has.
    ///
    /// # Errors
    /// If it, or an option of it, is for real kernels alone.
    pub fn check_modelled(&self) -> Result<(), Error> {
        let not_modelled = |what: &str, key: String| {
            let what = format!("{what} is not modelled; the target kernel has it");
            Err(Error::not_modelled(what).about(key))
        };
        let name = &self.name;
        if OF_KERNELS.iter().any(|(known, _)| known == name) {
            return not_modelled(&format!("the filesystem {name}"), "filesystem".to_owned());
        }
        for key in [MOUNT_WORDS, MAKE_WORDS] {
            if self.option(key).is_some() {
                return not_modelled(&format!("{key} of {name}"), format!("filesystem.{key}"));
            }
        }
        Ok(())
    }
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
        let Some(rows) = catalogue.mount_rows(name) else {
            let of_kernels = OF_KERNELS.iter().map(|(name, _)| *name);
            let names: Vec<&str> = catalogue
                .filesystems()
                .into_iter()
                .chain(of_kernels)
                .collect();
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
