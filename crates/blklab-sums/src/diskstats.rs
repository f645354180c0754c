// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst): counters since the machine
//! started. Several copies in one file are told by their devices, which come again.

use crate::flow::{Flow, Kind};
use crate::load::Load;
use crate::number::number;
use crate::reading::{Reading, SINGLE, SUMS, WHO, record};
use blklab_analysis::findings::counted;
use blklab_types::Error;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Counters behind the name, at least: from 4.18 on discards follow, from 5.5 on flushes.
const COUNTERS_MIN: usize = 11;
/// Where the counters of a kind begin: number, merged, sectors, ms. Flushes have number and ms.
const STARTS: [usize; 4] = [0, 4, 11, 15];
const IN_FLIGHT: usize = 8;
const IO_TICKS_MS: usize = 9;
const SECTORS_PER_KIB: f64 = 2.0;

/// A device with its counters, as often as it comes.
struct Disk<'a> {
    name: &'a str,
    first: Vec<f64>,
    last: Option<Vec<f64>>,
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let disks = disks(text);
    if disks.is_empty() {
        return Err(Error::new(
            "/proc/diskstats: no row with 11, 15 or 17 counters behind a name",
        ));
    }
    let has_copies = disks.iter().any(|disk| disk.last.is_some());
    let mut subjects = Vec::new();
    let mut busiest: Option<(f64, &str)> = None;
    let mut nr_idle: u64 = 0;
    for disk in &disks {
        let load = load(disk);
        if load.number() == 0.0 {
            nr_idle += 1;
            continue;
        }
        let busy = load.busy_ms.unwrap_or(0.0);
        if busiest.is_none_or(|(most, _)| busy > most) {
            busiest = Some((busy, disk.name));
        }
        let mut subject = load.subject(disk.name.to_owned());
        let now = disk.last.as_ref().unwrap_or(&disk.first)[IN_FLIGHT];
        if now > 0.0 {
            subject.show("now", format!("{now} were under way when it was read"));
        }
        subjects.push(subject);
    }
    let mut notes = vec![if has_copies {
        "the difference of the first and the last copy; how long that was the file does not say, \
         so numbers are no rates"
            .to_owned()
    } else {
        "sums since the machine started, in which a bad hour disappears: read it twice, before \
         and after, and give both one behind the other"
            .to_owned()
    }];
    if nr_idle > 0 {
        notes.push(format!("{} did nothing", counted(nr_idle, "devices")));
    }
    Ok(Reading {
        what: "/proc/diskstats",
        form: SUMS,
        subjects,
        notes,
        cannot: vec![
            WHO,
            SINGLE,
            "whether requests waited in a queue of the kernel or in the device: the times have both",
        ],
        record: record(busiest.map(|(_, name)| name)),
    })
}

fn disks(text: &str) -> Vec<Disk<'_>> {
    let mut disks: Vec<Disk<'_>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines() {
        let words = line.trim_start_matches('>').split_whitespace();
        let words: Vec<&str> = words.collect();
        let [major, minor, name, counters @ ..] = words.as_slice() else {
            continue;
        };
        // Other files of /proc have rows of numbers, too.
        let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
        if !is_number(major) || !is_number(minor) || is_number(name) {
            continue;
        }
        let counters: Option<Vec<f64>> = counters.iter().map(|word| number(word)).collect();
        let Some(counters) = counters.filter(|all| all.len() >= COUNTERS_MIN) else {
            continue;
        };
        match places.entry(*name) {
            Entry::Occupied(place) => disks[*place.get()].last = Some(counters),
            Entry::Vacant(place) => {
                place.insert(disks.len());
                disks.push(Disk {
                    name,
                    first: counters,
                    last: None,
                });
            }
        }
    }
    disks
}

fn load(disk: &Disk<'_>) -> Load {
    let counters = match &disk.last {
        Some(last) => {
            let pairs = last.iter().zip(&disk.first);
            let differences: Vec<f64> = pairs.map(|(last, first)| last - first).collect();
            // Counters that went back belong to another start of the machine.
            let is_one_start = differences
                .iter()
                .enumerate()
                .all(|(i, n)| *n >= 0.0 || i == IN_FLIGHT);
            if is_one_start {
                differences
            } else {
                last.clone()
            }
        }
        None => disk.first.clone(),
    };
    let at = |i: usize| counters.get(i).copied().unwrap_or(0.0);
    let mut load = Load {
        device: disk.name.to_owned(),
        busy_ms: Some(at(IO_TICKS_MS)),
        ..Load::default()
    };
    for (kind, start) in Kind::ALL.into_iter().zip(STARTS) {
        let number = at(start);
        let has_any = number > 0.0;
        *load.flow_mut(kind) = if kind == Kind::Flushes {
            Flow {
                number,
                await_ms: has_any.then(|| at(start + 1) / number),
                ..Flow::default()
            }
        } else {
            let merged = at(start + 1);
            Flow {
                number,
                await_ms: has_any.then(|| at(start + 3) / number),
                size_kib: has_any.then(|| at(start + 2) / number / SECTORS_PER_KIB),
                merged_percent: has_any.then(|| 100.0 * merged / (number + merged)),
            }
        };
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_since_the_start_have_means() {
        let text = "   8       0 sda 1000 100 80000 50000 0 0 0 0 2 20000 50000 0 0 0 0 10 3100\n\
                    \x20  8       1 sda1 0 0 0 0 0 0 0 0 0 0 0\n";
        let reading = read(text).unwrap();
        let sda = &reading.subjects[0];
        assert_eq!(sda.figures["reads_await_ms"], 50.0);
        assert_eq!(sda.figures["flushes_await_ms"], 310.0);
        assert_eq!(sda.figures["under_way_while_busy"], 53_100.0 / 20_000.0);
        assert!(
            sda.shows
                .iter()
                .any(|s| s.text.starts_with("2 were under way"))
        );
        assert!(reading.notes[0].contains("since the machine started"));
    }

    #[test]
    fn rows_of_other_files_are_no_disks() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10 11 12 13 14\ncpu0 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n\
                    1 2 3 4 5 6 7 8 9 10 11 12 13 14\n> 8 0 sda 1 0 8 5 0 0 0 0 0 2 5\n";
        let reading = read(text).unwrap();
        assert_eq!(reading.subjects.len(), 1);
        assert_eq!(reading.subjects[0].name, "sda");
    }

    #[test]
    fn two_copies_are_subtracted() {
        let text = "8 0 sda 1000 0 8000 50000 0 0 0 0 0 20000 50000\n\
                    8 0 sda 1100 0 8800 52000 0 0 0 0 0 22000 52000\n";
        let sda = &read(text).unwrap().subjects[0];
        assert_eq!(sda.figures["reads"], 100.0);
        assert_eq!(sda.figures["reads_await_ms"], 20.0);
        assert_eq!(sda.figures["under_way_while_busy"], 1.0);
    }
}
