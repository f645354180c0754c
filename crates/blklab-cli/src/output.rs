// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where results go, and how numbers look in tables.

use crate::guard::{Guard, Place};
use anyhow::{Context as _, Result};
use std::io::{self, Write};
use std::path::Path;

/// Standard output, or a file that appears under its name when it is whole.
pub(crate) enum Output {
    /// Standard output.
    Stdout(io::StdoutLock<'static>),
    /// A file, kept in memory until it is whole.
    File(Place, Vec<u8>),
}

impl Output {
    /// That of `--output`, which the guard lets be written; without it, standard output.
    pub(crate) fn open(guard: &mut Guard, path: Option<&Path>) -> Result<Output> {
        Ok(match path {
            None => Output::Stdout(io::stdout().lock()),
            Some(path) => Output::File(guard.writes(path, "--output")?, Vec::new()),
        })
    }

    /// The result is whole.
    pub(crate) fn commit(&mut self) -> Result<()> {
        match self {
            Output::Stdout(out) => out.flush().context("standard output")?,
            Output::File(place, bytes) => place.write(bytes)?,
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(buf),
            Output::File(_, bytes) => bytes.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File(..) => Ok(()),
        }
    }
}

/// Passes lines on as people may see them: what steers a terminal is written out.
pub(crate) struct Visible<W: Write> {
    inner: W,
    /// The line so far.
    line: Vec<u8>,
}

impl<W: Write> Visible<W> {
    pub(crate) fn new(inner: W) -> Visible<W> {
        Visible {
            inner,
            line: Vec::new(),
        }
    }

    fn end_line(&mut self) -> io::Result<()> {
        let line = String::from_utf8_lossy(&self.line);
        let parts: Vec<_> = line.split('\t').map(blklab::types::visible).collect();
        self.inner.write_all(parts.join("\t").as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            match piece.split_last() {
                Some((b'\n', rest)) => {
                    self.line.extend_from_slice(rest);
                    self.end_line()?;
                    self.inner.write_all(b"\n")?;
                }
                _ => self.line.extend_from_slice(piece),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.inner.flush()
    }
}

/// A time with three figures and its unit.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "us", "ms", "s"])
}

/// An amount with three figures and its unit.
pub(crate) fn bytes(n: f64) -> String {
    scaled(n, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A rate with three figures and its unit.
pub(crate) fn per_second(n: f64) -> String {
    format!("{}/s", bytes(n))
}

/// A number with three figures, in thousands or millions if large.
pub(crate) fn count(n: f64) -> String {
    scaled(n, 1000.0, &["", "k", "M", "G"])
}

/// A number in the largest unit that leaves at least one figure before the
/// point. The smallest unit has no fractions.
fn scaled(n: f64, base: f64, units: &[&str]) -> String {
    let mut value = n;
    let mut unit = 0;
    while unit + 1 < units.len() && (value >= base || figures(value).len() > 4) {
        value /= base;
        unit += 1;
    }
    if unit == 0 {
        format!("{value:.0}{}", units[0])
    } else {
        format!("{}{}", figures(value), units[unit])
    }
}

/// A value of a metric, named by its column, in its unit.
pub(crate) fn value(column: &str, value: f64) -> String {
    let unit = blklab::metric::find(column).map_or(blklab::metric::Unit::Ns, |wanted| wanted.unit);
    match unit {
        blklab::metric::Unit::Ns => time(value),
        blklab::metric::Unit::Us => time(value * 1e3),
        blklab::metric::Unit::Ms => time(value * 1e6),
        blklab::metric::Unit::S => time(value * 1e9),
        blklab::metric::Unit::Bytes => bytes(value),
        blklab::metric::Unit::BytesPerS => per_second(value),
        blklab::metric::Unit::Percent => format!("{value:.1}%"),
        _ => count(value),
    }
}

/// Three digits, or all before the point.
pub(crate) fn figures(v: f64) -> String {
    match v {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// At most `width` characters of a text, its end cut if there are more.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Columns of a terminal.
pub(crate) const WIDTH: usize = 80;

/// A name, and beside it a text on as many lines as it needs.
pub(crate) fn entry(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    hanging(out, &format!("{name:<22}  "), 24, text)
}

/// The same as part of a report: within it, and with a short name.
pub(crate) fn part(out: &mut impl Write, name: &str, text: &str) -> io::Result<()> {
    hanging(out, &format!("   {name:<10} "), 14, text)
}

/// A text within a report.
pub(crate) fn paragraph(out: &mut impl Write, text: &str) -> io::Result<()> {
    hanging(out, "   ", 3, text)
}

/// A text on as many lines as it needs: behind `first`, and then below itself in
/// column `indent`.
pub(crate) fn hanging(
    out: &mut impl Write,
    first: &str,
    indent: usize,
    text: &str,
) -> io::Result<()> {
    for (i, line) in fold(text, WIDTH - indent).iter().enumerate() {
        if i == 0 {
            writeln!(out, "{first}{line}")?;
        } else {
            writeln!(out, "{:indent$}{line}", "")?;
        }
    }
    Ok(())
}

/// Breaks a text at blanks into lines of at most `width` characters.
pub(crate) fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("never empty");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_figures_and_a_unit() {
        assert_eq!(time(123.0), "123ns");
        assert_eq!(time(5_310_000.0), "5.31ms");
        assert_eq!(time(28_216e6), "28.2s");
        assert_eq!(bytes(85_983_232.0), "82.0MiB");
        assert_eq!(per_second(512.0), "512B/s");
        assert_eq!(time(0.0), "0ns");
        assert_eq!(time(999_999.0), "1000us");
        assert_eq!(bytes(1_048_575.0), "1024KiB");
        assert_eq!(count(28_672.0), "28.7k");
        assert_eq!(count(990.0), "990");
    }

    #[test]
    fn lines_do_not_steer_the_terminal() {
        let mut out = Visible::new(Vec::new());
        out.write_all(b"a\tb \x1b[31").expect("a vector takes all");
        out.write_all(b"m\n\x07 end").expect("a vector takes all");
        out.flush().expect("a vector takes all");
        let shown = String::from_utf8(out.inner).expect("text");
        assert_eq!(shown, "a\tb \\u{1b}[31m\n\\u{7} end");
    }

    #[test]
    fn a_long_label_loses_its_end() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    #[test]
    fn long_texts_are_folded_at_blanks() {
        assert_eq!(fold("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(fold("", 5), [""]);
    }
}
