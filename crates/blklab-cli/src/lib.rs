// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `blklab`: arguments in, text and exit codes out.
//!
//! It is a library so that a scheduler of another crate can have the whole
//! command: its `main` calls [`main()`] with the scheduler.

mod args;
mod conform;
mod interrupt;
mod list;
mod output;
mod progress;
mod reproduce;
mod run;
mod table;
mod trace;
mod workload;

use args::{Cli, Command};
use blklab::scheduler::Schedulers;
use clap::Parser as _;
use std::io::Write as _;
use std::process::ExitCode;

/// What a command ends with when it did what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Exit code 0.
    Done,
    /// A comparison failed: exit code 1.
    Differs,
    /// Ctrl-C: exit code 130.
    Interrupted,
}

/// Does what the command line says, with these schedulers to choose from.
pub fn main(schedulers: Schedulers) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(&e),
    };
    let result = match cli.command {
        Command::Conform(a) => conform::conform(&a),
        Command::Reproduce(a) => reproduce::reproduce(&a),
        Command::List(a) => list::list(&a, schedulers),
        Command::Run(a) => run::run(&a, schedulers),
        Command::Workload(a) => workload::workload(&a),
        Command::Trace(c) => trace::trace(&c),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "blklab: {}", in_a_line(&e));
            ExitCode::from(2)
        }
    }
}

/// Help as it is; a mistake in one line.
fn usage(e: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = write!(std::io::stdout(), "{}", e.render());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = write!(std::io::stderr(), "{}", e.render());
            ExitCode::from(2)
        }
        _ => {
            let text = e.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let end = [text.find("\n\nUsage:"), text.find("\n\nFor more")];
            let end = end.into_iter().flatten().min().unwrap_or(text.len());
            let text = text[..end].replace("\n\n  tip:", ";");
            let words: Vec<&str> = text.split_whitespace().collect();
            let _ = writeln!(
                std::io::stderr(),
                "blklab: {} (--help shows all options)",
                words.join(" ")
            );
            ExitCode::from(2)
        }
    }
}

/// An error with its causes, each said once.
fn in_a_line(e: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().filter(|c| !c.is_control()).collect()
}

/// The reader of our output went away: nothing is wrong.
fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
