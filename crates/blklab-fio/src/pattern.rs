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
    let end = end_of_number(text);
    let number = &text[..end];
    let behind = match number.get(..2) {
        Some("0x" | "0X") => without_digits(&number[2..], 16)?,
        _ => {
            let number =
                number.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
            let unsigned = number.strip_prefix(['-', '+']).unwrap_or(number);
            let behind = without_digits(unsigned, 10)?;
            number[..number.len() - behind.len()].parse::<i32>().ok()?;
            behind
        }
    };
    Some(&text[end - behind.len()..])
}

/// Where the next number in base 16 begins, behind the first character.
fn end_of_number(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let next = ["0x", "0X"].map(|prefix| text[first..].find(prefix));
    let next = next.into_iter().flatten().min();
    next.map_or(text.len(), |at| first + at)
}

/// What follows the digits that a text must begin with.
fn without_digits(text: &str, base: u32) -> Option<&str> {
    let behind = text.trim_start_matches(|c: char| c.is_digit(base));
    (behind.len() < text.len()).then_some(behind)
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
            "120x12",
            "00x5",
            "0x120x13",
            "-120xdeadface",
            "-00x5",
            "0x12-50x3",
            "120X12",
            "0X12",
            "+10x5",
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
