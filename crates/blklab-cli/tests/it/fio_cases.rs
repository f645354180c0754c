// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio jobs measured on Linux 6.1 and 7.3: the cases that are carried along.

use crate::support::{Folder, root};
use serde_json::Value;

fn measured() -> std::path::PathBuf {
    root().join("testdata/fio-6.1")
}

fn cases() -> String {
    measured().join("cases").to_string_lossy().into_owned()
}

#[test]
fn the_cases_carried_along_agree() {
    agree(&cases(), "6.1");
    let of_7_3 = root().join("testdata/fio-7.3/cases");
    agree(&of_7_3.to_string_lossy(), "7.3");
}

fn agree(cases: &str, kernel: &str) {
    let f = Folder::new();
    let text = f.ok(&["conform", cases, "--output-format", "json"]);
    let report: Value = serde_json::from_str(&text).expect("a report");
    let all = report["fio"].as_array().expect("cases");
    assert_eq!(all.len(), 5);
    for case in all {
        let id = case["id"].as_str().expect("a name");
        assert_eq!(case["kernel"], kernel, "{id}");
        assert!(case["skipped"].is_null(), "{id}");
        let traced = case["decisions"]["identical"].as_bool();
        assert_ne!(traced, Some(false), "{id}: {:#}", case["decisions"]);
        for figure in case["figures"].as_array().expect("figures") {
            assert_eq!(figure["within"], true, "{id}: {figure:#}");
        }
    }
    let sum = report["fio_summary"].as_array().and_then(|s| s.last());
    let sum = sum.expect("totals");
    assert_eq!(sum["scheduler"], "all");
    assert_eq!((&sum["traced"], &sum["identical"]), (&4.into(), &4.into()));
}

#[test]
fn a_table_fits_the_screen_and_markdown_has_every_case() {
    let f = Folder::new();
    let text = f.ok(&["conform", &cases()]);
    assert!(text.lines().all(|l| l.len() <= 80), "{text}");
    assert!(text.contains("seq2r-d31-bfq                same"), "{text}");
    let text = f.ok(&["conform", &cases(), "--output-format", "markdown"]);
    let rows = text.lines().filter(|l| l.starts_with("| seq2r-d31-bfq |"));
    assert_eq!(rows.count(), 2, "{text}");
}

#[test]
fn another_scheduler_decides_otherwise_and_says_where() {
    let f = Folder::new();
    let read = |path: &str| std::fs::read(measured().join(path)).expect(path);
    let case = String::from_utf8(read("cases/ddls1-s1mq1-kyber.toml")).unwrap();
    f.write(
        "cases/ddls1-s1mq1-kyber.toml",
        case.replace("\"kyber\"", "\"bfq\""),
    );
    for path in [
        "results/ddls1-s1mq1-kyber.json",
        "traces/ddls1-s1mq1-kyber.blktrace.0.zst",
    ] {
        f.write(path, read(path));
    }
    let done = f.run(&["conform", "cases"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let text = &done.stdout;
    assert!(
        text.contains("ddls1-s1mq1-kyber            DIFFERS"),
        "{text}"
    );
    assert!(
        text.contains("dispatch 164: recorded W 165888+1024"),
        "{text}"
    );
    assert!(text.lines().all(|l| l.len() <= 80), "{text}");
}

#[test]
fn what_is_wrong_with_a_case_or_a_choice_is_one_line() {
    let f = Folder::new();
    let case = "seconds = 1\njob = \"[a]\\nrw=read\\nsize=1m\\nfilename=/dev/sda\"\n\
                [device]\nkind = \"null_blk\"\nTUNING[queue]\nscheduler = \"none\"\n";
    for (name, result) in [
        ("empty", ""),
        ("list", "{}"),
        ("jobs", "{\"jobs\": [{\"job\": \"a\"}, {\"job\": \"b\"}]}"),
        ("trace", "{\"jobs\": [{\"job\": \"a\"}]}"),
        ("key", "{\"jobs\": [{\"job\": \"a\"}]}"),
    ] {
        let extra = if name == "key" { "mode = 3\n" } else { "" };
        f.write(&format!("cases/{name}.toml"), case.replace("TUNING", extra));
        f.write(&format!("results/{name}.json"), result);
    }
    f.write("traces/trace.blktrace.0.zst", "no trace");
    for (name, what) in [
        ("empty", "results/empty.json:1: not JSON"),
        (
            "list",
            "results/list.json: no list 'jobs': not a measured result",
        ),
        ("jobs", "the result has 2 jobs (a, b), the job file 1 (a)"),
        (
            "trace",
            "traces/trace.blktrace.0.zst: cannot read the trace: begins with \"no trace\"",
        ),
        ("wrong", "no case is called 'wrong'"),
    ] {
        let done = f.run(&["conform", "cases", "--case", name]);
        assert_eq!(done.code, Some(2), "{name}: {}", done.stdout);
        assert!(done.stderr.contains(what), "{name}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    let done = f.run(&[
        "conform",
        "cases",
        "--case",
        "key",
        "--output-format",
        "json",
    ]);
    assert!(
        done.stderr.contains("none of the cases ran"),
        "{}",
        done.stderr
    );
    assert!(done.stdout.contains("mode"), "{}", done.stdout);
}
