// SPDX-License-Identifier: MIT OR Apache-2.0
//! `iostat` and `sar -d`: a table for each interval, a row for each device. The columns have had
//! several names (sysstat 9 to 12, FreeBSD, Solaris); a table is read by those of its own head.

use crate::flow::{Flow, Kind};
use crate::iostat_json;
use crate::iostat_text;
use crate::load::Load;
use crate::reading::{Reading, SINGLE, SUMS, WHO, record};
use crate::table::{Row, Span, Table};
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
        iostat_text::tables(text)
    };
    let has_rows = tables.iter().any(|table| !table.rows.is_empty());
    if !has_rows {
        return Err(Error::new(
            "iostat: no row of a device below a head 'Device …': give the whole output",
        ));
    }
    Ok(of_tables(&tables, is_sar))
}

/// The worst interval of each device.
fn of_tables(tables: &[Table], is_sar: bool) -> Reading {
    let (mut worst, nr_intervals) = worst(tables, is_sar);
    let nr_all = worst.len();
    worst.retain(|(_, load)| load.number() > 0.0);
    let nr_idle = nr_all - worst.len();
    worst.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)));
    let mut notes = vec![spans_text(tables, is_sar, nr_intervals)];
    if nr_idle > 0 {
        notes.push(format!(
            "{} did nothing",
            counted(nr_idle as u64, "devices")
        ));
    }
    let has_latencies = worst.iter().any(|(_, load)| load.under_way().is_some());
    if !has_latencies && !worst.is_empty() {
        notes.push("latencies are not shown: `iostat -x` has them".to_owned());
    }
    let is_linux = tables
        .iter()
        .flat_map(|t| &t.rows)
        .all(|(_, row)| is_linux(row));
    let record = if is_linux {
        record(worst.first().map(|(_, load)| load.device.as_str()))
    } else {
        notes.push("the columns are not those of Linux".to_owned());
        "what records single I/Os there: DTrace (io:::start to io:::done). blklab records on Linux"
            .to_owned()
    };
    let subjects = worst.iter().map(|(i, load)| {
        let name = if nr_intervals == 1 {
            load.device.clone()
        } else {
            format!("{} in interval {i}", load.device)
        };
        load.subject(name)
    });
    Reading {
        what: if is_sar { "sar" } else { "iostat" },
        form: SUMS,
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

/// Of each device the interval with the most under way, counted from 1, and how many intervals there
/// are. The mean since the start is one only where there is nothing else.
fn worst(tables: &[Table], is_sar: bool) -> (Vec<(usize, Load)>, usize) {
    let is_interval = |t: &&Table| is_sar || t.span != Span::SinceStart;
    let mut counted: Vec<&Table> = tables.iter().filter(is_interval).collect();
    if counted.iter().all(|table| table.rows.is_empty()) {
        counted = tables.iter().collect();
    }
    let mut worst: Vec<(usize, Load)> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, table) in counted.iter().enumerate() {
        for (device, row) in &table.rows {
            let load = load(device, row);
            match places.entry(device.as_str()) {
                Entry::Occupied(place) => {
                    let known = &mut worst[*place.get()];
                    if weight(&load) > weight(&known.1) {
                        *known = (i + 1, load);
                    }
                }
                Entry::Vacant(place) => {
                    place.insert(worst.len());
                    worst.push((i + 1, load));
                }
            }
        }
    }
    (worst, counted.len())
}

/// Which of the tables are shown, and what the first one is.
fn spans_text(tables: &[Table], is_sar: bool, nr_intervals: usize) -> String {
    let most = "of each device the interval with the most under way is shown";
    let has = |span: Span| tables.iter().any(|table| table.span == span);
    if is_sar {
        return most.to_owned();
    }
    let command = "`iostat -xy 1 10` shows what happens now";
    match (nr_intervals, tables.len()) {
        (1, 1) if has(Span::Interval) => "one interval".to_owned(),
        (1, 1) if has(Span::SinceStart) => {
            format!("the only table is the mean since the machine started: {command}")
        }
        (1, 1) => format!(
            "if this table is the first that iostat printed, it is the mean since the machine \
             started, unless iostat ran with -y: {command}"
        ),
        (shown, all) if shown < all => format!(
            "{all} tables; what is the mean since the machine started ({}) is left out; {most}",
            all - shown
        ),
        (_, all) if has(Span::Unknown) => format!(
            "{all} tables; {most}. If the first of them is the first that iostat printed, it is the \
             mean since the machine started: the line that names the kernel, which would tell, is \
             missing"
        ),
        (_, all) => format!("{all} tables; {most}"),
    }
}

/// Whether a row has no column that only other systems print.
fn is_linux(row: &Row) -> bool {
    !["kr/s", "ms/w", "%b", "%busy"]
        .iter()
        .any(|name| row.contains_key(*name))
}

/// How much there is to look at.
fn weight(load: &Load) -> f64 {
    load.under_way().unwrap_or_else(|| load.number())
}

/// What a row says.
fn load(device: &str, row: &Row) -> Load {
    let get = |names: &[&str]| names.iter().find_map(|name| row.get(*name).copied());
    // Solaris: those that wait and those that are served, and the times of both.
    let both = |a: &str, b: &str| Some(row.get(a)? + row.get(b)?);
    let mut load = Load {
        device: device.to_owned(),
        printed: get(&["aqu-sz", "avgqu-sz"]).or_else(|| both("wait", "actv")),
        busy_percent: get(&["%util", "util", "%b", "%busy"]),
        is_per_second: true,
        ..Load::default()
    };
    let of_all = get(&["await", "svc_t"]).or_else(|| both("wsvc_t", "asvc_t"));
    for (kind, letter) in Kind::ALL.into_iter().zip(['r', 'w', 'd', 'f']) {
        let own = |suffix: &str| get(&[format!("{letter}{suffix}").as_str()]);
        let number = own("/s").unwrap_or(0.0);
        let kib_per_s = own("kB/s")
            .or_else(|| get(&[format!("k{letter}/s").as_str()]))
            .or_else(|| own("MB/s").map(|mb| mb * 1024.0))
            .or_else(|| own("sec/s").map(|sectors| sectors / 2.0));
        let by_rate = kib_per_s.filter(|_| number > 0.0).map(|kib| kib / number);
        *load.flow_mut(kind) = Flow {
            number,
            await_ms: own("_await")
                .or_else(|| get(&[format!("ms/{letter}").as_str()]))
                .or(of_all.filter(|_| kind < Kind::Discards)),
            size_kib: own("areq-sz").or(by_rate),
            merged_percent: get(&[format!("%{letter}rqm").as_str()]),
        };
    }
    // Without -x, and with -s, there are transfers alone.
    if load.number() == 0.0 {
        load.transfers = Flow {
            number: get(&["tps"]).unwrap_or(0.0),
            await_ms: get(&["await"]),
            size_kib: get(&["areq-sz"]).or_else(|| get(&["avgrq-sz"]).map(|sectors| sectors / 2.0)),
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
            "Linux 2.6.32 (db)  01/02/2013  _x86_64_  (4 CPU)\n\n{head}\nsda 0 0 900 900 8 8 8 99 9 1 9\n\n{head}\nsda 0 0 10 0 160 0 16 0.1 10 10 10\n\n\
             {head}\nsda 0 0 100 0 1600 0 16 5 50 10 100\n"
        );
        let reading = read(&text).unwrap();
        let sda = &reading.subjects[0];
        assert_eq!(sda.name, "sda in interval 2");
        assert_eq!(sda.figures["reads_await_ms"], 50.0);
        assert!(sda.shows[0].text.starts_with("100/s of 8 KiB"), "{sda:?}");
    }

    #[test]
    fn an_excerpt_does_not_say_that_its_first_table_is_since_the_start() {
        let head = "Device  r/s r_await  w/s w_await aqu-sz %util";
        let text =
            format!("{head}\nsda 9 50 0 0 0.45 45\n\nlater:\n\n{head}\nsda 1 2 0 0 0.01 1\n");
        let reading = read(&text).unwrap();
        assert_eq!(reading.subjects[0].name, "sda in interval 1");
        assert!(
            reading.notes[0].contains("is missing"),
            "{:?}",
            reading.notes
        );
    }

    #[test]
    fn a_short_table_has_transfers() {
        let text = "Device  tps MB/s rqm/s await areq-sz aqu-sz %util\nsdb 8,84 0,16 10,50 20,85 19,06 0,22 6,27\n";
        let sdb = &read(text).unwrap().subjects[0];
        assert!(
            sdb.shows[0]
                .text
                .starts_with("8.84/s of 19.1 KiB, 20.9 ms each"),
            "{sdb:?}"
        );
    }

    #[test]
    fn other_systems_have_other_recorders() {
        let text = "device r/s w/s kr/s kw/s wait actv svc_t %w %b\nsd5 224.8 157.8 10701.8 6114.7 0.0 9.5 24.7 0 100\n";
        let reading = read(text).unwrap();
        let sd5 = &reading.subjects[0];
        assert_eq!(sd5.figures["writes_await_ms"], 24.7);
        assert!((sd5.figures["under_way"] - 9.45).abs() < 0.01, "{sd5:?}");
        assert!(reading.record.contains("DTrace"), "{}", reading.record);
        let freebsd = "device r/s w/s kr/s kw/s ms/r ms/w ms/o ms/t qlen %b\nada0 4 73 1543 30918 15.1 18.9 1 19 7 20\n";
        let ada0 = &read(freebsd).unwrap().subjects[0];
        assert_eq!(
            (
                ada0.figures["reads_await_ms"],
                ada0.figures["writes_await_ms"]
            ),
            (15.1, 18.9)
        );
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
