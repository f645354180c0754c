// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress on a terminal, which `script` (util-linux) provides.

use crate::support::Folder;

const LONG: &str = "[a]\nrw=randread\nsize=10g\ndirect=1\ntime_based\nruntime=100000000\n";

/// What a command writes to a terminal in some seconds, then Ctrl-C.
fn on_a_terminal(f: &Folder, command: &str) -> Option<String> {
    if !blklab_testkit::has_program("script") || !blklab_testkit::has_program("timeout") {
        return None;
    }
    // Whatever terminal the tests run on: on a dumb one there is no progress.
    let limited = format!("TERM=xterm timeout --foreground -s INT 4 {command}");
    let done = f.shell(&format!(
        "script -qec '{limited}' screen </dev/null >/dev/null"
    ));
    let Ok(screen) = std::fs::read(f.path("screen")) else {
        blklab_testkit::skipped(&format!("no terminal: {}", done.stderr.trim()));
        return None;
    };
    eprintln!("{}", done.stderr);
    Some(String::from_utf8_lossy(&screen).into_owned())
}

#[test]
fn a_single_run_shows_how_far_it_is() {
    let f = Folder::new();
    f.write("long.fio", LONG);
    if let Some(screen) = on_a_terminal(&f, "blklab run long.fio") {
        assert!(screen.contains(" s of virtual time, "), "{screen}");
        assert!(screen.contains("0 %, "), "{screen}");
        assert!(screen.contains("interrupted at "), "{screen}");
    }
    if let Some(screen) = on_a_terminal(&f, "blklab run long.fio --sched none,bfq") {
        assert!(screen.contains("0 of 2 experiments"), "{screen}");
    }
}

#[test]
fn a_list_shows_its_length_unless_it_is_seen() {
    let f = Folder::new();
    f.write("long.fio", LONG);
    if let Some(screen) = on_a_terminal(&f, "blklab workload long.fio >/dev/null") {
        assert!(screen.contains(" I/Os listed, "), "{screen}");
    }
}

#[test]
fn what_is_short_and_what_goes_into_a_pipe_shows_nothing() {
    let f = Folder::new();
    f.write("long.fio", LONG);
    if let Some(screen) = on_a_terminal(&f, "blklab run job.fio") {
        assert!(screen.contains("job readers"), "{screen}");
        assert!(!screen.contains('\u{1b}'), "{screen}");
    }
    let piped = f.shell("timeout -s INT 3 blklab run long.fio 2>err >out");
    assert_eq!(piped.code, Some(124), "timeout ended it");
    assert_eq!(f.read("err"), "");
}
