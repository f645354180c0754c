// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words, numbers and signs of metadata.

use super::metadata::Problem;

/// A word of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Text(&'a str),
    Number(i128),
    /// A sign; those of several characters are `:=` and `...`.
    Sign(&'a str),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Name(name) | Token::Sign(name) => write!(f, "'{}'", name.escape_debug()),
            Token::Text(text) => write!(f, "\"{}\"", text.escape_debug()),
            Token::Number(n) => n.fmt(f),
            Token::End => f.write_str("the end"),
        }
    }
}

/// All tokens of a text, each with its line.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token<'_>, u32)>, Problem> {
    let bytes = text.as_bytes();
    let (mut all, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(&byte) = bytes.get(at) {
        let rest = &text[at..];
        let (token, len) = match byte {
            b'\n' => {
                line += 1;
                at += 1;
                continue;
            }
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                let Some(end) = rest.find("*/") else {
                    return Err(Problem::new(line, "a comment has no end"));
                };
                line += newlines(&rest[..end]);
                at += end + 2;
                continue;
            }
            b'"' | b'\'' => {
                let Some(len) = quoted(rest) else {
                    return Err(Problem::new(line, "a text has no closing quotation mark"));
                };
                (Token::Text(&rest[1..len - 1]), len)
            }
            b'0'..=b'9' => {
                let len = word(rest);
                let Some(number) = number(&rest[..len]) else {
                    let shown = rest[..len].escape_debug();
                    return Err(Problem::new(line, format!("'{shown}' is no number")));
                };
                (Token::Number(number), len)
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                let len = word(rest);
                (Token::Name(&rest[..len]), len)
            }
            _ if rest.starts_with(":=") => (Token::Sign(&rest[..2]), 2),
            _ if rest.starts_with("...") => (Token::Sign(&rest[..3]), 3),
            _ if byte.is_ascii_punctuation() => (Token::Sign(&rest[..1]), 1),
            _ => {
                let shown = rest.chars().next().unwrap_or(' ').escape_debug();
                return Err(Problem::new(line, format!("unexpected '{shown}'")));
            }
        };
        all.push((token, line));
        line += newlines(&rest[..len]);
        at += len;
    }
    all.push((Token::End, line));
    Ok(all)
}

fn newlines(text: &str) -> u32 {
    text.bytes().filter(|b| *b == b'\n').count() as u32
}

/// Length of a text in quotation marks, with them.
fn quoted(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'\\' => 2,
            _ if byte == bytes[0] => return Some(at + 1),
            _ => 1,
        };
    }
    None
}

fn word(rest: &str) -> usize {
    let is_part = |b: u8| b == b'_' || b.is_ascii_alphanumeric();
    rest.bytes().take_while(|b| is_part(*b)).count()
}

/// Decimal, `0x`, or octal with a 0 in front; C's suffixes say nothing.
fn number(text: &str) -> Option<i128> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        None => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(i128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_signs() {
        let text = "a.b := 0x10 \"q\\\" {\" /* x\n */ -3 ... 010ULL // end\n;";
        let all: Vec<_> = tokens(text).unwrap().into_iter().map(|t| t.0).collect();
        use Token::{End, Name, Number, Sign, Text};
        let expected = [
            Name("a"),
            Sign("."),
            Name("b"),
            Sign(":="),
            Number(16),
            Text("q\\\" {"),
            Sign("-"),
            Number(3),
            Sign("..."),
            Number(8),
            Sign(";"),
            End,
        ];
        assert_eq!(all, expected);
        assert_eq!(tokens(text).unwrap().last().unwrap().1, 3);
    }

    #[test]
    fn what_is_no_token() {
        for (text, line) in [("\n\n/* ", 3), ("a\n\"b", 2), ("9x", 1), ("\u{e4}", 1)] {
            assert_eq!(tokens(text).unwrap_err().line, line, "{text}");
        }
    }
}
