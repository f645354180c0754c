// SPDX-License-Identifier: MIT OR Apache-2.0
//! Run directories read back.

use crate::support::{Folder, digest};
use blklab::analysis::StatsCollector;
use blklab::run_directory::RunDir;
use blklab::trace::TraceSource as _;
use serde_json::Value;

fn ran() -> (Folder, String) {
    let f = Folder::new();
    let text = f.ok(&["run", "job.fio", "--kernel", "6.1", "--out", "out"]);
    (f, digest(&text).to_owned())
}

fn refused(f: &Folder) -> String {
    let error = RunDir::open(&f.path("out"), &blklab::targets::catalogue())
        .unwrap_err()
        .to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    let shown = f.path("").display().to_string();
    error
        .replace(shown.trim_end_matches('/'), "")
        .replace("//", "/")
}

#[test]
fn what_was_written_is_what_is_read() {
    let (f, digest_of_run) = ran();
    let dir = RunDir::open(&f.path("out"), &blklab::targets::catalogue())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(dir.record.digest, digest_of_run);
    assert_eq!(dir.record.kernel, "6.1");
    assert_eq!(dir.experiment.kernel.to_string(), "6.1");
    assert_eq!(dir.experiment.scheduler, dir.record.scheduler);
    assert!(dir.result["jobs"].is_array());
    let mut collector = StatsCollector::new();
    let mut events = dir.events().unwrap_or_else(|e| panic!("{e}"));
    events.send_all(&mut collector).expect("events");
    let text = serde_json::to_string(&collector.finish()).expect("JSON");
    let stats: Value = serde_json::from_str(&text).expect("what was just written");
    assert_eq!(
        stats["devices"][0]["dev"],
        dir.record.trace["devices"][0]["dev"]
    );
    assert_eq!(
        stats["devices"][0]["phases"],
        dir.record.trace["devices"][0]["phases"]
    );
    let written = serde_json::to_value(&dir.record).expect("JSON");
    assert_eq!(written, dir.result["blklab"]);
}

#[test]
fn a_run_directory_is_run_again_and_its_trace_is_read() {
    let (f, first) = ran();
    assert_eq!(digest(&f.ok(&["run", "out"])), first);
    let of_file = f.ok(&["trace", "stats", "out/events.blk"]);
    assert_eq!(f.ok(&["trace", "stats", "out"]), of_file);
}

#[test]
fn what_is_no_run_directory_is_said_in_a_line() {
    let (f, _) = ran();
    let change = |name: &str, from: &str, to: &str| {
        let path = f.path("out").join(name);
        let text = std::fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).expect("it can be written");
        let told = refused(&f);
        std::fs::write(&path, text).expect("it can be written");
        told
    };
    assert_eq!(
        change("result.json", "\"format\": 1", "\"format\": 9"),
        "/out/result.json: format 9; this blklab reads format 1"
    );
    assert_eq!(
        change("experiment.toml", "format = 1", "format = 9\nnew = 1"),
        "/out/experiment.toml:2: format 9 of experiment files; this blklab reads format 1"
    );
    assert!(change("result.json", "{", "[").starts_with("/out/result.json:"));
    assert_eq!(
        change("result.json", "\"blklab\"", "\"other\""),
        "/out/result.json: not the result of a run directory: it has no object 'blklab'"
    );
    std::fs::remove_file(f.path("out/result.json")).expect("a file");
    assert_eq!(
        refused(&f),
        "/out: its run has not ended: there is no result.json"
    );
    let done = f.run(&["run", "out"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        "blklab: out: its run has not ended: there is no result.json\n"
    );
    std::fs::remove_file(f.path("out/experiment.toml")).expect("a file");
    assert_eq!(
        refused(&f),
        "/out: not a run directory: there is no experiment.toml"
    );
}

/// Events of another run are not explained as those of this one, whatever reads them.
#[test]
fn a_run_directory_with_the_events_of_another_run_is_refused() {
    let f = Folder::new();
    let digest_of = |text: &str| digest(text).to_owned();
    let one = ["run", "job.fio", "--kernel", "2.6.28", "--sched", "cfq"];
    let one = digest_of(&f.ok(&[&one[..], &["--out", "one"]].concat()));
    let two = digest_of(&f.ok(&["run", "job.fio", "--sched", "bfq", "--out", "two"]));
    let readers: [&[&str]; 9] = [
        &["why", "one"],
        &["report", "one", "-o", "r.html"],
        &["compare", "one", "two"],
        &["compare", "two", "one", "--output", "c.txt"],
        &["run", "one"],
        &["run", "one", "--out", "three"],
        &["run", "--trace-in", "one"],
        &["trace", "info", "one"],
        &["trace", "to-fio", "two", "--stack", "one"],
    ];
    for args in readers {
        assert_eq!(f.run(args).code, Some(0), "{args:?}");
        f.shell("rm -rf r.html c.txt three");
    }
    let before = f.names(".");
    let refused = |found: &str, said: &str| {
        let expected = format!(
            "blklab: one/events.blk: these are not the events of the run: their digest is \
             {found}, and one/result.json says {said}; put the run's own events back, or run \
             its experiment again (the file by itself can be read as a trace)\n"
        );
        for args in readers {
            let done = f.run(args);
            assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
            assert_eq!(done.stderr, expected, "{args:?}");
            assert_eq!(f.names("."), before, "{args:?}");
        }
    };
    f.shell("mv one/events.blk own.blk; cp two/events.blk one/");
    std::fs::rename(f.path("own.blk"), f.path("two/own.blk")).expect("moved");
    refused(&two, &one);
    f.shell(
        "mv two/own.blk one/events.blk; cp one/result.json two/own.json; cp two/result.json one/",
    );
    refused(&one, &two);
    f.shell("mv two/own.json one/result.json");
    assert_eq!(f.run(&["why", "one"]).code, Some(0));
    // A run is run again without its trace.
    f.shell("rm one/events.blk");
    assert_eq!(digest_of(&f.ok(&["run", "one"])), one);
}
