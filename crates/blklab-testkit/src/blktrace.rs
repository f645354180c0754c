// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blkparse and btt that are installed: blktrace 1.2.0 (Debian 12) or 1.3.0 (Debian 13).
//! blklab prints what 1.2.0 prints. 1.3.0 prints the same but for these:
//!
//! - a message has the process that wrote it, where 1.2.0 has 0; messages that name a control
//!   group are printed and counted, where 1.2.0 passes over them, and the time of the first and
//!   last of them counts in the throughput;
//! - a process without a name is `[unknown]`, not `[(null)]`;
//! - the summary ends with the time when the trace started;
//! - standard error has a line for each split whose new sector looks like another request's;
//! - the last part of a bio that was split completes with the length of the whole bio, in the
//!   events and in sums of the summary, where 1.2.0 prints what the event has;
//! - btt counts Q2G and G2I once for a bio that was split, where 1.2.0 counts its parts.

use crate::{has_program, skipped};
use std::process::Command;

/// A release whose output is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blktrace {
    /// 1.2.0, whose text blklab prints.
    V1_2,
    /// 1.3.0.
    V1_3,
}

/// A process without a name.
const UNNAMED: [&str; 2] = ["[(null)]", "[unknown]"];

/// How the line begins that says when a trace started.
const STARTED: &str = "Trace started at ";

/// How the line begins that says how many entries a trace has.
const ENTRIES: &str = "Events (";

/// Phases that 1.3.0 counts once for a bio that was split.
const ONCE: [&str; 2] = ["Q2G", "G2I"];

impl Blktrace {
    /// The one that is installed; none, and the test's output says why, if there is none or
    /// another.
    pub fn installed() -> Option<Blktrace> {
        if !has_program("blkparse") || !has_program("btt") {
            return None;
        }
        let said = Command::new("blkparse").arg("-V").output();
        let said = said.map_or_else(|_| Vec::new(), |run| [run.stdout, run.stderr].concat());
        let said = String::from_utf8_lossy(&said);
        let known = [("1.2.0", Blktrace::V1_2), ("1.3.0", Blktrace::V1_3)];
        let found = known
            .into_iter()
            .find(|(version, _)| said.contains(version));
        if found.is_none() {
            skipped("blkparse is that of neither blktrace 1.2.0 nor 1.3.0");
        }
        found.map(|(_, release)| release)
    }

    /// What blkparse printed, as 1.2.0 prints it.
    pub fn text(self, printed: &str) -> String {
        if self == Blktrace::V1_2 {
            return printed.to_owned();
        }
        let mut text = String::with_capacity(printed.len());
        let mut nr_passed_over = 0;
        let mut lines = printed.split_inclusive('\n');
        while let Some(line) = lines.next() {
            if line.starts_with(STARTED) {
                // With the empty line below it.
                lines.next();
                continue;
            }
            if line.starts_with(ENTRIES) && nr_passed_over > 0 {
                text.push_str(&with_fewer_entries(line, nr_passed_over));
                continue;
            }
            match Line::parse(line) {
                Line::Message(line) => text.push_str(&line),
                Line::MessageOfGroup => nr_passed_over += 1,
                Line::Other => text.push_str(&line.replace(UNNAMED[1], UNNAMED[0])),
            }
        }
        text
    }

    /// The lines of a text in which 1.2.0 agrees, where messages name control groups and bios
    /// may be split.
    pub fn agreed_lines(self, text: &str, are_split: bool) -> String {
        let is_agreed = |line: &&str| {
            let is_completion = line.split_whitespace().nth(5) == Some("C");
            let is_of_split = are_split && (is_completion || line.contains(" Completed:"));
            self == Blktrace::V1_2 || !(is_of_split || line.starts_with("Throughput "))
        };
        text.split_inclusive('\n').filter(is_agreed).collect()
    }

    /// What blkparse said on standard error that 1.2.0 says, too.
    pub fn errors(self, said: &str) -> String {
        let is_alias = |line: &str| self == Blktrace::V1_3 && line.starts_with("sector alias (");
        let lines = said.split_inclusive('\n');
        lines.filter(|line| !is_alias(line)).collect()
    }

    /// The rows of a section of btt's report in which 1.2.0 agrees, where bios were split.
    pub fn rows_with_splits(self, section: &[String]) -> Vec<String> {
        if self == Blktrace::V1_2 {
            return section.to_vec();
        }
        let mut table = "";
        let mut kept = Vec::new();
        for line in section {
            let first = line.split_whitespace().next().unwrap_or_default();
            if line.contains(" MIN ") {
                table = first;
            } else if line.split_whitespace().any(|word| ONCE.contains(&word)) {
                // A table with a column for each phase.
                table = ONCE[0];
            }
            if !ONCE.contains(&first) && !ONCE.contains(&table) {
                kept.push(line.clone());
            }
        }
        kept
    }
}

/// A line of blkparse 1.3.0.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// A message, with 0 for its process.
    Message(String),
    /// A message that names a control group.
    MessageOfGroup,
    /// Any other.
    Other,
}

impl Line {
    fn parse(line: &str) -> Line {
        Line::of_message(line).unwrap_or(Line::Other)
    }

    fn of_message(line: &str) -> Option<Line> {
        // Device, CPU, number and time stand before the process; a control group, if one is
        // named, and the action behind it.
        let mut words = Words { line, end: 0 };
        for _ in 0..4 {
            words.next()?;
        }
        let before = words.end;
        let process = words.next()?;
        let behind = words.end;
        if !process.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        match (words.next()?, words.next()) {
            ("m", _) => {
                let (before, behind) = (&line[..before], &line[behind..]);
                Some(Line::Message(format!("{before} {:>5}{behind}", 0)))
            }
            (group, Some("m")) if group.contains(',') => Some(Line::MessageOfGroup),
            _ => None,
        }
    }
}

/// The line that says how many entries there are, with so many fewer.
fn with_fewer_entries(line: &str, fewer: u64) -> String {
    let Some((before, number)) = line.rsplit_once("): ") else {
        return line.to_owned();
    };
    let digits = number.split(' ').next().unwrap_or_default();
    match digits.parse::<u64>() {
        Ok(all) => format!("{before}): {} entries\n", all.saturating_sub(fewer)),
        Err(_) => line.to_owned(),
    }
}

/// Words of a line, and where the last one ends.
struct Words<'a> {
    line: &'a str,
    end: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = &self.line[self.end..];
        let begin = rest.find(|c: char| !c.is_whitespace())?;
        let word = &rest[begin..];
        let length = word.find(char::is_whitespace).unwrap_or(word.len());
        self.end += begin + length;
        Some(&word[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_1_3_prints_becomes_what_1_2_prints() {
        let printed = "  8,0    1        0     0.100003502 1234567890  m   N 100% done\n\
                       259,1234  0       12     0.100003502     1  P   N [unknown]\n\
                       254,0    0        0     0.000044547   111 1,0  m   N bfq0A new_ioprio\n\
                       Events (t): 53035 entries\n\
                       Trace started at Thu Jan  1 00:00:00 1970\n\n\
                       Input file t.blktrace.0 added\n";
        let expected = "  8,0    1        0     0.100003502     0  m   N 100% done\n\
                        259,1234  0       12     0.100003502     1  P   N [(null)]\n\
                        Events (t): 53034 entries\n\
                        Input file t.blktrace.0 added\n";
        assert_eq!(Blktrace::V1_3.text(printed), expected);
        assert_eq!(Blktrace::V1_2.text(printed), printed);
        let said = "sector alias (8) on device 0,0!\nno such file\n";
        assert_eq!(Blktrace::V1_3.errors(said), "no such file\n");
        assert_eq!(Blktrace::V1_2.errors(said), said);
    }

    #[test]
    fn rows_that_count_parts_are_left_out() {
        let section = [
            "Q2Q           MIN           AVG",
            "fio 1",
            "Q2G           MIN           AVG",
            "fio 2",
            "Q2C           MIN           AVG",
            "fio 3",
            "G2I 4",
        ]
        .map(str::to_owned);
        let kept = Blktrace::V1_3.rows_with_splits(&section);
        assert_eq!(kept.concat().matches("fio").count(), 2);
        assert!(!kept.concat().contains("Q2G") && !kept.concat().contains("G2I"));
        assert_eq!(Blktrace::V1_2.rows_with_splits(&section), section);
    }
}
