// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a running kernel takes settings. Sources: Documentation/ABI/stable/sysfs-block, admin-guide/sysctl/vm.rst,
//! admin-guide/cgroup-v2.rst, admin-guide/kernel-parameters.txt of Linux 6.1.

/// Where a kernel takes a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A file of this folder, called as the setting; `{disk}` and `{cgroup}` stand for
    /// their names.
    Folder(&'static str),
    /// A file of the driver of SCSI disks, and the parameter of virtio_blk for those that
    /// have no such file.
    Driver {
        /// The file; `{disk}` stands for the disk's name.
        file: &'static str,
        /// The module's parameter.
        parameter: &'static str,
    },
    /// A parameter of the kernel's command line.
    Boot(&'static str),
    /// An option that the kernel is built with.
    Build(&'static str),
    /// This ioctl of the disk.
    Ioctl(&'static str),
    /// What the disk is made as: the kernel reads it off the device.
    Device,
    /// What makes and mounts the filesystem.
    Mount,
    /// Nowhere: it is about the model, or about the programs that run.
    Nowhere,
}
