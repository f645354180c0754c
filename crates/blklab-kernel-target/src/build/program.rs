// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our own program for a machine, which runs processes: compiled once, and
//! kept beside the kernels.

use super::cache::Cache;
use super::command::{Watch, run};
use super::key::Key;
use super::recipe::unwritten;
use super::tools;
use blklab_types::Error;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// Its source.
const SOURCE: &str = include_str!("../../program/replay.c");
/// Its name in the machine.
pub(crate) const REPLAY: &str = "replay";

/// Where it is, compiled or not: the name changes with its source.
fn place(cache: &Cache) -> PathBuf {
    let mut key = Key::default();
    key.add(SOURCE.as_bytes());
    cache.programs().join(format!("{REPLAY}-{key}"))
}

/// Refuses a machine on which it is not there and cannot be compiled.
///
/// # Errors
/// What is missing, and the command that brings it.
pub(crate) fn check_replay() -> Result<(), Error> {
    if place(&Cache::of_user()?).exists() {
        return Ok(());
    }
    tools::check_to_compile("to run processes")
}

/// The program, compiled unless it is there.
///
/// # Errors
/// If it cannot be compiled.
pub(crate) fn replay(cache: &Cache, stop: &AtomicBool) -> Result<PathBuf, Error> {
    let place = place(cache);
    if place.exists() {
        return Ok(place);
    }
    let folder = cache.programs();
    std::fs::create_dir_all(&folder).map_err(|e| unwritten(&folder, &e))?;
    // Others may compile it at the same time: each has files of its own.
    let new = folder.join(format!(".new-{REPLAY}-{}", std::process::id()));
    let source = new.with_extension("c");
    std::fs::write(&source, SOURCE).map_err(|e| unwritten(&source, &e))?;
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-static", "-o"]).arg(&new).arg(&source);
    let mut watch = Watch {
        step: &mut |_| {},
        stop,
    };
    let log = folder.join("log");
    let compiled = run(&mut gcc, &log, &mut watch, &mut |_, _| {});
    let _ = std::fs::remove_file(&source);
    compiled?;
    std::fs::rename(&new, &place).map_err(|e| unwritten(&place, &e))?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::replay;
    use crate::build::Cache;
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn it_is_compiled_once_and_says_how_it_is_called() {
        if !blklab_testkit::has_program("gcc") {
            return blklab_testkit::skipped("gcc is not here");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned());
        let stop = AtomicBool::new(false);
        let program = replay(&cache, &stop).expect("it is compiled");
        let ran = Command::new(&program).output().expect("it runs");
        assert_eq!(ran.status.code(), Some(2));
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(said, "usage: replay PROCESSES DEVICE\n");
        let made = program
            .metadata()
            .and_then(|m| m.modified())
            .expect("it is there");
        assert_eq!(replay(&cache, &stop).expect("it is there"), program);
        let again = program
            .metadata()
            .and_then(|m| m.modified())
            .expect("it is there");
        assert_eq!(made, again);
    }
}
