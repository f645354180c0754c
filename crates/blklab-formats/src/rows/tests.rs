// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows of every kind, and which kind they are taken for.

use crate::TraceFile;
use blklab_trace::{Item, TraceSource as _};
use std::io::Cursor;

/// The format that a text is taken for, and its events.
fn read(text: &str) -> (&'static str, Vec<String>) {
    let text = Cursor::new(text.as_bytes().to_vec());
    let Ok(mut file) = TraceFile::from_reader(text, "test") else {
        return ("none", Vec::new());
    };
    let mut events = Vec::new();
    while let Ok(Some(item)) = file.next_item() {
        if let Item::Event(event) = item {
            events.push(event.to_string());
        }
    }
    assert_eq!(file.counts().damaged + file.counts().foreign, 0);
    (file.format().name, events)
}

fn check(text: &str, kind: &str, expected: &[&str]) {
    let (found, events) = read(text);
    assert_eq!(
        (found, &events[..]),
        (
            kind,
            &expected.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>()[..]
        ),
        "{text}"
    );
}

#[test]
fn all_kinds() {
    check(
        "128166372003061629,hm,0,Write,7014912,4096,26\n128166372016382155,hm,1,Read,1074696192,4096,113\n",
        "msr",
        &[
            "0,1 0 0.000000000 0 Q W 13701 + 8",
            "0,1 0 0.000002600 0 C W 13701 + 8",
            "0,2 0 1.332052600 0 Q R 2099016 + 8",
            "0,2 0 1.332063900 0 C R 2099016 + 8",
        ],
    );
    check(
        "419,W,8192,16384,1577808144360767\n725,R,512,4096,1577808144360813\n",
        "alibaba",
        &[
            "0,1 0 0.000000000 0 Q W 16 + 32",
            "0,2 0 0.000046000 0 Q R 1 + 8",
        ],
    );
    check(
        "Timestamp,Offset,Size,IOType,VolumeID\n1538323200,16,8,0,1283\n1538323201,24,8,1,1283\n",
        "tencent",
        &[
            "0,1 0 0.000000000 0 Q R 16 + 8",
            "0,1 0 1.000000000 0 Q W 24 + 8",
        ],
    );
    check(
        "0,20941264,8192,W,0.551706,Alpha/NT\n1,3436288,512,r,0.5517061234\n",
        "spc",
        &[
            "0,1 0 0.000000000 0 Q W 20941264 + 16",
            "0,2 0 0.000000123 0 Q R 3436288 + 1",
        ],
    );
    check(
        "0 4892 syslogd 904265560 8 W 6 0 531e779e\n",
        "fiu",
        &["6,0 0 0.000000000 4892 Q W 904265560 + 8"],
    );
    check(
        "13.191135\t30\t0\t5\t1\n17.829285\t20\t576560\t6\t0\n",
        "disksim",
        &[
            "0,1 0 0.000000000 0 Q R 0 + 5",
            "0,2 0 0.004638150 0 Q W 576560 + 6",
        ],
    );
    check(
        "W Hit 4583176 4 663.00000 500.00000\nR Miss 8 4 100.5 0.0\n",
        "disksim-validate",
        &[
            "0,1 0 0.000000000 0 Q W 4583176 + 4",
            "0,1 0 0.000500000 0 Q R 8 + 4",
            "0,1 0 0.000600500 0 C R 8 + 4",
            "0,1 0 0.000663000 0 C W 4583176 + 4",
        ],
    );
    check(
        "938513000 4 264719034 16 0\n938828000 3 197570570 16 1\n",
        "mqsim",
        &[
            "0,1 0 0.000000000 0 Q W 264719034 + 16",
            "0,2 0 0.000315000 0 Q R 197570570 + 16",
        ],
    );
}

#[test]
fn logs_of_fio() {
    check(
        "fio version 2 iolog\na add\na open\na write 4096 8192\na wait 1000 0\na sync 0 0\na close\n",
        "fio-iolog",
        &[
            "0,1 0 0.000000000 0 Q W 8 + 16",
            "0,1 0 0.001000000 0 Q FN 0 + 0",
        ],
    );
    let rows = "872 a open\n878 a write 0 16384\n900 b trim 512 512\n";
    let expected = [
        "0,1 0 0.000878000 0 Q W 0 + 32",
        "0,2 0 0.000900000 0 Q D 1 + 1",
    ];
    check(
        &format!("fio version 3 iolog\n{rows}"),
        "fio-iolog",
        &expected,
    );
    check(&rows[11..], "fio-iolog", &expected);
    // Completion and latency: the first I/O began before the job's clock did.
    check(
        "1, 1500000, 0, 4096, 8192\n3, 500000, 1, 4096, 0\n",
        "fio-lat-log",
        &[
            "0,1 0 0.999500000 0 Q R 16 + 8",
            "0,1 0 1.001000000 0 C R 16 + 8",
            "0,1 0 1.002500000 0 Q W 0 + 8",
            "0,1 0 1.003000000 0 C W 0 + 8",
        ],
    );
}

#[test]
fn what_is_no_row() {
    for text in [
        "",
        "Hello\n",
        "1,2,3\n",
        "[global]\nrw=read\n",
        "18446744073709551616,hm,0,Write,1,1,1\n",
    ] {
        assert_eq!(read(text).0, "none", "{text}");
    }
}

#[test]
fn other_columns_are_no_trace_of_fiu() {
    let line = |rest: &str| read(&format!("1000 4892 fio 1072512 4096 R 32 0{rest}\n")).0;
    assert_eq!(line(" 531e779e"), "fiu");
    // Columns of DTrace: the length is in bytes.
    for rest in ["", " <none>", " 12345"] {
        assert_ne!(line(rest), "fiu", "{rest}");
    }
}

#[test]
fn json_is_not_read_as_one_line_of_ftrace() {
    let lines = "fio-50 [001] .... 1000.123500: block_bio_queue: 8,0 R 1000 + 8 [fio]\\n";
    let systrace = format!("{{\"systemTraceEvents\": \"{lines}{lines}\"}}\n");
    assert_eq!(read(&systrace).0, "none");
    let events = format!("{{\"traceEvents\": [{{\"name\": \"{lines}\", \"ph\": \"i\"}}]}}\n");
    assert_eq!(read(&events).0, "none");
}
