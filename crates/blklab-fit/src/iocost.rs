// SPDX-License-Identifier: MIT OR Apache-2.0
//! The six numbers of `io.cost.model` as a device: nothing is fitted, and much is not told.

use crate::device_file::Line;
use blklab_types::Error;

/// The numbers, as the kernel and the law `iocost` call them.
const NUMBERS: [&str; 6] = [
    "rbps",
    "rseqiops",
    "rrandiops",
    "wbps",
    "wseqiops",
    "wrandiops",
];

/// Whether a text is a line of `io.cost.model`.
pub fn is_iocost(text: &str) -> bool {
    let words = text.lines().find(|l| !is_remark(l)).unwrap_or_default();
    words.split_whitespace().any(|w| w.starts_with("rbps="))
}

fn is_remark(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Reads a line of `io.cost.model`, as `8:16 ctrl=user model=linear rbps=… rseqiops=…`, or the
/// six numbers on lines of their own; gives the parameters of the device `iocost`.
///
/// # Errors
/// If a number is missing, is none, or is given twice; or something else is there.
pub fn parse_iocost(name: &str, text: &str) -> Result<Vec<Line>, Error> {
    let mut lines: Vec<Line> = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !is_remark(l)) {
        let wrong = |what: String| Err(Error::new(what).in_file(name).on_line(Some(i as u64 + 1)));
        for (place, word) in line.split_whitespace().enumerate() {
            let Some((key, value)) = word.split_once('=') else {
                if place == 0 && word.contains(':') {
                    // The device's number.
                    continue;
                }
                return wrong(format!(
                    "'{word}': expected KEY=VALUE, as in rbps=488636629"
                ));
            };
            if matches!(key, "ctrl" | "model") {
                continue;
            }
            if !NUMBERS.contains(&key) {
                return wrong(format!(
                    "no number is called '{key}'; valid: {}",
                    NUMBERS.join(", ")
                ));
            }
            if lines.iter().any(|l| l.key == key) {
                return wrong(format!(
                    "{key} is given twice: expected the numbers of one device"
                ));
            }
            match value.parse::<u64>() {
                Ok(1..=1_000_000_000_000) => lines.push(Line {
                    key: key.to_owned(),
                    value: value.to_owned(),
                    remark: String::new(),
                }),
                _ => {
                    return wrong(format!(
                        "{key}={value}: expected a whole number from 1 to 1000000000000"
                    ));
                }
            }
        }
    }
    let missing = |n: &&&str| !lines.iter().any(|l| l.key == **n);
    if let Some(missing) = NUMBERS.iter().find(missing) {
        let what = format!(
            "{missing} is missing: expected all of {}",
            NUMBERS.join(", ")
        );
        return Err(Error::new(what).in_file(name));
    }
    lines.sort_by_key(|l| NUMBERS.iter().position(|n| *n == l.key));
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "8:16 ctrl=user model=linear rbps=3 rseqiops=4 rrandiops=5 wbps=6 wseqiops=7 wrandiops=8\n";

    #[test]
    fn a_line_of_the_kernel_has_the_six_numbers() {
        assert!(is_iocost(LINE) && !is_iocost("{\"jobs\": []}"));
        let lines = parse_iocost("m", LINE).expect("is read");
        let values: Vec<&str> = lines.iter().map(|l| l.value.as_str()).collect();
        assert_eq!(values, ["3", "4", "5", "6", "7", "8"]);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let told = |text: &str| parse_iocost("m", text).expect_err("refused").to_string();
        assert!(told("rbps=1\n").starts_with("m: rseqiops is missing"));
        assert!(told("rbps=1\nrbps=2\n").starts_with("m:2: rbps is given twice"));
        assert!(told("rbps=-1\n").starts_with("m:1: rbps=-1: expected"));
        assert!(told("rbps=1 wat=2\n").starts_with("m:1: no number is called 'wat'"));
    }
}
