// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of biosnoop, iosnoop and of tables of one's own.

use super::*;

/// The events that the last of some lines makes.
fn read(lines: &[&str]) -> Vec<String> {
    events_of(Snoop::default(), lines)
}

fn events_of(mut dialect: Snoop, lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        match dialect.parse(line.as_bytes()) {
            Line::Io(io) => {
                let letters = ["Q", "I", "D", "C"];
                let times = letters.iter().zip(io.times);
                let times = times.filter_map(|(l, t)| t.map(|t| format!("{l}{}", t / 1000)));
                let event = io.event.to_string();
                let comm = String::from_utf8_lossy(io.comm.unwrap_or_default()).into_owned();
                let place = event
                    .split_once(' ')
                    .map(|(dev, _)| dev)
                    .unwrap_or_default();
                found = vec![
                    times.collect::<Vec<_>>().join(" "),
                    format!(
                        "{place} {} {}+{}",
                        io.event.rwbs, io.event.sector, io.event.bytes
                    ),
                    format!("{} {comm}", io.event.pid),
                ];
            }
            Line::Note { .. } => {}
            other => found = vec![format!("{other:?}")],
        }
    }
    found
}

#[test]
fn tables_of_own_scripts() {
    let row = "12.000500 my app 77 8:16 write 4096 8192 250";
    let expected = [
        "Q12000250 D12000250 C12000500",
        "8,16 W 4096+8192",
        "77 my app",
    ];
    let titles = "# time comm pid dev op sector bytes lat_us";
    assert_eq!(read(&[titles, row]), expected);
    let titles = "timestamp_ns,comm,pid,device,rw,offset,size,latency_ns,note";
    let row = "12000500000,app,77,sdb,R,2097152,8192,250000,x y";
    let expected = [
        "Q12000250 D12000250 C12000500",
        "8,16 R 4096+8192",
        "77 app",
    ];
    assert_eq!(read(&[titles, row]), expected);
    // Prose is no table.
    assert!(read(&["time and size of the latency"])[0].starts_with("Other"));
}

#[test]
fn a_head_of_two_lines() {
    let head = [
        "TIME(ms)     DISK ID        COMM             PID    LAT(ms)",
        "             MAJOR MINOR",
    ];
    let row = "627          259   0        my cksum         4179        15";
    let found = read(&[head[0], head[1], row]);
    assert_eq!(
        (found[0].as_str(), found[2].as_str()),
        ("Q612000 D612000 C627000", "4179 my cksum")
    );
    assert!(found[1].starts_with("259,0 "), "{found:?}");
}

#[test]
fn a_day_has_24_hours() {
    assert_eq!(time_of_day(b"23:59:00.001"), Some(86_340_001_000_000));
    for no in ["24:0:0.0", "1:60:0.0", "1:2", "18446744073709551615:0:0.0"] {
        assert_eq!(time_of_day(no.as_bytes()), None, "{no}");
    }
}

#[test]
fn times_of_the_day() {
    let titles = "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)";
    let row = "00:01:02.814 mount          163467  sde     WSM  41944043   524288    1.422";
    let expected = [
        "Q62812578 D62812578 C62814000",
        "8,64 WSM 41944043+524288",
        "163467 mount",
    ];
    assert_eq!(read(&[titles, row]), expected);
    assert_eq!(read(&[row]), expected);
    assert!(read(&[titles, &row.replace("00:01", "24:01")])[0].starts_with("Other"));
    // One that took longer and ended later in the same millisecond was not issued before.
    let next = "00:01:02.814 mount          163467  sde     WSM  41945067   524288    1.749";
    assert_eq!(
        read(&[titles, row, next])[0],
        "Q62812578 D62812578 C62814327"
    );
    let long = next.replace("1.749", "9.749");
    assert_eq!(
        read(&[titles, row, &long])[0],
        "Q62804251 D62804251 C62814000"
    );
}

/// What a row of named columns says, after these lines.
fn read_as(titles: &str, lines: &[&str]) -> Vec<String> {
    let columns = Columns::parse(titles).expect("columns");
    events_of(Snoop::of_columns(&columns), lines)
}

#[test]
fn rows_of_named_columns() {
    let expected = [
        "Q12000250 D12000250 C12000500",
        "8,16 W 4096+8192",
        "77 my app",
    ];
    let titles = "time comm pid dev op sector bytes lat_us";
    let row = "12.000500 my app 77 8:16 write 4096 8192 250";
    assert_eq!(read_as(titles, &[row]), expected);
    // Titles of the text's own say nothing, and commas may stand between.
    let others = "time_ms,dev,op,lat_us,size";
    let row = "12.000500,my app,77,8:16,write,4096,8192,250";
    assert_eq!(read_as(titles, &[others, row]), expected);
    // A column that means nothing.
    let row = "12.000500 77 x17 sdb W 4096 8192 0.250";
    let expected = ["Q12000250 D12000250 C12000500", "8,16 W 4096+8192", "77 "];
    assert_eq!(
        read_as("time pid - dev op sector bytes lat_ms", &[row]),
        expected
    );
}

#[test]
fn columns_that_say_nothing_are_refused() {
    let refused = |titles: &str| Columns::parse(titles).unwrap_err().to_string();
    let unknown = refused("time dev op lat_us wherefrom");
    assert!(
        unknown.starts_with("no column is called 'wherefrom'; "),
        "{unknown}"
    );
    assert!(unknown.contains("valid: "), "{unknown}");
    assert_eq!(
        refused("time dev op lat"),
        "lat: its unit is missing: lat_s, lat_ms, lat_us or lat_ns"
    );
    assert_eq!(refused("op op lat_us"), "op: there is one already");
    assert!(refused("time lat_us").starts_with("no column says what an I/O does"));
    assert!(refused("").starts_with("no column says how long"));
}

#[test]
fn rows_of_all_programs() {
    let check = |lines: &[&str], expected: [&str; 3]| assert_eq!(read(lines), expected);
    // bcc, with a name of two words, microseconds.
    let fio = "8.581422    my fio       59558  sda     R 22803672   4096      0.25   44.25";
    let expected = [
        "Q8536922 D8537172 C8581422",
        "8,0 R 22803672+4096",
        "59558 my fio",
    ];
    check(&[fio], expected);
    check(
        &[
            "TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)",
            fio,
        ],
        expected,
    );
    check(
        &["67.830680000   paranoid       3676   sdb     W  6024      4096       0.66"],
        [
            "Q67830020 D67830020 C67830680",
            "8,16 W 6024+4096",
            "3676 paranoid",
        ],
    );
    // libbpf-tools, with letters as in a trace, before the first.
    check(
        &["0.000000  jbd2/sda1-8 210 nvme0n1 FWFS 8 4096 1.000"],
        ["Q-1000 D-1000 C0", "0,1 FWFS 8+4096", "210 jbd2/sda1-8"],
    );
    // bpftrace has neither place nor direction.
    let titles = "TIME(ms)     MAJOR MINOR  COMM   PID    LAT(ms)";
    check(
        &[titles, "611 8 16 bash 4179 10"],
        ["Q601000 D601000 C611000", "8,16 N 2048+512", "4179 bash"],
    );
    // iosnoop without times, and with them.
    check(
        &[
            "COMM PID TYPE DEV BLOCK BYTES LATms",
            "supervise 1809 W 202,1 17039600 4096 1.32",
            "supervise 1809 W 202,1 17039616 4096 2.00",
        ],
        [
            "Q1320 D1320 C3320",
            "202,1 W 17039616+4096",
            "1809 supervise",
        ],
    );
    check(
        &[
            "STARTs          ENDs            COMM         PID    TYPE DEV BLOCK BYTES LATms",
            "5982800.302061  5982800.302679  supervise    1809   W    202,1 17039600 4096 0.62",
        ],
        [
            "Q5982800302061 D5982800302061 C5982800302681",
            "202,1 W 17039600+4096",
            "1809 supervise",
        ],
    );
}

#[test]
fn prose_is_no_io() {
    for line in [
        "Synced in 10031 us",
        "(biolatency: second mode 32768 -> 65535 us with 18103 of 57483 IOs)",
        "8,0 0 1 0.5 9 Q R 8 + 8 [x]",
        "419,W,8792731648,16384,1577808144360767",
        "the disk sda took W 4096 bytes in 12 8 0.5",
    ] {
        assert!(read(&[line])[0].starts_with("Other"), "{:?}", read(&[line]));
    }
}
