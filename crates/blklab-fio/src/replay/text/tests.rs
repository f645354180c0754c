// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs line by line: what they become, and what is wrong with them.

use super::*;
use crate::replay::Entry;

fn parsed(text: &str, options: &ReplayOptions) -> Replay {
    match read(&mut text.as_bytes(), "l", options) {
        Ok(replay) => replay,
        Err(problem) => panic!("{problem}"),
    }
}

fn refused(text: &str, expected: &str) {
    let problem = read(&mut text.as_bytes(), "l", &ReplayOptions::default());
    let message = problem.map(drop).unwrap_err().to_string();
    assert_eq!(message, expected, "{text}");
}

#[test]
fn pauses_of_version_3_lie_between_neighbouring_lines() {
    let text = "fio version 3 iolog\n0 x add\n10 x open\n30 x read 0 4096\n\n\
                25 x write 8192 512\nfio version 3 iolog\n125 x sync 8192 0\n126 x close\n";
    let delays = |options: &ReplayOptions| -> Vec<u64> {
        parsed(text, options)
            .entries()
            .map(|entry| entry.delay_us)
            .collect()
    };
    // The first time is 0, so that none is known to fio when the second comes.
    assert_eq!(delays(&ReplayOptions::default()), [0, 0, 20, 0, 100, 1]);
    let slow = ReplayOptions {
        time_scale: 50,
        ..ReplayOptions::default()
    };
    assert_eq!(delays(&slow), [0, 0, 40, 0, 200, 2]);
    let at_once = ReplayOptions {
        no_stall: true,
        ..ReplayOptions::default()
    };
    assert_eq!(delays(&at_once), [0; 6]);
}

#[test]
fn offsets_are_divided_then_aligned() {
    let options = ReplayOptions {
        scale: 3,
        align: 512,
        redirect: Some("/dev/sdb".to_owned()),
        ..ReplayOptions::default()
    };
    let text = "fio version 2 iolog\nx add\ny add\nx open\ny open\ny read 6000 100\nx close\n\
                x write 3000 7 trailing words\n";
    let replay = parsed(text, &options);
    let acts: Vec<Act> = replay.entries().map(|Entry { act, .. }| act).collect();
    let io = |op, offset, length| Act::Io {
        op,
        file: 0,
        offset,
        length,
    };
    let expected = [
        Act::Add,
        Act::Add,
        Act::Open { file: 0 },
        Act::Add,
        io(IoOp::Read, 1536, 100),
        Act::Add,
        io(IoOp::Write, 512, 7),
    ];
    assert_eq!(acts, expected);
    assert_eq!(replay.files.len(), 1);
    assert_eq!((replay.files[0].end_bytes, replay.bytes), (1636, 107));
}

#[test]
fn what_fio_passes_over_is_counted() {
    // Even if it makes no sense: the trims of other versions may be longer.
    let text = "fio version 2 iolog\nx add\nx open\nx trim 0 5000000000\nx trim\n\
                x sync_file_range 0 0\nx read 0 1\n";
    assert_eq!(
        parsed(text, &ReplayOptions::default()).notes,
        [
            "1 line 'sync_file_range' left out: fio 3.33 passes over them in version 2",
            "2 lines 'trim' left out: fio 3.33 passes over them in version 2"
        ]
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let v2 = |lines: &str| format!("fio version 2 iolog\nx add\nx open\n{lines}\n");
    refused("", "l: the log is empty");
    refused(
        "fio version 4 iolog\n",
        "l:1: not a version that fio 3.33 replays: 2 and 3 are",
    );
    refused(
        "fio version 3 iolog\n",
        "l:1: nothing to replay: fio asks for a read, a write or a wait",
    );
    for (lines, expected) in [
        ("y read 0 1", "l:4: y is not known: 'add' comes first"),
        ("x open", "l:4: x is open already"),
        ("x close\nx read 0 1", "l:5: x is not open"),
        ("x read 0 0", "l:4: a read of 0 bytes"),
        ("x read", "l:4: 'read' has an offset and a length behind it"),
        (
            "x",
            "l:4: expected 'FILE ACTION' or 'FILE ACTION OFFSET LENGTH'",
        ),
        ("x read -1 1", "l:4: offset '-1' is not a number of 64 bits"),
        (
            "x read 0 0x10",
            "l:4: length '0x10' is not a number of 64 bits",
        ),
        (
            "x read 0 5000000000",
            "l:4: length 5000000000 is more than 4294967295",
        ),
        (
            "x read 9223372036854775807 1",
            "l:4: offset 9223372036854775807 is beyond 9223372036854775807",
        ),
        (
            "x unlink",
            "l:4: no action is called 'unlink': add, open, close, read, write, sync, datasync, \
             trim, wait",
        ),
    ] {
        refused(&v2(lines), expected);
    }
    refused(
        "fio version 3 iolog\n1 x add\nx open\n",
        "l:3: time 'x' is not a number of 64 bits",
    );
    refused(
        "fio version 3 iolog\n1 x add\n4000000000000000 x open\n",
        "l:3: the pauses up to here exceed 100 years",
    );
    let long = format!("fio version 2 iolog\n{} add\n", "x".repeat(5000));
    refused(&long, "l:2: a line of more than 4096 bytes");
}

/// Logs cut, doubled and scrambled: refused with a line, or entries that keep to
/// open files.
#[test]
fn mutated_logs_are_refused_or_sound() {
    let seed = "fio version 3 iolog\n0 x add\n1 y add\n2 x open\n3 y open\n4 x read 0 4096\n\
                5 y write 8192 512\n6 x sync 0 0\n7 x close\n8 x open\n9 x datasync 1 2\n10 x trim \
                5 6\n11 y close\n";
    let words: Vec<&str> = seed.split_inclusive([' ', '\n']).collect();
    let mut rng = crate::rng::Rng::new(7, false);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..20_000 {
        let mut log: Vec<&str> = words.clone();
        for _ in 0..=rng.below(3) {
            let at = 4 + rng.below(log.len() as u64 - 4) as usize;
            match rng.below(4) {
                0 => drop(log.remove(at)),
                1 => log.insert(at, words[rng.below(words.len() as u64) as usize]),
                2 => log[at] = words[rng.below(words.len() as u64) as usize],
                _ => log.truncate(at.max(20)),
            }
        }
        let options = ReplayOptions {
            scale: round % 5,
            align: [0, 512, 4096][round as usize % 3],
            redirect: (round % 7 == 0).then(|| "z".to_owned()),
            ..ReplayOptions::default()
        };
        let log = log.concat();
        let replay = match read(&mut log.as_bytes(), "l", &options) {
            Ok(replay) => replay,
            Err(problem) => {
                assert!(problem.to_string().starts_with("l"), "{problem}");
                refused += 1;
                continue;
            }
        };
        accepted += 1;
        let mut open = vec![false; replay.files.len()];
        for entry in replay.entries() {
            match entry.act {
                Act::Add | Act::Until { .. } => {}
                Act::Open { file } => assert!(!std::mem::replace(&mut open[file as usize], true)),
                Act::Close { file } => assert!(std::mem::take(&mut open[file as usize])),
                Act::Io { file, .. } => assert!(open[file as usize], "{log}"),
            }
        }
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}
