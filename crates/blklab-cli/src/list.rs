// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab list`.

use crate::Outcome;
use crate::args::{ListArgs, ListWhat, PlainFormat};
use crate::output::fold;
use anyhow::{Result, bail};
use blklab::list::{self, Entry};
use blklab::scheduler::Schedulers;
use std::io::Write;

pub(crate) fn list(a: &ListArgs, schedulers: Schedulers) -> Result<Outcome> {
    let kernel = a.kernel.as_deref().map(str::parse).transpose()?;
    let mut entries = match a.what {
        ListWhat::Schedulers => list::schedulers(schedulers, kernel),
        ListWhat::Tunables => list::tunables(schedulers, kernel),
        ListWhat::Devices => list::devices(),
        ListWhat::Kernels => list::kernels(schedulers),
        ListWhat::Patches => list::patches(kernel),
        ListWhat::Scenarios => list::scenarios(),
        ListWhat::Filesystems => list::filesystems(),
        ListWhat::Formats => list::formats(),
        ListWhat::Engines => list::engines(),
        ListWhat::FioOptions => list::fio_options(),
    };
    if let (true, Some(kernel)) = (entries.is_empty(), &a.kernel) {
        bail!("--kernel {kernel}: nothing of this kind is modelled there");
    }
    if let Some(name) = &a.name {
        if !entries.iter().any(|e| &e.name == name) {
            let valid: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
            bail!("{}", blklab::no_such("entry of this list", name, &valid));
        }
        entries.retain(|e| &e.name == name);
    }
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &entries).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => {
            let width = entries
                .iter()
                .map(|e| e.name.len())
                .max()
                .unwrap_or(0)
                .min(36);
            for e in &entries {
                show(&mut out, e, width, a.name.is_some())?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// One line per entry; everything about it if it was asked for by name.
fn show(out: &mut impl Write, e: &Entry, width: usize, all: bool) -> std::io::Result<()> {
    let indent = " ".repeat(width + 2);
    let text = fold(&e.summary, 80_usize.saturating_sub(width + 2).max(30));
    writeln!(
        out,
        "{:<width$}  {}",
        e.name,
        text.join(&format!("\n{indent}"))
    )?;
    if all {
        for (key, value) in &e.details {
            for (i, line) in fold(value, 65).iter().enumerate() {
                let key = if i == 0 { key.as_str() } else { "" };
                writeln!(out, "  {key:<13}{line}")?;
            }
        }
        for p in &e.params {
            let text = match p.default.as_str() {
                "" => format!("{} ({})", p.name, p.range),
                default => format!("{} = {default} ({})", p.name, p.range),
            };
            writeln!(out, "\n  {}", fold(&text, 76).join("\n    "))?;
            for line in fold(&p.help, 74) {
                writeln!(out, "      {line}")?;
            }
        }
    }
    Ok(())
}
