// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why somebody waited: findings of a trace, with what is known beside it.
//!
//! ```no_run
//! use blklab::why::{context_at, why};
//! use blklab::trace::TraceFile;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = context_at("context.txt".as_ref(), &blklab::targets::catalogue())?;
//! let report = why(&mut TraceFile::open("sda.blktrace.0".as_ref())?, context)?;
//! for finding in &report.findings {
//!     println!("{}: {}", finding.kind, finding.what);
//! }
//! # Ok(())
//! # }
//! ```

use crate::relay::send_all;
use blklab_analysis::findings::slow::{Life, Lives, Which};
use blklab_analysis::findings::{Context, Detector, Evidence, Reading, Report, Search};
use blklab_experiment::{Catalogue, Experiment, NAMED_BYTES_MAX, read_named};
use blklab_fio::job::Job;
use blklab_fio::settings::SyncWrites;
use blklab_formats::blkparse::line_of;
use blklab_formats::{FormatError, TraceFile};
use blklab_sched::Schedulers;
use blklab_target::{JobText, Outcome, Plan, Sinks};
use blklab_trace::{NullSink, POINTS, TraceSink};
use blklab_types::{Error, IoPrio};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Files of a copied folder of sysfs that are read, at most.
const FILES_MAX: usize = 4096;

/// What was found in a trace, which is read to its end.
///
/// # Errors
/// If it cannot be read.
pub fn why(input: &mut TraceFile, context: Context) -> Result<Report, FormatError> {
    why_and(input, context, NullSink)
}

/// The same; `also` sees all events.
///
/// # Errors
/// If it cannot be read.
pub fn why_and(
    input: &mut TraceFile,
    context: Context,
    also: impl TraceSink,
) -> Result<Report, FormatError> {
    search_and(input, Search::all(context), also)
}

/// What a search finds in a trace, which is read to its end; `also` sees all events.
///
/// # Errors
/// If it cannot be read.
pub fn search_and(
    input: &mut TraceFile,
    wanted: Search,
    also: impl TraceSink,
) -> Result<Report, FormatError> {
    let mut both = (search(input, wanted), also);
    send_all(input, &mut both)?;
    let reading = reading(input);
    Ok(both.0.finish(reading))
}

/// What a search finds in the events of a run while it goes on, what `also` made of them, and
/// what came of the run. Setting `stop` ends it early.
///
/// # Errors
/// If the target fails.
pub fn why_of_run<A: TraceSink + 'static>(
    plan: &Plan,
    wanted: Search,
    also: A,
    stop: Arc<AtomicBool>,
) -> Result<(Report, A, Outcome), Error> {
    let both = Rc::new(RefCell::new(Some((wanted, also))));
    let outcome = send_run(plan, Rc::clone(&both), stop)?;
    // Tasks that still sleep hold the machine, and with it the sink.
    let (search, also) = both.borrow_mut().take().expect("nobody else takes it");
    Ok((search.finish(Reading::default()), also, outcome))
}

/// Sends the events of a run while it goes on.
///
/// # Errors
/// If the target fails.
pub fn send_run(
    plan: &Plan,
    sink: impl TraceSink + 'static,
    stop: Arc<AtomicBool>,
) -> Result<Outcome, Error> {
    let sinks = Sinks::of_events(Box::new(sink));
    Ok(plan.run(sinks, stop)?)
}

/// Single requests of a trace with their lives, and the report that
/// [`line()`] needs.
///
/// # Errors
/// If it cannot be read.
pub fn lives(input: &mut TraceFile, which: Which) -> Result<(Vec<Life>, Report), FormatError> {
    lives_and(input, which, NullSink)
}

/// The same; `also` sees all events.
///
/// # Errors
/// If it cannot be read.
pub fn lives_and(
    input: &mut TraceFile,
    which: Which,
    also: impl TraceSink,
) -> Result<(Vec<Life>, Report), FormatError> {
    let lives = Lives::new(which);
    let detector: Box<dyn Detector> = Box::new(lives.clone());
    let asked = Search::with(vec![detector], Context::default());
    let mut both = (search(input, asked), also);
    send_all(input, &mut both)?;
    let report = both.0.finish(reading(input));
    Ok((lives.take(), report))
}

/// A search that knows whether the flags of a trace's writes say who waits for them.
fn search(input: &TraceFile, search: Search) -> Search {
    if input.says_flags() {
        search
    } else {
        search.without_flags()
    }
}

/// What the reader of a trace says about it.
pub fn reading(input: &TraceFile) -> Reading {
    let counts = input.counts();
    Reading {
        lost: counts.lost + counts.left_out + counts.missing,
        elided: counts.elided,
        losses_unsaid: !input.says_losses(),
    }
}

/// The line of an event in a report, as blkparse prints it, with the event's number in
/// the trace where blkparse shows its number on its CPU.
pub fn line(evidence: &Evidence, report: &Report, times_as_given: bool) -> String {
    let event = &evidence.event;
    let time_ns = if times_as_given {
        event.time.0
    } else {
        event.time.0.saturating_sub(report.start.0)
    };
    let comm = report.names.get(event.pid);
    // blkparse shows the error of a completion where others have the process.
    let text = evidence.text.as_deref().unwrap_or_default();
    // A message has no column for the process; of another part's event it says whose it is.
    let is_beside = |text: &str| POINTS.iter().any(|p| text.starts_with(p.name));
    if event.pid > 0 && is_beside(text) {
        let who = comm.map_or_else(|| event.pid.to_string(), str::to_owned);
        let text = format!("{text} [{who}]");
        return line_of(event, evidence.number, time_ns, None, &text);
    }
    line_of(event, evidence.number, time_ns, comm, text)
}

/// Reads a context: a file of `key=value` lines, an experiment file, or a copy of
/// `/sys/block/DEVICE` (or a folder with one in it beside `context.txt`).
///
/// # Errors
/// One line: the file, the line in it, what is wrong.
pub fn context_at(path: &Path, catalogue: &Catalogue) -> Result<Context, Error> {
    if path.extension().is_some_and(|e| e == "toml" || e == "json") {
        return context_of(&blklab_experiment::load(path, catalogue)?, catalogue);
    }
    if !path.is_dir() {
        return read(path);
    }
    let mut context = Context::default();
    let own = path.join("context.txt");
    if own.is_file() {
        context.add(read(&own)?);
    }
    let mut files = 0;
    // What a copy of `queue` alone holds is below `queue`.
    let prefix = if path.join("nr_requests").is_file() {
        "queue/"
    } else {
        ""
    };
    add_folder(&mut context, path, prefix, &mut files)?;
    if context.is_empty() {
        let shown = path.display().to_string();
        return Err(Error::new(
            "neither context.txt nor a copy of /sys/block/DEVICE (queue/nr_requests and the like)",
        )
        .in_file(&shown));
    }
    Ok(context)
}

fn read(path: &Path) -> Result<Context, Error> {
    let name = path.display().to_string();
    let text = read_named(path, NAMED_BYTES_MAX).map_err(|e| e.in_file(&name))?;
    Context::parse(&text).map_err(|e| {
        Error {
            line: (e.line > 0).then_some(e.line),
            ..Error::new(e.to_string())
        }
        .in_file(&name)
    })
}

/// Takes the attributes of a copied folder: what is below `queue` and `device`.
fn add_folder(
    context: &mut Context,
    dir: &Path,
    prefix: &str,
    files: &mut usize,
) -> Result<(), Error> {
    let fail = |e: std::io::Error| {
        Error::new(format!("cannot read it: {e}")).in_file(&dir.display().to_string())
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        entries.push(entry.map_err(fail)?);
    }
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let key = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(fail)?;
        let wanted = ["queue", "queue/iosched", "device"].contains(&key.as_str());
        if kind.is_dir() && wanted {
            add_folder(context, &entry.path(), &format!("{key}/"), files)?;
        } else if kind.is_file() && (key.starts_with("queue/") || key == "device/queue_depth") {
            *files += 1;
            if *files > FILES_MAX {
                return Err(fail(std::io::Error::other("too many files")));
            }
            let shown = entry.path().display().to_string();
            let text = std::fs::read_to_string(entry.path())
                .map_err(|e| Error::new(format!("cannot read it: {e}")).in_file(&shown))?;
            context
                .set(&key, text.trim())
                .map_err(|e| Error::new(e.to_string()).in_file(&shown))?;
        }
    }
    Ok(())
}

/// What an experiment says about its machine.
///
/// # Errors
/// If the experiment cannot run.
pub fn context_of(e: &Experiment, catalogue: &Catalogue) -> Result<Context, Error> {
    let mut facts: Vec<(String, String)> = vec![
        ("kernel".into(), e.kernel.to_string()),
        ("device".into(), e.device.name.clone()),
        ("queue/scheduler".into(), format!("[{}]", e.scheduler)),
    ];
    let queue = e.queue_facts(catalogue)?;
    let cache = if queue.write_back {
        "write back"
    } else {
        "write through"
    };
    for (key, value) in [
        ("queue/max_sectors_kb", (queue.max_sectors / 2).to_string()),
        ("queue/max_segments", queue.max_segments.to_string()),
        ("queue/rotational", u8::from(queue.rotational).to_string()),
        ("queue/nomerges", queue.nomerges.to_string()),
        ("queue/write_cache", cache.to_owned()),
        ("queue/nr_requests", queue.nr_requests.to_string()),
        (
            "queue/read_ahead_kb",
            (queue.read_ahead_bytes >> 10).to_string(),
        ),
        ("device/queue_depth", queue.queue_depth.to_string()),
    ] {
        facts.push((key.to_owned(), value));
    }
    if queue.discard_max_bytes > 0 {
        let bytes = queue.discard_max_bytes.to_string();
        facts.push(("queue/discard_max_bytes".into(), bytes));
    }
    if let Some(us) = e.queue.wbt_lat_usec {
        facts.push(("queue/wbt_lat_usec".into(), us.to_string()));
    }
    let (_, tunables) = e.scheduler(catalogue)?;
    for name in tunables.names() {
        let value = tunables.get(name);
        facts.push((format!("queue/iosched/{name}"), value.to_string()));
    }
    for group in &e.cgroups {
        for (file, value) in group.files() {
            // The root's files are those of the device.
            let key = if group.is_root() {
                file.to_owned()
            } else {
                format!("cgroup.{}.{file}", group.name)
            };
            facts.push((key, value));
        }
    }
    facts.extend(members(e)?);
    facts.extend(priorities(e)?);
    facts.extend(buffered_writers(e)?);
    let mut context = Context::default();
    for (key, value) in facts {
        context
            .set(&key, &value)
            .map_err(|e| Error::new(e.to_string()))?;
    }
    Ok(context)
}

/// Which jobs are in which control groups, where any is in one: processes have the names
/// of their jobs.
fn members(e: &Experiment) -> Result<Vec<(String, String)>, Error> {
    let Some(text) = JobText::of_experiment(e)? else {
        return Ok(Vec::new());
    };
    let mut members: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for job in &text.jobs.jobs {
        let group = job.settings.cgroup.as_deref().unwrap_or("/");
        members.entry(group).or_default().push(&job.name);
    }
    if members.keys().all(|group| *group == "/") {
        return Ok(Vec::new());
    }
    let said = members.into_iter().map(|(group, mut names)| {
        // They stand apart by blanks.
        names.retain(|name| !name.contains(char::is_whitespace));
        (format!("cgroup.{group}.processes"), names.join(" "))
    });
    Ok(said.collect())
}

/// The jobs of fio in order, and the I/O priorities of those that have one; nothing if none
/// has.
fn priorities(e: &Experiment) -> Result<Vec<(String, String)>, Error> {
    let Some(text) = JobText::of_experiment(e)? else {
        return Ok(Vec::new());
    };
    let jobs = &text.jobs.jobs;
    let is_one_word = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if !jobs.iter().all(|job| is_one_word(&job.name)) {
        return Ok(Vec::new());
    }
    let has_one = |job: &&Job| job.ioprio() != IoPrio::default();
    let said = jobs.iter().filter(has_one);
    let said = said.map(|job| (format!("ioprio.{}", job.name), job.ioprio().to_string()));
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let in_order = ("fio_jobs".to_owned(), names.join(" "));
    Ok(said.chain([in_order]).collect())
}

/// The jobs that write through the page cache and leave the rest to write-back.
fn buffered_writers(e: &Experiment) -> Result<Option<(String, String)>, Error> {
    let Some(text) = JobText::of_experiment(e)? else {
        return Ok(None);
    };
    let mut names: Vec<&str> = Vec::new();
    for job in &text.jobs.jobs {
        let s = &job.settings;
        let waits = s.direct || s.sync != SyncWrites::None || s.fsync + s.fdatasync > 0;
        if s.rw.writes && !waits && !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    let said = |names: Vec<&str>| ("buffered_writers".to_owned(), names.join(", "));
    Ok(Some(names).filter(|names| !names.is_empty()).map(said))
}

/// Sets one fact by its short name: `nr_requests=8`, `slice_idle=0`.
///
/// # Errors
/// If the name is neither of the queue nor of a scheduler, or the value cannot be.
pub fn set(context: &mut Context, setting: &str, schedulers: Schedulers) -> Result<(), Error> {
    let Some((name, value)) = setting.split_once('=') else {
        let what = format!("{}: expected KEY=VALUE", blklab_types::shown(setting));
        return Err(Error::new(what));
    };
    let name = name.trim();
    let tunables = schedulers
        .iter()
        .flat_map(|s| s.tunables.iter().map(|t| t.name));
    let mut known: Vec<&str> = Context::queue_names().chain(tunables).collect();
    known.sort_unstable();
    known.dedup();
    if !name.contains(['/', '.']) && !known.contains(&name) {
        let text = blklab_types::no_such("setting of a context", name, &known);
        return Err(Error::new(text));
    }
    let set = context.set_short(name, value);
    set.map_err(|e| Error::new(e.to_string()))
}
