// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of a fit: as remarks of the file, as tables, as JSON.

use blklab_fit::{Figure, Fit, Fitted, Judged, Line, RecordedFit};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What counts as near.
const NEAR: f64 = 0.15;

/// The remarks before the table of a file, and its lines.
pub(super) fn described(files: &[String], fit: &Fit) -> (Vec<String>, Vec<Line>) {
    let mut remarks = vec![format!(
        "Fitted by blklab fit-device to {} loads of {}, beginning with {}.",
        fit.cells.len(),
        files.join(", "),
        fit.drive.name
    )];
    remarks.extend(summaries(fit));
    remarks.push(
        "Behind a value: its error, one standard deviation; above 2.5 % it may be off by 5 %."
            .to_owned(),
    );
    let lines = fit.drive.params.iter().map(|(key, value)| {
        let fitted = fit.fitted.iter().find(|f| f.name == key);
        Line {
            key: key.clone(),
            value: value.clone(),
            remark: fitted.map(remark).unwrap_or_default(),
        }
    });
    (remarks, lines.collect())
}

/// How well a parameter is known.
fn remark(f: &Fitted) -> String {
    let with = match &f.with[..] {
        [] => String::new(),
        with => format!(", only together with {}", with.join(", ")),
    };
    match f.error {
        None => "the measurements do not tell it".to_owned(),
        Some(e) if e > 1.0 => format!("hardly told{with}"),
        Some(e) if f.is_told() => format!("±{:.1} %{with}", e * 100.0),
        Some(e) => format!("±{:.0} %, hardly told{with}", e * 100.0),
    }
}

/// Errors of cells that were seen, and of those that were held out.
fn summaries(fit: &Fit) -> Vec<String> {
    let judged = |held_out: bool| {
        let cells: Vec<&Judged> = fit
            .cells
            .iter()
            .filter(|c| c.held_out == held_out)
            .collect();
        let figures = cells.iter().flat_map(|c| &c.figures);
        let errors: Vec<f64> = figures.filter_map(error).collect();
        (cells.len(), errors)
    };
    let text = |held_out: bool| {
        let (cells, errors) = judged(held_out);
        let what = if held_out { "held out" } else { "fitted" };
        let Some(median) = blklab::analysis::middle(errors.clone()) else {
            return format!("{what}: no loads");
        };
        let worst = errors.iter().copied().fold(0.0, f64::max);
        let near = errors.iter().filter(|e| **e <= NEAR).count();
        format!(
            "{what}: {cells} loads, {} figures: median error {:.1} %, {near} within 15 %, worst {:.0} %",
            errors.len(),
            median * 100.0,
            worst * 100.0
        )
    };
    vec![text(false), text(true)]
}

/// How far a figure is off, as a part; none if there is none.
fn error(f: &Figure) -> Option<f64> {
    let ratio = f.ours / f.measured;
    ratio.is_finite().then(|| (ratio - 1.0).abs())
}

/// Tables of cells and parameters.
pub(super) fn report(fit: &Fit) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<34} {:<6} {:>9} {:>6} {:>6} {:>6} {:>6}",
        "ours : measured", "", "per s", "p50", "p95", "p99", "p99.9"
    );
    for cell in &fit.cells {
        let mut groups: Vec<(usize, blklab::types::Op)> = Vec::new();
        for f in &cell.figures {
            if !groups.contains(&(f.stream, f.op)) {
                groups.push((f.stream, f.op));
            }
        }
        for (i, group) in groups.iter().enumerate() {
            let name = if i == 0 { cell.name.as_str() } else { "" };
            let ratio = |part: Option<f64>| {
                let is_it = |f: &&Figure| (f.stream, f.op) == *group && f.part == part;
                let figure = cell.figures.iter().find(is_it);
                figure.map_or("-".to_owned(), |f| format!("{:.2}", f.ours / f.measured))
            };
            let op = if group.1 == blklab::types::Op::Read {
                "read"
            } else {
                "write"
            };
            let held = if cell.held_out { "*" } else { "" };
            let _ = writeln!(
                text,
                "{:<34} {:<6} {:>9} {:>6} {:>6} {:>6} {:>6}",
                cut(name, 34),
                format!("{op}{held}"),
                ratio(None),
                ratio(Some(0.5)),
                ratio(Some(0.95)),
                ratio(Some(0.99)),
                ratio(Some(0.999))
            );
        }
    }
    let _ = writeln!(text, "* held out: the fit did not see it");
    for line in summaries(fit) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\n{:<24} {:>12}", fit.drive.name, "");
    for f in &fit.fitted {
        let _ = writeln!(text, "{:<24} {:>12}  {}", f.name, f.value, remark(f));
    }
    let is_fitted = |key: &str| fit.fitted.iter().any(|f| f.name == key);
    for (key, value) in fit.drive.params.iter().filter(|(k, _)| !is_fitted(k)) {
        let _ = writeln!(text, "{key:<24} {value:>12}  chosen");
    }
    text
}

fn cut(text: &str, width: usize) -> String {
    crate::output::cut(text, width)
}

pub(super) fn json(fit: &Fit, file: &str) -> Value {
    let fitted = fit.fitted.iter().map(|f| {
        json!({
            "name": f.name, "value": f.value, "error": f.error, "told": f.is_told(),
            "with": f.with,
        })
    });
    let figure = |f: &Figure| {
        json!({
            "stream": f.stream,
            "direction": if f.op == blklab::types::Op::Read { "read" } else { "write" },
            "figure": f.part.map_or("per_s".to_owned(), |p| format!("clat_p{}_us", p * 100.0)),
            "measured": f.measured,
            "ours": if f.ours.is_finite() { json!(f.ours) } else { Value::Null },
        })
    };
    let cells = fit.cells.iter().map(|c| {
        let figures: Vec<Value> = c.figures.iter().map(figure).collect();
        json!({"name": c.name, "held_out": c.held_out, "figures": figures})
    });
    json!({
        "device": {"name": fit.drive.name, "params": params(fit)},
        "fitted": fitted.collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
        "file": file,
    })
}

fn params(fit: &Fit) -> Value {
    let all = fit.drive.params.iter();
    Value::Object(all.map(|(k, v)| (k.clone(), json!(v))).collect())
}

/// The law of a trace, and how near it is to what it did not see.
pub(super) fn recorded(found: &RecordedFit) -> Vec<String> {
    let mut lines = vec![found.device.to_string(), String::new()];
    if found.kinds.is_empty() {
        lines.push("too few commands are held out to say how good that is".to_owned());
        return lines;
    }
    lines.push(
        "the last quarter of the commands was held out; D to C in us, law : trace".to_owned(),
    );
    for kind in &found.kinds {
        let pair = |[recorded, ours]: [f64; 2]| format!("{ours:.0} : {recorded:.0}");
        lines.push(format!(
            "{:<38} {:>7}  p50 {:<15} p99 {}",
            kind.name,
            kind.commands,
            pair(kind.p50_us),
            pair(kind.p99_us)
        ));
    }
    lines
}

pub(super) fn recorded_json(found: &RecordedFit, file: &str) -> Value {
    let device = &found.device;
    let params = device.params.iter().map(|(k, v)| (k.clone(), json!(v)));
    let params: serde_json::Map<_, _> = params.collect();
    let kinds = found.kinds.iter().map(|k| {
        json!({
            "kind": k.name, "commands": k.commands,
            "recorded_p50_us": k.p50_us[0], "ours_p50_us": k.p50_us[1],
            "recorded_p99_us": k.p99_us[0], "ours_p99_us": k.p99_us[1],
        })
    });
    json!({
        "device": {"name": blklab::to_fio::DeviceFit::NAME, "params": params},
        "queue_depth": device.queue_depth,
        "channels_alike": device.channels_alike,
        "held_out": kinds.collect::<Vec<_>>(),
        "file": file,
    })
}
