// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of this machine, and the packages that bring them.

use super::command::output;
use crate::failed::failed;
use blklab_types::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs that a build runs, and their packages in Debian.
const TO_BUILD: &[(&str, &str)] = &[
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
];

/// Programs that fetch and unpack packages.
pub(super) const TO_FETCH: &[(&str, &str)] = &[
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Programs that look through the modules of a kernel.
pub(super) const TO_SORT_MODULES: &[(&str, &str)] = &[("depmod", "kmod")];

/// Where a program is.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // What an administrator has is of use to others, too.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|f| f.join(name)).find(|f| is_program(f))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = path.metadata();
    metadata.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Refuses to begin to build without what that needs.
///
/// # Errors
/// What is missing, and the command that brings it.
pub(super) fn check_to_build() -> Result<(), Error> {
    let purpose = "to build a kernel";
    check(purpose, &[TO_BUILD, TO_FETCH])?;
    check_c_library(purpose)
}

/// Refuses to begin to compile a static program without what that needs.
///
/// # Errors
/// What is missing, and the command that brings it.
pub(super) fn check_to_compile(purpose: &str) -> Result<(), Error> {
    check(purpose, &[&[("gcc", "gcc"), ("ld", "binutils")]])?;
    check_c_library(purpose)
}

/// What is linked statically needs that of the C library.
fn check_c_library(purpose: &str) -> Result<(), Error> {
    let library = output(Command::new("gcc").arg("-print-file-name=libc.a"))?;
    if Path::new(library.trim()).is_absolute() {
        return Ok(());
    }
    missing_error(purpose, &[&("libc.a", "libc6-dev")])
}

/// How a shell of a machine calls a program of this one: by its path, since it has programs
/// of its own, of which some have the same name.
pub(crate) fn path_in_machine(name: &str) -> String {
    find(name).map_or(name.to_owned(), |path| path.display().to_string())
}

/// Refuses to begin without them.
///
/// # Errors
/// What is missing, and the command that brings it.
pub(super) fn check(purpose: &str, sets: &[&[(&str, &str)]]) -> Result<(), Error> {
    let all = sets.iter().flat_map(|set| set.iter());
    let missing: Vec<_> = all.filter(|(name, _)| find(name).is_none()).collect();
    missing_error(purpose, &missing)
}

fn missing_error(purpose: &str, missing: &[&(&str, &str)]) -> Result<(), Error> {
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    Err(failed(&format!(
        "{purpose} needs {}, which this machine does not have: apt-get install {}",
        names.join(", "),
        packages.join(" ")
    )))
}

#[cfg(test)]
mod tests {
    use super::{find, missing_error};

    #[test]
    fn what_is_missing_is_said_with_what_brings_it() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-here").is_none());
        let error = missing_error("to build", &[&("flex", "flex"), &("xz", "xz-utils")]);
        let error = error.expect_err("two are missing").to_string();
        assert!(error.contains("needs flex, xz,"), "{error}");
        assert!(error.ends_with("apt-get install flex xz-utils"), "{error}");
    }
}
