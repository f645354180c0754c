// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms as programs give them to Prometheus: `NAME_bucket{le="0.004"} 12`, in which a row counts
//! all that took no longer.

use super::{Group, Histogram, Unit};
use crate::number::number;

/// All of a text; none if it has none.
pub(super) fn histograms(text: &str) -> Option<Vec<Histogram>> {
    let mut all: Vec<(Histogram, f64)> = Vec::new();
    for line in text.lines() {
        let Some((title, name, end, count)) = bucket(line) else {
            continue;
        };
        let place = all.iter().position(|(h, _)| h.title == title);
        let place = place.unwrap_or_else(|| {
            let histogram = Histogram {
                title,
                unit: Some(unit(name)),
                ..Histogram::default()
            };
            all.push((histogram, 0.0));
            all.len() - 1
        });
        let (histogram, before) = &mut all[place];
        let from = histogram.groups.last().map_or(0.0, |group| group.below);
        histogram.groups.push(Group {
            from,
            // What is longer than the last bound has none.
            below: end.unwrap_or(2.0 * from).max(from),
            count: (count - *before).max(0.0),
        });
        *before = count;
    }
    (!all.is_empty()).then(|| all.into_iter().map(|(h, _)| h).collect())
}

/// What the name says of the values.
fn unit(name: &str) -> Unit {
    let units = [
        ("_seconds", Unit::Time(1_000_000_000)),
        ("_milliseconds", Unit::Time(1_000_000)),
        ("_ms", Unit::Time(1_000_000)),
        ("_microseconds", Unit::Time(1_000)),
        ("_us", Unit::Time(1_000)),
        ("_nanoseconds", Unit::Time(1)),
        ("_bytes", Unit::Size(1)),
    ];
    let known = units.iter().find(|(end, _)| name.ends_with(end));
    known.map_or(Unit::Unknown, |(_, unit)| *unit)
}

/// The title with the labels but for the bound, the name, the bound (none for `+Inf`), the count.
fn bucket(line: &str) -> Option<(String, &str, Option<f64>, f64)> {
    let line = line.trim_start_matches(['>', ' ', '\t']);
    let (name, rest) = line.split_once("_bucket{")?;
    let (labels, count) = rest.rsplit_once('}')?;
    let (before, behind) = labels.split_once("le=\"")?;
    let (bound, behind) = behind.split_once('"')?;
    let others = format!("{before}{}", behind.trim_start_matches(','));
    let others = others.trim_end_matches(',');
    let title = if others.is_empty() {
        name.to_owned()
    } else {
        format!("{name} {others}")
    };
    let end = if bound == "+Inf" {
        None
    } else {
        Some(number(bound)?)
    };
    Some((title, name, end, number(count.split_whitespace().next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_what_took_no_longer() {
        let text = "# TYPE wal_fsync_duration_seconds histogram\n\
            wal_fsync_duration_seconds_bucket{job=\"db\",le=\"0.016\"} 132\n\
            wal_fsync_duration_seconds_bucket{job=\"db\",le=\"0.032\"} 47595\n\
            wal_fsync_duration_seconds_bucket{job=\"db\",le=\"+Inf\"} 47600\n\
            wal_fsync_duration_seconds_sum 9\n";
        let [h] = histograms(text).unwrap().try_into().unwrap();
        assert_eq!(h.title, "wal_fsync_duration_seconds job=\"db\"");
        assert_eq!(h.unit, Some(Unit::Time(1_000_000_000)));
        let counts: Vec<f64> = h.groups.iter().map(|g| g.count).collect();
        assert_eq!(counts, [132.0, 47463.0, 5.0]);
        assert_eq!((h.groups[2].from, h.groups[2].below), (0.032, 0.064));
        assert!(histograms("usecs : count\n").is_none());
    }
}
