// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab mcp`: which arguments of the command a call of an assistant's makes.

use crate::Outcome;
use crate::args::McpArgs;
use anyhow::{Context as _, Result};
use blklab_mcp::{Call, Program, serve};

pub(crate) fn mcp(a: &McpArgs) -> Result<Outcome> {
    let path = std::env::current_exe().context("cannot find the command itself")?;
    serve(Program { path, arguments }, a.allow_write).context("mcp")?;
    Ok(Outcome::Done)
}

/// Options that have a value, and what stands without one behind them.
fn with(command: &[&str], options: &[(&str, Option<&str>)], file: &str) -> Vec<String> {
    let mut all: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let given = options
        .iter()
        .filter_map(|(name, value)| Some((name, (*value)?)));
    all.extend(given.map(|(name, value)| format!("{name}={value}")));
    // Nothing behind this is an option, whatever it begins with.
    all.extend(["--".to_owned(), file.to_owned()]);
    all
}

fn arguments(call: &Call) -> Vec<String> {
    match call {
        Call::Why(c) => {
            let limit = c.limit.map(|n| n.to_string());
            let options = [
                ("--output-format", Some("json")),
                ("--context", c.context.as_deref()),
                ("--kernel", c.kernel.as_deref()),
                ("--sched", c.sched.as_deref()),
                ("--columns", c.columns.as_deref()),
                ("--limit", limit.as_deref()),
            ];
            with(&["why"], &options, &c.file)
        }
        Call::Stats(c) => {
            let options = [
                ("--output-format", Some("json")),
                ("--columns", c.columns.as_deref()),
            ];
            with(&["trace", "stats", "--all"], &options, &c.file)
        }
        Call::Slow(c) => {
            let count = c.count.map(|n| n.to_string());
            let options = [
                ("--output-format", Some("json")),
                ("--count", count.as_deref()),
                ("--context", c.context.as_deref()),
                ("--columns", c.columns.as_deref()),
            ];
            with(&["trace", "slow"], &options, &c.file)
        }
        Call::WhatIf(c) => {
            let changes = c.changes.as_deref().unwrap_or_default();
            let options = [
                ("--output-format", Some("json")),
                ("--what-if", Some(changes)),
                ("--context", c.context.as_deref()),
                ("--kernel", c.kernel.as_deref()),
            ];
            with(&["why"], &options, &c.file)
        }
        Call::Run(c) => {
            let mut options = vec![
                ("--output-format", Some("json")),
                ("--out", Some(c.out.as_str())),
                ("--kernel", c.kernel.as_deref()),
                ("--sched", c.sched.as_deref()),
                ("--device", c.device.as_deref()),
                ("--fs", c.fs.as_deref()),
            ];
            options.extend(c.set.iter().map(|s| ("--set", Some(s.as_str()))));
            with(&["run"], &options, &c.job)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_mcp::{RunCall, WhyCall};

    #[test]
    fn what_is_given_becomes_options_and_files_stay_files() {
        let call = Call::Why(WhyCall {
            file: "--allow-write".to_owned(),
            kernel: Some("6.12".to_owned()),
            ..WhyCall::default()
        });
        let expected = [
            "why",
            "--output-format=json",
            "--kernel=6.12",
            "--",
            "--allow-write",
        ];
        assert_eq!(arguments(&call), expected);
        let call = Call::Run(RunCall {
            job: "job.fio".to_owned(),
            out: "there".to_owned(),
            set: vec!["fifo_batch=1".to_owned()],
            ..RunCall::default()
        });
        let expected = [
            "run",
            "--output-format=json",
            "--out=there",
            "--set=fifo_batch=1",
            "--",
            "job.fio",
        ];
        assert_eq!(arguments(&call), expected);
    }
}
