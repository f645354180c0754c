// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of `iostat`, `sar -d` and `gstat` in texts as people mail them: quoted, between prose, with
//! heads and rows that a mailer or a page has wrapped.

use crate::number::number;
use crate::table::{Row, Span, Table};

/// All tables of a text.
pub(crate) fn tables(text: &str) -> Vec<Table> {
    let mut reader = Reader {
        span: Span::Unknown,
        ..Reader::default()
    };
    for line in text.lines() {
        reader.line(line.trim_start_matches(['>', ' ', '\t']));
    }
    reader.end();
    reader.tables
}

#[derive(Default)]
struct Reader<'a> {
    tables: Vec<Table>,
    /// What the next table is of.
    span: Span,
    /// The command says that it leaves out the mean since the start.
    is_without_mean: bool,
    /// The titles, and how many of them are not from a second part of the head below the rows.
    head: Vec<&'a str>,
    nr_first: usize,
    rows: Vec<Vec<&'a str>>,
    /// Rows to which their second part was added.
    nr_whole: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str) {
        let words = words(line);
        if words.is_empty() || line.starts_with("```") {
            // A page that cuts a table in two has no blank line between its parts.
            self.end();
        } else if words.iter().any(|word| is_device(word)) && is_head(&words) {
            self.end();
            self.nr_first = words.len();
            self.head = words;
        } else if self.head.is_empty() {
            self.outside(line);
        } else if is_head(&words) {
            self.head.extend(words);
            if self.rows.is_empty() {
                self.nr_first = self.head.len();
            }
        } else if words.iter().all(|word| number(word).is_some()) {
            self.rest_of_row(words);
        } else {
            self.rows.push(words);
        }
    }

    /// A line that begins a run of iostat, or the command, which may leave out the mean since the
    /// start.
    fn outside(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        if words.by_ref().any(|word| word == "iostat") {
            let is_option = |word: &str| word.starts_with('-') && word.contains('y');
            self.is_without_mean = words.any(is_option);
            if self.is_without_mean {
                self.span = Span::Interval;
            }
        } else if line.starts_with("Linux ") && line.contains("CPU)") && !self.is_without_mean {
            self.span = Span::SinceStart;
        }
    }

    /// Numbers without a device go on with a row: the last one that is short, or, below the second
    /// part of a head, the next one.
    fn rest_of_row(&mut self, words: Vec<&'a str>) {
        let is_second = self.nr_first < self.head.len();
        let row = if is_second {
            self.nr_whole += 1;
            self.rows.get_mut(self.nr_whole - 1)
        } else {
            self.rows.last_mut()
        };
        if let Some(row) = row.filter(|row| row.len() + words.len() <= self.head.len()) {
            row.extend(words);
        }
    }

    fn end(&mut self) {
        if let Some(head) = Head::read(&self.head) {
            let span = std::mem::take(&mut self.span);
            self.tables.push(Table {
                // gstat has no mean since the start.
                span: if self.head.contains(&"L(q)") {
                    Span::Interval
                } else {
                    span
                },
                rows: self.rows.iter().filter_map(|row| head.row(row)).collect(),
            });
        }
        self.head.clear();
        self.rows.clear();
        self.nr_whole = 0;
    }
}

/// The words of a line; gstat of Rust has titles of two.
fn words(line: &str) -> Vec<&str> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if words.contains(&"kB/s") {
        words.retain(|word| !["r", "w", "d"].contains(word));
    }
    words
}

fn is_device(word: &str) -> bool {
    ["Device", "Device:", "DEV", "device", "Name"].contains(&word)
}

/// Whether these are titles: none is a number, and all but the device's and what stands before it
/// are names of rates, shares or times.
fn is_head(words: &[&str]) -> bool {
    let at = words.iter().position(|word| is_device(word));
    let titles = match at {
        Some(last) if last + 1 == words.len() => &words[..last],
        Some(at) => &words[at + 1..],
        None => words,
    };
    !titles.is_empty() && titles.iter().all(|word| is_title(word))
}

fn is_title(word: &str) -> bool {
    let is_rate = word.contains('/') && !word.starts_with('/') && number(word).is_none();
    let is_share = word.starts_with('%');
    let is_size = word.contains("-sz") || word.contains("_read") || word.contains("_wrtn");
    let is_time = word.contains("await") || word.contains("svc") || word == "svctm";
    let is_other = [
        "tps", "wait", "actv", "qlen", "L(q)", "kBps", "kB_dscd", "Blk_read", "util", "s/w", "h/w",
    ];
    is_rate || is_share || is_size || is_time || is_other.contains(&word)
}

/// The columns of a table.
struct Head<'a> {
    names: &'a [&'a str],
    /// Which is the device: behind a time in tables of sar, the last one in others.
    device: usize,
}

impl<'a> Head<'a> {
    fn read(names: &'a [&'a str]) -> Option<Head<'a>> {
        Some(Head {
            names,
            device: names.iter().position(|word| is_device(word))?,
        })
    }

    /// The row of a device; none where a line is cut, or is text between two tables.
    fn row(&self, words: &[&str]) -> Option<(String, Row)> {
        if self.device > 0 && self.device + 1 == self.names.len() {
            return self.row_before(words);
        }
        // 'Average:' stands in place of a time of one word or of two.
        let (cut, at) = match words.first() {
            Some(&"Average:") => (self.device.saturating_sub(1), 1.min(self.device)),
            _ => (0, self.device),
        };
        if words.len() + cut != self.names.len() {
            return None;
        }
        let row = row(&self.names[self.device + 1..], &words[at + 1..])?;
        Some((words[at].to_owned(), row))
    }

    /// The row of a table whose last column is the device.
    fn row_before(&self, words: &[&str]) -> Option<(String, Row)> {
        if words.len() != self.names.len() {
            return None;
        }
        let row = row(&self.names[..self.device], &words[..self.device])?;
        Some((words[self.device].to_owned(), row))
    }
}

fn row(names: &[&str], words: &[&str]) -> Option<Row> {
    let figures: Option<Vec<f64>> = words.iter().map(|w| number(w)).collect();
    let names = names.iter().map(|name| (*name).to_owned());
    Some(names.zip(figures?).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Device: rrqm/s wrqm/s r/s w/s rMB/s wMB/s avgrq-sz await svctm %util";

    #[test]
    fn the_first_table_is_since_the_start_only_behind_the_kernel_s_line() {
        let two = format!("{HEAD}\nsda 0 0 1 0 0 0 8 1 1 1\n\n{HEAD}\nsda 0 0 2 0 0 0 8 1 1 1\n");
        let spans = |text: &str| tables(text).iter().map(|t| t.span).collect::<Vec<_>>();
        assert_eq!(spans(&two), [Span::Unknown, Span::Interval]);
        let begun = format!("Linux 5.4.0 (db)  01/02/2021  _x86_64_ (4 CPU)\n\n{two}");
        assert_eq!(spans(&begun), [Span::SinceStart, Span::Interval]);
        assert_eq!(spans(&format!("{begun}\n{begun}"))[2], Span::SinceStart);
        for without in [
            format!("$ iostat -xy 1\n\n{two}"),
            format!("$ iostat -xy 1\n{begun}"),
        ] {
            assert_eq!(spans(&without)[0], Span::Interval);
        }
    }

    #[test]
    fn wrapped_heads_and_rows_are_one() {
        let mailed = HEAD.replace(" await", "\nawait");
        let text = format!("{mailed}\nsda 0 0 7 3 1 2 80\n 55 9 99\nsdb 0 0 0 0 0 0 0\n0 0 0\n");
        let rows = &tables(&text)[0].rows;
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].1["r/s"], rows[0].1["await"]), (7.0, 55.0));
        let page = "Device: r/s w/s wMB/s\nsda 1 163 81\nsdb 2 0 0\nawait %util\n866 100\n3 1\n";
        let rows = &tables(page)[0].rows;
        assert_eq!((rows[0].1["await"], rows[1].1["%util"]), (866.0, 1.0));
        let long = "Device: r/s w/s await\n/dev/mapper/a-long-name\n  1 2 3\n";
        assert_eq!(tables(long)[0].rows[0].1["await"], 3.0);
    }

    #[test]
    fn the_device_may_come_last() {
        let solaris = "  r/s w/s kr/s kw/s wait actv wsvc_t asvc_t %w %b device\n\
                       1.5 33.9 146.0 1062.6 0.0 0.5 0.0 14.2 0 41 c0t1d0\n";
        let (name, row) = &tables(solaris)[0].rows[0];
        assert_eq!((name.as_str(), row["asvc_t"]), ("c0t1d0", 14.2));
        let gstat = " L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   ms/w   %busy Name\n\
                     \x20   7    121      3     60   12.1    118  85699   30.4    96.1 ada0\n";
        let table = &tables(gstat)[0];
        assert_eq!(
            (table.span, table.rows[0].1["ms/w"]),
            (Span::Interval, 30.4)
        );
    }

    #[test]
    fn prose_is_no_row() {
        let text =
            format!("{HEAD}\nsda is slow, as you see\n> {HEAD}\n> sda 0 0 1 0 0 0 8 1 1 1\n");
        let tables = tables(&text);
        assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (0, 1));
    }
}
