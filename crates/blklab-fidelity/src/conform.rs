// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured cases: does the model do what the real kernel did?
//!
//! A case is an experiment file with explicit processes; the kernel's event
//! log lies beside it. *Identical* means that the sequence of Q, M, F, MM, G,
//! S, I, D, DS, C, E and X lines is the same, with time, process, direction,
//! sync, sector and length. Plug, unplug, timer and message lines are
//! compared too and reported apart.

mod disks;
mod fio;
mod machine;
mod measured_on;
mod table;

pub use disks::{DiskReport, run_disk};
pub use fio::{
    Decisions, FioBetween, FioFigure, FioReport, FioSummary, Variation, is_fio, run_fio_case,
    run_fio_case_on_kernel,
};
pub use machine::{Figure, MachineCase, MachineReport, is_machine, machine_cases};

use blklab_experiment::Workload;
use blklab_sim::{KBLOCKD_PID, LogLine, Sinks, TruthLog};
use blklab_trace::NullSink;
use blklab_types::Error;
use blklab_types::{Op, Time};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Outcome of one case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// Name of the case.
    pub id: String,
    /// Scheduler asked for.
    pub scheduler: String,
    /// Kernel release, as the case says it.
    pub kernel: String,
    /// Whether the case ran.
    pub ran: bool,
    /// Why it did not.
    pub skipped: Option<String>,
    /// Whether the log is the same, line for line.
    pub identical: bool,
    /// Share of dispatches (DS lines) before the first that differs.
    pub dispatch_prefix: f64,
    /// Dispatches recorded.
    pub dispatches: usize,
    /// Dispatches simulated.
    pub dispatches_simulated: usize,
    /// First difference, in words.
    pub first_difference: Option<String>,
    /// Whether plug, unplug and timer lines are the same too.
    pub side_lines_identical: bool,
    /// First difference among those.
    pub first_side_difference: Option<String>,
    /// Whether the scheduler's messages are the same too; none if the kernel
    /// recorded none.
    pub messages_identical: Option<bool>,
    /// First difference among those.
    pub first_message_difference: Option<String>,
    /// Latency per process and direction.
    pub latency: Vec<LatencyError>,
}

/// Latency of one process and direction, recorded and simulated.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyError {
    /// The process.
    pub pid: u32,
    /// read or write.
    pub rw: &'static str,
    /// Bios recorded and simulated.
    pub ios: [usize; 2],
    /// Mean latency in ns, recorded and simulated.
    pub mean_ns: [f64; 2],
    /// Largest latency in ns, recorded and simulated.
    pub max_ns: [u64; 2],
    /// Simulated mean over recorded mean, minus 1.
    pub mean_error: f64,
    /// Simulated maximum over recorded maximum, minus 1.
    pub max_error: f64,
}

/// Outcome of all cases.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Case by case, in order of their names.
    pub cases: Vec<CaseReport>,
    /// Measured disks, in order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskReport>,
    /// Cases of measured machines, in order of their tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineReport>,
    /// Measured fio jobs, in order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fio: Vec<FioReport>,
    /// Totals of those, by scheduler and of all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fio_summary: Vec<FioSummary>,
    /// Of the same cases on several kernels: their differences.
    pub fio_between: Vec<FioBetween>,
    /// Totals.
    pub summary: Summary,
}

/// Totals over cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Cases found.
    pub cases: usize,
    /// Cases that ran.
    pub ran: usize,
    /// Cases whose log is the same.
    pub identical: usize,
    /// Cases that ran and differ.
    pub different: usize,
    /// Cases that did not run.
    pub skipped: usize,
    /// Cases whose plug, unplug and timer lines are the same too.
    pub side_lines_identical: usize,
    /// Cases that ran and whose kernel recorded messages of the scheduler.
    pub with_messages: usize,
    /// Cases whose messages are the same too.
    pub messages_identical: usize,
}

impl Report {
    /// Totals of some case reports; disks, machines and fio jobs beside them.
    pub fn new(
        cases: Vec<CaseReport>,
        disks: Vec<DiskReport>,
        machines: Vec<MachineReport>,
        fio: Vec<FioReport>,
    ) -> Report {
        let count = |f: fn(&CaseReport) -> bool| cases.iter().filter(|c| f(c)).count();
        let summary = Summary {
            cases: cases.len(),
            ran: count(|c| c.ran),
            identical: count(|c| c.identical),
            different: count(|c| c.ran && !c.identical),
            skipped: count(|c| !c.ran),
            side_lines_identical: count(|c| c.ran && c.side_lines_identical),
            with_messages: count(|c| c.messages_identical.is_some()),
            messages_identical: count(|c| c.messages_identical == Some(true)),
        };
        Report {
            cases,
            disks,
            machines,
            fio_summary: FioSummary::all(&fio),
            fio_between: FioBetween::all(&fio),
            fio,
            summary,
        }
    }
}

/// Whether what [`find_cases`] found is a disk, for [`run_disk`].
pub fn is_disk(path: &Path) -> bool {
    disks::is_disk(path)
}

/// The folder of a measured set that its cases are in.
const CASES: &str = "cases";

/// The case files below some paths: files as given, folders (or their `cases/`, if
/// they have that) searched for `*.json` and `*.toml`, and for `*.diskspecs` with a trace
/// beside them, in order of their names.
///
/// # Errors
/// If a path cannot be read or holds no case.
pub fn find_cases(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut cases = Vec::new();
    for path in paths {
        let shown = path.display().to_string();
        let fail = |what: String| Error::new(what).in_file(&shown);
        if !path.is_dir() {
            cases.push(path.clone());
            continue;
        }
        let inner = Some(path.join(CASES)).filter(|inner| inner.is_dir());
        let entries = std::fs::read_dir(inner.as_ref().unwrap_or(path))
            .map_err(|e| fail(format!("cannot read: {e}")))?;
        let mut found = Vec::new();
        for entry in entries {
            let file = entry.map_err(|e| fail(format!("cannot read: {e}")))?.path();
            let of_disk = disks::is_disk(&file) && disks::trace_of(&file).is_file();
            let extension = file.extension().and_then(|e| e.to_str());
            if of_disk || matches!(extension, Some("json" | "toml")) {
                found.push(file);
            }
        }
        if found.is_empty() {
            return Err(fail(
                "no case (*.json, *.toml, *.diskspecs with *.trace) in this folder".into(),
            ));
        }
        found.sort();
        cases.append(&mut found);
    }
    Ok(cases)
}

/// Runs one case and compares it with the log recorded in `results` (by
/// default the folder `results` beside the case's own folder).
///
/// # Errors
/// If the case or its log cannot be read. A case that the model cannot run
/// yet is not an error but a skip.
pub fn run_case(case: &Path, results: Option<&Path>) -> Result<CaseReport, Error> {
    let catalogue = blklab_sim::catalogue();
    let experiment = blklab_experiment::load(case, &catalogue)?;
    let mut report = CaseReport {
        id: experiment.id.clone(),
        scheduler: experiment.scheduler.clone(),
        kernel: experiment.kernel.to_string(),
        ran: false,
        skipped: None,
        identical: false,
        dispatch_prefix: 0.0,
        dispatches: 0,
        dispatches_simulated: 0,
        first_difference: None,
        side_lines_identical: false,
        first_side_difference: None,
        messages_identical: None,
        first_message_difference: None,
        latency: Vec::new(),
    };
    let Workload::Processes(processes) = &experiment.workload else {
        return Err(Error::new(
            "a fio job, not a measured case: a case is an experiment file with 'processes'",
        )
        .in_file(&case.display().to_string()));
    };
    if let Err(e) = experiment.check(&catalogue) {
        report.skipped = Some(e.what);
        return Ok(report);
    }
    let dir = results.map_or_else(
        || case.parent().unwrap_or(Path::new("")).join("../results"),
        Path::to_path_buf,
    );
    let recorded = read_log(&dir, &experiment.id)?;
    let log = TruthLog::default();
    let sinks = Sinks {
        truth: Some(Box::new(log.clone())),
        ..Sinks::of_events(Box::new(NullSink))
    };
    let machine = blklab_sim::build_machine(&experiment, sinks, Arc::default())?;
    blklab_sim::spawn_processes(&machine, &experiment, processes);
    machine.run(Time::MAX);
    blklab_sim::check_progress(&machine)?;
    compare(&mut report, &recorded, &log.take());
    Ok(report)
}

/// Fills the report from the two logs.
fn compare(report: &mut CaseReport, recorded: &[Row], simulated: &[LogLine]) {
    report.ran = true;
    let simulated: Vec<Row> = simulated.iter().map(Row::from).collect();
    let (main, main_sim) = (pick(recorded, Row::is_main), pick(&simulated, Row::is_main));
    let main_diff = first_difference(&main, &main_sim, Row::same_main);
    report.identical = main_diff.is_none();
    report.first_difference = main_diff.map(|i| describe(&main, &main_sim, i));
    let (side, side_sim) = (pick(recorded, Row::is_side), pick(&simulated, Row::is_side));
    let side_diff = first_difference(&side, &side_sim, Row::same_side);
    report.side_lines_identical = side_diff.is_none();
    report.first_side_difference = side_diff.map(|i| describe(&side, &side_sim, i));
    let (said, said_sim) = (
        pick(recorded, Row::is_message),
        pick(&simulated, Row::is_message),
    );
    if !said.is_empty() {
        let diff = first_difference(&said, &said_sim, Row::same_message);
        report.messages_identical = Some(diff.is_none());
        report.first_message_difference = diff.map(|i| describe(&said, &said_sim, i));
    }
    let is_dispatch = |r: &Row| r.event == "DS";
    let (ds, ds_sim) = (pick(recorded, is_dispatch), pick(&simulated, is_dispatch));
    let same = ds
        .iter()
        .zip(&ds_sim)
        .take_while(|(a, b)| a.same_main(b))
        .count();
    report.dispatches = ds.len();
    report.dispatches_simulated = ds_sim.len();
    report.dispatch_prefix = if ds.is_empty() {
        1.0
    } else {
        same as f64 / ds.len() as f64
    };
    report.latency = latency_errors(recorded, &simulated);
}

fn pick(rows: &[Row], keep: impl Fn(&Row) -> bool) -> Vec<&Row> {
    rows.iter().filter(|r| keep(r)).collect()
}

fn first_difference(a: &[&Row], b: &[&Row], same: impl Fn(&Row, &Row) -> bool) -> Option<usize> {
    let common = a.iter().zip(b).take_while(|(x, y)| same(x, y)).count();
    (common < a.len() || common < b.len()).then_some(common)
}

fn describe(recorded: &[&Row], simulated: &[&Row], at: usize) -> String {
    let show = |r: Option<&&Row>| r.map_or("nothing".to_owned(), |r| r.show());
    format!(
        "line {}: recorded {}, simulated {}",
        at + 1,
        show(recorded.get(at)),
        show(simulated.get(at))
    )
}

fn latency_errors(recorded: &[Row], simulated: &[Row]) -> Vec<LatencyError> {
    #[derive(Default)]
    struct Sum {
        ios: usize,
        total_ns: f64,
        max_ns: u64,
    }
    let mut sums: BTreeMap<(u32, Op), [Sum; 2]> = BTreeMap::new();
    for (side, rows) in [recorded, simulated].into_iter().enumerate() {
        for r in rows.iter().filter(|r| r.event == "E") {
            let key = (r.pid, r.op.unwrap_or(Op::Read));
            let sum = &mut sums.entry(key).or_default()[side];
            sum.ios += 1;
            sum.total_ns += r.latency_ns as f64;
            sum.max_ns = sum.max_ns.max(r.latency_ns);
        }
    }
    let ratio = |a: f64, b: f64| if a > 0.0 { b / a - 1.0 } else { 0.0 };
    sums.into_iter()
        .map(|((pid, op), [a, b])| {
            let mean = |s: &Sum| {
                if s.ios == 0 {
                    0.0
                } else {
                    s.total_ns / s.ios as f64
                }
            };
            let mean_ns = [mean(&a), mean(&b)];
            let max_ns = [a.max_ns, b.max_ns];
            LatencyError {
                pid,
                rw: if op == Op::Read { "read" } else { "write" },
                ios: [a.ios, b.ios],
                mean_ns,
                max_ns,
                mean_error: ratio(mean_ns[0], mean_ns[1]),
                max_error: ratio(max_ns[0] as f64, max_ns[1] as f64),
            }
        })
        .collect()
}

/// One line of a log, recorded or simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    t_ns: u64,
    event: String,
    pid: u32,
    op: Option<Op>,
    sync: bool,
    sector: u64,
    nr_sectors: u32,
    latency_ns: u64,
    text: String,
}

impl From<&LogLine> for Row {
    fn from(l: &LogLine) -> Row {
        Row {
            t_ns: l.t_ns,
            event: l.event.to_owned(),
            // The measured kernel's deferred work ran as process 0.
            pid: if l.pid == KBLOCKD_PID { 0 } else { l.pid },
            op: l.op,
            sync: l.sync,
            sector: l.sector,
            nr_sectors: l.nr_sectors,
            latency_ns: if l.event == "E" { l.arg } else { 0 },
            // The recorded logs are separated by commas and have none inside.
            text: l.text.replace(',', " "),
        }
    }
}

impl Row {
    fn is_main(&self) -> bool {
        matches!(
            self.event.as_str(),
            "Q" | "M" | "F" | "MM" | "G" | "S" | "I" | "D" | "DS" | "C" | "E" | "X"
        )
    }

    fn is_side(&self) -> bool {
        matches!(
            self.event.as_str(),
            "P" | "U" | "UT" | "UX" | "TA" | "TD" | "TF"
        )
    }

    fn is_message(&self) -> bool {
        self.event == "m"
    }

    /// Messages name addresses only as set or not.
    fn same_message(&self, o: &Row) -> bool {
        self.t_ns == o.t_ns && self.text.trim_end() == o.text.trim_end()
    }

    fn same_main(&self, o: &Row) -> bool {
        (
            self.t_ns,
            &self.event,
            self.pid,
            self.op,
            self.sync,
            self.sector,
            self.nr_sectors,
        ) == (
            o.t_ns,
            &o.event,
            o.pid,
            o.op,
            o.sync,
            o.sector,
            o.nr_sectors,
        )
    }

    /// Timer lines carry the process that runs in the model and none in the
    /// measurement.
    fn same_side(&self, o: &Row) -> bool {
        let timer = self.event.starts_with('T');
        (self.t_ns, &self.event) == (o.t_ns, &o.event) && (timer || self.pid == o.pid)
    }

    fn show(&self) -> String {
        let s = Time(self.t_ns);
        match self.op {
            None if self.is_message() => format!("{s} m '{}'", self.text.trim_end()),
            None => format!("{s} {} pid {}", self.event, self.pid),
            Some(op) => format!(
                "{s} {} pid {} {}{} {}+{}",
                self.event,
                self.pid,
                if op == Op::Read { "R" } else { "W" },
                if self.sync { "S" } else { "A" },
                self.sector,
                self.nr_sectors
            ),
        }
    }
}

/// Reads `ID.csv.gz` or `ID.csv`.
fn read_log(dir: &Path, id: &str) -> Result<Vec<Row>, Error> {
    let gz = dir.join(format!("{id}.csv.gz"));
    let (path, packed) = if gz.exists() {
        (gz, true)
    } else {
        (dir.join(format!("{id}.csv")), false)
    };
    let shown = path.display().to_string();
    let fail = |e: std::io::Error| {
        Error::new(format!("cannot read the recorded log: {e}")).in_file(&shown)
    };
    let file = std::fs::File::open(&path).map_err(fail)?;
    let mut text = String::new();
    if packed {
        flate2::read::GzDecoder::new(file)
            .read_to_string(&mut text)
            .map_err(fail)?;
    } else {
        std::io::BufReader::new(file)
            .read_to_string(&mut text)
            .map_err(fail)?;
    }
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate().skip(1) {
        let row = parse_row(line).ok_or_else(|| Error {
            file: Some(shown.clone()),
            line: Some(i + 1),
            ..Error::new("not a log line 't_ns,jiffy,event,pid,rw,sync,sector,nsect,info'")
        })?;
        rows.push(row);
    }
    Ok(rows)
}

fn parse_row(line: &str) -> Option<Row> {
    let mut f = line.splitn(9, ',');
    let t_ns = f.next()?.parse().ok()?;
    let _jiffy = f.next()?;
    let event = f.next()?.to_owned();
    let pid = f.next()?.parse().ok()?;
    let op = match f.next()? {
        "R" => Some(Op::Read),
        "W" => Some(Op::Write),
        "" => None,
        _ => return None,
    };
    let sync = f.next()? == "S" && op.is_some();
    let number = |s: &str| {
        if s.is_empty() {
            Some(0)
        } else {
            s.parse::<u64>().ok()
        }
    };
    let sector = number(f.next()?)?;
    let nr_sectors = u32::try_from(number(f.next()?)?).ok()?;
    let info = f.next()?;
    let latency_ns = info
        .strip_prefix("lat=")
        .map_or(Some(0), |l| l.parse().ok())?;
    Some(Row {
        t_ns,
        event,
        pid,
        op,
        sync,
        sector,
        nr_sectors,
        latency_ns,
        text: info.to_owned(),
    })
}

#[cfg(test)]
mod tests;
