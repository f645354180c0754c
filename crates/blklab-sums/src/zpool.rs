// SPDX-License-Identifier: MIT OR Apache-2.0
//! `zpool iostat -l`: for how long I/Os of a pool and its disks waited, at the disk and in ZFS's own
//! queues before it.

use crate::number::{figures, ns_text, number};
use crate::reading::{Reading, SUMS, Subject, WHO, record};
use blklab_types::Error;

/// Most of the waiting is before the disk.
const MOSTLY: f64 = 0.5;
/// Shorter waits are nothing to look at.
const LONG_NS: f64 = 1e6;

/// The groups of columns, each with one for reads and one for writes, or a single one.
const GROUPS: [(&str, bool); 12] = [
    ("capacity", true),
    ("operations", true),
    ("bandwidth", true),
    ("total_wait", true),
    ("disk_wait", true),
    ("syncq_wait", true),
    ("asyncq_wait", true),
    ("sync_queue", true),
    ("async_queue", true),
    ("scrub", false),
    ("trim", false),
    ("rebuild", false),
];

/// The groups that a head names.
#[derive(Clone, Debug)]
pub(crate) struct Columns<'a> {
    /// The word with which they begin; before it is the pool in some tables.
    pub(crate) first_at: usize,
    groups: Vec<(&'a str, bool)>,
}

impl<'a> Columns<'a> {
    /// Of the first line of a head.
    pub(crate) fn of_head(words: &[&'a str]) -> Option<Columns<'a>> {
        let known = |word: &&str| GROUPS.iter().find(|(name, _)| name == word);
        let first_at = words.iter().position(|word| known(word).is_some())?;
        let groups: Option<Vec<(&str, bool)>> = words[first_at..]
            .iter()
            .map(|word| known(word).map(|(_, is_pair)| (*word, *is_pair)))
            .collect();
        let groups = groups.filter(|g| g.iter().any(|(name, _)| *name == "total_wait"))?;
        Some(Columns { first_at, groups })
    }

    /// One title for each column. Some titles of single columns are in the second line.
    pub(crate) fn titles(&self) -> Vec<String> {
        let mut titles = Vec::new();
        let has_scrub = self.groups.iter().any(|(name, _)| *name == "scrub");
        for (name, is_pair) in &self.groups {
            if *is_pair {
                titles.extend(["read", "write"].map(|way| format!("{name} {way}")));
            } else {
                titles.push((*name).to_owned());
            }
        }
        // In histograms the name of this column stands in the line below.
        if !has_scrub && self.groups.iter().any(|(name, _)| *name == "sync_queue") {
            titles.push("scrub".to_owned());
        }
        titles
    }
}

/// `41ms`, `553ns`, `1us`, `2s`, in ns.
pub(crate) fn time_ns(word: &str) -> Option<f64> {
    let at = word.find(|c: char| c.is_ascii_alphabetic())?;
    let factor = match &word[at..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number(&word[..at])? * factor)
}

/// `2.37K`: powers of 1024.
pub(crate) fn count(word: &str) -> Option<f64> {
    let scaled = ["K", "M", "G", "T"]
        .iter()
        .zip(1..)
        .find_map(|(unit, power)| {
            let digits = word.strip_suffix(unit)?;
            Some(number(digits)? * 1024_f64.powi(power))
        });
    scaled.or_else(|| number(word))
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut subjects = Vec::new();
    let mut titles: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches('>').split_whitespace().collect();
        if let Some(columns) = Columns::of_head(&words) {
            titles = columns.titles();
        } else if words.len() == titles.len() + 1 && !words[0].starts_with('-') {
            subjects.extend(subject(words[0], &titles, &words[1..]));
        }
    }
    if subjects.is_empty() {
        return Err(Error::new(
            "zpool iostat: no row with a latency below 'total_wait  disk_wait': give the output of zpool \
             iostat -vl 10",
        ));
    }
    Ok(Reading {
        what: "zpool iostat",
        form: SUMS,
        subjects,
        notes: vec![
            "the first table is the mean since the pool was imported, unless -y was given"
                .to_owned(),
        ],
        cannot: vec![
            WHO,
            "flushes of the disks' caches, for which each sync waits: disk_wait leaves them out",
        ],
        record: record(None),
    })
}

/// What a row shows; nothing where nothing waited.
fn subject(name: &str, titles: &[String], words: &[&str]) -> Option<Subject> {
    let mut subject = Subject::new(name);
    let word = |title: &str| {
        let at = titles.iter().position(|t| t == title)?;
        words.get(at).copied()
    };
    for (way, about) in [("read", "reads"), ("write", "writes")] {
        let time = |group: &str| time_ns(word(&format!("{group} {way}"))?);
        let Some(total) = time("total_wait") else {
            continue;
        };
        let rate = word(&format!("operations {way}")).and_then(count);
        let mut text = rate.map_or_else(String::new, |rate| format!("{}/s, ", figures(rate)));
        text.push_str(&format!("{} each", ns_text(total)));
        subject.figure(format!("{about}_total_ms"), total / 1e6);
        let disk = time("disk_wait");
        if let Some(ns) = disk {
            text.push_str(&format!(": {} of it at the disk", ns_text(ns)));
            subject.figure(format!("{about}_disk_ms"), ns / 1e6);
        }
        for (group, queue) in [("syncq_wait", "sync"), ("asyncq_wait", "async")] {
            if let Some(ns) = time(group) {
                text.push_str(&format!(", {} in ZFS's {queue} queue", ns_text(ns)));
            }
        }
        subject.show(about, text);
        let before = disk.map(|ns| total - ns);
        if let Some(ns) = before.filter(|ns| *ns >= LONG_NS && *ns >= MOSTLY * total) {
            subject.show(
                "look at",
                format!(
                    "{about}: {} of {} are before the disk, in ZFS's own queues: more come at a time than \
                     it hands on (zfs_vdev_*_max_active, a burst of a transaction group). A recording of \
                     the disk does not show that",
                    ns_text(ns),
                    ns_text(total)
                ),
            );
        }
    }
    (!subject.shows.is_empty()).then_some(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zfs_s_own_queue_is_told_from_the_disk() {
        let text = "              capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait    asyncq_wait  scrub\n\
            pool        alloc   free   read  write   read  write   read  write   read  write   read  write   read  write   wait\n\
            ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----\n\
            tank         201G   171G      0  2.37K      0   137M      -   41ms      -    2ms      -   36ms      -    4ms      -\n\
            \x20 sda           -      -    100      0    13M      0   15ms      -   14ms      -    1us      -      -      -      -\n\
            logs           -      -      -      -      -      -      -      -      -      -      -      -      -      -      -\n";
        let reading = read(text).unwrap();
        let [tank, sda] = reading.subjects.as_slice() else {
            panic!("{reading:?}");
        };
        assert_eq!(
            (
                tank.figures["writes_total_ms"],
                tank.figures["writes_disk_ms"]
            ),
            (41.0, 2.0)
        );
        assert!(
            tank.shows[0].text.contains("36.0 ms in ZFS's sync queue"),
            "{tank:?}"
        );
        assert!(
            tank.shows[1].text.starts_with("writes: 39.0 ms of 41.0 ms"),
            "{tank:?}"
        );
        assert_eq!(sda.shows.len(), 1, "{sda:?}");
        assert!(read("total_wait disk_wait\n").is_err());
    }
}
