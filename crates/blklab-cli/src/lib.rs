// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `blklab`: arguments in, text and exit codes out.
//!
//! It is a library so that a scheduler of another crate can have the whole
//! command: its `main` calls [`main()`] with the scheduler.

mod again;
mod args;
mod asked;
mod compare;
mod conform;
mod examine;
mod example;
mod execute;
mod external;
mod files;
mod fit_device;
mod guard;
mod hints;
mod histogram;
mod interrupt;
mod kernel;
mod kernel_changes;
mod list;
mod lives;
mod man;
mod mcp;
mod new_scheduler;
mod output;
mod progress;
mod recommend;
mod record;
mod report;
mod reproduce;
mod run;
mod source;
pub mod stack;
mod table;
mod testbeds;
mod trace;
mod trigger;
mod what_if;
mod why;
mod workload;

use anyhow::Context as _;
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
    /// A job ended with an error: exit code 1, as fio's.
    JobFailed,
    /// A signal that asked it to end: exit code 130 at Ctrl-C, 143 at SIGTERM.
    Interrupted,
}

/// Does what the command line says, with these schedulers to choose from.
pub fn main(schedulers: Schedulers) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(e),
    };
    if let Err(e) = interrupt::listen() {
        return end_with(Err(e));
    }
    let result = match cli.command {
        Command::Conform(a) => conform::conform(&a),
        Command::Reproduce(a) if a.testbeds.is_some() => testbeds::run(&a),
        Command::Reproduce(a) => reproduce::reproduce(&a),
        Command::List(a) => list::list(&a, schedulers),
        Command::Run(a) => run::run(&a, schedulers),
        Command::Workload(a) => workload::workload(&a, schedulers),
        Command::Record(a) => record::record(&a),
        Command::Trace(c) => trace::trace(&c, schedulers),
        Command::Why(a) => why::why(&a, schedulers),
        Command::Recommend(a) => recommend::recommend(&a, schedulers),
        Command::Report(a) => report::report(&a, schedulers),
        Command::Compare(a) => compare::compare(&a),
        Command::FitDevice(a) => fit_device::fit_device(&a),
        Command::Kernel(c) => kernel::kernel(&c),
        Command::Sweep(a) => external::become_program("sweep", &a.args),
        Command::Tune(a) => external::become_program("tune", &a.args),
        Command::Fleet(a) => external::become_program("fleet", &a.args),
        Command::Example(a) => example::example(&a),
        Command::Mcp(a) => mcp::mcp(&a),
        Command::NewScheduler(a) => new_scheduler::new_scheduler(&a),
        Command::Completions(a) => man::completions(&a),
        Command::Man(a) => man::man(&a),
    };
    end_with(result)
}

/// The exit code of what a command came to; an error is said.
fn end_with(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs | Outcome::JobFailed) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::code()),
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            say(&with_causes(&e));
            ExitCode::from(2)
        }
    }
}

/// Help as it is; a mistake in one line.
fn usage(mut e: clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    for kind in [
        ContextKind::InvalidArg,
        ContextKind::InvalidSubcommand,
        ContextKind::InvalidValue,
    ] {
        if let Some(ContextValue::String(input)) = e.get(kind) {
            let short = blklab::types::shown(input).into_owned();
            e.insert(kind, ContextValue::String(short));
        }
    }
    let text = e.render().to_string();
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let mut out = std::io::stdout();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            let written = written.context("cannot write to standard output");
            end_with(written.map(|()| Outcome::Done))
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = write!(std::io::stderr(), "{text}");
            ExitCode::from(2)
        }
        _ => {
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            let end = [text.find("\n\nUsage:"), text.find("\n\nFor more")];
            let end = end.into_iter().flatten().min().unwrap_or(text.len());
            let text = text[..end].replace("\n\n  tip:", ";");
            say(&format!("{text} (--help shows all options)"));
            ExitCode::from(2)
        }
    }
}

/// One line on standard error.
fn say(text: &str) {
    let _ = writeln!(
        std::io::stderr(),
        "blklab: {}",
        blklab::types::one_line(text)
    );
}

/// An error with its causes, each said once.
fn with_causes(e: &anyhow::Error) -> String {
    if e.chain().nth(1).is_none()
        && let Some(io) = e.downcast_ref::<std::io::Error>()
    {
        // What writes to a file says to which.
        return format!("cannot write to standard output: {io}");
    }
    let mut text = String::new();
    for cause in e.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let mut causes = e
        .chain()
        .filter_map(|c| c.downcast_ref::<blklab::types::Error>());
    match causes.find_map(hints::hint) {
        Some(hint) => format!("{text}; {hint}"),
        None => text,
    }
}

/// The reader of our output went away: nothing is wrong.
fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
