// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab record`.

use crate::Outcome;
use crate::args::RecordArgs;
use crate::guard::{Guard, Place};
use crate::interrupt::Interrupt;
use crate::output::{bytes, time};
use anyhow::{Context as _, Result, bail};
use blklab::findings::counted;
use blklab::trace::{Action, Event, TraceSink, TraceSource as _};
use blklab::trace_file::{self, TraceFile};
use blklab_record::{
    Disk, GROUPS, Group, Options, Recorded, Recorder, Roots, all_disks, clean, context_of,
    find_disk,
};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at the buffers.
const TURN: Duration = Duration::from_millis(50);

pub(crate) fn record(a: &RecordArgs) -> Result<Outcome> {
    if a.clean {
        return remove_left_behind();
    }
    let mut guard = Guard::default();
    let trace = trace_place(&a.output, &mut guard)?;
    let groups = groups(&a.also)?;
    let roots = Roots::of_machine()?;
    let disk = a
        .device
        .as_deref()
        .map(|d| find_disk(&roots, d))
        .transpose()?;
    // What may change or vanish is looked at before.
    let disks = match &disk {
        Some(disk) => vec![disk.clone()],
        None => all_disks(&roots),
    };
    let contexts = disks.iter().map(|disk| (disk, context_of(&roots, disk)));
    let contexts: Vec<(&Disk, String)> = contexts.collect();
    let texts: Vec<(&str, &str)> = contexts
        .iter()
        .map(|(disk, text)| (disk.name.as_str(), text.as_str()))
        .collect();
    let places = ContextPlaces::new(&a.output, &texts, &mut guard)?;
    let options = Options {
        disk: disk.clone(),
        groups,
        buffer_kb: a.buffer,
    };
    let interrupt = Interrupt::watch();
    let ending = Ending::watch()?;
    let mut recorder = Recorder::start(&roots, &options, trace.path())?;
    let begun = Instant::now();
    let ended = run(a, &mut recorder, &interrupt, &ending)?;
    let took = begun.elapsed();
    let recorded = recorder.finish()?;
    report(a, &recorded, took)?;
    write_contexts(a, &contexts, &places, disk.is_some())?;
    Ok(match ended {
        Some(status) if !status.success() => {
            let name = Path::new(&a.command[0]).display();
            writeln!(std::io::stderr(), "blklab: {name} ended with {status}")?;
            Outcome::JobFailed
        }
        _ => Outcome::Done,
    })
}

fn remove_left_behind() -> Result<Outcome> {
    let roots = Roots::of_machine()?;
    let removed = clean(&roots.tracefs)?;
    let mut out = std::io::stdout().lock();
    match removed.as_slice() {
        [] => writeln!(out, "nothing was left behind")?,
        names => writeln!(out, "removed {}", names.join(", "))?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Groups by name, each once.
fn groups(names: &[String]) -> Result<Vec<&'static Group>> {
    let mut groups: Vec<&'static Group> = Vec::new();
    for name in names {
        let Some(group) = GROUPS.iter().find(|g| g.name == name) else {
            let known: Vec<&str> = GROUPS.iter().map(|g| g.name).collect();
            bail!("--also: {}", blklab::types::no_such("group", name, &known));
        };
        if !groups.iter().any(|g| g.name == group.name) {
            groups.push(group);
        }
    }
    Ok(groups)
}

/// Where the trace goes: it replaces nothing but a trace.
fn trace_place(output: &Path, guard: &mut Guard) -> Result<Place> {
    let place = guard.writes_whole(output, "-o")?;
    if output.exists() && !trace_file::is_trace(output) {
        bail!(
            "{} exists and is no trace; give another name or remove it",
            output.display()
        );
    }
    Ok(place)
}

/// Where contexts go.
struct ContextPlaces {
    /// Under the name of the trace.
    first: Place,
    /// Under the names of trace and disk.
    of_disks: BTreeMap<String, Place>,
}

impl ContextPlaces {
    /// For these disks and their contexts. A context that is there is not replaced: only one
    /// that says the same may be there.
    fn new(output: &Path, contexts: &[(&str, &str)], guard: &mut Guard) -> Result<ContextPlaces> {
        let mut place = |disk: Option<&str>, texts: &[&str]| -> Result<Place> {
            let path = context_path(output, disk);
            if path.symlink_metadata().is_ok() {
                let there = std::fs::read_to_string(&path).ok();
                if !there.is_some_and(|text| texts.contains(&text.as_str())) {
                    bail!(
                        "{} exists, and a context is not replaced: give the trace another name \
                         (-o), or remove it",
                        path.display()
                    );
                }
            }
            guard.writes_whole(&path, "-o")
        };
        let all: Vec<&str> = contexts.iter().map(|(_, text)| *text).collect();
        let first = place(None, &all)?;
        let mut of_disks = BTreeMap::new();
        if contexts.len() > 1 {
            for (disk, text) in contexts {
                of_disks.insert((*disk).to_owned(), place(Some(disk), &[text])?);
            }
        }
        Ok(ContextPlaces { first, of_disks })
    }
}

/// Records until it is over; how the command ended, if there is one.
fn run(
    a: &RecordArgs,
    recorder: &mut Recorder,
    interrupt: &Interrupt,
    ending: &Ending,
) -> Result<Option<ExitStatus>> {
    let mut child = match a.command.split_first() {
        Some((program, args)) => {
            let child = Command::new(program).args(args).spawn();
            let name = Path::new(program).display().to_string();
            Some(Running(
                child.with_context(|| format!("cannot run {name}"))?,
            ))
        }
        None => None,
    };
    if child.is_none() && std::io::stderr().is_terminal() {
        let until = match a.duration_ns {
            Some(ns) => format!("for {}", time(ns as f64)),
            None => "until Ctrl-C".to_owned(),
        };
        writeln!(std::io::stderr(), "recording {until}")?;
    }
    let end = a
        .duration_ns
        .map(|ns| Instant::now() + Duration::from_nanos(ns));
    loop {
        recorder.drain()?;
        if let Some(child) = &mut child {
            // Ctrl-C reaches it as well; what it then does is part of the trace. A signal for
            // us alone is passed on, once.
            if let Some(signal) = ending.take() {
                let pid = rustix::process::Pid::from_child(&child.0);
                // It may have ended just now.
                let _ = rustix::process::kill_process(pid, signal);
            }
            if let Some(status) = child.0.try_wait().context("cannot wait for the command")? {
                return Ok(Some(status));
            }
        } else if interrupt.stop.load(Ordering::Relaxed) || ending.take().is_some() {
            return Ok(None);
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        match left {
            Some(Duration::ZERO) => return Ok(None),
            left => std::thread::sleep(left.unwrap_or(TURN).min(TURN)),
        }
    }
}

/// Signals that ask to end, as `timeout`, service managers and closed terminals send them:
/// recording ends in order, as at Ctrl-C.
struct Ending([(Signal, Arc<AtomicBool>); 2]);

impl Ending {
    fn watch() -> Result<Ending> {
        let ending = Ending([Signal::TERM, Signal::HUP].map(|s| (s, Arc::default())));
        for (signal, came) in &ending.0 {
            signal_hook::flag::register(signal.as_raw(), Arc::clone(came))
                .context("cannot watch for signals")?;
        }
        Ok(ending)
    }

    /// One that came since it was asked last.
    fn take(&self) -> Option<Signal> {
        let came = self
            .0
            .iter()
            .find(|(_, came)| came.swap(false, Ordering::Relaxed));
        came.map(|(signal, _)| *signal)
    }
}

/// A command that runs; it is ended if recording fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

fn report(a: &RecordArgs, recorded: &Recorded, took: Duration) -> Result<()> {
    let mut err = std::io::stderr().lock();
    let shown = a.output.display();
    writeln!(
        err,
        "{} in {}, {} lost: {shown} ({})",
        counted(recorded.nr_events, "events"),
        time(took.as_nanos() as f64),
        recorded.nr_lost,
        bytes(recorded.bytes as f64)
    )?;
    if recorded.nr_lost > 0 {
        writeln!(
            err,
            "blklab: {} {} lost: the buffers of the CPUs were full; a larger --buffer, fewer groups \
             or a DEVICE keep more",
            counted(recorded.nr_lost, "events"),
            if recorded.nr_lost == 1 { "was" } else { "were" }
        )?;
    }
    if recorded.nr_unfollowed > 0 {
        writeln!(
            err,
            "blklab: switches of {} were not recorded: a filter holds no more tasks that submit I/O",
            counted(recorded.nr_unfollowed as u64, "tasks")
        )?;
    }
    Ok(())
}

/// `NAME.context.txt`, or `NAME.DISK.context.txt`.
fn context_path(output: &Path, disk: Option<&str>) -> PathBuf {
    let mut name = output.with_extension("").into_os_string();
    if let Some(disk) = disk {
        name.push(format!(".{disk}"));
    }
    name.push(".context.txt");
    name.into()
}

/// Writes the contexts: of the disk that was asked for, else of those that had I/O, the
/// one with most under the trace's own name.
fn write_contexts(
    a: &RecordArgs,
    contexts: &[(&Disk, String)],
    places: &ContextPlaces,
    is_one: bool,
) -> Result<()> {
    let mut wanted: Vec<&(&Disk, String)> = contexts.iter().collect();
    if !is_one {
        let amounts = amounts(&a.output)?;
        let amount = |disk: &Disk| amounts.get(&(disk.major, disk.minor)).copied();
        wanted.retain(|(disk, _)| amount(disk).is_some());
        wanted.sort_by_key(|(disk, _)| std::cmp::Reverse(amount(disk)));
    }
    let mut err = std::io::stderr().lock();
    for (i, (disk, text)) in wanted.iter().enumerate() {
        let place = match i {
            0 => &places.first,
            _ => &places.of_disks[&disk.name],
        };
        place.write_new(text.as_bytes())?;
        writeln!(err, "context of {}: {}", disk.name, place.path().display())?;
    }
    if wanted.is_empty() {
        writeln!(err, "no device had I/O")?;
    }
    Ok(())
}

/// Bios by device.
#[derive(Default)]
struct Amounts(BTreeMap<(u32, u32), u64>);

impl TraceSink for Amounts {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let key = (event.dev.major.into(), event.dev.minor.into());
            *self.0.entry(key).or_default() += 1;
        }
    }
}

fn amounts(trace: &Path) -> Result<BTreeMap<(u32, u32), u64>> {
    let mut amounts = Amounts::default();
    TraceFile::open(trace)?.send_all(&mut amounts)?;
    Ok(amounts.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_not_replaced() {
        let dir = tempfile::tempdir().expect("a folder");
        let output = dir.path().join("t.dat");
        let context = dir.path().join("t.context.txt");
        let places = |contexts: &[(&str, &str)]| {
            ContextPlaces::new(&output, contexts, &mut Guard::default()).map(drop)
        };
        let disks = [("sda", "device=sda\n"), ("sdb", "device=sdb\n")];
        places(&disks).expect("nothing is there");
        std::fs::write(&context, "device=sda\n").expect("written");
        places(&disks).expect("the same is there");
        std::fs::write(&context, "device=sda\nnote=mine\n").expect("written");
        let error = places(&disks).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "t.context.txt exists, and a context is not replaced: give the trace another \
                 name (-o), or remove it"
            ),
            "{error}"
        );
        std::fs::remove_file(&context).expect("removed");
        std::fs::write(dir.path().join("t.sdb.context.txt"), "mine").expect("written");
        assert!(places(&disks).is_err());
        places(&disks[..1]).expect("of the one disk there is none");
    }
}
