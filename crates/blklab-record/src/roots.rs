// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the kernel's files are.

use crate::RecordError;
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Where the kernel's files are.
#[derive(Debug)]
pub struct Roots {
    /// tracefs.
    pub tracefs: PathBuf,
    /// sysfs.
    pub sys: PathBuf,
    /// procfs.
    pub proc: PathBuf,
    /// A mount of tracefs that nobody else sees, while it is open.
    mount: Option<OwnedFd>,
}

impl Roots {
    /// Those of a test.
    pub fn at(tracefs: PathBuf, sys: PathBuf, proc: PathBuf) -> Roots {
        Roots {
            tracefs,
            sys,
            proc,
            mount: None,
        }
    }

    /// Those of this machine. tracefs is used where it is mounted; if it is not, it is
    /// mounted for this process alone, below no folder.
    ///
    /// # Errors
    /// One line: what right or option is missing.
    pub fn of_machine() -> Result<Roots, RecordError> {
        let (sys, proc) = (PathBuf::from("/sys"), PathBuf::from("/proc"));
        let mounts = fs::read_to_string(proc.join("self/mounts")).unwrap_or_default();
        let mut roots = Roots::at(PathBuf::new(), sys, proc);
        let places = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (place, kind) = (words.next()?, words.next()?);
            (kind == "tracefs").then(|| PathBuf::from(unescaped(place)))
        });
        for place in places {
            if place.join("instances").is_dir() {
                roots.tracefs = place;
                return Ok(roots);
            }
        }
        let mount = mount_tracefs().map_err(|e| refused(&e))?;
        roots.tracefs = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        roots.mount = Some(mount);
        if roots.tracefs.join("instances").is_dir() {
            Ok(roots)
        } else {
            Err(refused(&io::Error::other(
                "it has no instances (Linux before 3.10)",
            )))
        }
    }
}

/// A place as `/proc/self/mounts` shows it, whose blanks are octal.
fn unescaped(place: &str) -> String {
    place
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

/// Mounts tracefs below no folder (fsopen(2), fsmount(2), Linux 5.2).
fn mount_tracefs() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    Ok(fsmount(&context, flags, MountAttrFlags::empty())?)
}

/// What is missing, in words.
fn refused(e: &io::Error) -> RecordError {
    let is_root = rustix::process::geteuid().is_root();
    let text = match (
        is_root,
        e.raw_os_error().map(rustix::io::Errno::from_raw_os_error),
    ) {
        (false, _) => "not root: recording needs root, or CAP_SYS_ADMIN and a tracefs that \
             may be read; run it with sudo"
            .to_owned(),
        (true, Some(rustix::io::Errno::NODEV)) => {
            "this kernel has no tracefs: it was built without CONFIG_FTRACE".to_owned()
        }
        (true, Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS)) => format!(
            "tracefs is not mounted and may not be ({e}): a container needs CAP_SYS_ADMIN, and \
             a locked-down kernel refuses it; elsewhere mount -t tracefs nodev /sys/kernel/tracing"
        ),
        (true, _) => format!(
            "tracefs is not mounted and cannot be ({e}): mount -t tracefs nodev /sys/kernel/tracing"
        ),
    };
    RecordError::new(text)
}
