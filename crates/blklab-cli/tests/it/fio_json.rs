// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results have the keys and types of real fio's.

use crate::support::{Folder, root};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every path in a JSON text with the type at its end. Bins are a map of
/// whatever latencies occurred.
fn tree(value: &Value, path: String, out: &mut BTreeMap<String, &'static str>) {
    let kind = match value {
        Value::Object(map) => {
            let bins = path.ends_with(".bins");
            for (key, v) in map.iter().filter(|_| !bins) {
                tree(v, format!("{path}.{key}"), out);
            }
            "object"
        }
        Value::Array(list) => {
            for (i, v) in list.iter().enumerate() {
                tree(v, format!("{path}[{i}]"), out);
            }
            "list"
        }
        Value::Number(n) if n.is_f64() => "number with fraction",
        Value::Number(_) => "whole number",
        Value::String(_) => "text",
        Value::Bool(_) => "truth value",
        Value::Null => "null",
    };
    out.insert(path, kind);
}

fn tree_of(value: &Value) -> BTreeMap<String, &'static str> {
    let mut out = BTreeMap::new();
    tree(value, String::new(), &mut out);
    out
}

#[test]
fn keys_and_types_are_those_of_fio() {
    let f = Folder::new();
    for name in ["randrw", "group", "timed"] {
        let recorded = root().join(format!("testdata/fio-json/{name}"));
        let job = std::fs::read(recorded.with_extension("fio")).unwrap();
        let real = std::fs::read_to_string(recorded.with_extension("json")).unwrap();
        f.write("job.fio", job);
        let ours = f.ok(&["run", "job.fio", "--output-format", "json+"]);
        let mut ours: Value = serde_json::from_str(&ours).unwrap();
        assert!(ours.as_object_mut().unwrap().remove("blklab").is_some());
        let (ours, real) = (
            tree_of(&ours),
            tree_of(&serde_json::from_str(&real).unwrap()),
        );
        assert!(real.len() > 200, "{name}: the recording is whole");
        for (path, kind) in &real {
            assert_eq!(ours.get(path), Some(kind), "{name}: {path}");
        }
        for path in ours.keys() {
            assert!(real.contains_key(path), "{name}: fio has no {path}");
        }
    }
}

#[test]
fn numbers_fit_together() {
    let f = Folder::new();
    f.write(
        "m.fio",
        "[a]\nrw=randrw\nsize=4m\nioengine=libaio\niodepth=16\ndirect=1\n[b]\nrw=write\nsize=4m\nend_fsync=1\n",
    );
    let text = f.ok(&[
        "run",
        "m.fio",
        "--output-format",
        "json",
        "--set",
        "queue_depth=2",
    ]);
    let v: Value = serde_json::from_str(&text).unwrap();
    let disk = &v["disk_util"][0];
    let number = |key: &str| disk[key].as_u64().unwrap();
    let stats = &v["blklab"]["trace"]["devices"][0];
    assert_eq!(disk["name"], "sda");
    let issued = number("read_ios") + number("write_ios");
    assert_eq!(Some(issued), stats["nr_issued"].as_u64());
    let merges =
        stats["nr_back_merges"].as_u64().unwrap() + stats["nr_front_merges"].as_u64().unwrap();
    // Bios of requests that another one absorbed count there too.
    assert!(
        number("read_merges") + number("write_merges") <= merges,
        "{disk}"
    );
    assert!(
        number("write_merges") > 0,
        "sequential writes merge: {disk}"
    );
    // Each is rounded down to a millisecond by itself.
    let ticks = number("read_ticks") + number("write_ticks");
    assert!((0..=1).contains(&(number("in_queue") - ticks)), "{disk}");
    assert!(number("read_ticks") > 0 && number("write_ticks") > 0);
    let util = disk["util"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&util) && util > 50.0, "{util}");
}

#[test]
fn programs_for_fio_results_read_them() {
    let f = Folder::new();
    f.ok(&[
        "run",
        "job.fio",
        "--output-format",
        "json+",
        "--output",
        "r.json",
    ]);
    if blklab_testkit::has_program("jq") {
        let done = f.shell("jq -r '.jobs[0].read.total_ios' r.json");
        assert_eq!(done.stdout, "256\n", "{}", done.stderr);
    }
    if blklab_testkit::has_program("fio_jsonplus_clat2csv") {
        let help = f.shell("fio_jsonplus_clat2csv --help");
        if help.code != Some(0) {
            blklab_testkit::skipped(&format!("fio_jsonplus_clat2csv: {}", help.stderr.trim()));
            return;
        }
        let done = f.shell("fio_jsonplus_clat2csv r.json out.csv");
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(f.read("out_job0.csv").lines().count() > 2);
    }
}
