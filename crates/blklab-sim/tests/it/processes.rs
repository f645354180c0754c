// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit processes.

use crate::rig::run_processes;
use blklab_trace::Action;

fn run(toml: &str) -> Vec<(u64, Action, u64)> {
    run_processes(toml)
        .iter()
        .map(|e| (e.time.0, e.action, e.sector))
        .collect()
}

const STACK: &str = "kernel = '2.6.28'\nscheduler = 'noop'\n\
                     [device]\nlaw = 'serial'\nread_ns = 1000\nqueue_depth = 1\n";

#[test]
fn a_closed_loop_thinks_between_waits() {
    let events = run(&format!(
        "{STACK}[[processes]]\nname = 'p'\npid = 7\nthink_ns = 500\n\
         io = {{ pattern = 'sequential', rw = 'read', start = 0, nsect = 8, count = 3 }}\n"
    ));
    let queued: Vec<u64> = events
        .iter()
        .filter(|e| e.1 == Action::Queue)
        .map(|e| e.0)
        .collect();
    assert_eq!(queued, [0, 1500, 3000]);
}

#[test]
fn refill_all_waits_for_the_whole_burst() {
    let events = run(&format!(
        "{STACK}[[processes]]\nname = 'p'\npid = 7\ndepth = 2\nrefill = 'all'\n\
         io = {{ pattern = 'list', rw = 'read', nsect = 8, sectors = [0, 800, 1600, 2400] }}\n"
    ));
    let queued: Vec<u64> = events
        .iter()
        .filter(|e| e.1 == Action::Queue)
        .map(|e| e.0)
        .collect();
    assert_eq!(queued, [0, 0, 2000, 2000]);
}

#[test]
fn scripts_follow_their_timetable() {
    let events = run(&format!(
        "{STACK}[[processes]]\nname = 'p'\npid = 7\nunplug = 'each'\n\
         io = {{ pattern = 'script', ops = [[100, 'read', [], 0, 8], [150, 'write', ['sync'], 80, 8]] }}\n"
    ));
    let queued: Vec<(u64, u64)> = events
        .iter()
        .filter(|e| e.1 == Action::Queue)
        .map(|e| (e.0, e.2))
        .collect();
    assert_eq!(queued, [(100, 0), (150, 80)]);
}
