// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as tools print them, and as people read them.

use blklab_analysis::findings::time_text;

/// More than any counter or rate: 64 bits of it.
const MOST: f64 = u64::MAX as f64;
/// Less than any tool prints.
const LEAST: f64 = 1e-9;

/// A number as tools print it, not negative, with the decimal comma that some languages have.
pub(crate) fn number(word: &str) -> Option<f64> {
    let value = match word.parse::<f64>() {
        Ok(value) => value,
        Err(_) => word.replacen(',', ".", 1).parse().ok()?,
    };
    sound(value)
}

/// A number that a tool may have printed.
pub(crate) fn sound(value: f64) -> Option<f64> {
    let value = if (0.0..LEAST).contains(&value) {
        0.0
    } else {
        value
    };
    (0.0..=MOST).contains(&value).then_some(value)
}

/// Three figures.
pub(crate) fn figures(value: f64) -> String {
    let value = value.abs();
    let decimals = match value {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A time of that many milliseconds.
pub(crate) fn ms_text(ms: f64) -> String {
    ns_text(ms * 1e6)
}

/// A time of that many nanoseconds.
pub(crate) fn ns_text(ns: f64) -> String {
    time_text(ns.clamp(0.0, u64::MAX as f64).round() as u64)
}

/// An amount of that many KiB.
pub(crate) fn kib_text(kib: f64) -> String {
    if kib >= 1024.0 * 1024.0 {
        format!("{} GiB", figures(kib / (1024.0 * 1024.0)))
    } else if kib >= 1024.0 {
        format!("{} MiB", figures(kib / 1024.0))
    } else {
        format!("{} KiB", figures(kib))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_language() {
        assert_eq!(number("12.50"), Some(12.5));
        assert_eq!(number("12,50"), Some(12.5));
        for word in ["nan", "inf", "-1", "1e300", "sda"] {
            assert_eq!(number(word), None, "{word}");
        }
        assert_eq!(number("1e-300"), Some(0.0));
    }

    #[test]
    fn three_figures() {
        assert_eq!(figures(148.21), "148");
        assert_eq!(figures(8.0), "8");
        assert_eq!(figures(0.046), "0.05");
        assert_eq!(ms_text(98.25), "98.2 ms");
        assert_eq!(ms_text(0.11), "110.0 us");
        assert_eq!(kib_text(93_440.0), "91.2 MiB");
    }
}
