// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io.stat` of control groups (Documentation/admin-guide/cgroup-v2.rst): what a group did on
//! each device, and what io.cost and io.latency say of it (block/blk-iocost.c, `ioc_pd_stat`;
//! block/blk-iolatency.c, `iolatency_pd_stat`). Copies of several groups come as grep prints
//! them, with the file in front.

use crate::number::{figures, kib_text, number};
use crate::reading::{Reading, SINGLE, SUMS, Subject, WHO, record};
use blklab_types::Error;
use std::collections::BTreeMap;

const BYTES_PER_KIB: f64 = 1024.0;

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let subjects: Vec<Subject> = text.lines().filter_map(subject).collect();
    if subjects.is_empty() {
        return Err(Error::new(
            "io.stat: no line 'MAJOR:MINOR rbytes=… wbytes=… rios=… wios=…'",
        ));
    }
    let has_waits = subjects
        .iter()
        .any(|s| s.figures.contains_key("cost_wait_us"));
    let mut notes =
        vec!["sums since each group was made: read it twice to see what happens now".to_owned()];
    if !has_waits {
        notes.push(
            "whether io.cost made a group wait is not shown: the kernel adds cost.wait with \
             blkcg_debug_stats=1"
                .to_owned(),
        );
    }
    Ok(Reading {
        what: "io.stat",
        form: SUMS,
        subjects,
        notes,
        cannot: vec![
            WHO,
            SINGLE,
            "how long a group's requests took, and whether io.max or io.weight held them back: \
             `blklab record` keeps every group's limits beside its I/O",
        ],
        record: record(None),
    })
}

fn subject(line: &str) -> Option<Subject> {
    let (head, rest) = line.trim().split_once(char::is_whitespace)?;
    // FILE:MAJOR:MINOR, or MAJOR:MINOR.
    let (before, minor) = head.rsplit_once(':')?;
    let (file, major) = before.rsplit_once(':').unwrap_or(("", before));
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    let group = file
        .strip_suffix("io.stat")
        .unwrap_or(file)
        .trim_end_matches('/');
    let name = if group.is_empty() {
        format!("{major}:{minor}")
    } else {
        format!("{group} on {major}:{minor}")
    };
    let pairs = rest
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='));
    let values: BTreeMap<&str, f64> = pairs
        .filter_map(|(key, value)| Some((key, number(value)?)))
        .collect();
    if !values.contains_key("rios") && !values.contains_key("wios") {
        return None;
    }
    let mut subject = Subject::new(name);
    for (word, number, bytes) in [
        ("reads", "rios", "rbytes"),
        ("writes", "wios", "wbytes"),
        ("discards", "dios", "dbytes"),
    ] {
        show_kind(&mut subject, &values, word, number, bytes);
    }
    show_cost(&mut subject, &values);
    show_latency(&mut subject, &values);
    Some(subject)
}

fn show_kind(
    subject: &mut Subject,
    values: &BTreeMap<&str, f64>,
    word: &'static str,
    number: &str,
    bytes: &str,
) {
    let get = |key: &str| values.get(key).copied().unwrap_or(0.0);
    let (number, kib) = (get(number), get(bytes) / BYTES_PER_KIB);
    if number > 0.0 {
        let each = kib_text(kib / number);
        subject.show(
            word,
            format!("{number} of {each}, {} in all", kib_text(kib)),
        );
        subject.figure(word, number);
        subject.figure(format!("{word}_bytes"), kib * BYTES_PER_KIB);
    }
}

/// What io.cost says, in us (`cost.usage`, `cost.wait`, `cost.indebt`, `cost.indelay`).
fn show_cost(subject: &mut Subject, values: &BTreeMap<&str, f64>) {
    let us_text = |us: f64| crate::number::ns_text(us * 1e3);
    if let Some(percent) = values.get("cost.vrate") {
        subject.figure("cost_vrate_percent", *percent);
        let slow = if *percent < 100.0 {
            "less than its model says: the device has missed its latency targets (io.cost.qos), \
             and all groups are slowed down"
        } else {
            "what its model says or more"
        };
        let text = format!("io.cost lets the device do {} %: {slow}", figures(*percent));
        subject.show("io.cost", text);
    }
    if let Some(us) = values.get("cost.usage") {
        subject.figure("cost_usage_us", *us);
    }
    if let Some(us) = values.get("cost.wait") {
        subject.figure("cost_wait_us", *us);
        let usage = values.get("cost.usage").copied().unwrap_or(0.0);
        let text = if *us > 0.0 {
            format!(
                "held back by io.cost: its requests waited {} together for budget, and used {} of \
                 the device's time",
                us_text(*us),
                us_text(usage)
            )
        } else {
            "not held back by io.cost: no request waited for budget".to_owned()
        };
        subject.show("io.cost", text);
    }
    let late: f64 = ["cost.indebt", "cost.indelay"]
        .iter()
        .filter_map(|key| values.get(key))
        .sum();
    if late > 0.0 {
        let text = format!(
            "in debt or slowed down for {}: it was charged for I/O that could not wait (swap, \
             journal), and pays later",
            us_text(late)
        );
        subject.show("io.cost", text);
    }
}

/// What io.latency says: how many may be under way, and latencies of its window.
fn show_latency(subject: &mut Subject, values: &BTreeMap<&str, f64>) {
    if let (Some(missed), Some(total)) = (values.get("missed"), values.get("total")) {
        subject.figure("latency_missed", *missed);
        subject.show(
            "io.latency",
            format!("{missed} of {total} requests of the last window missed the target"),
        );
    }
    if let Some(depth) = values.get("depth") {
        subject.figure("latency_depth", *depth);
        subject.show(
            "io.latency",
            format!("{depth} of its requests may be under way: others' targets are protected so"),
        );
    }
    if let Some(us) = values.get("avg_lat") {
        subject.figure("latency_mean_us", *us);
        subject.show("io.latency", format!("{us} us on average in its window"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_say_what_io_cost_made_them_wait() {
        let text = "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.vrate=62.50\n\
                    /sys/fs/cgroup/a/io.stat:8:0 rbytes=0 wbytes=1048576 rios=0 wios=4 dbytes=0 dios=0 \
                    cost.usage=4000 cost.wait=812000 cost.indebt=0 cost.indelay=5\n";
        let reading = read(text).unwrap();
        assert_eq!(reading.subjects[0].name, "8:0");
        assert!(reading.subjects[0].shows[1].text.contains("62.5 %: less"));
        let a = &reading.subjects[1];
        assert_eq!(a.name, "/sys/fs/cgroup/a on 8:0");
        assert_eq!(a.figures["cost_wait_us"], 812_000.0);
        assert!(a.shows[0].text.starts_with("4 of 256 KiB"), "{a:?}");
        assert!(
            a.shows[1].text.contains("waited 812.0 ms together"),
            "{a:?}"
        );
    }

    #[test]
    fn without_debugging_the_wait_is_not_known() {
        let reading = read("8:0 rbytes=0 wbytes=512 rios=0 wios=1 dbytes=0 dios=0\n").unwrap();
        assert!(reading.notes[1].contains("blkcg_debug_stats"));
        assert!(read("rbytes=1 wios=2\n").is_err());
    }
}
