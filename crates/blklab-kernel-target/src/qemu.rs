// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel that QEMU boots: an image of a distribution, on one or more processors.
//!
//! In virtual time QEMU translates instructions and counts them: each takes a nanosecond,
//! whichever processor it is of, one processor runs at a time, and where all sleep the
//! clock goes on to the next timer at once. Nothing that happens in the machine depends on
//! when something happens outside: there are no disks, whose reads would end at some time;
//! what comes out goes through a port, where a write ends within the instruction that
//! asked for it. The threads of QEMU share one processor of this machine: its main loop is
//! woken by each timer of the machine, and where it looks at the clock while processors run
//! beside it, it may move the clock or run the next timer itself, and another processor of
//! the machine is next (QEMU 7.2, `icount_start_warp_timer`, `icount_handle_deadline`).

use crate::build::find_program;
use crate::failed::failed;
use crate::host::Traffic;
use crate::machine::{Clock, Ended, Machine, Running, with_last_words};
use crate::userland::Userland;
use crate::workplace::Workplace;
use blklab_types::{Error, Time};
use rustix::thread::CpuSet;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The program, and its package in Debian.
const QEMU: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");
/// The device of KVM.
const KVM: &str = "/dev/kvm";
/// What the machine calls the port for results.
const PORT: &str = "vport0p1";
/// Most processors of the kind of machine that is used.
pub(crate) const PROCESSORS_MAX: u32 = 255;
/// MiB of translated instructions that are kept.
const TRANSLATED_MIB: u32 = 256;
/// What QEMU says of a processor that KVM cannot run; it goes on standing still.
const KVM_FAILED: &str = "KVM internal error";
/// What the console shows once the kernel has started.
const STARTED: &str = "blklab: started";
/// A kernel starts within this, even where this machine has much else to do.
const STARTS_WITHIN: Duration = Duration::from_secs(600);
/// Between two looks at a machine that runs.
const INTERVAL: Duration = Duration::from_millis(20);

/// Refuses to begin where there is no QEMU, or no KVM if that is asked for.
///
/// # Errors
/// What is missing.
pub(crate) fn check(clock: Clock) -> Result<(), Error> {
    let (program, package) = QEMU;
    if find_program(program).is_none() {
        return Err(failed(&format!(
            "{program} is not there: apt-get install {package}"
        )));
    }
    if clock == Clock::Virtual {
        return Ok(());
    }
    let opened = File::options().read(true).write(true).open(KVM);
    opened.map(|_| ()).map_err(|e| {
        failed(&format!(
            "KVM cannot be used ({e}); the target qemu needs none"
        ))
        .in_file(KVM)
    })
}

/// Runs a machine to its end.
///
/// # Errors
/// As [`Machine::run`].
pub(crate) fn run(machine: &Machine<'_>, stop: &AtomicBool) -> Result<Ended, Error> {
    check(machine.clock)?;
    let folder = Workplace::new()?;
    let files = Files::below(folder.path());
    let script = &machine.userland.script;
    let userland = Userland {
        script: format!("echo {STARTED} > /dev/console\n{script}"),
        ..machine.userland.clone()
    };
    userland.write(machine.kernel, PORT, Path::new(&files.initramfs))?;
    let child = command(machine, &files)?.spawn();
    let child = child.map_err(|e| failed(&format!("QEMU cannot be run: {e}")))?;
    let mut running = Running(child);
    let ended = wait(machine, &mut running, &files, stop);
    ended.map_err(|e| files.with_last_words(e))?;
    let results = File::open(&files.results);
    let results = results.map_err(|e| failed(&format!("results cannot be read: {e}")))?;
    let has_results = results.metadata().is_ok_and(|m| m.len() > 0);
    if !has_results {
        let who = if files.has_messages() {
            "QEMU has given up"
        } else {
            "the kernel has died"
        };
        return Err(files.with_last_words(failed(who)));
    }
    Ok(Ended {
        results,
        traffic: Traffic::default(),
        kept_bytes: Vec::new(),
        begun: Time::ZERO,
    })
}

/// The files of a machine.
struct Files {
    initramfs: String,
    results: String,
    console: String,
    /// What QEMU itself says.
    messages: String,
}

impl Files {
    fn below(folder: &Path) -> Files {
        let path = |name: &str| folder.join(name).display().to_string();
        Files {
            initramfs: path("initramfs"),
            results: path("results"),
            console: path("console"),
            messages: path("messages"),
        }
    }

    /// Whether QEMU itself has said anything.
    fn has_messages(&self) -> bool {
        std::fs::metadata(&self.messages).is_ok_and(|m| m.len() > 0)
    }

    /// Whether KVM has given up on the machine.
    fn has_failed_in_kvm(&self) -> bool {
        std::fs::read_to_string(&self.messages).is_ok_and(|text| text.contains(KVM_FAILED))
    }

    /// Whether the kernel has come as far as to run a program.
    fn has_started(&self) -> bool {
        std::fs::read(&self.console).is_ok_and(|bytes| {
            let mut windows = bytes.windows(STARTED.len());
            windows.any(|w| w == STARTED.as_bytes())
        })
    }

    /// The error with what QEMU says, else with what the kernel says.
    fn with_last_words(&self, e: Error) -> Error {
        let from = if self.has_messages() {
            &self.messages
        } else {
            &self.console
        };
        with_last_words(e, Path::new(from))
    }
}

/// Waits for the end of a machine.
fn wait(
    machine: &Machine<'_>,
    running: &mut Running,
    files: &Files,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut has_started = false;
    while !running.has_ended() {
        machine.go_on(begun, stop)?;
        if !has_started && begun.elapsed() > STARTS_WITHIN {
            has_started = files.has_started();
            if !has_started {
                return Err(not_started(machine));
            }
        }
        if machine.clock == Clock::Real && files.has_failed_in_kvm() {
            return Err(failed("KVM cannot run the kernel on this machine"));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(())
}

fn not_started(machine: &Machine<'_>) -> Error {
    let seconds = STARTS_WITHIN.as_secs();
    let mut what = format!("the kernel has not started within {seconds} s");
    if machine.processors > 1 {
        // 6.1 waits for its second processor without ever letting it run.
        what.push_str("; with several processors not every release does");
    }
    failed(&what).about("cpus")
}

fn command(machine: &Machine<'_>, files: &Files) -> Result<Command, Error> {
    let messages = File::create(&files.messages).map_err(|e| unwritten(&files.messages, &e))?;
    let output = messages
        .try_clone()
        .map_err(|e| unwritten(&files.messages, &e))?;
    // It ends with us, whatever ends us.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    if machine.clock == Clock::Virtual {
        let processor = next_processor()?;
        command.args(["taskset", "-c", &processor.to_string()]);
    }
    command
        .arg(QEMU.0)
        .args(arguments(machine, files))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", "/")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(messages)
        .process_group(0);
    Ok(command)
}

/// The processor of this machine for the next QEMU: all that may be used, in turn, so that
/// machines that run side by side have one each.
fn next_processor() -> Result<usize, Error> {
    static MACHINES: AtomicUsize = AtomicUsize::new(0);
    let usable = rustix::thread::sched_getaffinity(None);
    let usable = usable.map_err(|e| failed(&format!("no processor can be chosen: {e}")))?;
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&i| usable.is_set(i)).collect();
    let first = usize::try_from(std::process::id()).unwrap_or(0);
    let turn = first.wrapping_add(MACHINES.fetch_add(1, Ordering::Relaxed));
    Ok(processors[turn % processors.len()])
}

fn unwritten(file: &str, e: &io::Error) -> Error {
    failed(&format!("cannot be written: {e}")).in_file(file)
}

/// The command line of QEMU: a machine without anything that it is not told of, without a
/// network, and without a way to files of this machine but those that are named.
fn arguments(machine: &Machine<'_>, files: &Files) -> Vec<String> {
    let mut all: Vec<String> = [
        "-no-user-config",
        "-nodefaults",
        "-no-reboot",
        "-display",
        "none",
        "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
        "-machine",
        "pc,usb=off,vmport=off",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut push = |key: &str, value: String| all.extend([key.to_owned(), value]);
    match machine.clock {
        Clock::Virtual => {
            let translated = format!("tcg,thread=single,tb-size={TRANSLATED_MIB}");
            push("-accel", translated);
            push("-cpu", "qemu64".to_owned());
            push("-icount", "shift=0,sleep=off".to_owned());
            // What the kernel is given to make random numbers of.
            push("-seed", "1".to_owned());
            push("-rtc", "base=2009-01-01,clock=vm".to_owned());
        }
        Clock::Real => {
            push("-accel", "kvm".to_owned());
            push("-cpu", "host".to_owned());
            push("-rtc", "base=2009-01-01".to_owned());
        }
    }
    push("-smp", machine.processors.to_string());
    push("-m", format!("{}k", machine.memory_bytes >> 10));
    push("-kernel", machine.kernel.program().display().to_string());
    push("-initrd", files.initramfs.clone());
    push("-append", kernel_arguments(machine));
    push("-serial", format!("file:{}", quoted(&files.console)));
    push(
        "-chardev",
        format!("file,id=results,path={}", quoted(&files.results)),
    );
    push("-device", "virtio-serial-pci,ioeventfd=off".to_owned());
    push("-device", "virtserialport,chardev=results".to_owned());
    all
}

/// A path within an option of QEMU, where a comma is written twice.
fn quoted(path: &str) -> String {
    path.replace(',', ",,")
}

/// The kernel's command line.
fn kernel_arguments(machine: &Machine<'_>) -> String {
    let mut all = vec![
        "console=ttyS0",
        "quiet",
        "panic=-1",
        // Where something is, is no matter of chance.
        "nokaslr",
        "norandmaps",
        "random.trust_cpu=off",
        // What costs nothing here that it costs on a processor.
        "mitigations=off",
        "null_blk.nr_devices=0",
    ];
    if machine.clock == Clock::Virtual {
        // The counted instructions, without comparing them to other clocks.
        all.push("tsc=reliable");
    }
    all.extend(machine.arguments.iter().map(String::as_str));
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Files, arguments};
    use crate::build::Cache;
    use crate::machine::{Clock, Machine};
    use crate::userland::Userland;
    use std::path::Path;
    use std::time::Duration;

    fn line(clock: Clock, processors: u32) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let kernel = Cache::image_for_tests(folder.path());
        let machine = Machine {
            kernel: &kernel,
            memory_bytes: 1 << 30,
            userland: Userland::default(),
            arguments: vec!["quiet".to_owned()],
            disks: Vec::new(),
            processors,
            clock,
            time_limit: Duration::from_secs(1),
        };
        arguments(&machine, &Files::below(Path::new("/tmp/a,b"))).join(" ")
    }

    #[test]
    fn in_virtual_time_instructions_are_counted_and_nothing_is_of_this_machine() {
        let line = line(Clock::Virtual, 4);
        for part in [
            "-accel tcg,thread=single,",
            "-icount shift=0,sleep=off",
            "-seed 1",
            "-rtc base=2009-01-01,clock=vm",
            "-smp 4",
            "-m 1048576k",
            "-nodefaults",
            "nokaslr norandmaps",
            "tsc=reliable",
            "path=/tmp/a,,b/results",
            "-sandbox on,",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("kvm") && !line.contains("-net"), "{line}");
    }

    #[test]
    fn in_real_time_kvm_runs_the_kernel() {
        let line = line(Clock::Real, 1);
        assert!(
            line.contains("-accel kvm -cpu host -rtc base=2009-01-01 -smp 1"),
            "{line}"
        );
        assert!(!line.contains("icount") && !line.contains("tsc="), "{line}");
    }
}
