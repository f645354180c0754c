// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the files lie on: names and options of filesystems, checked.
//!
//! Values stay text here; who builds the filesystem gives them their types.

use crate::{Experiment, ExperimentError, no_such};
use blklab_types::shown;
use std::fmt;

/// Options of btrfs, of whatever time.
const BTRFS: &[&str] = &[
    "metadata",
    "nodesize",
    "max_inline",
    "commit_s",
    "metadata_dirty_mib",
    "kept_back_percent",
    "log_tree",
    "barrier",
    "atime",
];

/// Filesystems, and the options that each takes.
pub const FILESYSTEMS: &[(&str, &[&str])] = &[
    ("extents", &[]),
    (
        "ext2",
        &[
            "inode_size",
            "inode_ratio",
            "dir_index",
            "atime",
            "directory_group",
            "creator_pid",
        ],
    ),
    (
        "ext3",
        &[
            "data",
            "barrier",
            "inode_size",
            "inode_ratio",
            "dir_index",
            "journal_blocks",
            "commit_s",
            "atime",
            "jbd_commit_sync",
            "directory_group",
            "creator_pid",
        ],
    ),
    (
        "ext4",
        &[
            "data",
            "barrier",
            "inode_size",
            "journal_blocks",
            "commit_s",
            "atime",
            "delalloc",
            "auto_da_alloc",
            "inode_readahead_blks",
        ],
    ),
    ("btrfs", BTRFS),
    ("btrfs-0.16", BTRFS),
    ("btrfs-unstable", BTRFS),
    (
        "nilfs2",
        &[
            "interval_s",
            "watermark_blocks",
            "super_root_s",
            "reserved_percent",
            "cleaner",
            "cleaning_interval_s",
            "segments_per_clean",
            "protection_s",
            "barrier",
            "atime",
        ],
    ),
    (
        "reiserfs",
        &["data", "tails", "barrier", "atime", "max_age_s"],
    ),
    (
        "xfs",
        &[
            "barrier",
            "logbufs",
            "logbsize",
            "log_blocks",
            "agcount",
            "log_memory",
            "lazy_count",
            "delaylog",
            "atime",
        ],
    ),
    ("ntfs-3g", &["big_writes", "noatime", "timeout_ms"]),
];

/// Values of options that are words.
const WORDS: &[(&str, &[&str])] = &[
    ("data", &["ordered", "writeback", "journal"]),
    ("atime", &["strict", "relative", "never"]),
    ("jbd_commit_sync", &["never", "always", "when_waited"]),
    ("inode_size", &["128", "256"]),
    ("barrier", &["0", "1"]),
    ("delalloc", &["0", "1"]),
    ("auto_da_alloc", &["0", "1"]),
    (
        "inode_readahead_blks",
        &["0", "1", "2", "4", "8", "16", "32", "64", "128", "256"],
    ),
    ("dir_index", &["0", "1"]),
    ("cleaner", &["0", "1"]),
    ("metadata", &["dup", "single"]),
    ("nodesize", &["4096", "8192", "16384", "32768", "65536"]),
    ("log_tree", &["0", "1"]),
    ("tails", &["on", "small", "off"]),
    ("logbsize", &["16384", "32768", "65536", "131072", "262144"]),
    ("log_memory", &["contiguous", "pages"]),
    ("lazy_count", &["0", "1"]),
    ("delaylog", &["0", "1"]),
    ("big_writes", &["0", "1"]),
    ("noatime", &["0", "1"]),
];

/// Ranges of options that are numbers.
const NUMBERS: &[(&str, u64, u64)] = &[
    ("journal_blocks", 1024, 10_240_000),
    ("inode_ratio", 1024, 67_108_864),
    ("commit_s", 1, 3600),
    ("max_age_s", 1, 3600),
    ("timeout_ms", 0, 3_600_000),
    ("directory_group", 0, 131_071),
    ("creator_pid", 0, 4_194_304),
    ("max_inline", 0, 3949),
    ("metadata_dirty_mib", 1, 1_048_576),
    ("kept_back_percent", 0, 99),
    ("interval_s", 1, 3600),
    ("watermark_blocks", 1, 1_048_576),
    ("super_root_s", 1, 3600),
    ("reserved_percent", 1, 49),
    ("cleaning_interval_s", 1, 3600),
    ("segments_per_clean", 1, 32),
    ("protection_s", 0, 31_536_000),
    ("logbufs", 2, 8),
    ("log_blocks", 512, 524_288),
    ("agcount", 1, 65_536),
];

/// What an option of a filesystem takes, in words.
pub fn option_values(key: &str) -> String {
    let words = WORDS.iter().find(|(k, _)| *k == key);
    let numbers = NUMBERS.iter().find(|(k, ..)| *k == key);
    match (words, numbers) {
        (Some((_, words)), _) => words.join(", "),
        (None, Some((_, low, high))) => format!("{low} to {high}"),
        (None, None) => String::new(),
    }
}

/// A filesystem and the options that differ from its defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesystemSpec {
    /// One of [`FILESYSTEMS`].
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
        let Some((_, known)) = FILESYSTEMS.iter().find(|(n, _)| *n == name) else {
            let names: Vec<&str> = FILESYSTEMS.iter().map(|f| f.0).collect();
            return Err(fail(no_such("filesystem", name, &names)));
        };
        for (key, value) in &options {
            if !known.contains(&key.as_str()) {
                return Err(fail(if known.is_empty() {
                    format!("{name} has no options, and so no '{}'", shown(key))
                } else {
                    no_such(&format!("option of {name}"), key, known)
                }));
            }
            check_value(key, value)?;
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

fn check_value(key: &str, value: &str) -> Result<(), ExperimentError> {
    if let Some((_, words)) = WORDS.iter().find(|(k, _)| *k == key)
        && !words.contains(&value)
    {
        let words = words.join(", ");
        return Err(fail(format!(
            "{key}={}: expected one of {words}",
            shown(value)
        )));
    }
    if let Some((_, low, high)) = NUMBERS.iter().find(|(k, ..)| *k == key)
        && !value
            .parse()
            .is_ok_and(|n: u64| (*low..=*high).contains(&n))
    {
        return Err(fail(format!(
            "{key}={}: expected a number from {low} to {high}",
            shown(value)
        )));
    }
    Ok(())
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
