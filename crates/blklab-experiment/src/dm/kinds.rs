// SPDX-License-Identifier: MIT OR Apache-2.0
//! What devices of device mapper do, and their parameters.
//!
//! Source: Documentation/admin-guide/device-mapper, 6.12.

use blklab_types::shown;

/// What a device of device mapper does: a target, as device mapper calls it.
#[derive(Debug, PartialEq, Eq)]
pub struct DmKind {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What may be chosen of it.
    pub params: &'static [DmParam],
}

/// A parameter.
#[derive(Debug, PartialEq, Eq)]
pub struct DmParam {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: DmTakes,
    /// What holds where nothing is said.
    pub default: &'static str,
    /// What it is, in a line.
    pub help: &'static str,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmTakes {
    /// 0 or 1.
    Flag,
    /// A number of this range.
    Number(u64, u64),
    /// A multiple of the first number up to the second.
    Multiple(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// The name of a device of the catalogue.
    Device,
}

impl DmTakes {
    /// In words.
    pub fn words(self) -> String {
        match self {
            DmTakes::Flag => "0 or 1".to_owned(),
            DmTakes::Number(low, high) => format!("a number from {low} to {high}"),
            DmTakes::Multiple(step, high) => format!("a multiple of {step} up to {high}"),
            DmTakes::Words(words) => format!("one of {}", words.join(", ")),
            DmTakes::Device => "the name of a device".to_owned(),
        }
    }

    fn takes(self, value: &str) -> bool {
        let number = value.parse::<u64>().ok();
        match self {
            DmTakes::Flag => matches!(value, "0" | "1"),
            DmTakes::Number(low, high) => number.is_some_and(|n| (low..=high).contains(&n)),
            DmTakes::Multiple(step, high) => {
                number.is_some_and(|n| n > 0 && n <= high && n % step == 0)
            }
            DmTakes::Words(words) => words.contains(&value),
            DmTakes::Device => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                !value.is_empty() && value.chars().all(is_plain)
            }
        }
    }
}

impl DmParam {
    /// The value of a text.
    ///
    /// # Errors
    /// What is wrong, if it takes no such text.
    pub(super) fn check(&self, value: &str) -> Result<String, String> {
        let value = match (self.takes, value) {
            (DmTakes::Flag, "true") => "1",
            (DmTakes::Flag, "false") => "0",
            (_, value) => value,
        };
        if self.takes.takes(value) {
            return Ok(match value.parse::<u64>() {
                Ok(n) => n.to_string(),
                Err(_) => value.to_owned(),
            });
        }
        Err(format!(
            "{}={}: expected {}",
            self.name,
            shown(value),
            self.takes.words()
        ))
    }
}

impl DmKind {
    /// Whether it has a second, faster device.
    pub fn has_fast_device(&self) -> bool {
        self.params.iter().any(|p| p.name == FAST)
    }
}

/// The parameter that names the device of a cache.
pub(super) const FAST: &str = "fast";

const fn param(
    name: &'static str,
    takes: DmTakes,
    default: &'static str,
    help: &'static str,
) -> DmParam {
    DmParam {
        name,
        takes,
        default,
        help,
    }
}

const fn flag(name: &'static str, help: &'static str) -> DmParam {
    param(name, DmTakes::Flag, "0", help)
}

/// All kinds.
pub static DM_KINDS: &[DmKind] = &[
    DmKind {
        name: "linear",
        help: "disks one behind the other",
        params: &[param("disks", DmTakes::Number(1, 16), "1", "how many")],
    },
    DmKind {
        name: "striped",
        help: "chunk after chunk on one disk after the other",
        params: &[
            param("disks", DmTakes::Number(1, 16), "2", "how many"),
            param(
                "chunk_kb",
                DmTakes::Multiple(4, 65_536),
                "64",
                "length of a chunk",
            ),
        ],
    },
    DmKind {
        name: "crypt",
        help: "encryption with aes-xts-plain64",
        params: &[
            param(
                "key_bits",
                DmTakes::Words(&["256", "512"]),
                "512",
                "length of the key, of which each of the two of xts is half",
            ),
            param(
                "sector_size",
                DmTakes::Words(&["512", "1024", "2048", "4096"]),
                "512",
                "bytes that are encrypted at a time",
            ),
            flag("no_read_workqueue", "reads are decrypted where they end"),
            flag(
                "no_write_workqueue",
                "writes are encrypted where they are submitted",
            ),
            flag(
                "same_cpu_crypt",
                "encryption stays on the processor of its I/O",
            ),
            flag(
                "submit_from_crypt_cpus",
                "writes are not sorted by a thread of their own",
            ),
            flag(
                "high_priority",
                "workqueues and threads go first, from 6.11 on",
            ),
            flag("allow_discards", "discards are passed on"),
        ],
    },
    DmKind {
        name: "thin",
        help: "a thin volume of the size of its pool, with nothing written yet",
        params: &[
            param(
                "chunk_kb",
                DmTakes::Multiple(64, 1_048_576),
                "64",
                "what is provisioned at a time",
            ),
            param(
                "metadata_mb",
                DmTakes::Number(2, 16_000),
                "1024",
                "room for metadata, at the end of the disk",
            ),
            flag(
                "skip_block_zeroing",
                "what is provisioned is not zeroed first",
            ),
            flag("ignore_discard", "discards are refused"),
            flag("no_discard_passdown", "discards end at the pool"),
        ],
    },
    DmKind {
        name: "delay",
        help: "everything waits for a time first",
        params: &[
            param("read_ms", DmTakes::Number(0, 60_000), "10", "of reads"),
            param("write_ms", DmTakes::Number(0, 60_000), "10", "of writes"),
            param("flush_ms", DmTakes::Number(0, 60_000), "10", "of flushes"),
        ],
    },
    DmKind {
        name: "snapshot",
        help: "a snapshot of the disk or, beside one, the disk itself",
        params: &[
            param(
                "of",
                DmTakes::Words(&["origin", "snapshot"]),
                "origin",
                "what jobs use: the disk, whose old chunks are copied, or the snapshot",
            ),
            param(
                "chunk_kb",
                DmTakes::Words(&["4", "8", "16", "32", "64", "128", "256", "512", "1024"]),
                "16",
                "what is copied at a time",
            ),
            param(
                "cow_percent",
                DmTakes::Number(1, 90),
                "20",
                "part of the disk, at its end, that copies go to",
            ),
            param("persistent", DmTakes::Flag, "1", "it outlives a restart"),
        ],
    },
    DmKind {
        name: "cache",
        help: "a fast device holds what is used most",
        params: &[
            param(FAST, DmTakes::Device, "nvme-consumer", "the fast device"),
            param(
                "mode",
                DmTakes::Words(&["writethrough", "writeback", "passthrough"]),
                "writethrough",
                "whether writes end when the fast device has them",
            ),
            param(
                "size_mb",
                DmTakes::Number(1, 1_048_576),
                "1024",
                "what the fast device holds",
            ),
            param(
                "chunk_kb",
                DmTakes::Multiple(32, 1_048_576),
                "64",
                "what goes to the fast device and back at a time",
            ),
            param(
                "migration_threshold",
                DmTakes::Number(0, 1_073_741_824),
                "2048",
                "sectors that move at the same time",
            ),
        ],
    },
    DmKind {
        name: "writecache",
        help: "writes end when a fast device has them",
        params: &[
            param(FAST, DmTakes::Device, "nvme-consumer", "the fast device"),
            param(
                "size_mb",
                DmTakes::Number(1, 1_048_576),
                "1024",
                "length of what the fast device gives",
            ),
            param(
                "block_size",
                DmTakes::Words(&["512", "1024", "2048", "4096"]),
                "4096",
                "bytes that are held at a time",
            ),
            param(
                "high_watermark",
                DmTakes::Number(0, 100),
                "50",
                "percent in use at which writing back begins",
            ),
            param(
                "low_watermark",
                DmTakes::Number(0, 100),
                "45",
                "percent in use at which it ends",
            ),
            param(
                "autocommit_ms",
                DmTakes::Number(1, 3_600_000),
                "1000",
                "after which writes are committed without a flush",
            ),
        ],
    },
    DmKind {
        name: "flakey",
        help: "a disk that fails for some seconds again and again",
        params: &[
            param("up_s", DmTakes::Number(0, 100_000), "5", "it works so long"),
            param(
                "down_s",
                DmTakes::Number(0, 100_000),
                "1",
                "then it fails so long",
            ),
            param(
                "feature",
                DmTakes::Words(&["none", "drop_writes", "error_writes", "error_reads"]),
                "none",
                "what fails: none, everything",
            ),
        ],
    },
    DmKind {
        name: "loop",
        help: "a loop device (losetup, not device mapper) on what is below or a file there",
        params: &[
            param(
                "fs",
                DmTakes::Words(&["none", "ext4", "xfs"]),
                "none",
                "the filesystem of its file; none: it is on what is below itself",
            ),
            param(
                "size_mb",
                DmTakes::Number(1, 1_048_576),
                "1024",
                "length of the file, which has been written before the run",
            ),
            flag("direct_io", "it goes past the page cache of what is below"),
            param(
                "sector_size",
                DmTakes::Words(&["512", "1024", "2048", "4096"]),
                "512",
                "its logical blocks",
            ),
        ],
    },
];
