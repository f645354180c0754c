// SPDX-License-Identifier: MIT OR Apache-2.0
//! `zpool iostat -w`: a histogram in each column, of a pool or a disk of it. A row has what took no
//! longer than its time, and longer than that of the row before.

use super::{Group, Histogram, Unit};
use crate::zpool::{Columns, count, time_ns};

/// All of a text that have a value; none if the text has no such table.
pub(super) fn histograms(text: &str) -> Option<Vec<Histogram>> {
    let mut all: Vec<Histogram> = Vec::new();
    // Where the columns of the table begin, how many it has, the time of the row before.
    let mut table: Option<(usize, usize, f64)> = None;
    let mut head: Option<(String, Columns<'_>)> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.trim_start_matches('>').split_whitespace().collect();
        if let Some(columns) = Columns::of_head(&words) {
            let name = words[..columns.first_at].join(" ");
            head = Some((name, columns));
            table = None;
        } else if let (["latency", ..], Some((name, columns))) = (words.as_slice(), &head) {
            let titles = columns.titles();
            table = Some((all.len(), titles.len(), 0.0));
            all.extend(titles.into_iter().map(|title| Histogram {
                title: format!("{name} {title}").trim().to_owned(),
                unit: Some(Unit::Time(1)),
                ..Histogram::default()
            }));
        } else if let Some((at, len, before)) = &mut table {
            let end = words.first().and_then(|word| time_ns(word));
            let Some(end) = end.filter(|end| words.len() == *len + 1 && *end > *before) else {
                continue;
            };
            for (histogram, word) in all[*at..].iter_mut().zip(&words[1..]) {
                let group = Group {
                    from: *before,
                    below: end,
                    count: count(word).unwrap_or(0.0),
                };
                histogram.groups.push(group);
            }
            *before = end;
        }
    }
    all.retain(|histogram| histogram.groups.iter().any(|group| group.count > 0.0));
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_is_one() {
        let text = "tank        total_wait     disk_wait    sync_queue    async_queue\n\
            latency      read  write   read  write   read  write   read  write  scrub\n\
            ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----\n\
            4us             0      0      0      0      0      0  1.20K      0      0\n\
            16ms        1.10K      0  1.90K      0      0      0    911      0      0\n\
            33ms        5.30K      0  4.90K      0      0      0      0      0      0\n";
        let all = histograms(text).unwrap();
        let titles: Vec<&str> = all.iter().map(|h| h.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "tank total_wait read",
                "tank disk_wait read",
                "tank async_queue read"
            ]
        );
        assert_eq!(all[1].groups[2].count, 4.9 * 1024.0);
        assert_eq!(
            (all[1].groups[2].from, all[1].groups[2].below),
            (16e6, 33e6)
        );
        assert!(histograms("latency read write\n16ms 1 2\n").is_none());
    }
}
