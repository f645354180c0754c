// SPDX-License-Identifier: MIT OR Apache-2.0
//! What lies beside a trace and `blklab why` reads with it: lines of `key=value`. What is
//! accepted goes into the findings of a sample, and into the machine that the sample shows;
//! no control character of it reaches who reads the findings.

use crate::Target;
use crate::check::{fingerprint, one_line};
use crate::corpus;
use crate::corpus::root;
use blklab::findings::Context;
use blklab::scheduler::Schedulers;
use blklab::to_fio::{read, shown_stack};
use blklab::trace::TraceFile;
use blklab::why::{context_at, line, why};
use std::path::Path;

pub(crate) const TARGET: Target = Target {
    name: "context",
    feed,
    samples: corpus::none,
};

const SAMPLE: &str = "testdata/blkparse/sync-write-2.6.24.txt";

fn feed(data: &[u8]) -> Option<u64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("context.txt");
    std::fs::write(&path, data).expect("it can be written");
    let context = match context_at(&path, &blklab::targets::catalogue()) {
        Ok(context) => context,
        Err(e) => {
            one_line(&e);
            return None;
        }
    };
    let facts: Vec<(&str, &str)> = context.facts().collect();
    let seen = fingerprint(&(context.kernel(), facts));
    in_sample(context);
    Some(seen)
}

fn in_sample(context: Context) {
    let open = || TraceFile::open(&root().join(SAMPLE)).expect("a sample");
    let summary = read(&mut open(), Path::new("sample"), None).expect("it can be repeated");
    if let Err(e) = shown_stack(&summary, &context, Schedulers::default()) {
        one_line(&e);
    }
    let report = why(&mut open(), context).expect("a sample");
    serde_json::to_string(&report).expect("reports have no keys but texts");
    for finding in &report.findings {
        one_line(&finding.what);
        let shown = finding.first.iter().chain(&finding.worst);
        for evidence in shown.flat_map(|instance| &instance.evidence) {
            one_line(&line(evidence, &report, true));
        }
    }
}
