// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fills buffers (`buffer_pattern`, `verify_pattern`).
//!
//! Contents do not matter here; only what is no pattern is told from what is one,
//! as fio 3.33 does. Files that a pattern names are not looked at: a job that was
//! mailed without them runs.

/// What a pattern is, for messages.
pub(crate) const EXPECTED: &str =
    "expected numbers such as 0xdeadbeef or -5, \"text\" or 'file', one after the other";

/// Whether the text is a pattern; in some, `%o` stands for the offset.
pub(crate) fn is_pattern(text: &str, with_offset: bool) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        match without_first(rest, with_offset) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    !text.is_empty()
}

/// What follows the first element.
fn without_first(text: &str, with_offset: bool) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (content, behind) = quoted.split_once(quote)?;
            return (!content.is_empty()).then_some(behind);
        }
    }
    if let Some(behind) = text.strip_prefix("%o") {
        return with_offset.then_some(behind);
    }
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        return without_digits(digits, 16).map(|(_, behind)| behind);
    }
    let number = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
    let (_, behind) = without_digits(unsigned, 10)?;
    let number = &number[..number.len() - behind.len()];
    number.parse::<i32>().is_ok().then_some(behind)
}

/// The digits that a text begins with, and what follows them.
fn without_digits(text: &str, base: u32) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_digit(base)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `fio --parse-only` of fio 3.33 says.
    #[test]
    fn as_fio_tells_them_apart() {
        let good = [
            "0xdeadbeef",
            "12",
            "-12",
            "+5",
            " 5",
            "0x1",
            "010",
            "09",
            "-0",
            "12 13",
            "0x12+3",
            "\"abc\"",
            "\"abc\"12",
            "12\"abc\"",
            "\"a\"\"b\"",
            "\"x\"-5",
            "'a.fio'",
            "'a.fio'12",
            "0x99999999999999999999999",
        ];
        for text in good {
            assert!(is_pattern(text, false), "{text}");
        }
        let bad = [
            "",
            "abc",
            "ff",
            "-",
            "-0x5",
            "12,13",
            "0x12,13",
            "0x12 0x13",
            "0x12-0x13",
            "0b11",
            "1x",
            "0x",
            "%x",
            "%",
            "\"abc",
            "\"a\"b",
            "'b",
            "'a.fio",
            "-\"a\"",
            "2147483648",
            "-2147483649",
            "99999999999999999999999999",
        ];
        for text in bad {
            assert!(!is_pattern(text, true), "{text}");
        }
        for text in ["%o", "12%o", "%o\"x\""] {
            assert!(is_pattern(text, true), "{text}");
            assert!(!is_pattern(text, false), "{text}");
        }
    }
}
