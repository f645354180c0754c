// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text form of DiskSim's parameter files.
//!
//! ```text
//! disksim_disk NAME {              a block: kind, name, pairs
//!    Model = source FILE,          a key of several words, a value
//!    Zones = [ kind { … }, 1, 2 ]  lists of values, blocks as values
//! }  # comment
//! ```
//!
//! Whatever else stands outside of blocks (`source`, `instantiate`, `topology`)
//! is passed over. Source: the manual of DiskSim 4.0.

use crate::error::DeviceError;

/// A file's name, for messages, and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl File<'_> {
    pub(super) fn error(&self, line: usize, reason: String) -> DeviceError {
        DeviceError::BadFile {
            file: self.name.to_owned(),
            line,
            reason,
        }
    }
}

/// What follows an equals sign.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Text(&'a str),
    List(Vec<Value<'a>>),
    Block(Block<'a>),
}

/// `kind name { key = value, … }`.
#[derive(Clone, Debug)]
pub(super) struct Block<'a> {
    pub(super) file: File<'a>,
    pub(super) kind: &'a str,
    pub(super) line: usize,
    pairs: Vec<(&'a str, usize, Value<'a>)>,
}

/// Characters of a value that a message shows.
const SHOWN_CHARS: usize = 80;

/// Blocks within blocks at most; the format has five.
const DEPTH_MAX: usize = 16;

/// All blocks at the top of a file.
pub(super) fn blocks<'a>(file: File<'a>) -> Result<Vec<Block<'a>>, DeviceError> {
    let mut reader = Reader {
        file,
        at: 0,
        line: 1,
    };
    let mut blocks = Vec::new();
    let mut nested = 0usize;
    loop {
        let (text, line) = reader.text();
        match reader.symbol() {
            Some('{') if nested == 0 => blocks.push(reader.block(kind_of(text), line, 0)?),
            Some('[') => nested += 1,
            Some(']') => nested = nested.saturating_sub(1),
            Some(_) => {}
            None => return Ok(blocks),
        }
    }
}

/// The kind of a block from what stands before its brace: of the last two
/// words the first, on one line.
fn kind_of(text: &str) -> &str {
    let line = text.lines().rfind(|l| !l.trim().is_empty());
    let words = line.unwrap_or_default().split_whitespace();
    words.rev().take(2).last().unwrap_or_default()
}

struct Reader<'a> {
    file: File<'a>,
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    /// Text up to the next symbol, trimmed, and the line where it begins.
    /// Comments end it too: no name goes on behind one.
    fn text(&mut self) -> (&'a str, usize) {
        loop {
            let rest = &self.file.text[self.at..];
            let space = rest.len() - rest.trim_start().len();
            self.skip(space);
            let rest = &rest[space..];
            if rest.starts_with('#') {
                self.skip(rest.find('\n').unwrap_or(rest.len()));
                continue;
            }
            let end = rest.find(['{', '}', '[', ']', '=', ',', '#']);
            let (text, line) = (&rest[..end.unwrap_or(rest.len())], self.line);
            self.skip(text.len());
            if self.file.text[self.at..].starts_with('#') {
                let rest = &self.file.text[self.at..];
                self.skip(rest.find('\n').unwrap_or(rest.len()));
                if text.trim().is_empty() {
                    continue;
                }
            }
            return (text.trim(), line);
        }
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = &self.file.text[self.at..self.at + bytes];
        self.line += skipped.matches('\n').count();
        self.at += bytes;
    }

    /// The symbol here, if one comes next but for space and comments.
    fn symbol(&mut self) -> Option<char> {
        loop {
            let rest = &self.file.text[self.at..];
            let first = rest.chars().next()?;
            match first {
                '#' => self.skip(rest.find('\n').unwrap_or(rest.len())),
                c if c.is_whitespace() => self.skip(c.len_utf8()),
                '{' | '}' | '[' | ']' | '=' | ',' => {
                    self.skip(1);
                    return Some(first);
                }
                _ => return Some(' '),
            }
        }
    }

    fn error(&self, expected: &str) -> DeviceError {
        self.file.error(self.line, format!("expected {expected}"))
    }

    fn block(
        &mut self,
        kind: &'a str,
        line: usize,
        depth: usize,
    ) -> Result<Block<'a>, DeviceError> {
        let mut pairs = Vec::new();
        loop {
            let (key, key_line) = self.text();
            match self.symbol() {
                Some('=') if !key.is_empty() => {
                    let (value, ended) = self.value('}', depth + 1)?;
                    pairs.push((key, key_line, value));
                    if ended {
                        break;
                    }
                }
                Some('}') => break,
                Some(',') if key.is_empty() => {}
                _ => return Err(self.error("'name = value', or '}' at the end of the block")),
            }
        }
        Ok(Block {
            file: self.file,
            kind,
            line,
            pairs,
        })
    }

    /// A value and the comma after it; says whether `end` came instead.
    fn value(&mut self, end: char, depth: usize) -> Result<(Value<'a>, bool), DeviceError> {
        if depth > DEPTH_MAX {
            return Err(self.error(&format!("at most {DEPTH_MAX} blocks within each other")));
        }
        let (text, line) = self.text();
        let value = match self.symbol() {
            Some(',') => return Ok((Value::Text(text), false)),
            Some(c) if c == end => return Ok((Value::Text(text), true)),
            Some('[') if text.is_empty() => Value::List(self.list(depth)?),
            Some('{') => Value::Block(self.block(kind_of(text), line, depth)?),
            _ => return Err(self.error(&format!("a value and ',' or '{end}'"))),
        };
        match self.symbol() {
            Some(',') => Ok((value, false)),
            Some(c) if c == end => Ok((value, true)),
            _ => Err(self.error(&format!("',' or '{end}'"))),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value<'a>>, DeviceError> {
        let mut list = Vec::new();
        loop {
            let (value, ended) = self.value(']', depth + 1)?;
            if !matches!(value, Value::Text("")) {
                list.push(value);
            }
            if ended {
                return Ok(list);
            }
        }
    }
}

impl<'a> Block<'a> {
    fn get(&self, key: &str) -> Option<(usize, &Value<'a>)> {
        let same = |(k, _, _): &&(&str, usize, Value<'a>)| k.eq_ignore_ascii_case(key);
        self.pairs.iter().find(same).map(|(_, line, v)| (*line, v))
    }

    /// An error about a key, on its line if it is there.
    pub(super) fn bad(&self, key: &str, expected: &str) -> DeviceError {
        let (line, found) = match self.get(key) {
            Some((line, Value::Text(text))) => (line, format!(" = {}", in_a_line(text))),
            Some((line, _)) => (line, String::new()),
            None => (self.line, " is missing".to_owned()),
        };
        self.file
            .error(line, format!("{key}{found}: expected {expected}"))
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        match self.get(key)?.1 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn block(&self, key: &str) -> Option<&Block<'a>> {
        match self.get(key)?.1 {
            Value::Block(block) => Some(block),
            _ => None,
        }
    }

    pub(super) fn list(&self, key: &str) -> &[Value<'a>] {
        match self.get(key) {
            Some((_, Value::List(list))) => list,
            _ => &[],
        }
    }

    /// A number, if the key is there.
    pub(super) fn opt(&self, key: &str) -> Result<Option<f64>, DeviceError> {
        let Some((_, value)) = self.get(key) else {
            return Ok(None);
        };
        match number(value) {
            Some(n) => Ok(Some(n)),
            None => Err(self.bad(key, "a number")),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<f64, DeviceError> {
        self.opt(key)?.ok_or_else(|| self.bad(key, "a number"))
    }

    /// A number within bounds.
    pub(super) fn within(&self, key: &str, min: f64, max: f64) -> Result<f64, DeviceError> {
        let n = self.number(key)?;
        if (min..=max).contains(&n) {
            Ok(n)
        } else {
            Err(self.bad(key, &format!("a number from {min} to {max}")))
        }
    }

    /// The numbers of a list; none if the key is not there.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<f64>, DeviceError> {
        let list = self.list(key).iter().map(number).collect();
        let list: Option<Vec<f64>> = list;
        list.ok_or_else(|| self.bad(key, "a list of numbers"))
    }

    pub(super) fn on(&self, key: &str) -> Result<bool, DeviceError> {
        Ok(self.opt(key)?.unwrap_or(0.0) != 0.0)
    }
}

/// The beginning of a text that may have lines, for a message.
fn in_a_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Text(text) => text
            .parse()
            .ok()
            .filter(|n: &f64| n.is_finite() && n.abs() < 1e15),
        _ => None,
    }
}
