// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a row, and what stands in them.

use crate::text::{decimal, time};
use blklab_trace::Rwbs;

/// The fields between commas, if there are so many.
pub(super) fn comma_fields<const N: usize>(line: &[u8]) -> Option<([&[u8]; N], bool)> {
    let mut all = line.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let mut fields = [&line[..0]; N];
    for field in &mut fields {
        *field = all.next()?;
    }
    Some((fields, all.next().is_some()))
}

/// The words, if there are so many; and whether there are more.
pub(super) fn words<const N: usize>(line: &[u8]) -> Option<([&[u8]; N], bool)> {
    let all = line.split(u8::is_ascii_whitespace);
    let mut all = all.filter(|word| !word.is_empty());
    let mut fields = [&line[..0]; N];
    for field in &mut fields {
        *field = all.next()?;
    }
    Some((fields, all.next().is_some()))
}

/// Ns of a decimal number of seconds, however many digits it has.
pub(super) fn seconds(word: &[u8]) -> Option<i128> {
    let point = word.iter().position(|b| *b == b'.')?;
    let end = word.len().min(point + 10);
    let is_number = word[end..].iter().all(u8::is_ascii_digit);
    let ns = time(&word[..end]).filter(|_| is_number)?;
    Some(ns.0.into())
}

/// Ns of a number without a point, times its unit.
pub(super) fn scaled(word: &[u8], unit_ns: i128) -> Option<i128> {
    Some(i128::from(decimal(word)?) * unit_ns)
}

pub(super) fn letter(word: &[u8]) -> Option<Rwbs> {
    match word {
        b"R" | b"r" | b"Read" => Some(Rwbs::READ),
        b"W" | b"w" | b"Write" => Some(Rwbs::WRITE),
        _ => None,
    }
}
