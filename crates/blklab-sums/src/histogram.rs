// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms as bcc (`128 -> 255 : 12 |***`), bpftrace (`[128, 256) 12 |@@`), perf-tools
//! (`1 -> 2 : 12 |###`), DTrace (`128 |@@  12`) and Prometheus (`…_bucket{le="0.128"} 12`) print them: how the latencies are spread, whether they are of two kinds.

mod metrics;
mod zpool;

use crate::number::{figures, kib_text, ns_text, number};
use crate::reading::{Reading, SUMS, Subject, WHO, record};
use blklab_types::Error;

/// What the values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Times, of so many ns.
    Time(u32),
    /// Sizes, of so many bytes.
    Size(u32),
    /// The script knows.
    Unknown,
}

/// A group of values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    /// The smallest value.
    from: f64,
    /// The smallest value above it.
    below: f64,
    count: f64,
}

/// A histogram with its title.
#[derive(Clone, Debug, Default)]
struct Histogram {
    title: String,
    /// The last line above it, which is its title where it is DTrace's.
    above: String,
    unit: Option<Unit>,
    groups: Vec<Group>,
    /// It has DTrace's rows.
    is_bars: bool,
}

/// Groups with fewer values lie between two kinds: so many, or this share of the largest group.
const KIND_MIN: f64 = 3.0;
const VALLEY: f64 = 0.001;
/// A kind begins at so many times the end of the one before.
const APART: f64 = 4.0;
/// What is shown of the order of the values, in percent.
const RANKS: [(f64, &str); 3] = [(50.0, "middle"), (99.0, "99th"), (99.9, "99.9th")];

/// Reads all histograms of a text.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let histograms = histograms(text);
    let mut subjects = Vec::new();
    let mut has_sizes = false;
    let mut has_times = false;
    for (i, h) in histograms.iter().enumerate() {
        let count: f64 = h.groups.iter().map(|g| g.count).sum();
        if count == 0.0 {
            continue;
        }
        let unit = h.unit.unwrap_or(Unit::Unknown);
        has_sizes |= matches!(unit, Unit::Size(_));
        has_times |= !matches!(unit, Unit::Size(_));
        let name = match (h.title.as_str(), h.above.as_str()) {
            ("", _) if !h.is_bars || h.above.is_empty() => format!("histogram {}", i + 1),
            ("", above) => above.split_whitespace().collect::<Vec<_>>().join(" "),
            (title, _) => title.to_owned(),
        };
        subjects.push(subject(name, h, unit, count));
    }
    if subjects.is_empty() {
        return Err(Error::new(
            "a histogram: no row with a count ('128 -> 255 : 12' or '[128, 256) 12')",
        ));
    }
    let mut notes = Vec::new();
    if histograms.iter().any(|h| h.title.starts_with("operation")) {
        notes.push(
            "times of a filesystem's calls (ext4dist, xfsdist), with what they wait for beside the \
             disk: locks, journal, page cache"
                .to_owned(),
        );
    } else if has_times && is_of_block_device(text, &histograms) {
        notes.push(
            "biolatency counts from issue to end; with -Q also the time in the queue before. Which \
             of them it was the output does not say: run both, and what they differ by is the queue"
                .to_owned(),
        );
    } else if has_times {
        notes.push(
            "from where to where these times go says the program that made them: of I/Os below, of calls \
             above, or of something else"
                .to_owned(),
        );
    }
    if has_sizes {
        notes.push("sizes are no latencies".to_owned());
    }
    Ok(Reading {
        what: "histograms",
        form: SUMS,
        subjects,
        notes,
        cannot: vec![
            WHO,
            "when the slow ones came, and what else was under way then",
            "more than the ends of a group: a percentile is known to a factor of two",
        ],
        record: record(None),
    })
}

/// Whether they are biolatency's: of requests.
fn is_of_block_device(text: &str, histograms: &[Histogram]) -> bool {
    let is_titled = |h: &Histogram| {
        ["disk", "flags", "@usecs"]
            .iter()
            .any(|word| h.title.starts_with(word))
            || (h.title.is_empty() && !h.is_bars)
    };
    text.contains("block device") || text.contains("biolatency") || histograms.iter().all(is_titled)
}

fn histograms(text: &str) -> Vec<Histogram> {
    if let Some(all) = metrics::histograms(text).or_else(|| zpool::histograms(text)) {
        return all;
    }
    let mut all: Vec<Histogram> = Vec::new();
    let mut next = Histogram::default();
    for line in text.lines() {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
        let bar = bar(line);
        next.is_bars |= bar.is_some();
        if let Some(group) = bar.or_else(|| group(line)) {
            next.groups.push(group);
            continue;
        }
        if !next.groups.is_empty() {
            all.push(std::mem::take(&mut next));
        }
        read_title(&mut next, line);
    }
    if !next.groups.is_empty() {
        all.push(next);
    }
    all
}

/// Takes from a line between histograms what it says about the next one.
fn read_title(next: &mut Histogram, line: &str) {
    if line.is_empty() {
        return;
    }
    if line.contains("- Distribution -") || line.starts_with("value |--") {
        return;
    }
    if let Some((unit, _)) = line
        .split_once(':')
        .filter(|(_, rest)| rest.contains("count"))
    {
        next.unit = unit_of(unit.trim());
        return;
    }
    if line.contains("..") && line.contains("I/O") {
        // perf-tools: ">=(ms) .. <(ms)   : I/O      |Distribution".
        let inner = line.split(['(', ')']).nth(1).unwrap_or_default();
        next.unit = unit_of(inner);
        return;
    }
    if let Some(name) = line
        .strip_prefix('@')
        .and_then(|rest| rest.strip_suffix(':'))
    {
        next.title = format!("@{name}");
        next.unit = name.split(['[', ',', '_']).find_map(unit_of);
        return;
    }
    let is_key = line.contains(" = ") || line.contains("Name") || line.starts_with("Process");
    if is_key {
        next.title = line.to_owned();
    } else if next.title.is_empty() {
        next.above = line.to_owned();
    }
}

/// A row of DTrace's or SystemTap's: `16384 |@@@   5554`. Each has the power of two from its value on.
fn bar(line: &str) -> Option<Group> {
    let (value, bar) = line.split_once('|')?;
    let (bar, count) = bar.rsplit_once([' ', '\t']).unwrap_or(("", bar));
    let is_bar = bar.chars().all(|c| c == '@' || c.is_whitespace());
    let from = number(value.trim()).filter(|_| is_bar)?;
    Some(Group {
        from,
        below: (2.0 * from).max(1.0),
        count: number(count.trim())?,
    })
    .filter(is_sound)
}

fn unit_of(word: &str) -> Option<Unit> {
    match word.to_ascii_lowercase().as_str() {
        "nsecs" | "ns" | "nsec" => Some(Unit::Time(1)),
        "usecs" | "us" | "usec" => Some(Unit::Time(1_000)),
        "msecs" | "ms" | "msec" => Some(Unit::Time(1_000_000)),
        "secs" | "s" => Some(Unit::Time(1_000_000_000)),
        "kbytes" | "kb" => Some(Unit::Size(1024)),
        "bytes" | "size" => Some(Unit::Size(1)),
        _ => None,
    }
}

/// A row: `128 -> 255 : 12 |`, `[128, 256) 12 |`, `[1K] 3`, `(..., 0) 2`.
fn group(line: &str) -> Option<Group> {
    let row = line.split('|').next().unwrap_or_default();
    if let Some((range, count)) = row.split_once(':') {
        let (from, to) = range.split_once("->")?;
        let (from, to) = (number(from.trim())?, number(to.trim())?);
        return Some(Group {
            from,
            below: if to > from { to + 1.0 } else { from + 1.0 },
            count: number(count.trim())?,
        })
        .filter(is_sound);
    }
    let rest = row.strip_prefix(['[', '('])?;
    let end = rest.find([')', ']'])?;
    let count = number(rest[end + 1..].trim())?;
    let (from, below) = match rest[..end].split_once(',') {
        Some((from, below)) => (from.trim(), below.trim()),
        None => (rest[..end].trim(), ""),
    };
    let from = if from == "..." { 0.0 } else { scaled(from)? };
    let below = match below {
        "" => from + 1.0,
        "..." => from * 2.0,
        below => scaled(below)?,
    };
    Some(Group { from, below, count }).filter(is_sound)
}

fn is_sound(group: &Group) -> bool {
    group.below >= group.from
}

/// A number with bpftrace's K, M, G, T: powers of 1024.
fn scaled(word: &str) -> Option<f64> {
    let (digits, power) = match word.as_bytes().last()? {
        b'K' => (&word[..word.len() - 1], 1),
        b'M' => (&word[..word.len() - 1], 2),
        b'G' => (&word[..word.len() - 1], 3),
        b'T' => (&word[..word.len() - 1], 4),
        _ => (word, 0),
    };
    Some(number(digits)? * 1024_f64.powi(power))
}

fn subject(name: String, h: &Histogram, unit: Unit, count: f64) -> Subject {
    let mut subject = Subject::new(name);
    subject.figure("count", count);
    subject.show("values", figures_of(count));
    for (percent, name) in RANKS {
        if count * (100.0 - percent) < 100.0 && percent > 50.0 {
            continue;
        }
        let group = at(&h.groups, count * percent / 100.0);
        subject.show(name, range(group, unit));
        subject.figure(format!("p{percent}_below"), group.below);
    }
    if let Some(last) = h.groups.iter().rev().find(|g| g.count > 0.0) {
        let text = format!("{} in {}", figures_of(last.count), range(*last, unit));
        subject.show("longest", text);
    }
    let kinds = kinds(&h.groups);
    if let [first, .., last] = kinds.as_slice() {
        let times = middle(last) / middle(first);
        let text = format!(
            "of {} kinds: {} in {}, and {} ({} %) in {}, about {} times as much. A mean of both says \
             nothing of either; what sets the second apart (a queue, flushes, a slow member, garbage \
             collection) single I/Os would show",
            kinds.len(),
            figures_of(first.count),
            range(*first, unit),
            figures_of(last.count),
            figures(100.0 * last.count / count),
            range(*last, unit),
            figures(times)
        );
        subject.show("spread", text);
        subject.figure("kinds", kinds.len() as f64);
    }
    subject
}

/// Whole numbers, as they are.
fn figures_of(count: f64) -> String {
    format!("{count:.0}")
}

/// The group of the value that has `rank` at or below it.
fn at(groups: &[Group], rank: f64) -> Group {
    let mut sum = 0.0;
    let found = groups.iter().find(|g| {
        sum += g.count;
        g.count > 0.0 && sum >= rank
    });
    let last = || groups.iter().rev().find(|g| g.count > 0.0);
    *found
        .or_else(last)
        .expect("a histogram with a count has a group with one")
}

/// Groups side by side as one, between valleys.
fn kinds(groups: &[Group]) -> Vec<Group> {
    let most = groups.iter().map(|g| g.count).fold(0.0, f64::max);
    let mut kinds: Vec<Group> = Vec::new();
    let mut is_open = false;
    for group in groups {
        // So few are nobody's kind beside what is there.
        if group.count < KIND_MIN || group.count < VALLEY * most {
            is_open = false;
            continue;
        }
        match kinds.last_mut() {
            // Rows without a value may be left out.
            Some(kind) if is_open && group.from <= kind.below => {
                kind.below = group.below;
                kind.count += group.count;
            }
            _ => kinds.push(*group),
        }
        is_open = true;
    }
    // Kinds that are near each other are one with a gap.
    let mut apart: Vec<Group> = Vec::new();
    for kind in kinds {
        match apart.last_mut() {
            Some(before) if kind.from < before.below * APART => {
                before.below = kind.below;
                before.count += kind.count;
            }
            _ => apart.push(kind),
        }
    }
    apart
}

fn middle(group: &Group) -> f64 {
    (group.from.max(1.0) * group.below.max(1.0)).sqrt()
}

fn range(group: Group, unit: Unit) -> String {
    match unit {
        Unit::Time(ns) => {
            let text = |value: f64| ns_text(value * f64::from(ns));
            format!("{} to {}", text(group.from), text(group.below))
        }
        Unit::Size(bytes) => {
            let text = |value: f64| kib_text(value * f64::from(bytes) / 1024.0);
            format!("{} to {}", text(group.from), text(group.below))
        }
        Unit::Unknown => format!(
            "{} to {} (in the script's unit)",
            figures_of(group.from),
            figures_of(group.below)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BCC: &str = "Tracing block device I/O... Hit Ctrl-C to end.\n^C\n\
        disk = b'sda'\n\
        \x20    usecs               : count     distribution\n\
        \x20      128 -> 255        : 12       |*                    |\n\
        \x20      256 -> 511        : 811      |*********************|\n\
        \x20      512 -> 1023       : 0        |                     |\n\
        \x20   131072 -> 262143     : 40       |*                    |\n";

    #[test]
    fn two_kinds_are_told_apart() {
        let reading = read(BCC).unwrap();
        let sda = &reading.subjects[0];
        assert_eq!(sda.name, "disk = b'sda'");
        assert_eq!(sda.figures["count"], 863.0);
        let text = |about: &str| &sda.shows.iter().find(|s| s.about == about).unwrap().text;
        assert_eq!(text("middle"), "256.0 us to 512.0 us");
        assert!(
            text("spread").starts_with("of 2 kinds: 823 in 128.0 us to 512.0 us, and 40 (4.63 %)")
        );
    }

    #[test]
    fn bpftrace_has_letters_and_the_name_has_the_unit() {
        let text = "Attaching 4 probes...\n@usecs[259, 0]: \n[64, 128)   12 |@@  |\n\
                    [128, 256)  301 |@@@@|\n[1K, 2K)    22 |@   |\n\n@size:\n[4K, 8K) 9 |@|\n";
        let reading = read(text).unwrap();
        let times = &reading.subjects[0];
        assert_eq!(times.shows[1].text, "128.0 us to 256.0 us");
        assert_eq!(reading.subjects[1].shows[1].text, "4 KiB to 8 KiB");
        assert!(reading.notes.iter().any(|n| n == "sizes are no latencies"));
    }

    #[test]
    fn rows_that_are_left_out_part_kinds_too() {
        let text = "     usecs : count distribution\n 256 -> 511 : 811 |\n 8192 -> 16383 : 9 |\n\
                    131072 -> 262143 : 40 |\n";
        let subject = &read(text).unwrap().subjects[0];
        assert_eq!(subject.figures["kinds"], 3.0);
    }

    #[test]
    fn one_kind_is_no_news() {
        let text =
            "     usecs : count distribution\n 0 -> 1 : 5 |\n 2 -> 3 : 50 |\n 4 -> 7 : 5 |\n";
        let shows = &read(text).unwrap().subjects[0].shows;
        assert!(shows.iter().all(|s| s.about != "spread"));
    }

    #[test]
    fn rows_of_dtrace_and_lines_above() {
        let text = "  1f2e  write  467001\n\n  value  ------------- Distribution ------------- count\n\
                    \x20 4096 |                    0\n 8192 |@@@@     36\n 16384 |@    3\n 32768 |   0\n";
        let subject = &read(text).unwrap().subjects[0];
        assert_eq!(subject.name, "1f2e write 467001");
        assert_eq!(subject.figures["count"], 39.0);
        assert_eq!(
            subject.shows[1].text,
            "8192 to 16384 (in the script's unit)"
        );
    }

    #[test]
    fn what_is_counted_is_said_of_biolatency_alone() {
        let taskq = "@queue_lat_us[sync_taskq]:\n[4K, 8K)  2 |@@ |\n[8K, 16K)  5 |@@@|\n";
        let reading = read(taskq).unwrap();
        assert!(
            reading.notes[0].starts_with("from where to where"),
            "{:?}",
            reading.notes
        );
        let titled = "p50=395us p99=1500us\n     usecs : count distribution\n 2 -> 3 : 50 |*|\n";
        assert_eq!(read(titled).unwrap().subjects[0].name, "histogram 1");
    }

    #[test]
    fn rows_without_counts_are_refused() {
        assert!(read("     usecs : count distribution\n").is_err());
        assert!(read("[18446744073709551616K, nan) inf |@|\n").is_err());
    }
}
