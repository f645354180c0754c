// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab completions` and `blklab man`: what is made from the definition of
//! the command line.

use crate::Outcome;
use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::guard::{self, Guard};
use anyhow::Result;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::Write as _;

pub(crate) fn completions(a: &CompletionsArgs) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(a.shell, &mut Cli::command(), "blklab", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Outcome::Done)
}

/// Writes a page for the command and one for each of its commands.
pub(crate) fn man(a: &ManArgs) -> Result<Outcome> {
    let mut top = Cli::command().disable_help_subcommand(true);
    top.build();
    let mut guard = Guard::default();
    let mut out = std::io::stdout().lock();
    let mut pages = Vec::new();
    let mut commands = vec![&top];
    while let Some(command) = commands.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let place = guard.writes_below(&a.out, format!("{name}.1"), "--out")?;
        pages.push((place, page(command)?));
        commands.extend(command.get_subcommands().filter(|c| !c.is_hide_set()));
    }
    guard::write_all(&pages)?;
    for (place, _) in pages {
        writeln!(out, "{}", place.path().display())?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// A page: what clap knows, then the text below the options in `--help`.
fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone())
        .source(concat!("blklab ", env!("CARGO_PKG_VERSION")))
        .manual("blklab");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(notes) = command.get_after_help() {
        notes_section(&notes.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// Paragraphs are filled; indented lines, commands and tables, stay as they
/// are; `Examples:` heads a section.
fn notes_section(text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    let mut indented = false;
    for line in text.lines() {
        if line == "Examples:" {
            roff.control("SH", ["EXAMPLES"]);
            continue;
        }
        let now = line.starts_with("  ") || (indented && line.is_empty());
        if now != indented {
            roff.control(if now { "nf" } else { "fi" }, []);
            indented = now;
        }
        match line {
            "" if !indented => {
                roff.control("PP", []);
            }
            line => {
                roff.text([roman(line)]);
            }
        }
    }
    if indented {
        roff.control("fi", []);
    }
    roff
}
