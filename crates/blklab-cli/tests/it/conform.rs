// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measured cases: the ones carried along, and the full set where it is.

use crate::support::{Folder, root};
use serde_json::Value;

#[test]
fn the_cases_carried_along_are_identical() {
    let cases = root().join("testdata/legacy/cases");
    let f = Folder::new();
    let text = f.ok(&["conform", &cases.to_string_lossy()]);
    assert!(
        text.contains("10 cases: 10 ran, 10 identical, 0 different")
            && text.contains("identical in 10 of 10, messages in 4 of 4"),
        "{text}"
    );
    // The folder of the whole set does as well, though some have a results.csv of their own.
    let set = Folder::new();
    for case in ["merge_back_dl_k28", "plug_timer_dl_k33"] {
        let file = format!("cases/{case}.json");
        set.write(
            &file,
            std::fs::read_to_string(root().join("testdata/legacy").join(&file)).unwrap(),
        );
    }
    set.write("results.csv", "case\n");
    let results = root().join("testdata/legacy/results");
    let text = set.ok(&["conform", ".", "--results", &results.to_string_lossy()]);
    assert!(text.contains("2 cases: 2 ran, 2 identical"), "{text}");
    for id in ["merge_back_dl_k28", "plug_timer_dl_k33"] {
        let case = cases.join(format!("{id}.json"));
        let run = f.ok(&["run", &case.to_string_lossy()]);
        assert!(run.starts_with(id), "{run}");
    }
}

#[test]
fn a_difference_is_exit_code_1() {
    let f = Folder::new();
    let cases = root().join("testdata/legacy/cases");
    let case = std::fs::read_to_string(cases.join("plug_timer_dl_k33.json")).unwrap();
    let changed = case.replacen("\"hz\":250", "\"hz\":1000", 1);
    assert_ne!(case, changed, "the case says its hz");
    f.write("plug_timer_dl_k33.json", changed);
    let results = root().join("testdata/legacy/results");
    let args = [
        "conform",
        "plug_timer_dl_k33.json",
        "--results",
        &results.to_string_lossy(),
    ];
    let done = f.run(&args);
    assert_eq!(done.code, Some(1), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("1 different"), "{}", done.stdout);
    let missing = f.run(&["conform", "plug_timer_dl_k33.json"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("cannot read the recorded log"),
        "{}",
        missing.stderr
    );
}

#[test]
fn every_measured_case_is_identical() {
    let Some(cases) = blklab_testkit::shared("truth-legacy/cases") else {
        return;
    };
    let done = Folder::new().run(&[
        "conform",
        &cases.to_string_lossy(),
        "--output-format",
        "json",
    ]);
    let report: Value = serde_json::from_str(&done.stdout).expect("a report");
    let all = report["cases"].as_array().expect("cases");
    assert!(all.len() >= 100, "{} cases", all.len());
    for case in all {
        let about = format!(
            "{}: {} {} {}",
            case["id"],
            case["first_difference"],
            case["first_side_difference"],
            case["first_message_difference"]
        );
        assert_eq!(case["identical"], true, "{about}");
        assert_eq!(case["side_lines_identical"], true, "{about}");
        assert_ne!(case["messages_identical"], false, "{about}");
    }
}

#[test]
fn planted_causes_are_scored_and_shown() {
    let f = Folder::new();
    let text = f.ok(&[
        "conform",
        "--causes",
        "--case",
        "deep-queue-0,syncs-0",
        "--format",
        "json",
    ]);
    let shown: Value = serde_json::from_str(&text).expect("JSON");
    let full = &shown["score"]["classes"]["deep-queue"]["full"];
    assert_eq!([&full["planted"], &full["named"]], [1, 1], "{text}");
    let clean = &shown["score"]["clean"]["full"];
    assert_eq!([&clean["scenarios"], &clean["alarmed"]], [1, 0], "{text}");
    assert!(
        text.contains("memory reclaim"),
        "what is not drawn is listed: {text}"
    );
    // A scenario is an experiment file with comments, which runs by itself.
    let one = f.ok(&["conform", "--causes", "--case", "deep-queue-0"]);
    assert!(one.contains("# planted: deep-queue"), "{one}");
    f.write("deep.toml", &one);
    f.ok(&["run", "deep.toml", "--out", "run"]);
    let why = f.ok(&["why", "run"]);
    assert!(why.contains("deep-queue on 8,0"), "{why}");
    for (args, words) in [
        (
            ["--case", "deep-queue-x"],
            "no scenario is called 'deep-queue-x'",
        ),
        (["--class", "deep-q"], "no class is called 'deep-q'"),
        (["--kernel", "6.0"], "no kernel is called '6.0'"),
    ] {
        let done = f.run(&["conform", "--causes", args[0], args[1]]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(words), "{}", done.stderr);
    }
}

#[test]
fn wrong_answers_are_kept_with_what_was_planted() {
    let f = Folder::new();
    // Many of a class that forty lines seldom show.
    let args = [
        "conform",
        "--causes",
        "--class",
        "seek-storm",
        "--count",
        "6",
    ];
    let text = f.ok(&[&args[..], &["--keep", "wrong", "--format", "json"]].concat());
    let shown: Value = serde_json::from_str(&text).expect("JSON");
    let kept = shown["kept"].as_array().expect("a list");
    for path in kept {
        let path = path.as_str().expect("a path");
        let planted = f.read(&path.replace(".txt", ".planted.txt"));
        assert!(planted.contains("planted: seek-storm"), "{planted}");
        // The trace and its context are what why takes.
        let stem = path.split('.').next().expect("a name");
        f.ok(&["why", path, "--context", &format!("{stem}.context.txt")]);
    }
    f.write("mine.txt", "");
    let again = f.run(&[&args[..], &["--keep", "."]].concat());
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}
