// SPDX-License-Identifier: MIT OR Apache-2.0
//! Subcommands that the package for Python brings along, as programs of their own:
//! `blklab sweep` is `blklab-sweep`, beside this command or on PATH.

use crate::Outcome;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Becomes the program of a subcommand.
///
/// # Errors
/// If there is none, or it cannot be run.
pub(crate) fn become_program(name: &str, args: &[OsString]) -> Result<Outcome> {
    let program = format!("blklab-{name}");
    let Some(path) = find(&program) else {
        bail!(
            "blklab {name} is part of the package for Python, and there is no {program} beside \
             this command or on PATH: pip install 'blklab[{name}]' (docs/python.md)"
        );
    };
    let failed = Command::new(&path).args(args).exec();
    bail!("cannot run {}: {failed}", path.display())
}

/// Where a program is: beside this command, or in a folder of PATH.
fn find(program: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    let mut places = folders.map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}
