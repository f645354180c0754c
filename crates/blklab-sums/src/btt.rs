// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of btt: how long bios were in each part of their way, the least, on average, the most.

use crate::number::{figures, ns_text, number};
use crate::reading::{Reading, SINGLE, SUMS, Subject, WHO};
use blklab_types::Error;

/// A part of the way of a bio.
struct Part {
    /// As btt calls it.
    name: &'static str,
    /// A word for it.
    about: &'static str,
    /// What takes long there.
    means: &'static str,
}

/// The parts of the whole way, in their order. What is merged goes from Q to M and then from M to D.
static PARTS: [Part; 6] = [
    Part {
        name: "Q2G",
        about: "request",
        means: "waiting for a free request or tag: all are in use (nr_requests, the queue depth, the \
                scheduler's share for writes), or a limit holds bios back before (write-back throttling, a \
                control group)",
    },
    Part {
        name: "G2I",
        about: "plug",
        means: "on the plug of the task that submits: it collects several before it lets them go, or does \
                something else meanwhile",
    },
    Part {
        name: "Q2M",
        about: "merging",
        means: "being merged into another request",
    },
    Part {
        name: "I2D",
        about: "scheduler",
        means: "in the scheduler, behind others that go first or while it holds them back; the device was \
                busy with as many as it takes, or idle: that these sums do not say",
    },
    Part {
        name: "M2D",
        about: "merged",
        means: "merged into a request that waits in the scheduler",
    },
    Part {
        name: "D2C",
        about: "device",
        means: "at the device, for its own time and for the others that it has",
    },
];

/// A row, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Row {
    avg_s: f64,
    max_s: f64,
    number: f64,
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut rows: Vec<(&str, Row)> = Vec::new();
    let mut subjects = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches(['>', '#', ' ', '\t']);
        if let Some((name, row)) = row(line) {
            // The same names come again for each process or device.
            if rows.iter().any(|(known, _)| *known == name) {
                break;
            }
            rows.push((name, row));
        }
    }
    subjects.extend(all(&rows));
    subjects.extend(devices(text));
    if subjects.is_empty() {
        return Err(Error::new(
            "btt: no row like 'D2C  0.000101756  0.020238508  0.042954645  107'",
        ));
    }
    Ok(Reading {
        what: "btt",
        form: SUMS,
        subjects,
        notes: vec![
            "give the trace that it was made from, and `blklab why` looks at single I/Os"
                .to_owned(),
        ],
        cannot: vec![
            WHO,
            SINGLE,
            "which bios are waited for: write-back, for which nobody waits, is in the means, too",
        ],
        record: crate::reading::record(None),
    })
}

/// `D2C  MIN  AVG  MAX  N`.
fn row(line: &str) -> Option<(&str, Row)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, _, avg, max, n] = words.as_slice() else {
        return None;
    };
    let is_part = PARTS.iter().any(|part| part.name == *name);
    (is_part || ["Q2Q", "Q2C", "Q2D"].contains(name)).then_some(())?;
    Some((
        name,
        Row {
            avg_s: number(avg)?,
            max_s: number(max)?,
            number: number(n)?,
        },
    ))
}

/// What the rows of all devices show.
fn all(rows: &[(&str, Row)]) -> Option<Subject> {
    let get = |name: &str| rows.iter().find(|(n, _)| *n == name).map(|(_, row)| *row);
    let parts: Vec<(&Part, Row)> = PARTS
        .iter()
        .filter_map(|p| Some((p, get(p.name)?)))
        .collect();
    let sum: f64 = parts.iter().map(|(_, row)| row.avg_s * row.number).sum();
    let whole = get("Q2C").map_or(sum, |row| (row.avg_s * row.number).max(sum));
    if whole <= 0.0 {
        return None;
    }
    let mut subject = Subject::new("all devices");
    if let Some(row) = get("Q2C") {
        subject.show("whole way", row_text(row));
        subject.figure("q2c_avg_ms", row.avg_s * 1e3);
    }
    for (part, row) in &parts {
        let percent = 100.0 * row.avg_s * row.number / whole;
        subject.figure(
            format!("{}_percent", part.name.to_ascii_lowercase()),
            percent,
        );
        if percent >= 1.0 || part.name == "D2C" {
            let text = format!(
                "{} % of all time ({}): {}",
                figures(percent),
                part.name,
                row_text(*row)
            );
            subject.show(part.about, text);
        }
    }
    let share = |(_, row): &(&Part, Row)| row.avg_s * row.number;
    if let Some((part, row)) = parts.iter().max_by(|a, b| share(a).total_cmp(&share(b))) {
        let percent = 100.0 * row.avg_s * row.number / whole;
        subject.show(
            "mostly",
            format!("{} % of the time is {}", figures(percent), part.means),
        );
    }
    let longest = parts.iter().max_by(|a, b| a.1.max_s.total_cmp(&b.1.max_s));
    if let Some((part, row)) = longest {
        subject.show(
            "longest",
            format!(
                "{} in one part of the way ({}, {})",
                ns_text(row.max_s * 1e9),
                part.name,
                part.about
            ),
        );
    }
    show_under_way(&mut subject, get("Q2Q"), get("Q2C"), get("D2C"));
    Some(subject)
}

fn row_text(row: Row) -> String {
    format!(
        "{} on average of {}, {} the longest",
        ns_text(row.avg_s * 1e9),
        figures(row.number),
        ns_text(row.max_s * 1e9)
    )
}

/// Little's law: bios came once in Q2Q.
fn show_under_way(subject: &mut Subject, q2q: Option<Row>, q2c: Option<Row>, d2c: Option<Row>) {
    let Some(between) = q2q.map(|row| row.avg_s).filter(|s| *s > 0.0) else {
        return;
    };
    let Some(q2c) = q2c else {
        return;
    };
    let under_way = q2c.avg_s / between;
    subject.figure("under_way", under_way);
    let mut text = format!(
        "{}/s came, so that {} were under way on average (Little's law)",
        figures(1.0 / between),
        figures(under_way)
    );
    if let Some(d2c) = d2c {
        text.push_str(&format!(
            ", {} of them at the device",
            figures(d2c.avg_s / between)
        ));
    }
    subject.show("at a time", text);
}

/// Shares by device (`Device Overhead`), where there are several.
fn devices(text: &str) -> Vec<Subject> {
    let mut subjects = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for line in text.lines() {
        let Some((head, shares)) = line.split_once('|') else {
            continue;
        };
        let words: Vec<&str> = shares.split_whitespace().collect();
        if head.trim() == "DEV" {
            names = words;
        } else if head.trim_start().starts_with('(') && words.len() == names.len() {
            let percents: Option<Vec<f64>> =
                words.iter().map(|w| number(w.strip_suffix('%')?)).collect();
            let Some(percents) = percents else {
                continue;
            };
            let device: String = head
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == ',')
                .collect();
            let mut subject = Subject::new(device);
            let pairs = names
                .iter()
                .zip(&percents)
                .filter(|(_, percent)| **percent >= 1.0);
            let texts = pairs.map(|(name, percent)| format!("{name} {} %", figures(*percent)));
            subject.show("of its time", texts.collect::<Vec<_>>().join(", "));
            for (name, percent) in names.iter().zip(&percents) {
                subject.figure(format!("{}_percent", name.to_ascii_lowercase()), *percent);
            }
            subjects.push(subject);
        }
    }
    subjects.retain(|subject| subject.shows.iter().all(|shown| !shown.text.is_empty()));
    if subjects.len() < 2 {
        Vec::new()
    } else {
        subjects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(subject: &Subject, about: &str) -> String {
        let of = subject.shows.iter().filter(|s| s.about == about);
        of.map(|s| s.text.as_str()).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn most_of_the_time_by_number_and_mean() {
        let sums = "==================== All Devices ====================\n\
            \x20           ALL           MIN           AVG           MAX           N\n\
            Q2Q               0.000000001   0.000100000   0.025292639       62150\n\
            Q2G               0.000000233   0.000001000   0.000056343       50000\n\
            I2D               0.000000096   0.001500000   0.022469688       50000\n\
            M2D               0.000000647   0.002500000   0.022445412       10000\n\
            D2C               0.000046189   0.000800000   0.007860766       60000\n\
            Q2C               0.000051089   0.002500000   0.026096657       60000\n\
            ==================== Device Overhead ====================\n\
            \x20      DEV |       Q2G       I2D       D2C\n (  8, 64) |   0.0070%   0.0062%  99.9715%\n\
            \x20(  8, 16) |   0.0070%  70.0062%  29.9715%\n";
        let reading = read(sums).unwrap();
        let all = &reading.subjects[0];
        assert_eq!(all.figures["i2d_percent"], 50.0);
        assert!(
            text(all, "mostly").starts_with("50 % of the time is in the scheduler"),
            "{all:?}"
        );
        assert!(text(all, "longest").starts_with("22.5 ms"), "{all:?}");
        assert!(
            text(all, "at a time").contains("25 were under way"),
            "{all:?}"
        );
        assert_eq!(reading.subjects[2].name, "8,16");
        assert_eq!(
            text(&reading.subjects[2], "of its time"),
            "I2D 70 %, D2C 30 %"
        );
    }

    #[test]
    fn a_part_alone_is_the_whole() {
        let sums = "Q2G 0.000000344 0.004581352 6.103389173 30331\nD2C 0.000089691 0.000169321 0.004942750 30293\n";
        let all = &read(sums).unwrap().subjects[0];
        assert!(
            text(all, "mostly").contains("waiting for a free request or tag"),
            "{all:?}"
        );
        assert!(text(all, "longest").starts_with("6.10 s"), "{all:?}");
        assert!(read("==== All Devices ====\n").is_err());
    }
}
