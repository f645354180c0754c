// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields of events in text: `name=value`, `name value`, `name: value`.

use crate::fields::{self, Fields};
use crate::text::decimal;
use blklab_types::Dev;

/// What stands behind the name of an event.
pub(crate) struct TextFields<'a>(pub(crate) &'a [u8]);

impl<'a> TextFields<'a> {
    /// What stands behind a name, to the end of the line.
    fn behind(&self, name: &str) -> Option<&'a [u8]> {
        let text = self.0;
        memchr::memmem::find_iter(text, name).find_map(|at| {
            let begins = at == 0 || matches!(text[at - 1], b' ' | b'\t' | b'(');
            let rest = &text[at + name.len()..];
            let value = match rest {
                [b'=', value @ ..] => value,
                [b':', b' ', ..] => rest[2..].trim_ascii_start(),
                [b' ', ..] => rest.trim_ascii_start(),
                _ => return None,
            };
            begins.then_some(value)
        })
    }

    /// The word that a name has for a value; it lives as long as the line.
    pub(crate) fn word(&self, name: &str) -> Option<&'a [u8]> {
        self.value(name)
    }

    /// The word that a name has for a value.
    fn value(&self, name: &str) -> Option<&'a [u8]> {
        let value = self.behind(name)?;
        let value = value.strip_prefix(b"(").unwrap_or(value);
        if let Some(quoted) = value.strip_prefix(b"\"") {
            return quoted.split(|b| *b == b'"').next();
        }
        let end = value.iter().position(u8::is_ascii_whitespace);
        Some(trimmed(&value[..end.unwrap_or(value.len())]))
    }
}

/// Without what separates it from the next.
fn trimmed(mut word: &[u8]) -> &[u8] {
    while let [rest @ .., b',' | b')' | b':' | b';'] = word {
        word = rest;
    }
    word
}

/// A number, of which a unit may follow: decimal, `-5`, `0x2a`.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    if let Some(hex) = word.strip_prefix(b"0x") {
        let len = hex.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let digits = std::str::from_utf8(&hex[..len]).ok()?;
        return u64::from_str_radix(digits, 16).ok();
    }
    let (digits, is_negative) = match word.strip_prefix(b"-") {
        Some(digits) => (digits, true),
        None => (word, false),
    };
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let n = decimal(&digits[..len])?;
    Some(if is_negative { n.wrapping_neg() } else { n })
}

/// `8,1` or `8:1`.
pub(super) fn device(word: &[u8]) -> Option<Dev> {
    let at = word.iter().position(|b| matches!(b, b',' | b':'))?;
    Some(Dev {
        major: decimal(&word[..at])?.try_into().ok()?,
        minor: decimal(trimmed(&word[at + 1..]))?.try_into().ok()?,
    })
}

impl Fields for TextFields<'_> {
    fn number(&self, name: &str) -> Option<u64> {
        number(self.value(name)?)
    }

    /// The name of what an event is about stands in front of all.
    fn text(&self, name: &str) -> Option<&[u8]> {
        let value = self.value(name);
        if name != "name" || value.is_some() {
            return value;
        }
        let text = self.0.trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace)?;
        text[..end].strip_suffix(b":")
    }

    /// In the kernel's own numbers where it is one.
    fn device(&self, name: &str) -> Option<Dev> {
        let value = self.value(name)?;
        device(value).or_else(|| Some(fields::device(number(value)?)))
    }

    /// `2a 00 00`.
    fn bytes(&self, name: &str, to: &mut [u8]) -> usize {
        let Some(text) = self.behind(name) else {
            return 0;
        };
        let hex = |word: &[u8]| {
            let word = std::str::from_utf8(trimmed(word)).ok()?;
            u8::from_str_radix(word, 16)
                .ok()
                .filter(|_| word.len() == 2)
        };
        let bytes = text.split(|b| *b == b' ').map_while(hex);
        let mut nr = 0;
        for (to, byte) in to.iter_mut().zip(bytes) {
            *to = byte;
            nr += 1;
        }
        nr
    }

    fn line(&self) -> Option<&[u8]> {
        Some(self.0)
    }
}
