// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of experiments that gave the same run, and of digests.

use crate::support::Folder;
use serde_json::Value;

/// Three readers that start together or `apart` milliseconds after each other.
fn readers(f: &Folder, apart: u32, size: &str) {
    let job = |i: u32| {
        let (name, delay) = (["a", "b", "c"][i as usize], i * apart);
        format!("[{name}]\nrw=read\nsize={size}\ndirect=1\nstartdelay={delay}ms\n")
    };
    f.write("three.fio", (0..3).map(job).collect::<String>());
}

/// The notes of a run, each in one line.
fn notes(text: &str) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(note) = line.strip_prefix("note: ") {
            notes.push(note.to_owned());
        } else if let (Some(more), Some(note)) = (line.strip_prefix("      "), notes.last_mut()) {
            *note = format!("{note} {more}");
        }
    }
    notes
}

fn same(f: &Folder, args: &[&str]) -> Vec<String> {
    let text = f.ok(&[&["run"], args].concat());
    let mut notes = notes(&text);
    notes.retain(|n| n.contains("gave the same run"));
    notes
}

#[test]
fn nothing_waits_in_the_scheduler_and_bfq_merges_queues() {
    let f = Folder::new();
    readers(&f, 0, "4m");
    let args = [
        "three.fio",
        "--kernel",
        "6.1",
        "--sched",
        "none,mq-deadline,bfq",
        "--set",
        "processor_time=0",
    ];
    assert_eq!(
        same(&f, &args),
        [
            "none, mq-deadline and bfq gave the same run: no request ever waited in the \
             scheduler (I2D 0): at most 3 were at the device, which takes 31; BFQ merged the \
             queues of a, b and c, which started within 180 ms"
        ]
    );
    // Apart, BFQ gives each its turn.
    readers(&f, 250, "32m");
    let said = same(&f, &args);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("none and mq-deadline gave the same run: no request"));
    assert!(!said[0].contains("BFQ"), "{said:?}");
}

#[test]
fn reasons_of_the_single_queue_path() {
    let f = Folder::new();
    readers(&f, 0, "1m");
    let two = [
        "--kernel",
        "2.6.28",
        "--sched",
        "noop,deadline",
        "--set",
        "queue_depth=1",
    ];
    assert_eq!(
        same(&f, &[&["three.fio"], &two[..]].concat()),
        [
            "noop and deadline gave the same run: there was never more than one request in the \
             scheduler to choose from"
        ]
    );
    let jobs = ["a", "b", "c", "d"].map(|j| format!("[{j}]\nrw=randread\nsize=1m\ndirect=1\n"));
    f.write("four.fio", jobs.concat());
    let four = [
        "four.fio",
        "--kernel",
        "2.6.28",
        "--sched",
        "noop",
        "--set",
        "queue_depth=1",
    ];
    let nr_requests = ["--set", "nr_requests=64,128"];
    assert_eq!(
        same(&f, &[&four[..], &nr_requests].concat()),
        [
            "nr_requests=64 and nr_requests=128 gave the same run: requests left the scheduler \
             in the order in which they came"
        ]
    );
}

#[test]
fn runs_that_differ_are_not_called_the_same() {
    let f = Folder::new();
    let text = f.ok(&["run", "job.fio", "--set", "io_cost_ns=1000,2000"]);
    assert!(!text.contains("the same run"), "{text}");
    let text = f.ok(&["run", "job.fio"]);
    assert!(!text.contains("the same run"), "{text}");
    // Two files are two tables.
    f.write("again.fio", f.read("job.fio"));
    let text = f.ok(&["run", "job.fio", "again.fio"]);
    assert!(!text.contains("the same run"), "{text}");
}

#[test]
fn what_schedulers_take_of_processors_is_said_where_it_matters() {
    let f = Folder::new();
    let said = |args: &[&str]| {
        let text = f.ok(&[&["run", "job.fio"], args].concat());
        let said = notes(&text)
            .into_iter()
            .find(|n| n.contains("of schedulers"));
        said.unwrap_or_default()
    };
    let two = ["--sched", "none,mq-deadline", "--device"];
    let fast = [&two[..], &["nvme-consumer"]].concat();
    let text = said(&fast);
    assert!(text.contains("us per request: mq-deadline 0.6;"), "{text}");
    let text = said(&[&fast[..], &["--set", "processor_time=0"]].concat());
    assert!(text.contains("locks of schedulers are left out"), "{text}");
    assert_eq!(said(&[&two[..], &["sata-7200-2008"]].concat()), "");
    assert_eq!(said(&["--device", "nvme-consumer"]), "");
    let old = [
        "--kernel",
        "4.19",
        "--sched",
        "noop,deadline",
        "--device",
        "sata-ssd",
    ];
    assert_eq!(said(&old), "");
}

#[test]
fn digests_of_a_matrix() {
    let f = Folder::new();
    let args = [
        "run",
        "job.fio",
        "--sched",
        "none,bfq",
        "--repeat",
        "2",
        "--verify-digest",
    ];
    let text = f.ok(&args);
    let (_, block) = text
        .split_once("\ndigest of all events\n")
        .expect("digests");
    let (block, rest) = block.split_once("\n\n").expect("an end");
    assert!(
        rest.starts_with("verified: two runs of each experiment gave the same digest\n"),
        "{text}"
    );
    let shown: Vec<&str> = block.lines().flat_map(str::split_whitespace).collect();
    let done = f.run(&[&args[..], &["--output-format", "json"]].concat());
    let runs: Vec<Value> = serde_json::from_str(&done.stdout).expect("JSON");
    let digest_of = |i: usize| runs[i]["blklab"]["digest"].as_str().expect("a digest");
    assert_eq!(
        shown,
        [
            "none",
            digest_of(0),
            digest_of(1),
            "bfq",
            digest_of(2),
            digest_of(3)
        ],
        "{text}"
    );
    assert_eq!(runs[0]["blklab"]["verified"], true);
    let first = format!("none: verified: two runs gave digest {}\n", digest_of(0));
    assert!(done.stderr.starts_with(&first), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 4);
}
