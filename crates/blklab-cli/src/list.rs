// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab list`.

use crate::Outcome;
use crate::args::{ListArgs, ListWhat, PlainFormat};
use crate::output::fold;
use anyhow::{Result, bail};
use blklab::kernel::KernelVersion;
use blklab::list::{self, Entry};
use blklab::scheduler::Schedulers;
use std::io::Write;

pub(crate) fn list(a: &ListArgs, schedulers: Schedulers) -> Result<Outcome> {
    let kernel = a.kernel.as_deref().map(str::parse).transpose()?;
    // Changes are named by the kernel that has them, whatever it is called.
    let named_kernel = a.name.as_deref().filter(|_| a.what == ListWhat::Changes);
    let named_kernel = named_kernel.and_then(|name| name.parse().ok());
    let of_named = list::changes(schedulers, named_kernel);
    if let (ListWhat::Kernels, Some(name)) = (a.what, &a.name) {
        return print(a, &[one_kernel(schedulers, name)?], true);
    }
    let is_changed = named_kernel.is_some() && !of_named.is_empty();
    let mut entries = match a.what {
        ListWhat::Schedulers => list::schedulers(schedulers, kernel),
        ListWhat::Tunables => list::tunables(schedulers, kernel),
        ListWhat::Devices => list::devices(),
        ListWhat::Targets => list::targets(),
        ListWhat::Kernels => list::kernels(schedulers),
        ListWhat::Changes if is_changed => of_named,
        ListWhat::Changes => list::changes(schedulers, kernel),
        ListWhat::Patches => list::patches(kernel),
        ListWhat::Scenarios => list::scenarios(),
        ListWhat::Filesystems => list::filesystems(),
        ListWhat::Dm => list::dm(),
        ListWhat::Formats => list::formats(),
        ListWhat::Findings => list::findings(),
        ListWhat::Engines => list::engines(),
        ListWhat::FioOptions => list::fio_options(),
    };
    if let (true, Some(kernel)) = (entries.is_empty(), &a.kernel) {
        bail!("--kernel {kernel}: nothing of this kind is modelled there");
    }
    let mut in_full = is_changed;
    if let Some(name) = a.name.as_ref().filter(|_| !is_changed) {
        let found = match a.what {
            ListWhat::Tunables => tunables_of(&entries, name, schedulers)?,
            _ => None,
        };
        in_full = found.is_none();
        entries = match found {
            Some(of_owner) => of_owner,
            None => named(entries, name)?,
        };
    }
    print(a, &entries, in_full)
}

/// A kernel by any of its names.
fn one_kernel(schedulers: Schedulers, name: &str) -> Result<Entry> {
    let kernel: KernelVersion = name.parse()?;
    if !kernel.is_modelled() {
        bail!(
            "kernel {kernel} is not modelled; 2.6.16 to {} are",
            KernelVersion::NEWEST
        );
    }
    Ok(list::kernel(schedulers, kernel))
}

fn print(a: &ListArgs, entries: &[Entry], in_full: bool) -> Result<Outcome> {
    let mut out = std::io::stdout().lock();
    match a.output_format {
        PlainFormat::Json => {
            serde_json::to_writer_pretty(&mut out, entries).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        PlainFormat::Table => {
            let width = entries
                .iter()
                .map(|e| e.name.len())
                .max()
                .unwrap_or(0)
                .min(36);
            for e in entries {
                show(&mut out, e, width, in_full)?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// The entries of a name; of a tunable also without its owner.
fn named(mut entries: Vec<Entry>, name: &str) -> Result<Vec<Entry>> {
    let last_word = |e: &Entry| e.name.rsplit('/').next().unwrap_or_default().to_owned();
    let is_it = |e: &Entry| e.name == name || last_word(e) == name;
    if !entries.iter().any(is_it) {
        let mut valid: Vec<&str> = entries.iter().map(|e| e.name.as_str()).collect();
        valid.dedup();
        bail!(
            "{}",
            blklab::types::no_such("entry of this list", name, &valid)
        );
    }
    entries.retain(is_it);
    Ok(entries)
}

/// The tunables of a scheduler, the queue or the machine, if that is what is
/// named.
fn tunables_of(
    entries: &[Entry],
    owner: &str,
    schedulers: Schedulers,
) -> Result<Option<Vec<Entry>>> {
    let of_owner = entries.iter().filter(|e| {
        let parts = e.name.split_once('/');
        parts.is_some_and(|(of, _)| of == owner)
    });
    let of_owner: Vec<Entry> = of_owner.cloned().collect();
    if !of_owner.is_empty() {
        return Ok(Some(of_owner));
    }
    if list::schedulers(schedulers, None)
        .iter()
        .any(|s| s.name == owner)
    {
        bail!("{owner} has no tunables here; blklab list schedulers {owner} shows its kernels");
    }
    Ok(None)
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
