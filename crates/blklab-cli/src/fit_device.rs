// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab fit-device`.

mod show;

use crate::Outcome;
use crate::args::{FitDeviceArgs, PlainFormat};
use crate::guard::{self, Guard, Place};
use anyhow::{Context as _, Result, anyhow, bail};
use blklab::to_fio::DeviceFit;
use blklab_fit::{
    Drive, FitOptions, JobOptions, Line, Measured, device_file, fit, fit_recording, is_iocost,
    jobs, parse_facts, parse_fio, parse_iocost,
};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::path::Path;

/// Largest file of measurements.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn fit_device(a: &FitDeviceArgs) -> Result<Outcome> {
    if a.jobs {
        return write_jobs(a);
    }
    let mut guard = Guard::new(&a.files);
    let output = a.output.as_ref().map(|path| guard.writes(path, "-o"));
    let output = output.transpose()?;
    let output = output.as_ref();
    let like = a.like.as_deref().map(Drive::parse).transpose();
    let like = like.context("--like")?;
    let mut measured = Measured::default();
    for file in &a.files {
        let of_file = match read(file, a)? {
            Input::Loads(measured) => measured,
            _ if a.files.len() > 1 => bail!(
                "{}: a trace, or the numbers of io.cost.model, stand alone: several files are \
                 results of fio",
                file.display()
            ),
            _ if like.is_some() => bail!("--like is for results of fio"),
            Input::Iocost(lines) => return of_iocost(a, output, &lines),
            Input::Trace => return of_trace(a, output, file),
        };
        measured.cells.extend(of_file.cells);
        measured.left_out.extend(of_file.left_out);
    }
    for text in &measured.left_out {
        writeln!(std::io::stderr(), "blklab: left out: {text}")?;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let options = FitOptions {
        like,
        hold_out: a.hold_out,
        threads,
    };
    let fitted = fit(&measured.cells, &options)
        .map_err(|none| anyhow!("{none}; blklab fit-device --jobs prints jobs for fio"))?;
    let names: Vec<String> = a.files.iter().map(|f| f.display().to_string()).collect();
    let (remarks, lines) = show::described(&names, &fitted);
    let file = device_file(fitted.drive.name, &remarks, &lines);
    write_out(a, output, &file, &show::report(&fitted), &|| {
        show::json(&fitted, &file)
    })?;
    Ok(Outcome::Done)
}

/// Six numbers are parameters already.
fn of_iocost(a: &FitDeviceArgs, output: Option<&Place>, lines: &[Line]) -> Result<Outcome> {
    let name = a.files[0].display();
    let remarks = [
        format!("The six numbers of io.cost.model in {name}, by blklab fit-device."),
        "They tell nothing of latencies at low depth (read_us, write_us), of tails, and of"
            .to_owned(),
        "reads beside writes: those are the device's usual ones.".to_owned(),
    ];
    let file = device_file("iocost", &remarks, lines);
    let report = remarks.map(|r| r + "\n").concat();
    write_out(a, output, &file, &report, &|| {
        let params = lines.iter().map(|l| (l.key.clone(), json!(l.value)));
        let params: serde_json::Map<_, _> = params.collect();
        json!({
            "device": {"name": "iocost", "params": params},
            "not_told": ["read_us", "write_us", "flush_us", "capacity_sectors"],
            "file": file,
        })
    })?;
    Ok(Outcome::Done)
}

/// The commands of a trace, from D to C.
fn of_trace(a: &FitDeviceArgs, output: Option<&Place>, path: &Path) -> Result<Outcome> {
    let mut input = crate::source::open(path, None)?;
    let trace = blklab::to_fio::read(&mut input, path, None)?;
    crate::source::report_damage(path, input.counts());
    let found = fit_recording(&trace.recorded.commands);
    let found = found.map_err(|e| e.in_file(&path.display().to_string()))?;
    let mut remarks = vec![format!(
        "The device of {} by blklab fit-device:",
        path.display()
    )];
    remarks.extend(show::recorded(&found));
    let file = device_file(DeviceFit::NAME, &remarks, &found.lines());
    let report: String = remarks.iter().map(|r| format!("{r}\n")).collect();
    write_out(a, output, &file, &report, &|| {
        show::recorded_json(&found, &file)
    })?;
    Ok(Outcome::Done)
}

/// The description of the device, and what is said of it: without `-o` that is in the
/// description itself.
fn write_out(
    a: &FitDeviceArgs,
    output: Option<&Place>,
    file: &str,
    report: &str,
    json: &dyn Fn() -> serde_json::Value,
) -> Result<()> {
    if let Some(place) = output {
        place.write(file.as_bytes())?;
        writeln!(std::io::stderr(), "wrote {}", place.path().display())?;
    }
    let mut out = std::io::stdout().lock();
    match (a.output_format, output) {
        (PlainFormat::Json, _) => writeln!(out, "{:#}", json())?,
        (PlainFormat::Table, Some(_)) => write!(out, "{report}")?,
        (PlainFormat::Table, None) => {
            writeln!(out, "{file}")?;
            for line in report.lines() {
                writeln!(out, "{}", format!("# {line}").trim_end())?;
            }
        }
    }
    Ok(out.flush()?)
}

/// What a file holds.
enum Input {
    /// Results of fio, or a table of them.
    Loads(Measured),
    /// The numbers of `io.cost.model`.
    Iocost(Vec<Line>),
    /// Anything else is a trace, or is none, which its reader says.
    Trace,
}

/// What is looked at of a file to tell what it is.
const HEAD_BYTES: u64 = 4096;

fn read(path: &Path, a: &FitDeviceArgs) -> Result<Input> {
    let name = path.display().to_string();
    let cannot = || format!("cannot read {}", blklab::types::shown(&name));
    let is_stdin = path == Path::new("-");
    if !is_stdin && (path.is_dir() || is_trace(path).with_context(cannot)?) {
        return Ok(Input::Trace);
    }
    let text = read_text(path).with_context(cannot)?;
    let wake_ns = a.host_us.map(|us| (us * 1000.0) as u64);
    Ok(if is_facts(&text) {
        Input::Loads(parse_facts(&name, &text, wake_ns)?)
    } else if is_iocost(&text) {
        Input::Iocost(parse_iocost(&name, &text)?)
    } else {
        Input::Loads(parse_fio(&name, &text, wake_ns)?)
    })
}

/// Whether a file is neither a result of fio, by its name or its beginning, nor a table of
/// facts, nor the numbers of `io.cost.model`.
fn is_trace(path: &Path) -> Result<bool> {
    if path.extension().is_some_and(|e| e == "json") {
        return Ok(false);
    }
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        // A pipe is read only once: of pipes only results of fio are taken.
        return Ok(false);
    }
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let of_fio = head.starts_with('{') || head.contains("\n{") || head.starts_with("fio: ");
    Ok(!of_fio && !head.is_empty() && !is_facts(&head) && !is_iocost(&head))
}

/// Whether a text is a table whose rows are loads.
fn is_facts(text: &str) -> bool {
    let head = text.lines().find(|l| !l.starts_with('#'));
    head.is_some_and(|l| l.split(',').any(|column| column.trim() == "cell"))
}

/// A text of limited size; `-` is standard input.
fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
    } else {
        let file = std::fs::File::open(path)?;
        if file.metadata()?.is_dir() {
            bail!("it is a folder");
        }
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > BYTES_MAX {
        bail!("larger than {} MiB", BYTES_MAX >> 20);
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8 text"))
}

/// Prints the job files, or writes them into a folder.
fn write_jobs(a: &FitDeviceArgs) -> Result<Outcome> {
    let all = jobs(&JobOptions {
        disk: a.disk.clone(),
        seconds: a.runtime,
    });
    let mut out = std::io::stdout().lock();
    let Some(folder) = &a.out else {
        for job in &all {
            writeln!(out, "; ---- {} ----\n{}", job.name, job.text)?;
        }
        out.flush()?;
        return Ok(Outcome::Done);
    };
    let mut guard = Guard::default();
    let mut places = Vec::new();
    for job in &all {
        let place = guard.writes_same(folder, job.name, job.text.as_bytes())?;
        places.push((place, job.text.as_bytes()));
    }
    guard::write_all(&places)?;
    for (place, _) in places {
        writeln!(out, "{}", place.path().display())?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
