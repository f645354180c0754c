// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done to a disk before the run begins, in no time of the device and without a
//! trace: the filesystem is made and mounted, the files of jobs are laid out by fio, and
//! everything settles.

use super::filesystem::{MOUNTED_AT, Volume};
use super::folders::Folders;
use std::fmt::Write as _;

/// The jobs as they lay their files out.
pub(super) const LAYOUT: &str = "layout.fio";
/// Virtual seconds after which logs are written and covered: XFS looks every 30 s, three
/// times. The disk is idle, so that they pass at once.
const SETTLED_S: u32 = 120;

/// What the kernel said last when a step failed.
pub(super) const SAID: &str = "kernel.said";
/// What a step of the preparation is run by: the first that fails leaves its name, what it
/// printed and what the kernel said, and ends the script.
pub(super) const STEP: &str = "step() {\n\
    what=$1; shift\n\
    dmesg -c > /dev/null\n\
    \"$@\" > step.log 2>&1 || { echo \"$what\" > unready; dmesg > kernel.said; exit 1; }\n\
    }\n";

/// Makes and mounts a filesystem with its folders.
pub(super) fn mount(s: &mut String, volume: &Volume, top: &str, folders: &Folders) {
    let Volume { name, driver, .. } = volume;
    let program = volume.program.0;
    let make = volume.make_command(top);
    let mount = volume.mount_command(top, MOUNTED_AT);
    let shown = mount.strip_suffix(&format!("{top} {MOUNTED_AT}"));
    let shown = shown.unwrap_or(&mount);
    let _ = writeln!(
        s,
        "step 'finding {name}' grep -qw {driver} /proc/filesystems\n\
         step {program} {make}\n\
         mkdir -p {MOUNTED_AT}\n\
         step '{shown}' {mount}"
    );
    folders.write(s, top);
}

/// Lays the files of jobs out and lets the filesystem settle.
pub(super) fn lay_out(s: &mut String) {
    let _ = writeln!(
        s,
        "cd {MOUNTED_AT}\n\
         fio --create_only=1 --output=/work/layout.log /work/{LAYOUT} > /work/layout.err 2>&1 || {{\n\
         cd /work\n\
         grep -h '^fio: ' layout.err layout.log > step.log || cat layout.err layout.log > step.log\n\
         dmesg > {SAID}; echo 'laying files out' > unready; exit 1\n\
         }}\n\
         cd /work\n\
         rm -f {LAYOUT} layout.log layout.err step.log\n\
         sync\n\
         sleep {SETTLED_S}\n\
         sync"
    );
}
