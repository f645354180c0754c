// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--output-format csv` as a reader of CSV sees it.

use crate::support::{Folder, root};
use serde_json::Value;
use std::collections::BTreeMap;

type Row = BTreeMap<String, String>;

fn rows(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader
        .deserialize()
        .map(|row| row.expect("a row of the header's length"))
        .collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

#[test]
fn a_row_for_each_run_job_and_direction() {
    let f = Folder::new();
    f.write(
        "two.fio",
        "[global]\nsize=1m\ndirect=1\n[a]\nrw=randrw\n[b, c]\nrw=read\nnumjobs=2\n",
    );
    let run = ["run", "two.fio", "--sched", "none,bfq", "--repeat", "2"];
    let set = ["--set", "read_ahead_kb=64,128"];
    let args = [&run[..], &set].concat();
    let format = |name: &'static str| [&args[..], &["--output-format", name]].concat();
    let rows = rows(&f.ok(&format("csv")));
    // Of each of eight runs: a reads and writes, b reads, and both read.
    assert_eq!(rows.len(), 8 * 4);
    let runs: Vec<Value> = serde_json::from_str(&f.ok(&format("json"))).expect("JSON");
    for (i, four) in rows.chunks(4).enumerate() {
        let digest = runs[i]["blklab"]["digest"].as_str().expect("a digest");
        let who: Vec<[&str; 4]> = four
            .iter()
            .map(|r| ["level", "job", "direction", "jobs"].map(|c| r[c].as_str()))
            .collect();
        assert_eq!(
            who,
            [
                ["job", "a", "read", "1"],
                ["job", "b, c", "read", "2"],
                ["group", "", "read", "3"],
                ["job", "a", "write", "1"],
            ]
        );
        for row in four {
            assert_eq!(row["digest"], digest);
            assert_eq!(row["scheduler"], ["none", "bfq"][i / 4]);
            assert_eq!(row["read_ahead_kb"], ["64", "128"][i / 2 % 2]);
            assert_eq!(row["repetition"], ["0", "1"][i % 2]);
            assert_eq!(row["seed"], row["repetition"]);
            assert_eq!((&*row["kernel"], &*row["queue_depth"]), ("7.3", "31"));
            assert!(number(row, "clat_p50_ns") <= number(row, "clat_max_ns"));
            let rate = number(row, "bytes") / (number(row, "ran_ms") / 1e3);
            assert!((rate / number(row, "bandwidth_bytes_per_s") - 1.0).abs() < 1e-6);
            assert!(number(row, "disk_requests") > 0.0);
        }
        let jobs = runs[i]["jobs"].as_array().expect("jobs");
        let of_a = jobs.iter().find(|j| j["jobname"] == "a").expect("a");
        assert_eq!(
            number(&four[0], "ios"),
            of_a["read"]["total_ios"].as_f64().unwrap()
        );
        assert_eq!(
            number(&four[0], "runt_max_ms"),
            of_a["read"]["runtime"].as_f64().unwrap()
        );
        let p99 = &of_a["read"]["clat_ns"]["percentile"]["99.000000"];
        let max = of_a["read"]["clat_ns"]["max"].as_f64().unwrap();
        assert_eq!(
            number(&four[0], "clat_p99_ns"),
            p99.as_f64().unwrap().min(max)
        );
    }
}

#[test]
fn variants_groups_and_processes() {
    let f = Folder::new();
    let weights = root().join("examples/cgroup-weights.toml");
    let text = f.ok(&["run", &weights.to_string_lossy(), "--output-format", "csv"]);
    let found: Vec<[String; 4]> = rows(&text)
        .iter()
        .map(|r| ["experiment", "variant", "job", "cgroup"].map(|c| r[c].clone()))
        .collect();
    assert_eq!(
        found[0],
        ["cgroup-weights", "cfq of 4.19", "light", "weight-100"]
    );
    assert_eq!(found.len(), 6);
    f.write(
        "p.json",
        r#"{"kernel":"2.6.28","device":{"law":"serial","read_ns":500},"processes":[{"name":"p",
        "pid":7,"io":{"pattern":"script","ops":[[5,"read",[],8,8],[9,"write",["sync"],16,8]]}}]}"#,
    );
    let text = f.ok(&["run", "p.json", "--output-format", "csv"]);
    let rows = rows(&text);
    assert_eq!(rows.len(), 1, "{text}");
    let who = ["level", "job", "direction", "ios", "bytes", "runt_min_ms"];
    assert_eq!(
        who.map(|c| rows[0][c].as_str()),
        ["process", "p", "all", "2", "8192", ""]
    );
}

#[test]
fn csv_is_the_table_and_terse_is_fio_s() {
    let f = Folder::new();
    assert!(
        f.ok(&["run", "job.fio", "--output-format", "terse"])
            .starts_with("3;blklab-")
    );
    let done = f.run(&["run", "job.fio", "--output-format", "json,csv"]);
    assert_eq!(done.code, Some(2));
    assert_eq!(
        done.stderr,
        "blklab: --output-format json,csv: table and csv stand alone (fio's line of fields is \
         terse)\n"
    );
}
