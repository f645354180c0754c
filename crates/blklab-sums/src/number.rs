// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers as tools print them, and as people read them.

use blklab_analysis::findings::time_text;

/// A number, with the decimal comma that some languages have.
pub(crate) fn number(word: &str) -> Option<f64> {
    let value = match word.parse::<f64>() {
        Ok(value) => value,
        Err(_) => word.replacen(',', ".", 1).parse().ok()?,
    };
    value.is_finite().then_some(value)
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
        assert_eq!(number("nan"), None);
        assert_eq!(number("sda"), None);
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
