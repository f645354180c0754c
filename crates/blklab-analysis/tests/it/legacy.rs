// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lives found from events against logs of kernels that say more: which bio
//! ended when, and which requests absorbed which, without an event of it.

use blklab_analysis::lifecycle::{BioLife, LifeSink, Lifecycles, RequestLife};
use blklab_trace::{Action, Event, Rwbs, TraceSink};
use blklab_types::{Dev, Time};
use flate2::read::GzDecoder;

#[derive(Default)]
struct Found {
    /// Process, end and time from Q to C, of each bio.
    bios: Vec<(u32, u64, u64)>,
    silent_merges: u64,
}

impl LifeSink for Found {
    fn bio(&mut self, bio: &BioLife) {
        if let Some(end) = bio.complete {
            self.bios
                .push((bio.pid, end.ns(), end.since(bio.queue).ns()));
        }
    }
    fn request(&mut self, request: &RequestLife) {
        self.silent_merges += u64::from(request.nr_silent_merges);
    }
}

/// The event of a line, if a trace of that kernel has it.
fn event(fields: &[&str]) -> Option<Event> {
    let action = match fields[2] {
        "P" | "U" | "UT" | "m" => return None,
        letters => Action::from_letters(letters)?,
    };
    let is_bio = matches!(
        action,
        Action::Queue
            | Action::BackMerge
            | Action::FrontMerge
            | Action::GetRequest
            | Action::SleepRequest
    );
    let direction = if fields[4] == "R" {
        Rwbs::READ
    } else {
        Rwbs::WRITE
    };
    let rwbs = if is_bio && fields[5] == "S" {
        direction.with(Rwbs::SYNC)
    } else {
        direction
    };
    Some(Event {
        time: Time(fields[0].parse().ok()?),
        sector: fields[6].parse().ok()?,
        arg: 0,
        bytes: fields[7].parse::<u32>().ok()? * 512,
        pid: fields[3].parse().ok()?,
        dev: Dev { major: 8, minor: 0 },
        from_dev: Dev::default(),
        error: 0,
        cpu: 0,
        rwbs,
        action,
    })
}

/// Checks one log; returns the number of silent merges in it.
fn check(case: &str, log: &str) -> u64 {
    let mut tracker = Lifecycles::new(Found::default());
    let mut bios = Vec::new();
    let mut silent_merges = 0;
    for line in log.lines().skip(1) {
        let fields: Vec<&str> = line.splitn(9, ',').collect();
        match fields[2] {
            // The only X in these logs is the end of a process.
            "X" => {}
            "MM" => silent_merges += 1,
            "E" => {
                let number = |text: &str| text.parse::<u64>().unwrap();
                let latency = fields[8].split("lat=").nth(1).unwrap();
                let latency = latency.split_whitespace().next().unwrap();
                bios.push((number(fields[3]) as u32, number(fields[0]), number(latency)));
            }
            _ => {
                if let Some(event) = event(&fields) {
                    tracker.event(&event);
                }
            }
        }
    }
    let (mut found, unmatched) = tracker.finish();
    found.bios.sort_unstable();
    bios.sort_unstable();
    assert_eq!(unmatched.nr_events(), 0, "{case}");
    assert_eq!(found.bios.len(), bios.len(), "{case}");
    for (ours, theirs) in found.bios.iter().zip(&bios) {
        assert_eq!(ours, theirs, "{case}: process, end, latency");
    }
    assert_eq!(found.silent_merges, silent_merges, "{case}");
    silent_merges
}

#[test]
fn logs_of_2_6_24_to_4_19() {
    let Some(results) = blklab_testkit::shared("truth-legacy/results") else {
        return;
    };
    let entries = std::fs::read_dir(results).expect("a folder");
    let mut silent_merges = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "gz") {
            continue;
        }
        let file = std::fs::File::open(&path).expect("a log");
        let log = std::io::read_to_string(GzDecoder::new(file)).expect("a text");
        silent_merges += check(&path.display().to_string(), &log);
    }
    assert!(silent_merges > 0, "some request vanished");
}
