// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules of a kernel's image: which of them are kept, and in which order they are loaded.
//!
//! Source: modules.dep(5) of kmod. A line is a module and what it needs, of which the last
//! is loaded first. `modules.builtin` lists what needs no file.

use crate::failed::failed;
use blklab_types::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folder of a kept kernel that has its modules, without folders of their own.
pub(super) const MODULES: &str = "modules";
/// What says which module needs which.
pub(super) const DEPENDENCIES: &str = "modules.dep";
/// What says which modules are part of the image.
pub(super) const BUILTIN: &str = "modules.builtin";

/// Modules that are kept, with what they need: drivers, schedulers, what lies between,
/// filesystems, and the way out.
pub(super) const KEPT: &[&str] = &[
    "null_blk",
    "scsi_debug",
    "sd_mod",
    "brd",
    "loop",
    "zram",
    "nvme",
    "virtio_pci",
    "virtio_blk",
    "virtio_console",
    "mq-deadline",
    "kyber-iosched",
    "bfq",
    "dm-mod",
    "dm-crypt",
    "dm-raid",
    "dm-snapshot",
    "dm-thin-pool",
    "dm-cache",
    "dm-cache-smq",
    "dm-writecache",
    "dm-delay",
    "dm-flakey",
    "linear",
    "raid0",
    "raid1",
    "raid10",
    "raid456",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "jfs",
    "nilfs2",
    "ntfs3",
    "exfat",
    "udf",
    "xts",
    "aesni-intel",
    "crc32c_generic",
];

/// The modules of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    /// What has a file: by its name, its path and the names of what it needs, in the order
    /// of `modules.dep`.
    loadable: BTreeMap<String, (PathBuf, Vec<String>)>,
    /// What is part of the image; none if nobody has said.
    builtin: Option<BTreeSet<String>>,
}

/// How a module comes into a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loading {
    /// It is there.
    Builtin,
    /// These files are loaded, in this order; the last is the module itself.
    Files(Vec<PathBuf>),
}

impl Modules {
    /// Reads the lists of a folder. A kernel need not have any.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn read(folder: &Path) -> Result<Modules, Error> {
        let read = |name: &str| match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(&format!("cannot be read: {e}"))
                .in_file(&folder.join(name).display().to_string())),
        };
        let dependencies = read(DEPENDENCIES)?.unwrap_or_default();
        let builtin = read(BUILTIN)?;
        Ok(Modules::parse(&dependencies, builtin.as_deref(), folder))
    }

    fn parse(dependencies: &str, builtin: Option<&str>, folder: &Path) -> Modules {
        let lines = dependencies.lines().filter_map(|l| l.split_once(':'));
        let loadable = lines.map(|(path, needs)| {
            let needs = needs.split_whitespace().map(name_of).collect();
            (name_of(path), (folder.join(path.trim()), needs))
        });
        Modules {
            loadable: loadable.collect(),
            builtin: builtin.map(|text| text.lines().map(name_of).collect()),
        }
    }

    /// Adds a module that needs no other.
    pub(super) fn add(&mut self, name: &str, file: PathBuf) {
        self.loadable.insert(name_of(name), (file, Vec::new()));
    }

    /// How a module comes into the kernel; none if the kernel does not have it. Where
    /// nobody has said what an image has, it has what has no file.
    pub(crate) fn loading(&self, module: &str) -> Option<Loading> {
        let name = name_of(module);
        let Some((path, needs)) = self.loadable.get(&name) else {
            let builtin = self.builtin.as_ref();
            let is_there = builtin.is_none_or(|all| all.contains(&name));
            return is_there.then_some(Loading::Builtin);
        };
        let needed = needs.iter().rev().filter_map(|n| self.loadable.get(n));
        let files = needed.map(|(path, _)| path).chain([path]);
        Some(Loading::Files(files.cloned().collect()))
    }

    /// The files that are kept of a kernel, and the list of them for a folder where they
    /// lie beside each other. Their names lose what says that they are compressed.
    pub(super) fn kept(&self) -> (BTreeSet<PathBuf>, String) {
        let mut files = BTreeSet::new();
        let mut names: BTreeSet<String> = KEPT.iter().map(|n| name_of(n)).collect();
        for kept in KEPT {
            let found = self.loadable.get(&name_of(kept));
            names.extend(
                found
                    .into_iter()
                    .flat_map(|(_, needs)| needs.iter().cloned()),
            );
        }
        let file = |name: &str| format!("{MODULES}/{name}.ko");
        let mut list = String::new();
        for name in &names {
            let Some((path, needs)) = self.loadable.get(name) else {
                continue;
            };
            files.insert(path.clone());
            list.push_str(&file(name));
            list.push(':');
            for need in needs {
                list.push(' ');
                list.push_str(&file(need));
            }
            list.push('\n');
        }
        (files, list)
    }
}

/// The name of the module of a path: kernels take both signs for each other.
pub(super) fn name_of(path: &str) -> String {
    let name = path.trim().rsplit('/').next().unwrap_or_default();
    let end = name.find(".ko").unwrap_or(name.len());
    name[..end].replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::{Loading, Modules, name_of};
    use std::path::{Path, PathBuf};

    const DEPENDENCIES: &str = "\
kernel/fs/xfs/xfs.ko.xz: kernel/lib/libcrc32c.ko.xz\n\
kernel/lib/libcrc32c.ko.xz:\n\
kernel/drivers/scsi/sd_mod.ko.xz: kernel/drivers/scsi/scsi_mod.ko.xz kernel/drivers/scsi/scsi_common.ko.xz\n\
kernel/drivers/scsi/scsi_mod.ko.xz: kernel/drivers/scsi/scsi_common.ko.xz\n\
kernel/drivers/scsi/scsi_common.ko.xz:\n\
kernel/drivers/gpu/large.ko.xz:\n";

    fn files(loading: Option<Loading>) -> Vec<PathBuf> {
        match loading {
            Some(Loading::Files(files)) => files,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let builtin = Some("kernel/fs/ext4/ext4.ko\n");
        let modules = Modules::parse(DEPENDENCIES, builtin, Path::new("/m"));
        let scsi = "/m/kernel/drivers/scsi";
        let expected = ["scsi_common", "scsi_mod", "sd_mod"].map(|n| format!("{scsi}/{n}.ko.xz"));
        let found = files(modules.loading("sd-mod"));
        assert_eq!(found, expected.map(PathBuf::from));
        assert_eq!(modules.loading("ext4"), Some(Loading::Builtin));
        assert_eq!(modules.loading("f2fs"), None);
        // Nobody has said what is part of it.
        let unknown = Modules::parse("", None, Path::new("/m"));
        assert_eq!(unknown.loading("f2fs"), Some(Loading::Builtin));
    }

    #[test]
    fn what_is_kept_can_be_loaded_from_where_it_is_kept() {
        let modules = Modules::parse(DEPENDENCIES, None, Path::new("/m"));
        let (paths, list) = modules.kept();
        assert_eq!(paths.len(), 5, "{paths:?}");
        let kept = Modules::parse(&list, None, Path::new("/k"));
        let expected = ["libcrc32c", "xfs"].map(|n| PathBuf::from(format!("/k/modules/{n}.ko")));
        assert_eq!(files(kept.loading("xfs")), expected);
    }

    #[test]
    fn names_are_those_that_the_kernel_has() {
        assert_eq!(name_of("kernel/block/mq-deadline.ko.zst"), "mq_deadline");
        assert_eq!(name_of("null_blk"), "null_blk");
        assert_eq!(name_of(""), "");
    }
}
