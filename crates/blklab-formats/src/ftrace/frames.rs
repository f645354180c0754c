// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of a stack behind its event: ` => submit_bio` of tracefs and trace-cmd,
//! `ffffffff81234567 submit_bio+0x1 ([kernel.kallsyms])` of perf script.

use crate::text::Line;

/// Digits of an address, at least.
const DIGITS_MIN: usize = 4;

/// What a line of a stack says; none if it is none. Functions of programs say nothing of the
/// kernel.
pub(super) fn frame(line: &[u8]) -> Option<Line<'_>> {
    if let Some(named) = line.strip_prefix(b"=> ") {
        return function(named).map(Line::Frame);
    }
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let named = line[digits..]
        .strip_prefix(b" ")
        .filter(|_| digits >= DIGITS_MIN)?;
    let file = named.strip_suffix(b")")?;
    let is_place = memchr::memmem::find(named, b"+0x").is_some() || named.starts_with(b"[unknown]");
    if !is_place {
        return None;
    }
    let file = &file[memchr::memrchr(b'(', file)? + 1..];
    // `[kernel.kallsyms]`, `[xfs]`, `/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko`, `/usr/lib/vmlinux`.
    let of_kernel = file.starts_with(b"[") && !file.starts_with(b"[vdso") && file != b"[unknown]"
        || memchr::memmem::find(file, b".ko").is_some()
        || memchr::memmem::find(file, b"vmlinux").is_some();
    if !of_kernel {
        return Some(Line::Note {
            begins_summary: false,
        });
    }
    function(named).map(Line::Frame)
}

/// The name of a function without the place in it.
fn function(named: &[u8]) -> Option<&[u8]> {
    let end = named
        .iter()
        .position(|b| *b == b'+' || b.is_ascii_whitespace());
    let name = &named[..end.unwrap_or(named.len())];
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"_.".contains(b);
    let is_begun = name.first().is_some_and(|b| !b.is_ascii_digit());
    (is_begun && name.iter().all(is_name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel() {
        let name = |line: &str| match frame(line.as_bytes()) {
            Some(Line::Frame(name)) => String::from_utf8_lossy(name).into_owned(),
            other => format!("{other:?}"),
        };
        for (line, expected) in [
            ("=> submit_bio_noacct", "submit_bio_noacct"),
            ("=> submit_bio (ffffffff8148d8d5)", "submit_bio"),
            ("=> xfs_buf_read_map+0x1f/0x2e0 [xfs]", "xfs_buf_read_map"),
            (
                "ffffffff8148d8d5 submit_bio+0x35 ([kernel.kallsyms])",
                "submit_bio",
            ),
            (
                "ffffffffc0a1b2c3 xfs_buf_read_map+0xd3 ([xfs])",
                "xfs_buf_read_map",
            ),
            (
                "ffffffffc0a1b2c3 ext4_bread.part.0+0x1 (/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko)",
                "ext4_bread.part.0",
            ),
        ] {
            assert_eq!(name(line), expected, "{line}");
        }
        let note = Some(Line::Note {
            begins_summary: false,
        });
        for line in [
            "7f12abcd0123 pread64+0x13 (/usr/lib/libc.so.6)",
            "9e0a8 [unknown] (/usr/bin/perf)",
            "ffffffff8148d8d5 [unknown] ([unknown])",
        ] {
            assert_eq!(frame(line.as_bytes()), note, "{line}");
        }
        for line in [
            "=>",
            "=> ",
            "=> 5 %",
            "12345678",
            "12345678 things (in all",
            "deed done (by all)",
            "1234 a (b)",
        ] {
            assert_eq!(frame(line.as_bytes()), None, "{line}");
        }
    }
}
