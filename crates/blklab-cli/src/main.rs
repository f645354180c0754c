// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `blklab`: arguments in, text and exit codes out.

mod args;
mod conform;
mod list;
mod output;
mod progress;
mod run;
mod trace;
mod workload;

use args::{Cli, Command};
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

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Conform(a) => conform::conform(&a),
        Command::List(a) => list::list(&a),
        Command::Run(a) => run::run(&a),
        Command::Workload(a) => workload::workload(&a),
        Command::Trace(c) => trace::trace(&c),
    };
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Differs) => ExitCode::from(1),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "blklab: {e:#}");
            ExitCode::from(2)
        }
    }
}

/// The reader of our output went away: nothing is wrong.
fn is_broken_pipe(e: &anyhow::Error) -> bool {
    e.downcast_ref::<std::io::Error>()
        .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
