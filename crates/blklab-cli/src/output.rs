// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where results go, and how numbers look in tables.

use anyhow::{Context as _, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Standard output, or a file that appears under its name when it is whole.
pub(crate) enum Output {
    /// Standard output.
    Stdout(io::StdoutLock<'static>),
    /// A file, kept in memory until it is whole.
    File(PathBuf, Vec<u8>),
}

impl Output {
    pub(crate) fn open(path: Option<&Path>) -> Result<Output> {
        match path {
            None => Ok(Output::Stdout(io::stdout().lock())),
            Some(p) => {
                let dir = p.parent().filter(|d| !d.as_os_str().is_empty());
                if let Some(dir) = dir
                    && !dir.is_dir()
                {
                    anyhow::bail!("{}: the folder does not exist", dir.display());
                }
                Ok(Output::File(p.to_path_buf(), Vec::new()))
            }
        }
    }

    /// The result is whole.
    pub(crate) fn commit(&mut self) -> Result<()> {
        match self {
            Output::Stdout(out) => out.flush().context("standard output")?,
            Output::File(path, bytes) => {
                blklab::report::write_file(path, bytes).map_err(|e| anyhow::anyhow!("{e}"))?;
            }
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

/// A time with three figures and its unit.
pub(crate) fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{}{unit}", figures(value))
}

/// An amount with three figures and its unit.
pub(crate) fn bytes(n: f64) -> String {
    let (value, unit) = match n {
        n if n < 1024.0 => return format!("{n:.0}B"),
        n if n < 1048576.0 => (n / 1024.0, "KiB"),
        n if n < 1073741824.0 => (n / 1048576.0, "MiB"),
        n => (n / 1073741824.0, "GiB"),
    };
    format!("{}{unit}", figures(value))
}

/// A rate with three figures and its unit.
pub(crate) fn per_second(n: f64) -> String {
    format!("{}/s", bytes(n))
}

fn figures(v: f64) -> String {
    match v {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
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
    }

    #[test]
    fn long_texts_are_folded_at_blanks() {
        assert_eq!(fold("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(fold("", 5), [""]);
    }
}
