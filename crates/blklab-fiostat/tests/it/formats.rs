// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio printed, printed again.

use blklab_fiostat::{Format, JobHeader, TerseVersion, Units, preamble};
use serde_json::Value;

use crate::recorded::{self, Recorded};

#[test]
fn json_is_the_same_to_the_byte() {
    for case in recorded::all() {
        let ours = case.result().render(&[Format::JsonPlus], TerseVersion::V3);
        same_lines(&case, "json+", &ours, &case.json);
    }
}

/// The same keys and types in the same order is part of the same bytes; this
/// says which key differs, and holds without bins too.
#[test]
fn json_has_the_same_keys_and_types() {
    for case in recorded::all() {
        let mut theirs = case.tree();
        remove_key(&mut theirs, "bins");
        let ours = case.result().render(&[Format::Json], TerseVersion::V3);
        let ours: Value = serde_json::from_str(&ours).expect("valid JSON");
        assert_eq!(shape("", &ours), shape("", &theirs), "{}", case.name);
    }
}

#[test]
fn normal_is_the_same_line_by_line() {
    for case in recorded::all() {
        let mut ours = case.result().render(&[Format::Normal], TerseVersion::V3);
        if let Some(line) = case.normal.lines().find(|line| line.contains(NO_DIGITS)) {
            // fio 3.33 forgets how many digits to print here, and prints none.
            ours = replace_line(&ours, "  mixed: IOPS=", line);
        }
        same_lines(
            &case,
            "normal",
            &without_dates(&ours),
            &without_dates(&case.normal),
        );
    }
}

const NO_DIGITS: &str = "mixed: IOPS=0, BW=0 (0)(0B/";

fn replace_line(text: &str, start: &str, with: &str) -> String {
    let line = |line| {
        if str::starts_with(line, start) {
            with
        } else {
            line
        }
    };
    text.lines().map(|l| format!("{}\n", line(l))).collect()
}

#[test]
fn terse_has_the_same_fields() {
    for case in recorded::all() {
        let number = u32::from(case.terse.as_bytes()[0] - b'0');
        let version = TerseVersion::from_number(number).expect("a version");
        let ours = case.result().render(&[Format::Terse], version);
        same_lines(&case, "terse", &ours, &case.terse);
    }
}

#[test]
fn preamble_is_the_same() {
    let header = |name: &str, rw: &str, block_sizes, numjobs| JobHeader {
        name: name.into(),
        group_id: 0,
        rw: rw.into(),
        block_sizes,
        engine: "null".into(),
        iodepth: 1,
        numjobs,
        units: Units::default(),
    };
    let writes = (1 << 10, 1 << 20);
    let headers = [
        header("one", "randrw", [(512, 16 << 10), writes, writes], 1),
        header("two", "trimwrite", [(64 << 10, 64 << 10); 3], 3),
    ];
    let ours = preamble(&headers, "fio-3.33", 1, 3);
    assert_eq!(ours, recorded::load("threads").preamble);
}

#[test]
fn formats_are_printed_in_fixed_order() {
    let result = recorded::load("sections").result();
    let all = Format::parse_list("normal,json,csv").expect("formats");
    let text = result.render(&all, TerseVersion::V3);
    let parts = [Format::Terse, Format::Json, Format::Normal];
    let parts = parts.map(|format| result.render(&[format], TerseVersion::V3));
    assert_eq!(text, parts.concat());
    let error = Format::parse_list("json,xml").expect_err("no such format");
    assert!(error.to_string().contains("\"xml\""), "{error}");
}

#[test]
fn extra_object_comes_last() {
    let mut result = recorded::load("error").result();
    result.blklab = Some(serde_json::json!({ "seed": 7, "share": 0.5 }));
    let text = result.render(&[Format::Json], TerseVersion::V3);
    let tail = "\n  ],\n  \"blklab\" : {\n    \"seed\" : 7,\n    \"share\" : 0.500000\n  }\n}\n";
    assert!(text.ends_with(tail), "{}", &text[text.len() - 100..]);
}

/// Compares line by line. Numbers with decimals may differ by one in the last
/// place: they come from numbers that the recorded JSON cut to six decimals.
fn same_lines(case: &Recorded, format: &str, ours: &str, theirs: &str) {
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        let (a, b) = (words(ours), words(theirs));
        let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_word(a, b));
        assert!(
            same,
            "{} {format} line {}:\n{ours}\n{theirs}",
            case.name,
            number + 1
        );
    }
    assert_eq!(ours.len(), theirs.len(), "{} {format}", case.name);
}

/// Numbers and what is between them.
fn words(line: &str) -> Vec<&str> {
    let is_number = |c: &char| c.is_ascii_digit() || *c == '.';
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let same_kind = |c: char| is_number(&c) == is_number(&first);
        let end = rest.find(|c| !same_kind(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        words.push(word);
        rest = tail;
    }
    words
}

fn same_word(ours: &str, theirs: &str) -> bool {
    let decimals = |word: &str| word.split_once('.').map(|(_, d)| d.len() as i32);
    match (decimals(ours), ours.parse::<f64>(), theirs.parse::<f64>()) {
        (Some(n), Ok(a), Ok(b)) if decimals(theirs) == Some(n) => {
            (a - b).abs() < 1.5 * 10f64.powi(-n)
        }
        _ => ours == theirs,
    }
}

/// The text is printed some time after the JSON, perhaps in the next second.
fn without_dates(text: &str) -> String {
    let cut = |line: &str| match line.split_once(": pid=") {
        Some((head, rest)) => format!("{head}: pid={}\n", rest.split(':').next().unwrap_or("")),
        None => format!("{line}\n"),
    };
    text.lines().map(cut).collect()
}

fn remove_key(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            map.shift_remove(key);
            map.values_mut().for_each(|v| remove_key(v, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|v| remove_key(v, key)),
        _ => {}
    }
}

/// One line per leaf: its path and type.
fn shape(path: &str, value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let member = |(key, value): (&String, &Value)| shape(&format!("{path}/{key}"), value);
            format!(
                "{path}: object\n{}",
                map.iter().map(member).collect::<String>()
            )
        }
        Value::Array(items) => {
            let item = |(i, value): (usize, &Value)| shape(&format!("{path}/{i}"), value);
            items.iter().enumerate().map(item).collect()
        }
        Value::Number(n) if n.is_f64() => format!("{path}: float\n"),
        Value::Number(_) => format!("{path}: integer\n"),
        Value::String(_) => format!("{path}: string\n"),
        Value::Bool(_) | Value::Null => format!("{path}: {value}\n"),
    }
}
