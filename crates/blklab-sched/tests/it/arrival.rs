// SPDX-License-Identifier: MIT OR Apache-2.0
//! The notation of timetables: `TIME PROCESS NAME PLACE`.

use blklab_types::{Bio, BioFlags, IoPrio, Op, PrioClass};

/// What a process does. `a1 1000` is a read of 8 sectors at 1000; behind the
/// sector `+LEN` and letters: `w` async write, `s` sync write, `d` discard, `m`
/// metadata, `n` no idling. `exit -` ends the process; `ioprio rt0` changes its
/// priority (`rt0` to `rt7`, `be0` to `be7`, `idle7`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A bio of one segment, its task not known yet.
    Io(Bio),
    Prio(IoPrio),
    Exit,
}

impl What {
    pub(crate) fn new(name: &str, place: &str) -> What {
        match name {
            "ioprio" => What::Prio(ioprio(place)),
            "exit" => What::Exit,
            _ => What::Io(bio(place)),
        }
    }
}

/// Lines, separated by `;` or line ends.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split([';', '\n']).map(str::trim);
    lines.filter(|l| !l.is_empty())
}

/// The four words of a line.
pub(crate) fn words(line: &str) -> [&str; 4] {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .try_into()
        .unwrap_or_else(|_| panic!("not an arrival: {line}"))
}

/// `rt0`, `be4`, `idle7`.
pub(crate) fn ioprio(text: &str) -> IoPrio {
    let (class, level) = text.split_at(text.len() - 1);
    IoPrio {
        class: match class {
            "rt" => PrioClass::RealTime,
            "be" => PrioClass::BestEffort,
            "idle" => PrioClass::Idle,
            other => panic!("no class {other}"),
        },
        level: level.parse().expect("a level"),
    }
}

fn bio(place: &str) -> Bio {
    let letters = place.trim_start_matches(|c: char| c.is_ascii_digit() || c == '+');
    let range = &place[..place.len() - letters.len()];
    let (sector, len) = range.split_once('+').unwrap_or((range, "8"));
    let (mut op, mut flags) = (Op::Read, BioFlags::NONE);
    for c in letters.chars() {
        match c {
            'w' => op = Op::Write,
            's' => (op, flags) = (Op::Write, flags | BioFlags::SYNC),
            'd' => op = Op::Discard,
            'm' => flags |= BioFlags::META | BioFlags::PRIO,
            'n' => flags |= BioFlags::NOIDLE,
            other => panic!("no flag {other}"),
        }
    }
    Bio {
        op,
        flags,
        sector: sector.parse().expect("a sector"),
        nr_sectors: len.parse().expect("a length"),
        segments: 1,
        ..Bio::default()
    }
}
