// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab recommend`: what to set, with its price.

use crate::support::{Folder, root};
use serde_json::Value;

/// A reader whose reads wait behind a writer that keeps the device full.
const BESIDE_WRITER: &str = "[global]\nfilename=/dev/sda\ndirect=1\nsize=256m\ntime_based=1\nruntime=200ms\n\
    [web]\nrw=randread\nbs=4k\nioengine=psync\nthinktime=500\n\
    [backup]\noffset=1g\nrw=write\nbs=256k\nioengine=libaio\niodepth=64\n";

/// One reader, and a device that takes a fixed time.
const ALONE: &str = "[web]\nrw=randread\ndirect=1\nbs=4k\nsize=64m\nio_size=1m\n";

const DEVICE: &str = "serial,read_ns=100000,write_ns=1000000";

fn ask(folder: &Folder, more: &[&str]) -> Value {
    let mut arguments = vec!["recommend", "j.fio", "--kernel", "6.12", "--format", "json"];
    arguments.extend(["--device", DEVICE, "--set", "queue_depth=16"]);
    arguments.extend(more);
    let out = folder.run(&arguments);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    serde_json::from_str(&out.stdout).expect("it is JSON")
}

fn best(answer: &Value) -> &Value {
    let place = answer["answer"].as_u64().expect("it has an answer") as usize;
    &answer["tried"][place]
}

#[test]
fn what_helps_the_victim_keeps_to_the_bounds_of_others() {
    let folder = Folder::new();
    folder.write("j.fio", BESIDE_WRITER);
    let asked = [
        "--for",
        "read p99 of web",
        "--keep",
        "bandwidth of backup >= 40 %",
    ];
    let answer = ask(&folder, &asked);
    assert_eq!(answer["goal"], "read p99 of web");
    let best = best(&answer);
    assert!(best["gain"].as_f64().expect("a number") > 1.5, "{best}");
    assert_eq!(best["verdict"], "better");
    assert_eq!(best["breaks"], Value::Array(Vec::new()));
    assert!(!best["paste"].as_array().expect("a list").is_empty());
    let prices = best["prices"].as_array().expect("a list");
    let priced = |figure: &str| {
        prices
            .iter()
            .find(|p| p["figure"] == figure)
            .expect("a price")
    };
    let price = priced("bandwidth of backup");
    // The victim itself still calls.
    let calls = priced("read iops of web")["gain"]
        .as_f64()
        .expect("a number");
    assert!(calls >= 0.5, "{best}");
    assert!(price["gain"].as_f64().expect("a number") >= 0.4, "{price}");
    // What others do not keep to is said and not advised.
    let tried = answer["tried"].as_array().expect("a list");
    let breaks = |t: &&Value| !t["breaks"].as_array().expect("a list").is_empty();
    assert!(tried.iter().any(|t| breaks(&t)));
    // Its advice, made by hand, does what it says.
    let changes: Vec<String> = best["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| s.as_str().expect("text").to_owned())
        .collect();
    assert!(!changes.is_empty());
    let asked_again = ask(&folder, &asked);
    assert_eq!(asked_again, answer, "it repeats");
}

/// The answer beside the best of every combination of two things.
#[test]
fn the_exhaustive_grid_says_how_far_the_answer_is_behind() {
    let folder = Folder::new();
    folder.write("j.fio", BESIDE_WRITER.replace("200ms", "20ms"));
    let goal = ["--for", "read p99 of web", "--repeat", "2"];
    let answer = ask(&folder, &[&goal[..], &["--exhaustive"]].concat());
    let grid = &answer["grid"];
    let number = |v: &Value| v.as_f64().expect("a number");
    assert_eq!(grid["together"], 2);
    let (combinations, runs) = (number(&grid["combinations"]), number(&answer["runs"]));
    assert!(combinations > 4.0 * runs, "{combinations} beside {runs}");
    assert!(number(&grid["runs"]) >= combinations);
    // A latency: the answer's over the best one's is what the best is ahead by.
    let ahead = number(&grid["answer"]) / number(&grid["value"]);
    assert!((ahead - number(&grid["ahead"])).abs() < 1e-9, "{grid}");
    assert_eq!(grid["answer"], best(&answer)["after"]);
    assert!(ahead < 1.5, "the search misses much: {grid}");
    let without = ask(&folder, &goal);
    assert_eq!(without["grid"], Value::Null);
    assert_eq!(
        without["tried"], answer["tried"],
        "the grid changes no answer"
    );
}

#[test]
fn nothing_to_gain_is_left_as_it_is() {
    let folder = Folder::new();
    folder.write("j.fio", ALONE);
    let answer = ask(&folder, &[]);
    assert_eq!(answer["answer"], Value::Null);
    assert_eq!(answer["goal"], "read p99.9 of web");
    let out = folder.run(&[
        "recommend",
        "j.fio",
        "--kernel",
        "6.12",
        "--device",
        DEVICE,
        "--repeat",
        "2",
    ]);
    assert!(
        out.stdout.trim_start().starts_with("Leave it as it is"),
        "{}",
        out.stdout
    );
}

#[test]
fn few_runs_are_enough_and_no_more_are_made() {
    let folder = Folder::new();
    folder.write("j.fio", BESIDE_WRITER);
    let answer = ask(&folder, &["--max-runs", "25", "--repeat", "2"]);
    assert!(answer["runs"].as_u64().expect("a number") <= 25);
    let left = answer["not_tried"].as_array().expect("a list");
    let is_limit = |v: &Value| {
        v.as_str()
            .is_some_and(|s| s.ends_with("25 runs are not enough"))
    };
    assert!(left.iter().any(is_limit), "{left:?}");
}

/// `nr_requests=7` beside a limit on asynchronous requests gains next to nothing.
#[test]
fn what_adds_nothing_is_left_out_and_said_within_the_budget() {
    let folder = Folder::new();
    let file = root().join("examples/container-host.fio");
    let asked = |more: &[&str]| {
        let mut args = vec!["recommend", file.to_str().expect("text"), "--fs", "ext4"];
        args.extend(["--device", "sata-ssd", "--for", "read p99.9 of web"]);
        args.extend(["--format", "json"]);
        args.extend(more);
        let answer: Value = serde_json::from_str(&folder.ok(&args)).expect("it is JSON");
        answer
    };
    let answer = asked(&[]);
    let left_out = &answer["pruned"]["left_out"];
    assert_eq!(left_out[0]["what"], "nr_requests=7");
    let best = best(&answer);
    assert_eq!(best["what"], "async_depth=4");
    assert_eq!(
        (&best["seeds"], &best["verdict"]),
        (&5.into(), &"better".into())
    );
    let runs = answer["pruned"]["runs"].as_u64().expect("a number");
    assert!((1..=8).contains(&runs), "{runs}");
    // Where there is no budget for a part, that is said.
    let few = asked(&["--max-runs", "66"]);
    assert!(few["runs"].as_u64().expect("a number") <= 66);
    assert_eq!(few["pruned"]["not_run"], 1);
    let told = few["not_tried"].as_array().expect("a list");
    let expected = "nr_requests=7, as a part of the answer: 66 runs are not enough";
    assert!(told.contains(&expected.into()), "{told:?}");
}

#[test]
fn what_is_asked_wrongly_is_told_in_a_line() {
    let folder = Folder::new();
    folder.write("j.fio", ALONE);
    for (option, text, told) in [
        ("--for", "sink p99 of web", "did you mean 'sync'"),
        ("--for", "p99 of wen", "did you mean 'web'"),
        ("--for", "write p99 of web", "it makes no such calls"),
        (
            "--keep",
            "bandwidth of web",
            "write it like 'bandwidth of backup >= 80 %'",
        ),
        ("--max-runs", "3", "20 at least"),
        ("--confirm", "kernal", "did you mean 'kernel'"),
    ] {
        let out = folder.run(&["recommend", "j.fio", option, text]);
        assert_eq!(out.code, Some(2), "{option} {text}");
        assert!(out.stderr.contains(told), "{option} {text}: {}", out.stderr);
        assert_eq!(out.stderr.lines().count(), 1, "{}", out.stderr);
    }
}

#[test]
fn a_trace_is_asked_with_the_device_that_is_named() {
    let folder = Folder::new();
    folder.write("j.fio", BESIDE_WRITER);
    let run = [
        "run", "j.fio", "--device", DEVICE, "--kernel", "6.12", "--trace", "t.txt",
    ];
    folder.ok(&run);
    let without = folder.run(&["recommend", "t.txt"]);
    assert_eq!(without.code, Some(2));
    assert!(
        without.stderr.contains("on which device?"),
        "{}",
        without.stderr
    );
    let goal = "p99 of web";
    let asked = [
        "recommend",
        "t.txt",
        "--device",
        DEVICE,
        "--kernel",
        "6.12",
        "--for",
        goal,
    ];
    let out = folder.run(&[&asked[..], &["--format", "json", "--repeat", "2"]].concat());
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let answer: Value = serde_json::from_str(&out.stdout).expect("it is JSON");
    assert_eq!(answer["goal"], goal);
    assert!(!answer["tried"].as_array().expect("a list").is_empty());
}
