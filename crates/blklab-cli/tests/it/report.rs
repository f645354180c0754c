// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab report`: the page and its data.

use crate::support::{Folder, root};
use serde_json::Value;

/// Two schedulers, readers beside a writer.
const MATRIX: &str = "[reader]\nrw=randread\nsize=4m\nio_size=1m\ndirect=1\nnumjobs=2\n\
                      [writer]\nrw=write\nsize=4m\nioengine=libaio\niodepth=16\ndirect=1\n";

fn matrix() -> Folder {
    let folder = Folder::new();
    folder.write("m.fio", MATRIX);
    folder.ok(&[
        "run",
        "m.fio",
        "--sched",
        "mq-deadline,bfq",
        "--out",
        "runs",
    ]);
    folder
}

fn json(folder: &Folder, args: &[&str]) -> Value {
    let text = folder.ok(&[&["report"], args, &["--output-format", "json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

/// What a reader looks for on a page, and that nothing is fetched from elsewhere.
#[test]
fn a_page_says_what_there_is_to_say() {
    let folder = matrix();
    folder.ok(&["report", "runs", "-o", "page.html"]);
    let page = folder.read("page.html");
    for expected in [
        "<title>m: mq-deadline, bfq</title>",
        "p99.9 of writer",
        "One run each: no interval.",
        "Who waited",
        "What would help",
        "data-chart=\"timeline\"",
        "data-chart=\"compare\"",
        "Where the time went",
        "in the device, for others",
        "What the scheduler did",
        "digest",
        "none lost, left out or damaged",
        "job.fio",
        "The MIT License",
    ] {
        assert!(page.contains(expected), "the page has no {expected}");
    }
    for forbidden in ["src=\"", "href=\"http", "@import", "url("] {
        assert!(!page.contains(forbidden), "the page has {forbidden}");
    }
    // The same again, bit for bit.
    folder.ok(&["report", "runs", "-o", "again.html"]);
    assert!(
        folder.read("again.html") == page,
        "two pages of the same runs differ"
    );
}

/// Numbers are those of `result.json` and of `blklab why`, and columns are of one length.
#[test]
fn the_data_are_those_of_the_other_commands() {
    let folder = matrix();
    let report = json(&folder, &["runs/bfq"]);
    let member = &report["members"][0];
    let result: Value = serde_json::from_str(&folder.read("runs/bfq/result.json")).expect("JSON");
    assert_eq!(member["metrics"], result["blklab"]["metrics"]);
    let rows = result["blklab"]["metrics"]["jobs"]
        .as_array()
        .expect("rows");
    let reader = rows.iter().find(|r| r["job"] == "reader").expect("a row");
    let line = &member["jobs"].as_array().expect("lines")[0];
    assert_eq!(
        (&line["name"], &line["direction"]),
        (&reader["job"], &reader["direction"])
    );
    for key in [
        "clat_p50_ns",
        "clat_p999_ns",
        "clat_max_ns",
        "runt_max_ms",
        "ios",
        "bytes",
    ] {
        assert_eq!(line[key].as_f64(), reader[key].as_f64(), "{key}");
    }

    let why = folder.ok(&["why", "runs/bfq", "--output-format", "json"]);
    let why: Value = serde_json::from_str(&why).expect("JSON");
    assert_eq!(member["findings"], why["findings"]);
    assert_eq!(member["re_enacted"], why["re_enacted"]);
    for (own, device) in member["devices"]
        .as_array()
        .expect("devices")
        .iter()
        .zip(why["devices"].as_array().expect("devices"))
    {
        assert_eq!(own["waited"], device["waited"]);
        // What ended in the intervals is what ended in all.
        let ended = own["flow"]["ended"].as_array().expect("a column");
        let ended: u64 = ended.iter().filter_map(Value::as_u64).sum();
        assert_eq!(Some(ended), device["waited"]["requests"].as_u64());
        let longest = own["flow"]["max_ns"].as_array().expect("a column");
        let longest = longest.iter().filter_map(Value::as_u64).max();
        assert_eq!(longest, device["waited"]["worst_ns"].as_u64());
    }

    let requests = member["requests"].as_object().expect("columns");
    let nr = requests["start"].as_array().expect("a column").len();
    assert_eq!(Some(nr as u64), requests["seen"].as_u64());
    for (name, column) in requests
        .iter()
        .filter(|(n, _)| !["flags", "phases"].contains(&n.as_str()))
    {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), nr, "{name}");
        }
    }
}

/// Each number in a table has its value beside it, and that value is in the data.
#[test]
fn every_number_of_a_table_is_in_the_data() {
    let folder = matrix();
    folder.ok(&["report", "runs", "-o", "page.html"]);
    let page = folder.read("page.html");
    let mut known = std::collections::BTreeSet::new();
    numbers(&json(&folder, &["runs"]), &mut known);
    let cells: Vec<&str> = page
        .split("data-v=\"")
        .skip(1)
        .filter_map(|t| t.split('"').next())
        .collect();
    assert!(cells.len() > 100, "{} numbers", cells.len());
    for cell in cells {
        let value: f64 = cell.parse().expect("a number");
        assert!(
            known.contains(&value.to_bits()),
            "{cell} is not in the data"
        );
    }
}

fn numbers(value: &Value, all: &mut std::collections::BTreeSet<u64>) {
    match value {
        Value::Number(n) => drop(all.insert(n.as_f64().expect("a number").to_bits())),
        Value::Array(values) => values.iter().for_each(|v| numbers(v, all)),
        Value::Object(values) => values.values().for_each(|v| numbers(v, all)),
        _ => {}
    }
}

/// Dirty pages and requests in use, which no event shows: counted without a change to the
/// events, and within what the queue and the page cache have.
#[test]
fn a_run_counts_pages_and_requests() {
    let folder = Folder::new();
    folder.write("w.fio", "[w]\nrw=write\nsize=24m\nend_fsync=1\n");
    let run = ["run", "w.fio", "--set", "memory=128m"];
    for (kernel, own, all) in [
        ("2.6.28", "write_requests", "pool_requests"),
        ("6.12", "driver_tags", "driver_tags_all"),
    ] {
        let asked = [&run[..], &["--kernel", kernel]].concat();
        let alone = folder.ok(&[&asked[..], &["--output-format", "json"]].concat());
        let alone: Value = serde_json::from_str(&alone).expect("JSON");
        assert!(alone["blklab"].get("counters").is_none());
        folder.ok(&[&asked[..], &["--out", kernel]].concat());
        let result: Value =
            serde_json::from_str(&folder.read(&format!("{kernel}/result.json"))).expect("JSON");
        let result = &result["blklab"];
        assert_eq!(result["digest"], alone["blklab"]["digest"]);
        let counters = result["counters"].as_array().expect("counters");
        let most = |name: &str| {
            let counter = counters.iter().find(|c| c["counter"] == name);
            counter.and_then(|c| c["max"].as_f64()).expect(name)
        };
        let written = most("dirty_pages") + most("writeback_pages");
        assert!(written > most("background_limit_pages"), "{kernel}");
        assert!(most("writeback_pages") > 0.0, "{kernel}");
        let (used, there) = (most(own), most(all));
        assert!(
            used > 0.0 && used <= 1.5 * there,
            "{kernel}: {used} of {there}"
        );
        let page = json(&folder, &[kernel]);
        assert_eq!(page["members"][0]["counters"], result["counters"]);
    }
    folder.ok(&["report", "2.6.28", "--svg", "pictures"]);
    let picture = folder.read("pictures/dirty.svg");
    for expected in ["writers wait", "write-back begins", "under write-back"] {
        assert!(picture.contains(expected), "no {expected}");
    }
}

/// The band has idling for a reader under CFQ and batches of both directions under
/// mq-deadline; changes and intervals come to the same times.
#[test]
fn the_band_says_what_the_scheduler_did() {
    let folder = Folder::new();
    let job = MATRIX.replace("rw=randread", "rw=randread\nioengine=libaio\niodepth=8");
    folder.write("m.fio", job);
    let cfq = ["--kernel", "2.6.28", "--sched", "cfq"];
    let mq_deadline = [
        "--kernel",
        "6.12",
        "--sched",
        "mq-deadline",
        "--set",
        "queue_depth=2",
    ];
    for (stack, expected) in [
        (&cfq[..], &["idling", "quantum reached"][..]),
        (&mq_deadline, &["read batch", "write batch"]),
    ] {
        folder.ok(&[&["run", "m.fio", "--out", "run"], stack].concat());
        let report = json(&folder, &["run"]);
        let member = &report["members"][0];
        let band = &member["scheduler"];
        let lines = band["lines"].as_array().expect("lines");
        for what in expected {
            let is_there = lines.iter().any(|l| l["what"] == *what);
            assert!(is_there, "no {what}: {lines:?}");
        }
        let mut sums = vec![0; lines.len()];
        let mut at = 0;
        let after = band["change_after"].as_array().expect("times");
        let line = band["change_line"].as_array().expect("places");
        assert!(!after.is_empty());
        for (i, place) in line.iter().enumerate().take(line.len() - 1) {
            at += after[i].as_u64().expect("a time");
            if let Some(place) = place.as_u64() {
                sums[place as usize] += after[i + 1].as_u64().expect("a time");
            }
        }
        assert!(at <= member["span_ns"].as_u64().expect("a time"));
        for (line, sum) in lines.iter().zip(sums) {
            assert_eq!(line["total_ns"], sum, "{line}");
        }
    }
}

#[test]
fn a_trace_has_a_page_too() {
    let folder = Folder::new();
    let trace = root().join("testdata/blkparse/sync-write-2.6.24.txt");
    let trace = trace.to_str().expect("a name");
    let known = ["--kernel", "2.6.24", "--sched", "cfq"];
    let done = folder.run(&[&["report", trace, "-o", "page.html"], &known[..]].concat());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("leaves out: 141"), "{}", done.stderr);
    let page = folder.read("page.html");
    for expected in [
        "blkparse",
        "What is known of the machine",
        "What the scheduler did",
    ] {
        assert!(page.contains(expected), "the page has no {expected}");
    }
}

/// One line, and no page.
#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = Folder::new();
    folder.write("empty/file", "");
    for (args, expected) in [
        (
            vec!["report", "empty", "-o", "x.html"],
            "empty: neither a run directory",
        ),
        (vec!["report", "job.fio", "-o", "x.html"], "job.fio"),
        (vec!["report", "missing", "-o", "x.html"], "missing"),
        (
            vec!["report", "job.fio", "-o", "no/x.html"],
            "the folder no does not exist",
        ),
    ] {
        let done = folder.run(&args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(
            done.stderr.contains(expected) && done.stderr.lines().count() == 1,
            "{}",
            done.stderr
        );
        assert!(!folder.path("x.html").exists());
    }
}

/// Names in a trace may come from strangers: they stay text.
#[test]
fn a_name_is_no_markup() {
    let folder = Folder::new();
    let name = "</script><script>alert(1)</script>";
    let line = |time: &str, action: &str| {
        format!("  8,0    0        1     {time}   7  {action}   R 2048 + 8 [{name}]\n")
    };
    let text = line("0.000000000", "Q")
        + &line("0.000001000", "I")
        + &line("0.000002000", "D")
        + "  8,0    0        4     0.500000000     0  C   R 2048 + 8 [0]\n";
    folder.write("t.txt", text);
    folder.run(&["report", "t.txt", "-o", "page.html"]);
    assert!(!folder.read("page.html").contains("<script>alert"));
}

/// Each chart as a file, with its axes and names; without `--output` there is no page.
#[test]
fn charts_are_pictures_of_their_own() {
    let folder = matrix();
    let printed = folder.ok(&["report", "runs", "--svg", "pictures"]);
    assert_eq!(printed, "");
    let of_bfq = [
        "bfq-clat.svg",
        "bfq-depth.svg",
        "bfq-driver-tags.svg",
        "bfq-latency.svg",
        "bfq-q2c.svg",
        "bfq-scheduler-tags.svg",
        "bfq-throughput.svg",
        "bfq-timeline.svg",
        "bfq-waiting.svg",
    ];
    let names = folder.names("pictures");
    assert_eq!(&names[..9], of_bfq);
    let last: Vec<&str> = names[18..].iter().map(String::as_str).collect();
    assert_eq!(last, ["verdict.svg", "waiting.svg"]);
    for (name, expected) in [
        ("waiting.svg", ">Who waited, how long, why</text>"),
        (
            "bfq-waiting.svg",
            ">bfq: who waited, how long, for what</text>",
        ),
        ("verdict.svg", ">mq-deadline</text>"),
        ("bfq-timeline.svg", "reader"),
        ("bfq-clat.svg", "reader read"),
        ("bfq-throughput.svg", "MiB/s"),
        ("bfq-driver-tags.svg", "all 31"),
    ] {
        let text = folder.read(&format!("pictures/{name}"));
        assert!(
            text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"),
            "{name}"
        );
        assert!(text.contains(expected), "{name} has no {expected}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{name}");
    }
}

/// Repetitions are one row with an interval, in the order of the command; what is judged can
/// be chosen, and what cannot be judged is refused.
#[test]
fn a_matrix_is_judged_by_its_repetitions() {
    let folder = Folder::new();
    folder.write(
        "m.fio",
        "[wal]\nrw=write\nbs=4k\nsize=1m\nfsync=4\n\
         [reader]\nrw=randread\nbs=16k\nsize=256m\nio_size=2m\nioengine=libaio\n\
         iodepth=32\ndirect=1\n",
    );
    let run = "run m.fio --sched none,mq-deadline,bfq --set queue_depth=1,31 --repeat 3 \
               --out runs";
    let printed = folder.ok(&run.split_whitespace().collect::<Vec<_>>());
    let first = printed
        .lines()
        .find(|l| l.contains("is best for"))
        .expect("a verdict");
    assert!(first.contains("sync p99.9 of wal"), "{printed}");
    let report = json(&folder, &["runs"]);
    let rows = report["verdict"]["rows"].as_array().expect("rows");
    let labels: Vec<&str> = rows.iter().filter_map(|r| r["label"].as_str()).collect();
    let expected = [
        "none queue_depth=1",
        "none queue_depth=31",
        "mq-deadline queue_depth=1",
        "mq-deadline queue_depth=31",
        "bfq queue_depth=1",
        "bfq queue_depth=31",
    ];
    assert_eq!(labels, expected);
    assert_eq!(report["members"].as_array().map(Vec::len), Some(6));
    for label in expected {
        assert!(printed.contains(label), "{label} is cut: {printed}");
    }
    // The page says what the table of the run said.
    let answer = report["verdict"]["answer"].as_str().expect("text");
    let joined = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(answer), "{answer}\n{printed}");
    let report = json(&folder, &["runs", "--for", "bandwidth of reader"]);
    assert_eq!(report["verdict"]["figure"], "bandwidth of reader");
    for (args, expected) in [
        (&["runs", "--for", "p99 of wall"][..], "did you mean 'wal'"),
        (
            &["runs/bfq-queue_depth=31-run1", "--for", "p99 of wal"][..],
            "two or more",
        ),
    ] {
        let done = folder.run(&[&["report"], args, &["-o", "no.html"]].concat());
        assert!(done.stderr.contains(expected), "{}", done.stderr);
        assert_eq!(done.code, Some(2));
    }
}

/// The same charts as PNG, side by side or alone; nothing is written if a file there is not
/// to be replaced.
#[test]
fn charts_are_png_too() {
    let folder = Folder::new();
    folder.write("m.fio", MATRIX);
    folder.ok(&["run", "m.fio", "--out", "run"]);
    folder.ok(&["report", "run", "--png", "pictures", "--svg", "pictures"]);
    let names = folder.names("pictures");
    let count = |end: &str| names.iter().filter(|n| n.ends_with(end)).count();
    assert_eq!(
        (count(".png"), names.len()),
        (count(".svg"), 2 * count(".svg"))
    );
    for name in names.iter().filter(|n| n.ends_with(".png")) {
        let bytes = std::fs::read(folder.path(&format!("pictures/{name}"))).expect("a picture");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        assert_eq!(side(16), 1800, "{name}");
        assert!(side(20) > 100, "{name}");
    }
}

/// A result of `blklab reproduce`: words, a picture and a table, each number of which is in
/// the data.
#[test]
fn a_reproduction_has_a_page() {
    let folder = Folder::new();
    let study = ["reproduce", "cfq-quantum-2010", "--quick"];
    let json = ["--output-format", "json", "--output", "r.json"];
    let done = folder.run(&[&study[..], &json].concat());
    assert!(matches!(done.code, Some(0 | 1)), "{}", done.stderr);
    folder.ok(&["report", "r.json", "-o", "r.html", "--svg", "pictures"]);
    let page = folder.read("r.html");
    for expected in [
        "<title>cfq-quantum-2010: published and modelled</title>",
        "How near",
        "predicted numbers are within",
        "class=\"picture\"",
        "Published orderings",
        "allowed",
    ] {
        assert!(page.contains(expected), "the page has no {expected}");
    }
    assert!(!page.contains("NaN") && !page.contains("src=\""));
    let data: Value = serde_json::from_str(&folder.read("r.json")).expect("JSON");
    let mut known = std::collections::BTreeSet::new();
    numbers(&data, &mut known);
    let cells = page.split("data-v=\"").skip(1);
    let cells: Vec<f64> = cells
        .filter_map(|t| t.split('"').next()?.parse().ok())
        .collect();
    assert!(cells.len() > 10, "{cells:?}");
    for cell in cells {
        assert!(known.contains(&cell.to_bits()), "{cell} is not in the data");
    }
    let names = folder.names("pictures");
    assert_eq!(names, ["cfq-quantum-2010.svg", "overview.svg"]);

    folder.write("x.json", "{\n\"numbers\": 1}");
    for (args, expected) in [
        (
            vec!["x.json"],
            "x.json:2: JSON, but not what blklab reproduce",
        ),
        (vec!["r.json", "r.json"], "name it alone"),
        (vec!["r.json", "--kernel", "6.1"], "says its own"),
    ] {
        let done = folder.run(&[&["report"], &args[..], &["-o", "no.html"]].concat());
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert!(!folder.path("no.html").exists());
    }
}

/// Chromium shows the pages of a run, a matrix and a trace: no errors, nothing fetched,
/// every chart drawn, zoom and hover in time. Skips where Chromium or npm is missing.
#[test]
fn pages_work_in_a_browser() {
    use std::process::Command;
    let web = root().join("crates/blklab-report/web");
    let is_there = |path: &&&str| std::path::Path::new(path).is_file();
    let known = [
        "/usr/bin/chromium",
        "/usr/bin/chromium-browser",
        "/usr/bin/google-chrome",
    ];
    let Some(chromium) = known.iter().find(is_there) else {
        return eprintln!("skipped: there is no Chromium (apt-get install chromium)");
    };
    if !web.join("node_modules/playwright-core").is_dir() {
        let mut npm = Command::new("npm");
        let fetched = npm
            .args(["ci", "--no-audit", "--no-fund"])
            .current_dir(&web)
            .output();
        if !fetched.is_ok_and(|done| done.status.success()) {
            return eprintln!("skipped: npm cannot fetch what drives Chromium");
        }
    }
    let folder = matrix();
    let trace = root().join("testdata/blktrace/linux-6.1-mq-deadline.blktrace.0.zst");
    folder.ok(&["report", "runs", "-o", "matrix.html"]);
    folder.ok(&["report", "runs/bfq", "-o", "run.html"]);
    folder.ok(&[
        "report",
        trace.to_str().expect("a name"),
        "-o",
        "trace.html",
    ]);
    let mut node = Command::new("node");
    node.arg("test/browser.mjs").arg(chromium).current_dir(&web);
    node.args(["matrix.html", "run.html", "trace.html"].map(|name| folder.path(name)));
    let done = node.output().expect("node is there");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
}
