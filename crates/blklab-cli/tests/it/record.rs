// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab record` on this machine, where it lets us.

use crate::support::Folder;

/// Whether this machine lets us record; says why it does not.
fn may_record(f: &Folder) -> bool {
    let tried = f.run(&["record", "--clean"]);
    match tried.code {
        Some(0) => true,
        _ => {
            println!("skipped: {}", tried.stderr.trim());
            false
        }
    }
}

/// What a command does to the disk is in the trace, with its context; both are read by
/// the other commands.
#[test]
fn a_command_is_recorded() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    let done = f.run(&[
        "record",
        "-o",
        "t.dat",
        "--",
        "dd",
        "if=/dev/zero",
        "of=file",
        "bs=64k",
        "count=16",
        "conv=fsync",
        "status=none",
    ]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains(" events in "), "{}", done.stderr);
    let context = std::fs::read_to_string(f.path("t.context.txt"));
    let Ok(context) = context else {
        // A temporary folder that lies on no disk.
        assert!(done.stderr.contains("no device had I/O"), "{}", done.stderr);
        return;
    };
    for key in [
        "kernel=",
        "device=",
        "queue/scheduler=",
        "queue/nr_requests=",
    ] {
        assert!(
            context.lines().any(|l| l.starts_with(key)),
            "{key}: {context}"
        );
    }
    let info = f.ok(&["trace", "info", "t.dat"]);
    assert!(
        info.contains("trace.dat") && info.contains("kinds"),
        "{info}"
    );
    let stats = f.ok(&["trace", "stats", "t.dat", "--by", "process"]);
    assert!(stats.contains("dd ("), "{stats}");
    let why = f.run(&["why", "t.dat", "--context", "t.context.txt"]);
    assert_eq!(why.code, Some(0), "{}", why.stderr);
    assert!(why.stdout.contains("scheduler "), "{}", why.stdout);
    assert!(!f.names(".").iter().any(|n| n.ends_with(".partial")));
}

/// A trigger ends the recording behind an I/O that takes long, and what came long before is gone;
/// without one, the end of the time is said. The context beside the trace is found.
#[test]
fn a_trigger_ends_a_recording() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    // Any I/O takes longer than a nanosecond.
    let load = "(while :; do dd if=/dev/zero of=file bs=64k count=4 conv=fsync status=none; sleep 0.1; done) & pid=$!";
    let blklab = env!("CARGO_BIN_EXE_blklab");
    let script = |options: &str| {
        let done = f.shell(&format!(
            "{load}; {blklab} record -o t.dat {options}; kill $pid; wait $pid 2>/dev/null; rm -f t.context.txt"
        ));
        done.stderr
    };
    let said = script("--trigger 'q2c>1ns' --then 200ms --for 20s");
    if !said.contains("trigger: ") {
        // A temporary folder that lies on no disk.
        assert!(said.contains("no I/O took so long"), "{said}");
        return;
    }
    assert!(
        said.contains(" took ") && said.contains("overhead: "),
        "{said}"
    );
    let said = script("--trigger 'q2c>100s' --for 1s");
    assert!(said.contains("no I/O took so long: q2c>100s"), "{said}");
    let done = f.run(&[
        "record",
        "-o",
        "b.dat",
        "--last",
        "5s",
        "--",
        "dd",
        "if=/dev/zero",
        "of=b",
        "bs=1M",
        "count=4",
        "conv=fsync",
        "status=none",
    ]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let why = f.run(&["why", "b.dat"]);
    assert!(
        why.stderr
            .contains("context: b.context.txt, which lies beside"),
        "{}",
        why.stderr
    );
}

/// Where this machine keeps stacks, the way in is shown; where it does not, one line says so.
#[test]
fn stacks_are_recorded() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    let done = f.shell(&format!(
        "{} record --stacks -o t.dat -- dd if=/dev/zero of=file bs=64k count=4 conv=fsync status=none",
        env!("CARGO_BIN_EXE_blklab")
    ));
    if done.code == Some(2) {
        assert!(done.stderr.contains("stacks"), "{}", done.stderr);
        return;
    }
    if done.stderr.contains("no device had I/O") {
        // A temporary folder that lies on no disk.
        return;
    }
    assert!(
        done.stderr.contains("of who queued bios"),
        "{}",
        done.stderr
    );
    let info = f.ok(&["trace", "info", "t.dat"]);
    assert!(info.contains("\nstacks    "), "{info}");
    let slow = f.run(&["trace", "slow", "t.dat", "-n", "1"]).stdout;
    assert!(slow.contains("   way in     submit_bio"), "{slow}");
    let copied = f.run(&["trace", "convert", "t.dat", "t.txt"]);
    assert!(
        copied.stderr.contains("stacks: no format has a place"),
        "{}",
        copied.stderr
    );
}

/// What the command ended with is said, and the trace is there all the same.
#[test]
fn a_command_that_fails() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    let done = f.run(&["record", "--", "sh", "-c", "exit 3"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("sh ended with exit status: 3"),
        "{}",
        done.stderr
    );
    assert!(f.path("trace.dat").exists());
    let none = f.run(&["record", "-o", "none.dat", "--", "./no-such-program"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("cannot run ./no-such-program"),
        "{}",
        none.stderr
    );
    assert!(!f.names(".").iter().any(|n| n.starts_with("none")));
}

/// A recorder that is killed leaves an instance; the next one, or `--clean`, removes it.
#[test]
fn nothing_is_left_of_a_killed_recorder() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    let blklab = env!("CARGO_BIN_EXE_blklab");
    let killed = format!(
        "{blklab} record -o k.dat --for 60s & pid=$!
         n=0; until ls k.dat.cpu0.partial >/dev/null 2>&1 || [ $n = 200 ]; do sleep 0.05; n=$((n+1)); done
         sleep 0.2; kill -KILL $pid; wait $pid 2>/dev/null; echo $pid"
    );
    let pid = f.shell(&killed).stdout.trim().to_owned();
    let name = format!("blklab-{pid}-0");
    let cleaned = f.ok(&["record", "--clean"]);
    // Another test may have removed it at its start.
    assert!(
        cleaned.contains(&name) || cleaned.contains("nothing") || cleaned.contains("removed"),
        "{cleaned}"
    );
    let again = f.ok(&["record", "--clean"]);
    assert!(!again.contains(&name), "{again}");
    // Ctrl-C ends a recording in order.
    let done = f.shell(&format!(
        "{blklab} record -o c.dat & pid=$!
         n=0; until ls c.dat.cpu0.partial >/dev/null 2>&1 || [ $n = 200 ]; do sleep 0.05; n=$((n+1)); done
         sleep 0.2; kill -INT $pid; wait $pid; echo code $?"
    ));
    assert!(done.stdout.contains("code 0"), "{done:?}");
    assert!(f.path("c.dat").exists());
}

/// Who ends it by a signal, as `timeout` does, gets a whole trace, and nothing stays behind;
/// the command is ended with it.
#[test]
fn a_recorder_that_is_told_to_end_does_so_in_order() {
    let f = Folder::new();
    if !may_record(&f) {
        return;
    }
    let blklab = env!("CARGO_BIN_EXE_blklab");
    for (signal, command, code) in [("TERM", "", 0), ("HUP", "", 0), ("TERM", "-- sleep 60", 1)] {
        let done = f.shell(&format!(
            "{blklab} record -o t.dat {command} & pid=$!
             n=0; until ls t.dat.cpu0.partial >/dev/null 2>&1 || [ $n = 200 ]; do sleep 0.05; n=$((n+1)); done
             sleep 0.2; kill -{signal} $pid; wait $pid; echo code $?
             for t in /sys/kernel/tracing /sys/kernel/debug/tracing; do ls -d $t/instances/blklab-$pid-* 2>/dev/null; done"
        ));
        assert_eq!(done.stdout.trim(), format!("code {code}"), "{done:?}");
        f.ok(&["trace", "info", "t.dat"]);
        assert!(!f.names(".").iter().any(|n| n.ends_with(".partial")));
        std::fs::remove_file(f.path("t.dat")).expect("a trace");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let f = Folder::new();
    f.write("notes.dat", "to do\n");
    for (args, why) in [
        (
            &["record", "--for", "10"][..],
            "expected a time with its unit",
        ),
        (
            &["record", "--for", "1s", "--", "true"],
            "cannot be used with",
        ),
        (&["record", "--also", "nvm"], "did you mean 'nvme'?"),
        (&["record", "--buffer", "4k"], "expected a size from 8k"),
        (
            &["record", "-o", "notes.dat", "--", "true"],
            "exists and is no trace",
        ),
        (
            &["record", "-o", "none/t.dat", "--", "true"],
            "the folder none does not exist",
        ),
    ] {
        let done = f.run(args);
        assert_eq!(done.code, Some(2), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains(why), "{args:?}: {}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    }
    if may_record(&f) {
        let done = f.run(&["record", "no-such-disk", "--for", "1s"]);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains("the disks are"), "{}", done.stderr);
    }
    assert_eq!(f.names("."), ["job.fio", "notes.dat"]);
}
