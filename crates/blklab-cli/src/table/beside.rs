// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same experiment on two targets: where the orders of their dispatches part, and how
//! far the mean times of phases are apart.

use super::{Pairs, WIDTH, label};
use crate::output::{fold, time};
use blklab::analysis::divergence::PhaseError;
use blklab::beside::{Beside, EVENTS_MAX};
use blklab::matrix::Cell;

use std::io::Write;

/// The phases that are shown, and what they are.
const PHASES: [&str; 5] = ["Q2G", "G2I", "I2D", "D2C", "Q2C"];

pub(super) fn show(out: &mut impl Write, pairs: &Pairs<'_>, width: usize) -> std::io::Result<()> {
    let all = pairs.iter();
    let all: Vec<(&Cell, &Beside)> = all
        .filter_map(|(cell, run)| Some((*cell, run.beside.as_ref()?)))
        .collect();
    let Some((_, first)) = all.first() else {
        return Ok(());
    };
    let [model, other] = &first.targets;
    writeln!(out)?;
    writeln!(
        out,
        "{model} beside {other}: mean times of phases, {model} less {other}"
    )?;
    write!(out, "{:<width$}", "")?;
    for phase in PHASES {
        write!(out, " {phase:>12}")?;
    }
    writeln!(out)?;
    for (cell, beside) in &all {
        label(out, &name(cell), width)?;
        for phase in PHASES {
            let found = beside.phases.iter().find(|p| p.name == phase);
            let text = found.map_or_else(String::new, difference);
            write!(out, " {text:>12}")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    writeln!(out, "order of the requests that the device got:")?;
    for (cell, beside) in &all {
        for order in &beside.orders {
            let common = order.common.filter(|_| !order.is_identical());
            let common = common.map_or_else(String::new, |share| {
                format!(" ({:.1} % of the order in common)", share * 100.0)
            });
            let text = format!("{}: {order}{common}", name(cell));
            for line in fold(&text, WIDTH) {
                writeln!(out, "{line}")?;
            }
        }
    }
    if all.iter().any(|(_, beside)| beside.cut) {
        let millions = EVENTS_MAX / 1_000_000;
        writeln!(
            out,
            "only the first {millions} million events of each run were compared"
        )?;
    }
    Ok(())
}

/// What varies beside the target.
fn name(cell: &Cell) -> String {
    let mut cell = cell.clone();
    cell.label.retain(|(key, _)| key != "target");
    cell.name_in_file()
}

/// "-1.20us -3%": of the first mean, in time and as a share of the second.
fn difference(phase: &PhaseError) -> String {
    let ns = -phase.difference_ns();
    let sign = if ns < 0.0 { "-" } else { "+" };
    let [first, second] = phase.mean_ns;
    if second <= 0.0 {
        return format!("{sign}{}", time(ns.abs()));
    }
    let percent = (first / second - 1.0) * 100.0;
    let percent = match percent {
        p if p >= 999.0 => ">999".to_owned(),
        p => format!("{p:+.0}"),
    };
    format!("{sign}{} {percent}%", time(ns.abs()))
}
