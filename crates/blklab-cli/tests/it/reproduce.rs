// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab reproduce`: published numbers beside ours.

use crate::support::Folder;
use serde_json::Value;

const QUANTUM: &[&str] = &["reproduce", "cfq-quantum-2010", "--quick"];

#[test]
fn numbers_and_orderings_are_counted() {
    let f = Folder::new();
    let args = [QUANTUM, &["--output-format", "json"]].concat();
    let done = f.run(&args);
    // 1 says that a prediction is off: that is a result, not a failure.
    assert!(matches!(done.code, Some(0 | 1)), "{}", done.stderr);
    let all: Value = serde_json::from_str(&done.stdout).unwrap();
    let summary = &all["summary"];
    let numbers = all["numbers"].as_array().unwrap();
    assert_eq!(summary["numbers"], numbers.len());
    let count = |kind: &str| numbers.iter().filter(|n| n["kind"] == kind).count();
    assert_eq!(summary["calibrated"], count("calibrated"));
    assert_eq!(summary["predicted"], count("predicted"));
    let within = |n: &&Value| n["kind"] == "predicted" && n["within"] == true;
    assert_eq!(
        summary["predicted_within"],
        numbers.iter().filter(within).count()
    );
    assert_eq!(summary["orderings"], 1);
    assert_eq!(summary["orderings_hold"], 1);
    for n in numbers {
        let (ours, published) = (&n["ours"]["median"], &n["published"]);
        let ratio = ours.as_f64().unwrap() / published.as_f64().unwrap();
        assert!((n["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
        assert_eq!(n["study"], "cfq-quantum-2010");
        assert_eq!(
            (&n["metric"], &n["unit"]),
            (&"bandwidth".into(), &"MB/s".into())
        );
        assert_eq!(n["tolerance"], "15 %");
        assert_eq!(n["parameter"].is_string(), n["kind"] == "calibrated");
    }
    let ordering = &all["orderings"][0];
    assert_eq!(
        (&ordering["holds"], &ordering["expected"][0]),
        (&true.into(), &1.0.into())
    );
}

#[test]
fn text_fits_a_terminal_and_markdown_is_a_table() {
    let f = Folder::new();
    let done = f.run(QUANTUM);
    assert!(
        done.stdout.lines().all(|l| l.chars().count() <= 80),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("tweaks 1 and 2: yes"),
        "{}",
        done.stdout
    );
    let args = [
        QUANTUM,
        &["--output-format", "markdown", "--output", "r.md"],
    ]
    .concat();
    f.run(&args);
    let text = std::fs::read_to_string(f.path("r.md")).unwrap();
    assert!(
        text.contains("| unpatched | read bandwidth MB/s | 78.00 |"),
        "{text}"
    );
}

#[test]
fn testbeds_are_kept_and_shown() {
    let f = Folder::new();
    let base = [
        "reproduce",
        "cfq-quantum-2010",
        "--testbeds",
        "1",
        "--save",
        "beds",
    ];
    let run = |format: &str| f.run(&[&base[..], &["--output-format", format]].concat());
    let done = run("json");
    assert!(matches!(done.code, Some(0 | 1)), "{}", done.stderr);
    let all: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&all["testbeds"], &all["complete"]), (&1.into(), &1.into()));
    assert_eq!(all["numbers"].as_array().unwrap().len(), 4);
    assert_eq!(all["together"][0]["numbers"], 2);
    assert_eq!(all["samples"][0]["settings"].as_array().unwrap().len(), 4);
    let read = |name: &str| std::fs::read_to_string(f.path("beds").join(name)).unwrap();
    assert_eq!(read("testbeds.json"), done.stdout);
    assert_eq!(read("runs.jsonl").lines().count(), 4);
    assert_eq!(read("samples.csv").lines().count(), 1 + 4);
    // Nothing runs again.
    let again: Value = serde_json::from_str(&run("json").stdout).unwrap();
    assert_eq!(
        (&again["complete"], &again["together"]),
        (&1.into(), &all["together"])
    );
    assert_eq!(read("runs.jsonl").lines().count(), 4);
    let table = run("table").stdout;
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
    assert!(table.contains("read: 100 to 250"), "{table}");
    assert!(
        run("markdown")
            .stdout
            .contains("| unpatched | read bandwidth MB/s | 78.00 |")
    );
}

#[test]
fn names_are_checked() {
    let f = Folder::new();
    let list = f.ok(&["reproduce", "list"]);
    for text in [
        "cfq-quantum-2010",
        "read-starvation-2012",
        "device.read_us = 168 us",
    ] {
        assert!(list.contains(text), "{list}");
    }
    for (args, expected) in [
        (
            &["reproduce", "quantum"][..],
            "no experiment is called 'quantum'",
        ),
        (&["reproduce", "list", "x"], "list: stands alone"),
        (&["reproduce", "--seeds", "0"], "at least 1"),
        (
            &["reproduce", "--testbeds", "2"],
            "name the studies of one machine",
        ),
        (
            &["reproduce", "ltt-2009-ls", "--testbeds", "0"],
            "at least 1",
        ),
        (
            &["reproduce", "missed-merge-2008", "--testbeds", "2"],
            "its unknowns are not written down",
        ),
        (&["reproduce", "--save", "x"], "--testbeds"),
    ] {
        let done = f.run(args);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
}
