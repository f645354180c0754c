// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields of a row; each says whether there are more.

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
