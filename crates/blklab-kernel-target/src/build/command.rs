// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that take long: watched, logged, and ended when nobody wants them any more.

use crate::failed::failed;
use crate::group;
use blklab_types::Error;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Between two looks at whether to go on.
const INTERVAL: Duration = Duration::from_millis(100);
/// Lines of output that wait to be looked at.
const LINES: usize = 1024;

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another build goes on: this one waits.
    Waiting,
    /// The source is looked for and fetched.
    Fetching,
    /// The source is unpacked.
    Unpacking,
    /// Our own module is compiled.
    Module,
    /// Files are compiled.
    Compiling {
        /// So many were.
        done: u32,
        /// About so many are to be: releases differ.
        of: u32,
    },
}

/// Files that a kernel has, about.
const FILES: u32 = 1600;

impl Step {
    /// So many files were compiled.
    pub(super) fn compiled(done: u32) -> Step {
        Step::Compiling {
            done,
            of: FILES.max(done),
        }
    }

    /// How much of the build is done, of 1.
    pub fn share(&self) -> f64 {
        match self {
            Step::Compiling { done, of } => f64::from(*done) / f64::from(*of),
            Step::Waiting | Step::Fetching | Step::Unpacking | Step::Module => 0.0,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Waiting => f.write_str("waiting for another build"),
            Step::Fetching => f.write_str("fetching packages"),
            Step::Unpacking => f.write_str("unpacking"),
            Step::Module => f.write_str("compiling simdisk"),
            Step::Compiling { done, of } => write!(f, "compiled {done} of about {of} files"),
        }
    }
}

/// Who watches a build.
pub struct Watch<'a> {
    /// Is told how far it is.
    pub step: &'a mut dyn FnMut(Step),
    /// Ends it early.
    pub stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// # Errors
    /// If it is to end.
    pub(super) fn go_on(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        Ok(())
    }
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            group::end(&mut self.0);
        }
    }
}

/// Runs a program to its end. All that it prints goes to the log, and `line` gets its
/// standard output line by line.
///
/// # Errors
/// If it cannot be run or fails; then its last words are told.
pub(super) fn run(
    command: &mut Command,
    log: &Path,
    watch: &mut Watch<'_>,
    line: &mut dyn FnMut(&str, &mut Watch<'_>),
) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let unlogged = |e: std::io::Error| super::recipe::unwritten(log, &e);
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(unlogged)?;
    let of_errors = file.try_clone().map_err(unlogged)?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(of_errors)
        .process_group(0);
    let child = command
        .spawn()
        .map_err(|e| failed(&format!("{name} cannot be run: {e}")))?;
    let mut running = Running(child);
    let output = running.0.stdout.take().expect("it is a pipe");
    let (to_us, lines) = sync_channel(LINES);
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if to_us.send(line).is_err() {
                break;
            }
        }
    });
    loop {
        match lines.recv_timeout(INTERVAL) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                writeln!(file, "{text}").map_err(unlogged)?;
                line(&text, watch);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        watch.go_on()?;
    }
    let status = wait(&mut running, watch)?;
    let _ = reader.join();
    if status.success() {
        return Ok(());
    }
    let why = last_words(log).map_or_else(String::new, |words| format!(": {words}"));
    Err(failed(&format!(
        "{name} failed{why} (all of it: {})",
        log.display()
    )))
}

fn wait(running: &mut Running, watch: &Watch<'_>) -> Result<ExitStatus, Error> {
    loop {
        match running.0.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) => std::thread::sleep(INTERVAL),
            Err(e) => return Err(failed(&format!("a program cannot be waited for: {e}"))),
        }
        watch.go_on()?;
    }
}

/// The line of a log that says why: the first of the last ones that speaks of an error,
/// else the last.
fn last_words(log: &Path) -> Option<String> {
    const LOOKED_AT: usize = 40;
    let text = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LOOKED_AT)..];
    let says = |line: &&&str| line.contains("error:") || line.starts_with("E:");
    let line = last.iter().find(says).or(last.last())?;
    Some(line.trim().to_owned())
}

/// What a program prints.
///
/// # Errors
/// If it cannot be run or fails.
pub(super) fn output(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|e| failed(&format!("{name} cannot be run: {e}")))?;
    if !ran.status.success() {
        let words = String::from_utf8_lossy(&ran.stderr);
        let last = words.lines().last().unwrap_or_default();
        return Err(failed(&format!("{name} failed: {last}")));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{Watch, run};
    use blklab_types::ErrorKind;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    #[test]
    fn a_failure_says_its_reason_and_where_the_rest_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let stop = AtomicBool::new(false);
        let mut lines = Vec::new();
        let mut watch = Watch {
            step: &mut |_| {},
            stop: &stop,
        };
        let script = "echo one; echo 'x.c:1: error: no' >&2; echo 'make: *** end' >&2; exit 2";
        let mut shell = Command::new("sh");
        let ran = run(
            shell.args(["-c", script]),
            &log,
            &mut watch,
            &mut |line, _| {
                lines.push(line.to_owned());
            },
        );
        let error = ran.expect_err("it fails").to_string();
        assert!(
            error.contains("sh failed: x.c:1: error: no (all of it: "),
            "{error}"
        );
        assert_eq!(lines, ["one"]);
    }

    #[test]
    fn what_is_not_wanted_any_more_ends_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let stop = AtomicBool::new(false);
        let mut watch = Watch {
            step: &mut |_| {},
            stop: &stop,
        };
        let begun = Instant::now();
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo started; sleep 60 & wait"]);
        let log = folder.path().join("log");
        let ran = run(&mut shell, &log, &mut watch, &mut |_, _| {
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(ran.expect_err("it is ended").kind, ErrorKind::Interrupted);
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
