// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/pressure/io` and `io.pressure` of control groups (Documentation/accounting/psi.rst).

use crate::number::{figures, number};
use crate::reading::{Reading, Subject, WHO, record};
use blklab_types::Error;

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut subjects: Vec<Subject> = Vec::new();
    for line in text.lines() {
        let Some((file, kind, rest)) = split(line) else {
            continue;
        };
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
        return Err(Error::new(
            "io.pressure: no line 'some avg10=… avg60=… avg300=… total=…'",
        ));
    }
    let is_other =
        |s: &Subject| s.name.contains("memory.pressure") || s.name.contains("cpu.pressure");
    let mut notes = vec![
        "cpu.pressure and memory.pressure have the same lines; that this is io.pressure is taken \
         for granted where the file is not named"
            .to_owned(),
    ];
    if subjects.iter().any(is_other) {
        notes = vec!["some of it is the pressure of memory or processors, not of I/O".to_owned()];
    }
    Ok(Reading {
        what: "io.pressure",
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
    let line = line.trim();
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
        let text =
            "/sys/fs/cgroup/a/memory.pressure:some avg10=1.00 avg60=1.00 avg300=1.00 total=1\n";
        let reading = read(text).unwrap();
        assert!(reading.notes[0].contains("not of I/O"));
        assert!(read("some avg10=x").is_err());
    }
}
