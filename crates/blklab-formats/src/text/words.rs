// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of which lines of traces consist.

use blklab_trace::Rwbs;
use blklab_types::{Dev, SECTOR_BYTES, Time};

/// What is left of a line.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn skip_spaces(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// The bytes up to the next space.
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.skip_spaces();
        let end = self
            .0
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    /// Whether the next character is `c`; takes it if so.
    pub(crate) fn take(&mut self, c: u8) -> bool {
        self.skip_spaces();
        let found = self.0.first() == Some(&c);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    /// A number, if one is next.
    pub(crate) fn number(&mut self) -> Option<u64> {
        self.skip_spaces();
        let len = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let n = decimal(&self.0[..len])?;
        self.0 = &self.0[len..];
        Some(n)
    }

    /// What stands between `open` and the first `close`.
    pub(crate) fn bracketed_first(&mut self, open: u8, close: u8) -> Option<&'a [u8]> {
        if !self.take(open) {
            return None;
        }
        let end = self.0.iter().position(|b| *b == close)?;
        let inside = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(inside)
    }

    /// What stands between `open` and the last `close` of the line.
    pub(crate) fn bracketed(&mut self, open: u8, close: u8) -> Option<&'a [u8]> {
        if !self.take(open) {
            return None;
        }
        let end = self.0.iter().rposition(|b| *b == close)?;
        let inside = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(inside)
    }
}

pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |n, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}

/// `MAJOR,MINOR`.
pub(crate) fn device(word: &[u8]) -> Option<Dev> {
    let comma = word.iter().position(|b| *b == b',')?;
    Some(Dev {
        major: decimal(&word[..comma])?.try_into().ok()?,
        minor: decimal(&word[comma + 1..])?.try_into().ok()?,
    })
}

/// `SECONDS.FRACTION`, up to nine digits after the point.
pub(crate) fn time(word: &[u8]) -> Option<Time> {
    let point = word.iter().position(|b| *b == b'.')?;
    let (seconds, fraction) = (decimal(&word[..point])?, &word[point + 1..]);
    let ns = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(fraction_ns(fraction)?);
    Some(Time(ns))
}

/// Direction and flags as the kernel writes them (`blk_fill_rwbs`,
/// kernel/trace/blktrace.c): an `F` in front is a flush; up to 2.6.36 there are
/// barriers, from 6.11 on atomic writes (`U`), from 6.18 on zeroes (`WZ`) and
/// operations on zones (`ZA` appends, the others move no data).
pub(crate) fn rwbs(word: &[u8]) -> Option<Rwbs> {
    let (mut flags, rest) = match word {
        [b'F', rest @ ..] => (Rwbs::FLUSH, rest),
        _ => (Rwbs::NONE, word),
    };
    let rest = match rest {
        [b'Z', b'A', rest @ ..] => {
            flags = flags.with(Rwbs::WRITE);
            rest
        }
        [b'Z', _, rest @ ..] => rest,
        [b'W', rest @ ..] => {
            flags = flags.with(Rwbs::WRITE);
            rest.strip_prefix(b"Z").unwrap_or(rest)
        }
        [b'D', rest @ ..] => {
            flags = flags.with(Rwbs::DISCARD);
            rest.strip_prefix(b"E").unwrap_or(rest)
        }
        [b'R', rest @ ..] => {
            flags = flags.with(Rwbs::READ);
            rest
        }
        // The operation of a flush that is one.
        [b'N' | b'F', rest @ ..] => rest,
        _ => return None,
    };
    for letter in rest {
        flags = flags.with(match letter {
            b'F' => Rwbs::FUA,
            b'B' => Rwbs::BARRIER,
            b'A' => Rwbs::AHEAD,
            b'S' => Rwbs::SYNC,
            b'M' => Rwbs::META,
            b'U' => Rwbs::NONE,
            _ => return None,
        });
    }
    Some(flags)
}

/// The bytes of so many sectors.
pub(crate) fn length(nr_sectors: u64) -> Option<u32> {
    nr_sectors.checked_mul(SECTOR_BYTES)?.try_into().ok()
}

/// Nanoseconds of what stands behind a decimal point, up to nine digits.
pub(crate) fn fraction_ns(digits: &[u8]) -> Option<u64> {
    let scale = 10_u64.checked_pow(9_u32.checked_sub(digits.len() as u32)?)?;
    Some(decimal(digits)? * scale)
}

/// The priority that requests show from 6.13 on: class, hint and level, as in
/// `be,0,4`; older versions of perf print the class as a number.
pub(crate) fn is_priority(word: &[u8]) -> bool {
    let mut parts = word.split(|b| *b == b',');
    let class = parts.next().unwrap_or_default();
    let is_class = matches!(class, b"none" | b"be" | b"rt" | b"idle") || class.starts_with(b"0x");
    let mut numbers = 0;
    is_class
        && parts.all(|p| {
            numbers += 1;
            decimal(p).is_some()
        })
        && numbers == 2
}

/// The errno of a completion: a negative or positive number, or the 16 bits of a
/// negative one.
pub(crate) fn error(code: &[u8]) -> Option<u16> {
    let digits = code.strip_prefix(b"-").unwrap_or(code);
    let n = u16::try_from(decimal(digits)?).ok()?;
    Some(if n > u16::MAX - 4096 {
        n.wrapping_neg()
    } else {
        n
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_all_kernels() {
        let shown = |word: &str| rwbs(word.as_bytes()).map(|flags| flags.to_string());
        for (word, expected) in [
            ("R", "R"),
            ("RAM", "RAM"),
            ("WBS", "WBS"),
            ("FWFSM", "FWFSM"),
            ("FF", "FN"),
            ("FN", "FN"),
            ("F", "FN"),
            ("WFSU", "WFS"),
            ("WZS", "WS"),
            ("DES", "DS"),
            ("ZAS", "WS"),
            ("ZRS", "NS"),
        ] {
            let expected = (word != "F").then(|| expected.to_owned());
            assert_eq!(shown(word), expected, "{word}");
        }
        assert_eq!(shown("Q"), None);
        assert_eq!(shown("RX"), None);
    }
}
