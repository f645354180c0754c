// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystems that can be made: a row each, and which kernels have them.

use blklab_kernel::KernelVersion;

/// How an option of an experiment is said.
#[derive(Clone, Copy)]
pub(super) enum Said {
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
    pub(super) name: &'static str,
    /// The name under which the kernel has it.
    pub(super) driver: &'static str,
    /// The option that builds it into a kernel.
    pub(super) config: &'static str,
    /// What makes it, and its package in Debian.
    pub(super) program: (&'static str, &'static str),
    /// What that is told always: not to discard, and not to ask.
    pub(super) make: &'static [&'static str],
    /// What the mount is told always.
    pub(super) mount: &'static [&'static str],
    pub(super) options: &'static [(&'static str, Said)],
}

/// Releases that have a filesystem, where not all do that can run here.
pub(super) struct Releases {
    /// The filesystem.
    pub(super) name: &'static str,
    /// The first of them.
    pub(super) since: KernelVersion,
    /// The first without it.
    pub(super) until: KernelVersion,
    /// One whose source Debian has.
    pub(super) such_as: &'static str,
}

/// When filesystems came and went, as the history of mainline has it.
pub(super) const RELEASES: &[Releases] = &[
    Releases {
        name: "reiserfs",
        since: KernelVersion::v2_6(0),
        until: KernelVersion::new(6, 13),
        such_as: "6.12",
    },
    Releases {
        name: "bcachefs",
        since: KernelVersion::new(6, 7),
        until: KernelVersion::new(6, 18),
        such_as: "6.12",
    },
    Releases {
        name: "ntfs3",
        since: KernelVersion::new(5, 15),
        until: KernelVersion::FOREVER,
        such_as: "6.12",
    },
];

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
pub(super) const ALL: &[Kind] = &[
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
    plain("exfat", ("mkfs.exfat", "exfatprogs"), "CONFIG_EXFAT_FS"),
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
