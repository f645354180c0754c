// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab record`.

use crate::Outcome;
use crate::args::RecordArgs;
use crate::guard::{Guard, Place};
use crate::interrupt::Interrupt;
use crate::output::{bytes, time};
use crate::source::context_path;
use crate::trigger::Watch;
use anyhow::{Context as _, Result, bail};
use blklab::findings::counted;
use blklab::trace::{Action, Event, Rwbs, TraceSink, TraceSource as _};
use blklab::trace_file::{self, TraceFile};
use blklab_record::{
    Disk, GROUPS, Group, Members, Options, Recorded, Recorder, Roots, Writers, all_disks, clean,
    context_of, find_disk, priorities,
};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at what processes have written.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);

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
        keep: keep(a),
        is_watched: a.trigger.is_some(),
        has_stacks: a.stacks,
    };
    let interrupt = Interrupt::watch();
    let ending = Ending::watch()?;
    let mut writers = Writers::default();
    let mut members = Members::default();
    writers.look(&roots);
    members.look(&roots);
    let mut recorder = Recorder::start(&roots, &options, trace.path())?;
    let (begun, used_ns) = (Instant::now(), processor_ns());
    let look = || {
        writers.look(&roots);
        members.look(&roots);
    };
    let ended = run(a, &mut recorder, &interrupt, &ending, look)?;
    let took = begun.elapsed();
    let used_ns = processor_ns()
        .zip(used_ns)
        .map(|(now, then)| now.saturating_sub(then));
    let recorded = recorder.finish(&roots)?;
    report(a, &recorded, took, used_ns)?;
    let amounts = amounts(&a.output)?;
    let writers = writers.names(|pid| amounts.written.get(&pid).copied().unwrap_or(0));
    let mut found = members.lines(&roots, amounts.tasks.iter().copied());
    found.extend(priorities(amounts.tasks.iter().copied()));
    if !writers.is_empty() {
        found.push(format!("{WRITERS}{}", writers.join(", ")));
    }
    write_contexts(&contexts, &places, disk.is_some(), &amounts, &found)?;
    if a.stacks && recorded.nr_stacks == 0 && !amounts.queued.is_empty() {
        bail!(
            "--stacks: {} has no stacks: before Linux 5.17 (and stable releases of March 2022) the \
             kernel writes them to tracefs's own buffer, not to that of an instance",
            a.output.display()
        );
    }
    Ok(match ended {
        Some(status) if !status.success() => {
            let name = Path::new(&a.command[0]).display();
            writeln!(std::io::stderr(), "blklab: {name} ended with {status}")?;
            Outcome::JobFailed
        }
        _ => Outcome::Done,
    })
}

/// What is kept with a trigger where nothing else is said.
const KEPT: Duration = Duration::from_secs(10);

/// How much of the recording is kept; all of it if there is none.
fn keep(a: &RecordArgs) -> Option<Duration> {
    let last = a.last.map(Duration::from_nanos);
    last.or_else(|| a.trigger.is_some().then_some(KEPT))
}

/// What this thread has used of processors (`/proc/PID/schedstat`), ns; none where the kernel
/// does not count it.
fn processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
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
                let there = there.as_deref().map(without_found);
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
    mut look: impl FnMut(),
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
        let until = match (&a.trigger, a.duration_ns) {
            (Some(trigger), _) => format!("until an I/O takes longer: {trigger}"),
            (None, Some(ns)) => format!("for {}", time(ns as f64)),
            (None, None) => "until Ctrl-C".to_owned(),
        };
        writeln!(std::io::stderr(), "recording {until}")?;
    }
    let mut end = a
        .duration_ns
        .map(|ns| Instant::now() + Duration::from_nanos(ns));
    let mut watch = a.trigger.map(Watch::new);
    let mut looked = Instant::now();
    loop {
        match &mut watch {
            Some(waiting) => {
                recorder.drain_to(waiting)?;
                if let Some(hit) = waiting.hit() {
                    let then = Duration::from_nanos(a.then);
                    end = Some(Instant::now() + then);
                    writeln!(std::io::stderr(), "trigger: {hit}")?;
                    watch = None;
                }
            }
            None => recorder.drain()?,
        }
        if looked.elapsed() >= BETWEEN_LOOKS {
            look();
            looked = Instant::now();
        }
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
            Some(Duration::ZERO) => {
                if let (Some(_), Some(trigger)) = (&watch, &a.trigger) {
                    writeln!(std::io::stderr(), "no I/O took so long: {trigger}")?;
                }
                return Ok(None);
            }
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

fn report(a: &RecordArgs, recorded: &Recorded, took: Duration, used_ns: Option<u64>) -> Result<()> {
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
    if let Some(keep) = keep(a) {
        let what = "the last of these events alone are kept";
        writeln!(err, "{what}: {}", time(keep.as_nanos() as f64))?;
    }
    if recorded.is_cut {
        writeln!(
            err,
            "blklab: less than that is kept: it takes more than 1 GiB; fewer groups, a DEVICE or a \
             shorter --last"
        )?;
    }
    if let Some(used_ns) = used_ns {
        let part = used_ns as f64 / took.as_nanos().max(1) as f64;
        writeln!(
            err,
            "overhead: the recorder used {:.1} % of a processor, beside what the kernel takes for \
             each event",
            part * 100.0
        )?;
    }
    if a.stacks {
        writeln!(
            err,
            "{} of who queued bios",
            counted(recorded.nr_stacks, "stacks")
        )?;
    }
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

/// Writes the contexts: of the disk that was asked for, else of those that had I/O, the
/// one with most under the trace's own name.
fn write_contexts(
    contexts: &[(&Disk, String)],
    places: &ContextPlaces,
    is_one: bool,
    amounts: &Amounts,
    found: &[String],
) -> Result<()> {
    let mut wanted: Vec<&(&Disk, String)> = contexts.iter().collect();
    if !is_one {
        let amounts = &amounts.queued;
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
        let known = std::fs::read_to_string(place.path()).unwrap_or_default();
        if without_found(&known) != *text {
            place.write_new(text.as_bytes())?;
        }
        place.write(with_found(text, found).as_bytes())?;
        writeln!(err, "context of {}: {}", disk.name, place.path().display())?;
    }
    if wanted.is_empty() {
        writeln!(err, "no device had I/O")?;
    }
    Ok(())
}

/// What is found out while it is recorded, and is no setting.
const WRITERS: &str = "buffered_writers=";

/// Likewise, of control groups.
const SUBMITTERS: &str = ".submitters";

fn with_found(context: &str, found: &[String]) -> String {
    let found = found.iter().map(|line| format!("{line}\n"));
    context.to_owned() + &found.collect::<String>()
}

fn without_found(context: &str) -> String {
    let is_found = |line: &&str| {
        let key = line.split('=').next().unwrap_or_default();
        line.starts_with(WRITERS) || (key.starts_with("cgroup.") && key.ends_with(SUBMITTERS))
    };
    let lines = context.lines().filter(|line| !is_found(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Bios by device, who queued them, and bytes that processes have written themselves.
#[derive(Default)]
struct Amounts {
    queued: BTreeMap<(u32, u32), u64>,
    written: BTreeMap<u32, u64>,
    /// The tasks that queued bios.
    tasks: BTreeSet<u32>,
}

impl TraceSink for Amounts {
    fn event(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let key = (event.dev.major.into(), event.dev.minor.into());
            *self.queued.entry(key).or_default() += 1;
            self.tasks.insert(event.pid);
            if event.rwbs.has(Rwbs::WRITE) {
                *self.written.entry(event.pid).or_default() += u64::from(event.bytes);
            }
        }
    }
}

fn amounts(trace: &Path) -> Result<Amounts> {
    let mut amounts = Amounts::default();
    TraceFile::open(trace)?.send_all(&mut amounts)?;
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_no_setting() {
        let context = "device=sda\ncgroup.slow.processes=7\n";
        let found = ["cgroup.slow.submitters=7 8", "buffered_writers=cp"].map(str::to_owned);
        let whole = with_found(context, &found);
        assert!(
            whole.ends_with("submitters=7 8\nbuffered_writers=cp\n"),
            "{whole}"
        );
        assert_eq!(without_found(&whole), context);
    }

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
