// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems: how this machine's programs make them, and with which words a kernel
//! mounts them as an experiment wants them.

use crate::build::{Built, find_program, path_in_machine};
use blklab_experiment::{Experiment, FilesystemSpec, MAKE_WORDS, MOUNT_WORDS};
use blklab_types::Error;

/// Where it is mounted; jobs run there.
pub(super) const MOUNTED_AT: &str = "/fs";

/// How an option of an experiment is said.
#[derive(Clone, Copy)]
enum Said {
    /// To the mount: `{}` stands for the value.
    Mount(&'static str),
    /// To the mount, in these words for these values; no word where nothing is to be
    /// said.
    Words(&'static [(&'static str, &'static str)]),
    /// To the program that makes it.
    Make(&'static str),
    /// To that program, in these words for these values.
    MakeWords(&'static [(&'static str, &'static str)]),
    /// To that program, as the size of a journal of so many blocks.
    Journal,
}

/// A filesystem.
pub(super) struct Kind {
    /// How it is chosen, which is the name under which it is mounted.
    name: &'static str,
    /// The name under which the kernel has it.
    pub(super) driver: &'static str,
    /// The option that builds it into a kernel.
    config: &'static str,
    /// What makes it, and its package in Debian.
    program: (&'static str, &'static str),
    /// What that is told always: not to discard, and not to ask.
    make: &'static [&'static str],
    /// What the mount is told always.
    mount: &'static [&'static str],
    options: &'static [(&'static str, Said)],
}

const ATIME: (&str, Said) = (
    "atime",
    Said::Words(&[
        ("strict", "strictatime"),
        ("relative", "relatime"),
        ("never", "noatime"),
    ]),
);
const DATA: (&str, Said) = ("data", Said::Mount("data={}"));
const BARRIER: (&str, Said) = ("barrier", Said::Mount("barrier={}"));
const COMMIT_S: (&str, Said) = ("commit_s", Said::Mount("commit={}"));
const INODE_SIZE: (&str, Said) = ("inode_size", Said::Make("-I {}"));
const INODE_RATIO: (&str, Said) = ("inode_ratio", Said::Make("-i {}"));
const DIR_INDEX: (&str, Said) = (
    "dir_index",
    Said::MakeWords(&[("0", "-O ^dir_index"), ("1", "-O dir_index")]),
);
const JOURNAL_BLOCKS: (&str, Said) = ("journal_blocks", Said::Journal);
/// Nothing is initialized in the background, neither by mke2fs nor by the kernel. Where
/// folders of the root lie follows from the seed of hashes, which would be random.
const LAZY: &str = "lazy_itable_init=1,lazy_journal_init=1,nodiscard,\
    hash_seed=6c61622d-6f66-4c69-8e75-782d492f4f21";
const MKE2FS: (&str, &str) = ("mke2fs", "e2fsprogs");

/// All that can be made.
const ALL: &[Kind] = &[
    Kind {
        name: "ext2",
        driver: "ext4",
        config: "CONFIG_EXT4_FS",
        program: MKE2FS,
        make: &["-q", "-F", "-t", "ext2", "-b", "4096", "-E", LAZY],
        mount: &["noinit_itable"],
        options: &[INODE_SIZE, INODE_RATIO, DIR_INDEX, ATIME],
    },
    Kind {
        name: "ext3",
        driver: "ext4",
        config: "CONFIG_EXT4_FS",
        program: MKE2FS,
        make: &["-q", "-F", "-t", "ext3", "-b", "4096", "-E", LAZY],
        mount: &["noinit_itable"],
        options: &[
            DATA,
            BARRIER,
            INODE_SIZE,
            INODE_RATIO,
            DIR_INDEX,
            JOURNAL_BLOCKS,
            COMMIT_S,
            ATIME,
        ],
    },
    Kind {
        name: "ext4",
        driver: "ext4",
        config: "CONFIG_EXT4_FS",
        program: MKE2FS,
        make: &["-q", "-F", "-t", "ext4", "-b", "4096", "-E", LAZY],
        mount: &["noinit_itable"],
        options: &[
            DATA,
            BARRIER,
            INODE_SIZE,
            JOURNAL_BLOCKS,
            COMMIT_S,
            ATIME,
            (
                "delalloc",
                Said::Words(&[("0", "nodelalloc"), ("1", "delalloc")]),
            ),
            (
                "dioread_nolock",
                Said::Words(&[("0", "dioread_lock"), ("1", "dioread_nolock")]),
            ),
            (
                "auto_da_alloc",
                Said::Words(&[("0", "noauto_da_alloc"), ("1", "auto_da_alloc")]),
            ),
            (
                "inode_readahead_blks",
                Said::Mount("inode_readahead_blks={}"),
            ),
        ],
    },
    Kind {
        name: "xfs",
        driver: "xfs",
        config: "CONFIG_XFS_FS",
        program: ("mkfs.xfs", "xfsprogs"),
        make: &["-q", "-f", "-K"],
        mount: &[],
        options: &[
            // From 4.19 on there are always barriers, and delayed logging from 3.0 on.
            ("barrier", Said::Words(&[("1", "")])),
            ("delaylog", Said::Words(&[("1", "")])),
            ("logbufs", Said::Mount("logbufs={}")),
            ("logbsize", Said::Mount("logbsize={}")),
            ("log_blocks", Said::Make("-l size={}b")),
            ("agcount", Said::Make("-d agcount={}")),
            // Without it checksums of metadata would have to be off.
            ("lazy_count", Said::MakeWords(&[("1", "")])),
            ATIME,
        ],
    },
    Kind {
        name: "btrfs",
        driver: "btrfs",
        config: "CONFIG_BTRFS_FS",
        program: ("mkfs.btrfs", "btrfs-progs"),
        make: &["-q", "-f", "-K"],
        mount: &[],
        options: &[
            ("metadata", Said::Make("-m {}")),
            ("nodesize", Said::Make("-n {}")),
            ("max_inline", Said::Mount("max_inline={}")),
            COMMIT_S,
            (
                "log_tree",
                Said::Words(&[("0", "notreelog"), ("1", "treelog")]),
            ),
            (
                "barrier",
                Said::Words(&[("0", "nobarrier"), ("1", "barrier")]),
            ),
            ATIME,
        ],
    },
    Kind {
        name: "nilfs2",
        driver: "nilfs2",
        config: "CONFIG_NILFS2_FS",
        program: ("mkfs.nilfs2", "nilfs-tools"),
        make: &["-q", "-f", "-K"],
        mount: &[],
        options: &[
            ("reserved_percent", Said::Make("-m {}")),
            // The cleaner is a program of its own, which does not run here.
            ("cleaner", Said::Words(&[("0", "")])),
            (
                "barrier",
                Said::Words(&[("0", "nobarrier"), ("1", "barrier")]),
            ),
            ATIME,
        ],
    },
    Kind {
        name: "reiserfs",
        driver: "reiserfs",
        config: "CONFIG_REISERFS_FS",
        program: ("mkfs.reiserfs", "reiserfsprogs"),
        make: &["-q", "-f", "-f"],
        mount: &[],
        options: &[
            DATA,
            (
                "tails",
                Said::Words(&[
                    ("on", "tails=on"),
                    ("small", "tails=small"),
                    ("off", "notail"),
                ]),
            ),
            (
                "barrier",
                Said::Words(&[("0", "barrier=none"), ("1", "barrier=flush")]),
            ),
            ATIME,
        ],
    },
    Kind {
        make: &["-q", "-f", "-t", "0"],
        ..plain("f2fs", ("mkfs.f2fs", "f2fs-tools"), "CONFIG_F2FS_FS")
    },
    Kind {
        make: &["-q"],
        ..plain("jfs", ("mkfs.jfs", "jfsutils"), "CONFIG_JFS_FS")
    },
    Kind {
        make: &["format", "--force", "--quiet"],
        ..plain(
            "bcachefs",
            ("bcachefs", "bcachefs-tools"),
            "CONFIG_BCACHEFS_FS",
        )
    },
    Kind {
        make: &["-Q", "-F", "-q"],
        ..plain("ntfs3", ("mkntfs", "ntfs-3g"), "CONFIG_NTFS3_FS")
    },
    Kind {
        make: &["-q"],
        ..plain("exfat", ("mkfs.exfat", "exfatprogs"), "CONFIG_EXFAT_FS")
    },
    plain("vfat", ("mkfs.vfat", "dosfstools"), "CONFIG_VFAT_FS"),
    plain("udf", ("mkudffs", "udftools"), "CONFIG_UDF_FS"),
];

/// One that is chosen under the kernel's name for it, without options of its own.
const fn plain(
    name: &'static str,
    program: (&'static str, &'static str),
    config: &'static str,
) -> Kind {
    Kind {
        name,
        driver: name,
        config,
        program,
        make: &[],
        mount: &[],
        options: &[],
    }
}

/// A filesystem that is to be made and mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    /// How people call it.
    pub(super) name: String,
    /// The name under which the kernel has it.
    pub(super) driver: &'static str,
    /// The option that builds it into a kernel.
    config: &'static str,
    /// What makes it, and its package in Debian.
    pub(super) program: (&'static str, &'static str),
    /// What that is told.
    pub(super) make: Vec<String>,
    /// What the mount is told.
    pub(super) mount: Vec<String>,
}

/// One without options that somebody chose.
fn of_kind(kind: &Kind) -> Volume {
    Volume {
        name: kind.name.to_owned(),
        driver: kind.driver,
        config: kind.config,
        program: kind.program,
        make: kind.make.iter().map(|&word| word.to_owned()).collect(),
        mount: kind.mount.iter().map(|&word| word.to_owned()).collect(),
    }
}

/// The filesystem of this name without any options; none if there is no such.
pub(super) fn without_options(name: &str) -> Option<Volume> {
    ALL.iter().find(|kind| kind.name == name).map(of_kind)
}

/// The filesystem of an experiment; none if its files are parts of the disk.
///
/// # Errors
/// If the kernel cannot have it, or not with an option.
pub(super) fn volume(e: &Experiment) -> Result<Option<Volume>, Error> {
    let spec = &e.filesystem;
    if spec.name == FilesystemSpec::default().name {
        return Ok(None);
    }
    let refused = |what: String, key: &str| Err(Error::not_modelled(what).about(key));
    let Some(kind) = ALL.iter().find(|kind| kind.name == spec.name) else {
        let what = format!(
            "the target kernel does not take the filesystem {}",
            spec.name
        );
        return refused(what, "filesystem");
    };
    let mut volume = of_kind(kind);
    for (key, value) in &spec.options {
        match key.as_str() {
            MOUNT_WORDS => {
                let words = value.split([' ', ',']).filter(|word| !word.is_empty());
                volume.mount.extend(words.map(str::to_owned));
                continue;
            }
            MAKE_WORDS => {
                volume
                    .make
                    .extend(value.split_whitespace().map(str::to_owned));
                continue;
            }
            _ => {}
        }
        let about = format!("filesystem.{key}");
        let said = kind.options.iter().find(|(name, _)| name == key);
        let Some((_, said)) = said else {
            let what = format!(
                "the target kernel does not take {key}, which only the model of {} has",
                spec.name
            );
            return refused(what, &about);
        };
        if !volume.say(*said, value) {
            let what = format!(
                "the target kernel does not take {key}={value}: its {} cannot be told so",
                spec.name
            );
            return refused(what, &about);
        }
    }
    Ok(Some(volume))
}

impl Volume {
    /// The command that makes it on a device.
    pub(super) fn make_command(&self, on: &str) -> String {
        let program = path_in_machine(self.program.0);
        format!("{program} {} {on}", self.make.join(" "))
    }

    /// The command that mounts it.
    pub(super) fn mount_command(&self, on: &str, at: &str) -> String {
        let options = match self.mount.join(",") {
            none if none.is_empty() => none,
            words => format!("-o {words} "),
        };
        format!("mount -t {} {options}{on} {at}", self.driver)
    }

    /// Refuses a kernel that was built without it.
    ///
    /// # Errors
    /// Its option, which is missing.
    pub(super) fn check_in(&self, kernel: &Built) -> Result<(), Error> {
        let (release, config) = (&kernel.release, self.config);
        if kernel.has_option(config) {
            return Ok(());
        }
        let what = format!(
            "Linux {release} was built without {} ({config}): it may not have it any more, or yet",
            self.name
        );
        Err(Error::not_modelled(what).about("filesystem"))
    }

    /// Refuses a machine without what makes it.
    ///
    /// # Errors
    /// The package that brings it.
    pub(super) fn check_program(&self) -> Result<(), Error> {
        let (program, package) = self.program;
        if find_program(program).is_some() {
            return Ok(());
        }
        let what = format!(
            "{} needs {program}, which this machine does not have: apt-get install {package}",
            self.name
        );
        Err(Error::new(what).about("filesystem"))
    }

    /// Whether any bytes take the same room: nothing is compressed.
    pub(super) fn takes_any_contents(&self) -> bool {
        let words = self.make.iter().chain(&self.mount);
        !words.clone().any(|word| word.contains("compress"))
    }

    /// Says an option to whom it is for; false if there are no words for it.
    fn say(&mut self, said: Said, value: &str) -> bool {
        let word = |words: &[(&str, &'static str)]| {
            let found = words.iter().find(|(of, _)| *of == value);
            found.map(|(_, word)| (*word).to_owned())
        };
        let (told, text) = match said {
            Said::Mount(text) => (&mut self.mount, Some(text.replace("{}", value))),
            Said::Words(words) => (&mut self.mount, word(words)),
            Said::Make(text) => (&mut self.make, Some(text.replace("{}", value))),
            Said::MakeWords(words) => (&mut self.make, word(words)),
            Said::Journal => (&mut self.make, journal(value)),
        };
        let Some(text) = text else {
            return false;
        };
        told.extend(text.split_whitespace().map(str::to_owned));
        true
    }
}

/// mke2fs takes the size of a journal in MiB; its blocks have 4 KiB.
fn journal(blocks: &str) -> Option<String> {
    const BLOCKS_OF_MIB: u64 = 256;
    let blocks: u64 = blocks.parse().ok()?;
    let is_whole = blocks.is_multiple_of(BLOCKS_OF_MIB);
    is_whole.then(|| format!("-J size={}", blocks / BLOCKS_OF_MIB))
}

#[cfg(test)]
mod tests {
    use super::volume;
    use blklab_experiment::{Experiment, OF_KERNELS, Workload};

    fn experiment(filesystem: &str) -> Experiment {
        let mut e = Experiment::new("e", Workload::Processes(Vec::new()));
        let catalogue = blklab_sim::catalogue();
        e.choose_filesystem(filesystem, &catalogue)
            .expect("it is known");
        e
    }

    #[test]
    fn options_are_said_in_the_words_of_mkfs_and_mount() {
        let told = |text: &str| {
            let volume = volume(&experiment(text)).expect("it can be had");
            let volume = volume.expect("it is made");
            (volume.make.join(" "), volume.mount.join(","))
        };
        let (make, mount) = told("ext4:data=writeback:barrier=0:journal_blocks=8192:atime=never");
        assert!(make.ends_with(" -J size=32"), "{make}");
        assert_eq!(mount, "noinit_itable,data=writeback,barrier=0,noatime");
        let (make, mount) = told("xfs:agcount=8:barrier=1:mount=noalign wsync:mkfs=-i size=1024");
        assert!(make.ends_with("-d agcount=8 -i size=1024"), "{make}");
        assert_eq!(mount, "noalign,wsync");
    }

    #[test]
    fn what_only_a_model_has_is_refused_by_name() {
        for (text, expected) in [
            (
                "ext3:creator_pid=7",
                "creator_pid, which only the model of ext3 has",
            ),
            ("xfs:barrier=0", "barrier=0: its xfs cannot be told so"),
            ("ext4:journal_blocks=1025", "journal_blocks=1025"),
            ("btrfs-0.16", "the filesystem btrfs-0.16"),
        ] {
            let error = volume(&experiment(text)).expect_err("it is refused");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn every_filesystem_of_kernels_can_be_made() {
        for (name, _) in OF_KERNELS {
            let volume = volume(&experiment(name)).expect("it can be had");
            assert_eq!(volume.map(|v| v.name).as_deref(), Some(*name));
        }
    }
}
