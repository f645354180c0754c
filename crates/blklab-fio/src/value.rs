// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers, sizes, times, lists and keywords of job files.
//!
//! Source: fio 3.33's documented syntax (HOWTO, "Parameter types") and its
//! behaviour where that is looser: unknown suffixes count as no suffix, a
//! blank before the number hides its suffix, percentages are stored as numbers
//! near 2^64. Arithmetic in parentheses is refused, as in Debian's build.
//!
//! Units: sizes in bytes, times in microseconds.

/// A number as C's `strtoll` reads it: blanks, sign, digits; anything may
/// follow. `None` without digits or if it is too large.
pub(crate) fn leading_integer(text: &str, base: u32) -> Option<i64> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, text) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let text = match text.get(..2) {
        Some("0x" | "0X")
            if base == 16 && text[2..].starts_with(|c: char| c.is_ascii_hexdigit()) =>
        {
            &text[2..]
        }
        _ => text,
    };
    let mut value: i64 = 0;
    let mut any = false;
    for digit in text.chars().map_while(|c| c.to_digit(base)) {
        any = true;
        value = match value
            .checked_mul(i64::from(base))
            .and_then(|v| v.checked_add(i64::from(digit)))
        {
            Some(value) => value,
            None if negative => return Some(i64::MIN),
            None => return None,
        };
    }
    any.then_some(if negative { -value } else { value })
}

/// Base 16 if the text has a hexadecimal prefix anywhere, else 10.
fn base_of(text: &str) -> u32 {
    if text.contains("0x") || text.contains("0X") {
        16
    } else {
        10
    }
}

/// A size number with suffix, in bytes, modulo 2^64. `p` percent is
/// `u64::MAX - p`.
pub(crate) fn size_number(text: &str, kb_base: u32) -> Option<u64> {
    let value = leading_integer(text, base_of(text))?.cast_unsigned();
    let suffix = if text.len() < 2 {
        ""
    } else {
        size_suffix(text)
    };
    if suffix.starts_with('%') {
        return Some(u64::MAX.wrapping_sub(value));
    }
    Some(value.wrapping_mul(size_multiplier(suffix, kb_base)))
}

/// The text behind sign and digits if it is a suffix, up to a separator.
fn size_suffix(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut digit_seen = false;
    while let Some(&byte) = bytes.get(at) {
        let sign = (byte == b'+' || byte == b'-') && !digit_seen;
        if !byte.is_ascii_digit() && !sign {
            break;
        }
        digit_seen |= byte.is_ascii_digit();
        at += 1;
    }
    let rest = text.get(at..).unwrap_or("");
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '%') {
        return "";
    }
    rest.split([':', '-', ',', '/']).next().unwrap_or("")
}

fn size_multiplier(suffix: &str, kb_base: u32) -> u64 {
    let lower: Vec<u8> = suffix
        .bytes()
        .take(3)
        .map(|b| b.to_ascii_lowercase())
        .collect();
    let power = match lower.first() {
        Some(b'k') => 1,
        Some(b'm') => 2,
        Some(b'g') => 3,
        Some(b't') => 4,
        Some(b'p') => 5,
        _ => return 1,
    };
    let decimal_letters = lower.get(1..3) == Some(b"ib");
    let decimal = decimal_letters != (kb_base == 1000);
    let unit: u64 = if decimal { 1000 } else { 1024 };
    unit.pow(power)
}

/// The percentage that a stored number stands for, at most 100.
pub(crate) fn percent_of(value: u64) -> Option<u32> {
    let percent = u64::MAX - value;
    (percent <= 100).then_some(percent as u32)
}

/// A time in microseconds; a number without suffix counts `unit_us`.
pub(crate) fn time_us(text: &str, unit_us: u64) -> Option<u64> {
    let value = leading_integer(text, base_of(text))?.cast_unsigned();
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '+' && c != '-')
        .unwrap_or(text.len());
    let suffix = &text[at..];
    let multiplier = if suffix.starts_with(|c: char| c.is_ascii_alphabetic()) {
        time_multiplier(&suffix.to_ascii_lowercase())
    } else {
        unit_us
    };
    Some(value.wrapping_mul(multiplier))
}

fn time_multiplier(suffix: &str) -> u64 {
    match suffix {
        "s" => 1_000_000,
        "m" => 60 * 1_000_000,
        "h" => 60 * 60 * 1_000_000,
        "d" => 24 * 60 * 60 * 1_000_000,
        _ if suffix.starts_with("ms") => 1_000,
        _ => 1,
    }
}

/// The elements of a list, each with whether another one follows: split at
/// the first comma, else the first colon, else the first minus sign, and the
/// rest again in the same way. A comma at the very end is dropped.
pub(crate) fn elements(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let at = text
            .find(',')
            .or_else(|| text.find(':'))
            .or_else(|| text.find('-'));
        let Some(at) = at else {
            return Some((text, false));
        };
        let tail = &text[at + 1..];
        rest = Some(tail);
        // The element itself ends at a comma only: its number ends by itself.
        let head = if text.as_bytes()[at] == b',' {
            &text[..at]
        } else {
            text
        };
        Some((head, true))
    })
}

/// The keyword that a value stands for, and the value up to its postfix: it
/// must equal the keyword up to the first comma (if one exists anywhere) or
/// else the first colon.
pub(crate) fn keyword(value: &str, words: &'static [&'static str]) -> Option<&'static str> {
    let end = value
        .find(',')
        .or_else(|| value.find(':'))
        .unwrap_or(value.len());
    words.iter().copied().find(|word| *word == &value[..end])
}

/// What follows the first colon of a value.
pub(crate) fn postfix(value: &str) -> Option<&str> {
    value
        .split_once(':')
        .map(|(_, rest)| rest)
        .filter(|rest| !rest.is_empty())
}

/// The leading real number of a text, as C's `strtod` reads plain decimals.
pub(crate) fn real_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let mut end = 0;
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    if matches!(bytes.first(), Some(b'+' | b'-')) {
        end = 1;
    }
    end += digits(end);
    if bytes.get(end) == Some(&b'.') {
        end += 1;
        end += digits(end);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    text[..end]
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Option<u64> {
        size_number(text, 1024)
    }

    #[test]
    fn suffixes_are_binary_and_the_i_ones_decimal() {
        assert_eq!(sizes("4k"), Some(4096));
        assert_eq!(sizes("4KiB"), Some(4000));
        assert_eq!(size_number("4k", 1000), Some(4000));
        assert_eq!(size_number("4kib", 1000), Some(4096));
        assert_eq!(sizes("64kx"), Some(65536));
        assert_eq!(sizes("64x"), Some(64));
        assert_eq!(sizes("7"), Some(7));
    }

    #[test]
    fn blanks_hide_the_suffix() {
        assert_eq!(sizes(" 128k"), Some(128));
        assert_eq!(time_us(" 5m", 1_000_000), Some(5_000_000));
    }

    #[test]
    fn hexadecimal_needs_its_prefix_somewhere() {
        assert_eq!(sizes("0x40000"), Some(0x40000));
        assert_eq!(sizes("0x10k"), Some(16));
        assert_eq!(sizes("ff"), None);
    }

    #[test]
    fn percentages_are_near_the_top() {
        assert_eq!(sizes("50%").and_then(percent_of), Some(50));
        assert_eq!(percent_of(12345), None);
    }

    #[test]
    fn times() {
        assert_eq!(time_us("10", 1), Some(10));
        assert_eq!(time_us("10ms", 1_000_000), Some(10_000));
        assert_eq!(time_us("2H", 1_000_000), Some(7_200_000_000));
        assert_eq!(time_us("3 s", 1_000_000), Some(3_000_000));
        assert_eq!(time_us("3sec", 1_000_000), Some(3));
        assert_eq!(time_us("x", 1), None);
    }

    #[test]
    fn lists_split_at_the_first_kind_of_separator() {
        let split = |text| {
            elements(text)
                .map(|(e, _)| leading_integer(e, 10))
                .collect::<Vec<_>>()
        };
        assert_eq!(split("3k-5k"), [Some(3), Some(5)]);
        assert_eq!(split(",8k"), [None, Some(8)]);
        assert_eq!(split("1,2,3"), [Some(1), Some(2), Some(3)]);
        assert_eq!(split("4:5"), [Some(4), Some(5)]);
    }

    #[test]
    fn keywords_end_at_comma_or_colon() {
        const WORDS: &[&str] = &["zipf", "zoned", "zoned_abs"];
        assert_eq!(keyword("zipf:1.2", WORDS), Some("zipf"));
        assert_eq!(keyword("zoned:50/50,90/10", WORDS), None);
        assert_eq!(keyword("zoned_abs:1/1", WORDS), Some("zoned_abs"));
        assert_eq!(keyword("zone", WORDS), None);
    }

    #[test]
    fn real_numbers() {
        assert_eq!(real_number("1.5:2"), Some(1.5));
        assert_eq!(real_number("99.9"), Some(99.9));
        assert_eq!(real_number("x"), None);
        assert_eq!(real_number("1e3x"), Some(1000.0));
    }
}
