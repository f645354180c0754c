// SPDX-License-Identifier: MIT OR Apache-2.0
//! `io.max` as it is written and read.

use super::amount::parse_size;
use blklab_types::no_such;
use blklab_types::{IoMax, shown};
use std::fmt::Write as _;

/// What its words are called.
const LIMITS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// Writes words such as `rbps=1048576`: the limits that they name change.
pub(crate) fn write_io_max(max: &mut IoMax, text: &str) -> Result<(), String> {
    let bad = |what: &str| {
        Err(format!(
            "io.max: {what}; write rbps=, wbps= (bytes per second), riops=, wiops= (I/Os per \
             second) with a number above 0, a size such as 100m, or max, as in rbps=1048576 wiops=120"
        ))
    };
    let mut any = false;
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else {
            return bad(&format!("'{}' is not KEY=VALUE", shown(word)));
        };
        let limit = match value {
            "max" => None,
            _ => match limit_of(key, value) {
                Some(n) if n > 0 => Some(n),
                _ => return bad(&format!("'{}' has no such value", shown(word))),
            },
        };
        match key {
            "rbps" => max.read_bytes_per_s = limit,
            "wbps" => max.write_bytes_per_s = limit,
            "riops" => max.read_ios_per_s = limit,
            "wiops" => max.write_ios_per_s = limit,
            _ => return bad(&no_such("limit", key, &LIMITS)),
        }
        any = true;
    }
    if any { Ok(()) } else { bad("no limit") }
}

/// Bytes may be written as a size.
fn limit_of(key: &str, value: &str) -> Option<u64> {
    if key.ends_with("bps") {
        parse_size(value).ok()
    } else {
        value.parse().ok()
    }
}

/// The words of the limits that there are.
pub(crate) fn io_max_text(max: &IoMax) -> String {
    let values = [
        max.read_bytes_per_s,
        max.write_bytes_per_s,
        max.read_ios_per_s,
        max.write_ios_per_s,
    ];
    let mut text = String::new();
    for (key, value) in LIMITS.iter().zip(values) {
        if let Some(n) = value {
            let blank = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{blank}{key}={n}");
        }
    }
    text
}
