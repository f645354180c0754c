// SPDX-License-Identifier: MIT OR Apache-2.0
//! `iostat` and `sar -d`: a table for each interval, a row for each device. The columns have had
//! several names (sysstat 9 to 12); a table is read by those of its own head.

use crate::flow::{Flow, Kind};
use crate::iostat_json;
use crate::load::Load;
use crate::number::number;
use crate::reading::{Reading, SINGLE, WHO, record};
use crate::table::{Row, Table};
use blklab_analysis::findings::counted;
use blklab_types::Error;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Reads text or JSON.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let is_sar = text
        .lines()
        .any(|line| line.split_whitespace().any(|word| word == "DEV"));
    let tables = if text.trim_start().starts_with('{') {
        iostat_json::tables(text)?
    } else {
        tables(text)
    };
    let has_rows = tables.iter().any(|table| !table.is_empty());
    if !has_rows {
        return Err(Error::new(
            "iostat: no row of a device below a head 'Device …': give the whole output",
        ));
    }
    Ok(of_tables(&tables, is_sar))
}

/// The columns of a table.
struct Head<'a> {
    names: Vec<&'a str>,
    /// Which is the device: behind a time in tables of sar.
    device: usize,
}

impl<'a> Head<'a> {
    fn read(words: &[&'a str]) -> Option<Head<'a>> {
        let is_device = |word: &&str| ["Device", "Device:", "DEV"].contains(word);
        Some(Head {
            names: words.to_vec(),
            device: words.iter().position(is_device)?,
        })
    }

    /// The row of a device; none where a line is cut, or is text between two tables.
    fn row(&self, words: &[&str]) -> Option<(String, Row)> {
        // 'Average:' stands in place of a time of one word or of two.
        let (cut, at) = match words.first() {
            Some(&"Average:") => (self.device.saturating_sub(1), 1.min(self.device)),
            _ => (0, self.device),
        };
        if words.len() + cut != self.names.len() {
            return None;
        }
        let figures: Option<Vec<f64>> = words[at + 1..].iter().map(|w| number(w)).collect();
        let names = self.names[self.device + 1..].iter();
        let row = names.map(|name| (*name).to_owned()).zip(figures?).collect();
        Some((words[at].to_owned(), row))
    }
}

/// All tables of a text.
fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut head: Option<Head<'_>> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            head = None;
        } else if let Some(next) = Head::read(&words) {
            head = Some(next);
            tables.push(Table::new());
        } else if let (Some(head), Some(table)) = (&head, tables.last_mut()) {
            table.extend(head.row(&words));
        }
    }
    tables
}

/// The worst interval of each device.
fn of_tables(tables: &[Table], is_sar: bool) -> Reading {
    // The first one of iostat is the mean since the start of the machine, if there are more.
    let skipped = usize::from(tables.len() > 1 && !is_sar);
    let mut worst: Vec<(usize, Load)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut nr_idle: u64 = 0;
    for (i, table) in tables.iter().enumerate().skip(skipped) {
        for (device, row) in table {
            let load = load(device, row);
            match places.entry(device.as_str()) {
                Entry::Occupied(place) => {
                    let known = &mut worst[*place.get()];
                    if weight(&load) > weight(&known.1) {
                        *known = (i, load);
                    }
                }
                Entry::Vacant(place) => {
                    place.insert(worst.len());
                    worst.push((i, load));
                }
            }
        }
    }
    worst.retain(|(_, load)| {
        let is_idle = load.number() == 0.0;
        nr_idle += u64::from(is_idle);
        !is_idle
    });
    worst.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)));
    let mut notes = Vec::new();
    if is_sar {
        notes.push("of each device the interval with the most under way is shown".to_owned());
    } else if skipped == 0 {
        notes.push(
            "the only table is the mean since the machine started, unless iostat ran with -y: \
             `iostat -xy 1 10` shows what happens now"
                .to_owned(),
        );
    } else {
        notes.push(format!(
            "{} tables; the first, the mean since the start, is left out; of each device the \
             interval with the most under way is shown",
            tables.len()
        ));
    }
    if nr_idle > 0 {
        notes.push(format!("{} did nothing", counted(nr_idle, "devices")));
    }
    let has_latencies = worst.iter().any(|(_, load)| load.under_way().is_some());
    if !has_latencies && !worst.is_empty() {
        notes.push("latencies are not shown: `iostat -x` has them".to_owned());
    }
    let record = record(worst.first().map(|(_, load)| load.device.as_str()));
    let subjects = worst.iter().map(|(i, load)| {
        let name = if skipped == 0 {
            load.device.clone()
        } else {
            format!("{} in interval {i}", load.device)
        };
        load.subject(name)
    });
    Reading {
        what: if is_sar { "sar" } else { "iostat" },
        subjects: subjects.collect(),
        notes,
        cannot: vec![
            WHO,
            SINGLE,
            "whether requests waited in a queue of the kernel or in the device: await has both \
             (blktrace: Q to D, and D to C)",
        ],
        record,
    }
}

/// How much there is to look at.
fn weight(load: &Load) -> f64 {
    load.under_way().unwrap_or_else(|| load.number())
}

/// What a row says.
fn load(device: &str, row: &Row) -> Load {
    let get = |names: &[&str]| names.iter().find_map(|name| row.get(*name).copied());
    let mut load = Load {
        device: device.to_owned(),
        printed: get(&["aqu-sz", "avgqu-sz"]),
        busy_percent: get(&["%util", "util"]),
        is_per_second: true,
        ..Load::default()
    };
    for (kind, letter) in Kind::ALL.into_iter().zip(['r', 'w', 'd', 'f']) {
        let own = |suffix: &str| get(&[format!("{letter}{suffix}").as_str()]);
        let number = own("/s").unwrap_or(0.0);
        let kib_per_s = own("kB/s")
            .or_else(|| own("MB/s").map(|mb| mb * 1024.0))
            .or_else(|| own("sec/s").map(|sectors| sectors / 2.0));
        let by_rate = kib_per_s.filter(|_| number > 0.0).map(|kib| kib / number);
        *load.flow_mut(kind) = Flow {
            number,
            await_ms: own("_await").or_else(|| get(&["await"]).filter(|_| kind < Kind::Discards)),
            size_kib: own("areq-sz").or(by_rate),
            merged_percent: get(&[format!("%{letter}rqm").as_str()]),
        };
    }
    // Without -x there are transfers alone.
    if load.number() == 0.0 {
        load.transfers = Flow {
            number: get(&["tps"]).unwrap_or(0.0),
            await_ms: get(&["await"]),
            size_kib: get(&["areq-sz"]),
            merged_percent: None,
        };
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "Linux 6.1.0 (db1)\n\n\
        Device   r/s  rkB/s r_await rareq-sz  w/s    wkB/s %wrqm w_await wareq-sz  f/s f_await aqu-sz %util\n\
        sda     4,00  32,00   98,25     8,00  210 93440,00  5,41  148,21   444,95 2,00  310,00  32,14 100,00\n\
        sdb     0,00   0,00    0,00     0,00    0     0,00  0,00    0,00     0,00 0,00    0,00   0,00   0,00\n\n";

    #[test]
    fn a_table_is_read_by_its_head() {
        let reading = read(NEW).unwrap();
        assert_eq!(reading.subjects.len(), 1);
        let sda = &reading.subjects[0];
        assert_eq!(sda.figures["writes_await_ms"], 148.21);
        assert!((sda.figures["under_way"] - 32.14).abs() < 0.01);
        assert!(reading.notes.iter().any(|n| n == "1 device did nothing"));
        assert!(reading.record.contains("record sda "));
    }

    #[test]
    fn older_columns_and_several_tables() {
        let head =
            "Device:  rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util";
        let text = format!(
            "{head}\nsda 0 0 900 900 8 8 8 99 9 1 9\n\n{head}\nsda 0 0 10 0 160 0 16 0.1 10 10 10\n\n\
             {head}\nsda 0 0 100 0 1600 0 16 5 50 10 100\n"
        );
        let reading = read(&text).unwrap();
        let sda = &reading.subjects[0];
        assert_eq!(sda.name, "sda in interval 2");
        assert_eq!(sda.figures["reads_await_ms"], 50.0);
        assert!(sda.shows[0].text.starts_with("100/s of 8 KiB"), "{sda:?}");
    }

    #[test]
    fn sar_has_a_time_in_front_and_no_kinds() {
        let text = "12:00:01 AM  DEV  tps  rkB/s  wkB/s  areq-sz  aqu-sz  await  %util\n\
                    12:10:01 AM  dev8-0  212.30  12.21  9211.33  43.44  8.21  38.66  99.20\n\
                    12:20:01 AM  dev8-0  12.00  12.21  92.33  43.44  0.12  10.00  9.20\n\
                    Average:  dev8-0  100.00  12.21  4000.33  43.44  4.21  30.66  50.20\n";
        let reading = read(text).unwrap();
        assert_eq!((reading.what, reading.notes.len()), ("sar", 1));
        assert!(reading.record.contains("/dev/block/8:0 "));
        let sda = &reading.subjects[0];
        assert_eq!(sda.figures["transfers_per_s"], 212.3);
        assert!((sda.figures["under_way"] - 8.21).abs() < 0.01, "{sda:?}");
        assert!(
            sda.shows[0].text.ends_with("reads and writes together"),
            "{sda:?}"
        );
    }

    #[test]
    fn a_head_alone_is_refused() {
        let error = read("Device r/s w/s\n").unwrap_err();
        assert!(error.to_string().contains("no row of a device"));
    }

    #[test]
    fn a_table_without_latencies_says_so() {
        let text = "Device   tps   kB_read/s   kB_wrtn/s\nsda   55.0   10.0   900.0\n";
        let reading = read(text).unwrap();
        assert!(reading.notes.iter().any(|n| n.contains("iostat -x")));
    }
}
