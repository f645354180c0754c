// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab why` of sums, logs and outputs: what they show, what they cannot show, and what would.

use crate::Outcome;
use crate::args::{PlainFormat, WhyArgs};
use crate::output::{hanging, paragraph, part};
use anyhow::{Error, Result, bail};
use blklab::sums::{Reading, Subject, Sums, reading};
use blklab::trace::FormatError;
use serde::Serialize;
use std::io::Write;

/// The sums in an input that is refused as a trace, or why it is refused.
pub(super) fn found(e: Error) -> Result<Sums> {
    match e.downcast::<FormatError>()? {
        FormatError::Foreign {
            sums: Some(sums), ..
        } => Ok(*sums),
        e => Err(e.into()),
    }
}

/// What is said of sums; no word of it is a cause.
#[derive(Serialize)]
struct Answer<'a> {
    basis: &'static str,
    #[serde(flatten)]
    reading: &'a Reading,
}

pub(super) fn why(a: &WhyArgs, sums: Sums) -> Result<Outcome> {
    if let Some(option) = a.of_single_ios() {
        let shown = a.file.display();
        bail!("{option}: is about single I/Os, and {shown} has none");
    }
    let name = a.file.display().to_string();
    let mut reading = reading(&sums).map_err(|e| e.in_file(&name))?;
    if let Some(limit) = a.limit {
        reading.subjects.truncate(limit as usize);
    }
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            let answer = Answer {
                basis: reading.form.basis,
                reading: &reading,
            };
            serde_json::to_writer_pretty(&mut out, &answer).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => show(&mut out, &reading, a.verbose)?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn show(out: &mut impl Write, reading: &Reading, is_verbose: bool) -> Result<()> {
    let what = reading.what;
    let first = format!("{what}: {}.", reading.form.means);
    hanging(out, "", 0, &first)?;
    for note in &reading.notes {
        hanging(out, "- ", 2, note)?;
    }
    for subject in &reading.subjects {
        writeln!(out, "\n{}", blklab::types::visible(&subject.name))?;
        show_subject(out, subject, is_verbose)?;
    }
    writeln!(out, "\nNot visible in {}", reading.form.these)?;
    for missing in &reading.cannot {
        hanging(out, "   - ", 5, missing)?;
    }
    writeln!(out, "\nTo see it")?;
    paragraph(out, &reading.record)?;
    Ok(())
}

fn show_subject(out: &mut impl Write, subject: &Subject, is_verbose: bool) -> Result<()> {
    for shown in &subject.shows {
        part(out, shown.about, &blklab::types::visible(&shown.text))?;
    }
    if is_verbose {
        let figures = subject.figures.iter();
        let figures = figures.map(|(name, value)| format!("{name}={value:.6}"));
        part(out, "figures", &figures.collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}
