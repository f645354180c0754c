// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `blklab why` says first of the experiments behind published reports: the table in
//! docs/why.md.

use crate::support::{Folder, root};
use serde_json::Value;

/// Studies whose experiments run within seconds.
const QUICK: [&str; 2] = ["missed-merge-2008/", "cfq-quantum-2634/"];

/// A row: an experiment, its variants, the kind that comes first.
struct Row {
    experiment: String,
    variants: Vec<String>,
    kind: String,
}

/// What stands between backquotes in a cell.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn rows() -> Vec<Row> {
    let page = std::fs::read_to_string(root().join("docs/why.md")).expect("the page");
    let cells = page.lines().map(|l| l.split('|').collect::<Vec<_>>());
    let rows = cells.filter(|c| c.len() == 7 && c[2].ends_with(".toml` "));
    let row = |c: Vec<&str>| Row {
        experiment: quoted(c[2]).remove(0),
        variants: quoted(c[3]),
        kind: quoted(c[4]).remove(0),
    };
    rows.map(row).collect()
}

fn check(is_wanted: impl Fn(&str) -> bool) {
    let folder = Folder::new();
    let mut nr_variants = 0;
    for row in rows().iter().filter(|r| is_wanted(&r.experiment)) {
        let studies = root().join("crates/blklab-fidelity/studies");
        let file = studies.join(&row.experiment).display().to_string();
        assert!(!row.variants.is_empty(), "{file}");
        for variant in &row.variants {
            let done = folder.run(&["why", &file, "--variant", variant, "--format", "json"]);
            assert_eq!(done.code, Some(0), "{file} {variant}: {}", done.stderr);
            let report: Value = serde_json::from_str(&done.stdout).expect("JSON");
            let first = &report["findings"][0];
            assert_eq!(
                first["kind"],
                row.kind.as_str(),
                "{file} {variant}: {first:#}"
            );
            nr_variants += 1;
        }
    }
    assert!(nr_variants >= QUICK.len(), "{nr_variants} variants");
}

#[test]
fn quick_runs_of_reports_show_their_cause_first() {
    check(|experiment| QUICK.iter().any(|q| experiment.starts_with(q)));
}

#[test]
#[ignore = "runs whole studies; make test-docs"]
fn long_runs_of_reports_show_their_cause_first() {
    check(|experiment| !QUICK.iter().any(|q| experiment.starts_with(q)));
}

/// Without a filesystem the real kernel has block devices, which get no plug for one bio.
#[test]
fn files_that_are_parts_of_the_disk_are_read_as_block_devices() {
    let f = Folder::new();
    f.write(
        "j.fio",
        "[a]\nrw=randread\ndirect=1\nioengine=psync\nsize=4m\nnumber_ios=20\n",
    );
    let who_dispatches = |fs: &str| {
        let stack = [
            "--kernel",
            "7.3",
            "--sched",
            "mq-deadline",
            "--set",
            "cpus=1",
        ];
        let run = [
            &["run", "j.fio", "--fs", fs, "--trace", "t.txt"],
            &stack[..],
        ]
        .concat();
        f.ok(&run);
        let text = f.read("t.txt");
        let issued = text.lines().filter(|l| l.contains("  D "));
        let by_thread = issued.filter(|l| l.contains("[kworker")).count();
        (
            by_thread,
            text.lines().filter(|l| l.contains("  U ")).count(),
        )
    };
    assert_eq!(who_dispatches("extents"), (0, 20));
    assert_eq!(who_dispatches("extents,parts=1"), (20, 0));
}
