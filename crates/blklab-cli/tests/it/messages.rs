// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names that are looked for: in lists, and in messages about wrong ones.

use crate::support::Folder;

#[test]
fn tunables_by_owner_and_by_name() {
    let f = Folder::new();
    let names = |args: &[&str]| -> Vec<String> {
        let text = f.ok(&[&["list", "tunables"], args].concat());
        let lines = text
            .lines()
            .filter(|l| !l.starts_with(' ') && !l.is_empty());
        lines
            .filter_map(|l| l.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    for owner in ["bfq", "mq-deadline", "queue", "machine"] {
        let names = names(&[owner]);
        let prefix = format!("{owner}/");
        assert!(names.len() > 3, "{names:?}");
        assert!(names.iter().all(|n| n.starts_with(&prefix)), "{names:?}");
    }
    // One entry for each range of releases.
    for name in ["queue/nomerges", "nomerges"] {
        let names = names(&[name]);
        assert!(!names.is_empty(), "{name}");
        assert!(names.iter().all(|n| n == "queue/nomerges"), "{names:?}");
    }
    let both = names(&["low_latency"]);
    assert!(both.contains(&"cfq/low_latency".to_owned()), "{both:?}");
    assert!(both.contains(&"bfq/low_latency".to_owned()), "{both:?}");
    let one = f.ok(&["list", "tunables", "nomerges"]);
    assert!(one.contains("\n  range        0 to 2\n"), "{one}");
    let done = f.run(&["list", "tunables", "noop"]);
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.starts_with("blklab: noop has no tunables"),
        "{}",
        done.stderr
    );
    let wrong = f.run(&["list", "tunables", "nomerge"]).stderr;
    assert!(wrong.contains("valid: queue/nomerges, "), "{wrong}");
}

#[test]
fn lists_of_many_names_are_short() {
    let f = Folder::new();
    let cases: &[(&[&str], &str)] = &[
        (
            &["run", "job.fio", "--device", "sata-7200-2008,rmp=5400"],
            "did you mean 'rpm'?",
        ),
        (
            &["run", "job.fio", "--set", "dirty=5"],
            "blklab list tunables",
        ),
        (&["list", "tunables", "dirty"], "in all)"),
        (&["run", "job.fio", "--device", "sata-7200"], "did you mean"),
    ];
    for (args, expected) in cases {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}");
        assert!(done.stderr.contains(expected), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.len() < 500, "{}", done.stderr);
    }
}

#[test]
fn a_device_on_the_command_line_takes_a_queue_depth() {
    let f = Folder::new();
    let run = |args: &[&str]| f.ok(&[&["run", "job.fio"], args].concat());
    let as_device = run(&["--device", "sata-7200-2008,queue_depth=4"]);
    assert!(
        as_device.contains("sata-7200-2008, queue depth 4\n"),
        "{as_device}"
    );
    assert_eq!(as_device, run(&["--set", "queue_depth=4"]));
    let two = [
        "--device",
        "sata-7200-2008,queue_depth=1,rpm=5400,sas-15k,queue_depth=8",
    ];
    let two = run(&two);
    for label in [
        "sata-7200-2008,queue_depth=1,rpm=5400\n",
        "sas-15k,queue_depth=8\n",
    ] {
        assert!(two.contains(label), "{two}");
    }
    let fails = |args: &[&str], expected: &str| {
        let done = f.run(&[&["run", "job.fio"], args].concat());
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.starts_with(expected), "{}", done.stderr);
    };
    let device = ["--device", "sata-7200-2008,queue_depth=4"];
    fails(
        &[&device[..], &["--set", "queue_depth=8"]].concat(),
        "blklab: --set queue_depth=8 contradicts --device …,queue_depth=4",
    );
    run(&[&device[..], &["--set", "queue_depth=4"]].concat());
    fails(
        &["--device", "sata-7200-2008,queue_depth=many"],
        "blklab: --device: queue_depth=many: the value is not a whole number",
    );
}
