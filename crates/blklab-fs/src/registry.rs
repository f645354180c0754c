// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filesystems: what can be mounted, and what is mounted.

use crate::btrfs::BtrfsFs;
use crate::ext3::Ext3;
use crate::ext4::Ext4Fs;
use crate::extents::ExtentLayout;
use crate::kind::Kind;
use crate::nilfs2::Nilfs2;
use crate::ntfs3g::NtfsFs;
use crate::reiserfs::ReiserFs;
use crate::xfs::Xfs;
use blklab_pagecache::{
    Config, Extent, FileId, FreeSpace, FsError, FsTraits, Host, Mountable, Ops, PageCache, State,
    WriteControl, filesystem_operations,
};
use blklab_types::{BioFlags, TaskId};
use std::ops::Range;

/// Hands operations on to the filesystem that is mounted.
macro_rules! hand_on {
    ([$all:tt]
        required {$(
            $(#[$doc:meta])*
            $($fn:ident)+ (&$this:ident $(, $arg:ident: $type:ty)* $(,)?) $(-> $result:ty)?;
        )*}
        provided {$(
            $(#[$more_doc:meta])*
            $($more_fn:ident)+ (&$me:ident $(, $more:ident: $more_type:ty)* $(,)?)
                $(-> $more_result:ty)? $body:block
        )*}
    ) => {
        impl<H: Host> Ops<H> for Mounted {
            $(
                $($fn)+ (&$this $(, $arg: $type)*) $(-> $result)? {
                    call!($this, $all, $($fn)+ ($($arg),*))
                }
            )*
            $(
                $($more_fn)+ (&$me $(, $more: $more_type)*) $(-> $more_result)? {
                    call!($me, $all, $($more_fn)+ ($($more),*))
                }
            )*
        }
    };
}

/// Calls an operation of the filesystem that is mounted, and awaits it if it may sleep.
macro_rules! call {
    ($mounted:ident, [$($variant:ident)*], async fn $op:ident $args:tt) => {
        match $mounted {
            $(Mounted::$variant(fs) => call!(fs, $op $args).await,)*
        }
    };
    ($mounted:ident, [$($variant:ident)*], fn $op:ident $args:tt) => {
        match $mounted {
            $(Mounted::$variant(fs) => call!(fs, $op $args),)*
        }
    };
    ($fs:ident, $op:ident ($($arg:ident),*)) => {
        Ops::<H>::$op($fs $(, $arg)*)
    };
}

/// Rows of filesystems: what is mounted, and the names that it is chosen by.
macro_rules! filesystems {
    ($($(#[$doc:meta])* $variant:ident: $fs:ty, [$($kind:path),*];)*) => {
        /// All filesystems, by the names that they are chosen by.
        pub const ALL: &[Kind<Filesystem>] =
            &[$($($kind.choosing(|m| Filesystem::$variant(($kind.choose)(m)))),*),*];

        /// What the files lie on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Filesystem {
            $($(#[$doc])* $variant(<$fs as Mountable>::Options),)*
        }

        /// The filesystem that a machine has.
        #[derive(Debug)]
        pub enum Mounted {
            $($(#[$doc])* $variant($fs),)*
        }

        impl Mountable for Mounted {
            type Options = Filesystem;

            fn traits(options: &Filesystem) -> FsTraits {
                match options {
                    $(Filesystem::$variant(options) => <$fs>::traits(options),)*
                }
            }

            fn mount(
                options: Filesystem,
                config: &Config,
                state: &mut State,
            ) -> Result<Mounted, String> {
                Ok(match options {
                    $(Filesystem::$variant(options) => {
                        Mounted::$variant(<$fs>::mount(options, config, state)?)
                    })*
                })
            }
        }

        filesystem_operations!(hand_on! [$($variant)*]);
    };
}

impl Filesystem {
    /// What is true of it once it is mounted.
    pub fn traits(&self) -> FsTraits {
        Mounted::traits(self)
    }
}

filesystems! {
    /// Space in ascending order, no metadata ([`blklab_pagecache::Layout`]).
    Extents: ExtentLayout, [crate::extents::EXTENTS];
    /// ext2 or ext3.
    Ext: Ext3, [crate::ext3::EXT2, crate::ext3::EXT3];
    /// ext4.
    Ext4: Ext4Fs, [crate::ext4::EXT4];
    /// btrfs.
    Btrfs: BtrfsFs, [crate::btrfs::BTRFS, crate::btrfs::BTRFS_0_16, crate::btrfs::BTRFS_UNSTABLE];
    /// NILFS2.
    Nilfs: Nilfs2, [crate::nilfs2::NILFS2];
    /// ReiserFS 3.6.
    Reiser: ReiserFs, [crate::reiserfs::REISERFS];
    /// XFS.
    Xfs: Xfs, [crate::xfs::XFS];
    /// NTFS-3G.
    Ntfs: NtfsFs, [crate::ntfs3g::NTFS_3G];
}

/// The filesystem of a name.
pub fn find(name: &str) -> Option<&'static Kind<Filesystem>> {
    ALL.iter().find(|kind| kind.name == name)
}
