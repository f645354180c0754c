// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/pressure/io` and `io.pressure` of control groups (Documentation/accounting/psi.rst).

use crate::number::{figures, number};
use crate::reading::{Reading, SUMS, Subject, WHO, record};
use blklab_analysis::findings::counted;
use blklab_types::Error;

/// For what tasks waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resource {
    Io,
    Memory,
    Cpu,
    /// No name says it.
    Unnamed,
}

/// The files, by what stands in their names.
const FILES: [(&str, Resource); 8] = [
    ("pressure/io", Resource::Io),
    ("io.pressure", Resource::Io),
    ("pressure/memory", Resource::Memory),
    ("memory.pressure", Resource::Memory),
    ("pressure/cpu", Resource::Cpu),
    ("cpu.pressure", Resource::Cpu),
    ("pressure/irq", Resource::Cpu),
    ("irq.pressure", Resource::Cpu),
];

impl Resource {
    /// Of the file that a line names.
    fn named(line: &str) -> Option<Resource> {
        let named = FILES
            .iter()
            .filter_map(|(name, resource)| Some((line.find(name)?, *resource)));
        named
            .min_by_key(|(at, _)| *at)
            .map(|(_, resource)| resource)
    }
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut subjects: Vec<Subject> = Vec::new();
    let mut resource = Resource::Unnamed;
    let mut nr_others = 0;
    let mut is_unnamed = false;
    for line in text.lines() {
        let Some((file, kind, rest)) = split(line) else {
            // A prompt with the command, the title that head prints, a name with a colon.
            resource = Resource::named(line).unwrap_or(resource);
            continue;
        };
        let of_line = Resource::named(file).unwrap_or(resource);
        if matches!(of_line, Resource::Memory | Resource::Cpu) {
            nr_others += 1;
            continue;
        }
        is_unnamed |= of_line == Resource::Unnamed;
        let name = if file.is_empty() {
            "this machine or group"
        } else {
            file
        };
        if subjects.last().is_none_or(|s| s.name != name) {
            subjects.push(Subject::new(name));
        }
        if let Some(subject) = subjects.last_mut() {
            show(subject, kind, rest);
        }
    }
    if subjects.iter().all(|s| s.shows.is_empty()) {
        return Err(Error::new(if nr_others > 0 {
            "the pressure of memory or processors, not of I/O: /proc/pressure/io or io.pressure has that"
        } else {
            "io.pressure: no line 'some avg10=… avg60=… avg300=… total=…'"
        }));
    }
    let mut notes = Vec::new();
    if is_unnamed {
        notes.push(
            "cpu.pressure and memory.pressure have the same lines; that this is io.pressure is taken \
             for granted where the file is not named"
                .to_owned(),
        );
    }
    if nr_others > 0 {
        notes.push(format!(
            "{} of the pressure of memory or processors left out: they are not of I/O",
            counted(nr_others, "lines")
        ));
    }
    Ok(Reading {
        what: "io.pressure",
        form: SUMS,
        subjects,
        notes,
        cannot: vec![
            WHO,
            "on which device, and whether the device, a queue or a limit of the group (io.max, \
             io.cost) made tasks wait: all are counted",
            "how long a wait was: many short ones give the same share as a few long ones",
        ],
        record: record(None),
    })
}

/// The file in front, `some` or `full`, and the rest.
fn split(line: &str) -> Option<(&str, &str, &str)> {
    let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
    let (head, rest) = line.split_once(" avg10=")?;
    let (file, kind) = head.rsplit_once(':').unwrap_or(("", head));
    let kind = kind.trim();
    ["some", "full"]
        .contains(&kind)
        .then_some((file, kind, rest))
}

fn show(subject: &mut Subject, kind: &str, rest: &str) {
    let rest = format!("avg10={rest}");
    let get = |key: &str| {
        let pairs = rest
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(k, _)| *k == key)
            .find_map(|(_, value)| number(value))
    };
    let (Some(ten), Some(sixty), Some(long)) = (get("avg10"), get("avg60"), get("avg300")) else {
        return;
    };
    let total_us = get("total").unwrap_or(0.0);
    subject.figure(format!("{kind}_avg10_percent"), ten);
    subject.figure(format!("{kind}_avg60_percent"), sixty);
    subject.figure(format!("{kind}_avg300_percent"), long);
    subject.figure(format!("{kind}_total_us"), total_us);
    let (about, who) = if kind == "some" {
        ("some", "at least one task waited for I/O")
    } else {
        ("full", "all tasks that had something to do waited for I/O")
    };
    let trend = if ten > 2.0 * long && ten >= 1.0 {
        "; it has grown lately"
    } else if long > 2.0 * ten && long >= 1.0 {
        "; it was worse before"
    } else {
        ""
    };
    subject.show(
        about,
        format!(
            "{who} in {} % of the last 10 s, {} % of the last 60 s, {} % of the last 300 s{trend}; {} \
             since the start",
            figures(ten),
            figures(sixty),
            figures(long),
            crate::number::ns_text(total_us * 1e3)
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_their_trend() {
        let text = "some avg10=82.11 avg60=71.20 avg300=10.88 total=123456789\n\
                    full avg10=60.43 avg60=51.20 avg300=30.01 total=98765432\n";
        let reading = read(text).unwrap();
        let subject = &reading.subjects[0];
        assert_eq!(subject.figures["full_avg10_percent"], 60.43);
        assert!(
            subject.shows[0]
                .text
                .contains("waited for I/O in 82.1 % of the last 10 s")
        );
        assert!(
            subject.shows[0]
                .text
                .contains("grown lately; 123.5 s since"),
            "{subject:?}"
        );
    }

    #[test]
    fn other_pressures_are_no_io() {
        let lines = "some avg10=2.00 avg60=1.00 avg300=1.00 total=1\n";
        let mixed = format!("$ cat /proc/pressure/cpu\n{lines}$ cat /proc/pressure/io\n{lines}");
        let reading = read(&mixed).unwrap();
        assert_eq!(reading.subjects[0].shows.len(), 1);
        assert_eq!(reading.notes.len(), 1, "{:?}", reading.notes);
        assert!(reading.notes[0].starts_with("1 line of the pressure of memory"));
        let memory = format!("/sys/fs/cgroup/a/memory.pressure:{lines}");
        assert!(
            read(&memory)
                .unwrap_err()
                .to_string()
                .contains("not of I/O")
        );
        assert!(read("some avg10=x").is_err());
    }
}
