// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel that runs once: from its start until it switches itself off.

use crate::build::Built;
use crate::cpio::{self, TakeFile};
use crate::disk::{Disk, RESULTS_SECTORS};
use crate::failed::failed;
use crate::group;
use crate::host::{Host, Traffic};
use crate::userland::Userland;
use crate::workplace::Workplace;
use blklab_types::{Error, ErrorKind, Time};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Milliseconds from 1970 to the start of a machine: midnight of 1 January 2009, as with
/// the simulation, so that a run's text is the same at any hour.
pub const EPOCH_MS: u64 = 1_230_768_000_000;

/// A kernel that is asked for nothing any more ends within this.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// What the clock of a machine follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// What the machine does: runs repeat.
    Virtual,
    /// The clock of this machine: a run is another one each time.
    Real,
}

/// Lines of the console that an error shows.
const LINES_SHOWN: usize = 3;

/// What runs.
pub struct Machine<'a> {
    /// The kernel.
    pub kernel: &'a Built,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// What it finds and does.
    pub userland: Userland,
    /// More for the kernel's command line.
    pub arguments: Vec<String>,
    /// Its disks, where blklab keeps its clock: vda, vdb …
    pub disks: Vec<Disk>,
    /// Its processors, of which User Mode Linux has one.
    pub processors: u32,
    /// What its clock follows.
    pub clock: Clock,
    /// It ends with an error if it takes longer.
    pub time_limit: Duration,
}

/// What is left of a machine that has run.
pub struct Ended {
    pub(crate) results: File,
    /// What went between kernel and host while the run lasted.
    pub traffic: Traffic,
    /// When its script called `begin`, on its clock; its start if it did not.
    pub begun: Time,
    /// Memory that the data of its disks took, in their order.
    pub kept_bytes: Vec<u64>,
}

impl Ended {
    /// Its files: calls `file` with the name of each, its size and its bytes.
    ///
    /// # Errors
    /// If they did not arrive, or `file` fails.
    pub fn files(&self, file: &mut TakeFile<'_>) -> Result<(), Error> {
        let mut results = &self.results;
        let rewound = results.rewind();
        rewound.map_err(|e| failed(&format!("results cannot be read: {e}")))?;
        let from = BufReader::with_capacity(1 << 18, results);
        cpio::read(from, &mut |name, size, bytes| {
            file(name.trim_start_matches("./"), size, bytes)
        })
    }

    /// The bytes of one of them, which can be read beside others; none if it is not there.
    ///
    /// # Errors
    /// As [`Ended::files`].
    pub fn file(&self, name: &str) -> Result<Option<impl io::Read + use<>>, Error> {
        let mut found = None;
        let mut results = &self.results;
        let unread = |e: io::Error| failed(&format!("results cannot be read: {e}"));
        results.rewind().map_err(unread)?;
        let at = Cell::new(0);
        let from = Counted {
            from: BufReader::with_capacity(1 << 18, results),
            at: &at,
        };
        cpio::read(from, &mut |own, size, _| {
            if own.trim_start_matches("./") == name {
                found = Some((at.get(), at.get() + size));
            }
            Ok(())
        })?;
        let Some((at, end)) = found else {
            return Ok(None);
        };
        let results = self.results.try_clone().map_err(unread)?;
        Ok(Some(BufReader::with_capacity(
            1 << 16,
            Part { results, at, end },
        )))
    }
}

/// Counts the bytes that were read.
struct Counted<'a, R> {
    from: R,
    at: &'a Cell<u64>,
}

impl<R: io::Read> io::Read for Counted<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        self.at.set(self.at.get() + n as u64);
        Ok(n)
    }
}

/// One of the files that a machine left.
struct Part {
    results: File,
    at: u64,
    end: u64,
}

impl io::Read for Part {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = left.min(to.len());
        let n = self.results.read_at(&mut to[..len], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// A kernel that ends with this.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its processes are in a group with it.
        group::end(&mut self.0);
    }
}

impl Machine<'_> {
    /// Refuses to go on if it was stopped from outside or has taken too long.
    pub(crate) fn go_on(&self, begun: Instant, stop: &AtomicBool) -> Result<(), Error> {
        check_time(self.time_limit, begun, stop)
    }

    /// Runs it as a program of this machine, in its clock and with its disks.
    ///
    /// # Errors
    /// If the kernel dies, takes too long, breaks the protocol or is stopped.
    pub(crate) fn run_as_program(self, stop: &AtomicBool) -> Result<Ended, Error> {
        let folder = Workplace::new()?;
        let results = disk_name(self.disks.len());
        let archive = folder.path().join("initramfs");
        self.userland.write(self.kernel, &results, &archive)?;
        let mut disks = self.disks;
        disks.push(Disk::kept("results", RESULTS_SECTORS)?.marked());
        let last = disks.len() - 1;
        let mut host = Host::new(folder.path(), disks)?;
        let console = folder.path().join("console");
        let mut command = command(self.kernel, folder.path(), &console)?;
        command.arg(format!("mem={}K", self.memory_bytes >> 10));
        command.args(host.arguments()).args(&self.arguments);
        let child = command.spawn();
        let child = child.map_err(|e| failed(&format!("the kernel cannot be run: {e}")))?;
        let mut running = Running(child);
        let begun = Instant::now();
        let ended_early = Cell::new(false);
        let served = host.serve(&mut || {
            check_time(self.time_limit, begun, stop)?;
            if running.has_ended() {
                ended_early.set(true);
                return Err(failed("the kernel has died"));
            }
            Ok(())
        });
        // A kernel that switched itself off and one that died may look the same here.
        let served = match served {
            Err(_) if ended_early.get() && has_results(host.disk(last)) => Ok(()),
            served => served,
        };
        served.map_err(|e| with_last_words(e, &console))?;
        wait(&mut running).map_err(|e| with_last_words(e, &console))?;
        if !has_results(host.disk(last)) {
            return Err(with_last_words(failed("the kernel has died"), &console));
        }
        let results = host.disk(last).data().expect("they are kept");
        let results = results.try_clone();
        let kept_bytes = (0..last).map(|i| host.disk(i).kept_bytes()).collect();
        Ok(Ended {
            traffic: host.traffic_of_run(),
            begun: host.begun(),
            kept_bytes,
            results: results.map_err(|e| failed(&format!("results cannot be read: {e}")))?,
        })
    }
}

fn check_time(limit: Duration, begun: Instant, stop: &AtomicBool) -> Result<(), Error> {
    if stop.load(Ordering::Relaxed) {
        return Err(Error::interrupted());
    }
    if begun.elapsed() > limit {
        let seconds = limit.as_secs();
        return Err(failed(&format!(
            "the kernel has not ended within {seconds} s"
        )));
    }
    Ok(())
}

/// Whether anything was written.
fn has_results(disk: &Disk) -> bool {
    let file = disk.data();
    file.is_some_and(|f| f.metadata().is_ok_and(|m| m.len() > 0))
}

/// How the kernel calls a disk.
pub(crate) fn disk_name(i: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(i).unwrap_or(25).min(25));
    format!("vd{letter}")
}

fn command(kernel: &Built, folder: &Path, console: &Path) -> Result<Command, Error> {
    let output = File::create(console).and_then(|f| Ok((f.try_clone()?, f)));
    let (output, errors) = output.map_err(|e| {
        failed(&format!("cannot be written: {e}")).in_file(&console.display().to_string())
    })?;
    // It ends with us, whatever ends us.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(kernel.program());
    command.arg(format!("time-travel-start={}", EPOCH_MS * 1_000_000));
    command.args([
        // Names in the folder it runs in: a kernel stirs its command line into its random
        // numbers.
        "initrd=initramfs",
        "uml_dir=./",
        "umid=machine",
        "con=null",
        "con0=null,fd:1",
        "con1=null",
        "ssl=null",
        "quiet",
        "norandmaps",
        "panic=-1",
        "seccomp=on",
        "null_blk.nr_devices=0",
        "loop.max_loop=0",
        "zram.num_devices=0",
        "scsi_debug.add_host=0",
    ]);
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/")
        // The kernel uses the register that the C library would have for this.
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    Ok(command)
}

/// Waits for a kernel that has said its last word.
fn wait(running: &mut Running) -> Result<(), Error> {
    let begun = Instant::now();
    while !running.has_ended() {
        if begun.elapsed() > ENDS_WITHIN {
            return Err(failed(
                "the kernel has switched itself off and does not end",
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The error with the last lines of the console.
pub(crate) fn with_last_words(e: Error, console: &Path) -> Error {
    if e.kind == ErrorKind::Interrupted {
        return e;
    }
    let text = last_bytes(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    // A machine's own start clears a screen that is not there.
    let text = text.replace(|c: char| c.is_control() && c != '\n', " ");
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    if lines.is_empty() {
        return e;
    }
    // What it says of its end goes before the traces of calls behind that.
    let panic = lines.iter().rposition(|line| line.contains("Kernel panic"));
    let last = match panic {
        Some(at) => lines[at].to_owned(),
        None => lines[lines.len().saturating_sub(LINES_SHOWN)..].join(" | "),
    };
    let kind = e.kind;
    Error::new(format!("{}; its last words: {last}", e.what)).of_kind(kind)
}

fn last_bytes(path: &Path) -> io::Result<Vec<u8>> {
    const BYTES: u64 = 4096;
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(io::SeekFrom::Start(len.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
