// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that documents show: `text` blocks with lines that begin with `$ ` and
//! a command. What follows such a line, up to the next or the end of the block,
//! is what the command prints. A line `…` stands for any lines left out.
//!
//! With `BLKLAB_UPDATE_DOCS=1` what is shown is replaced by what is printed.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

const LEFT_OUT: &str = "…";

/// A command and what a document shows of its output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// As it would be typed, in one line.
    pub(crate) command: String,
    /// The lines of the document with its output, from 0.
    lines: Range<usize>,
    shown: Vec<String>,
}

/// All of a document, in order.
pub(crate) fn transcripts(text: &str) -> Vec<Transcript> {
    let mut all: Vec<Transcript> = Vec::new();
    let (mut in_block, mut in_command, mut in_output) = (false, false, false);
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block && line == "```text";
            (in_command, in_output) = (false, false);
            continue;
        }
        if !in_block {
            continue;
        }
        let typed = line.strip_prefix("$ ");
        match (typed, all.last_mut()) {
            (Some(command), _) => {
                all.push(Transcript {
                    command: String::new(),
                    lines: i + 1..i + 1,
                    shown: Vec::new(),
                });
                let new = all.last_mut().expect("just pushed");
                in_command = new.types(command, i);
                in_output = true;
            }
            (None, Some(last)) if in_command => in_command = last.types(line.trim_start(), i),
            (None, Some(last)) if in_output => {
                last.shown.push(line.trim_end().to_owned());
                last.lines.end = i + 1;
            }
            _ => {}
        }
    }
    all
}

impl Transcript {
    /// Another line of the command; whether it goes on.
    fn types(&mut self, line: &str, at: usize) -> bool {
        self.lines = at + 1..at + 1;
        match line.strip_suffix('\\') {
            Some(part) => {
                self.command += part;
                true
            }
            None => {
                self.command += line;
                false
            }
        }
    }

    /// What the document should show of this output, with the same lines left
    /// out; none if that cannot be told.
    fn shown_of(&self, printed: &[&str]) -> Option<Vec<String>> {
        let owned = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let mut gaps = self
            .shown
            .iter()
            .enumerate()
            .filter(|(_, l)| *l == LEFT_OUT);
        let Some((before, _)) = gaps.next() else {
            return Some(owned(printed));
        };
        let after = self.shown.len() - before - 1;
        if gaps.next().is_some() || printed.len() < before + after {
            return None;
        }
        let mut lines = owned(&printed[..before]);
        lines.push(LEFT_OUT.to_owned());
        lines.extend(owned(&printed[printed.len() - after..]));
        Some(lines)
    }

    /// Whether the document shows this output.
    fn shows(&self, printed: &[&str]) -> bool {
        let parts = self.shown.split(|l| l == LEFT_OUT).collect::<Vec<_>>();
        let (mut rest, last) = (printed, parts.len() - 1);
        for (i, part) in parts.iter().enumerate() {
            let at = match i {
                0 => rest.starts_with_lines(part).then_some(0),
                _ if i == last => rest.len().checked_sub(part.len()),
                _ => (0..rest.len()).find(|&at| rest[at..].starts_with_lines(part)),
            };
            match at {
                Some(at) if rest[at..].starts_with_lines(part) => rest = &rest[at + part.len()..],
                _ => return false,
            }
        }
        rest.is_empty()
    }
}

trait Lines {
    fn starts_with_lines(&self, part: &[String]) -> bool;
}

impl Lines for [&str] {
    fn starts_with_lines(&self, part: &[String]) -> bool {
        self.len() >= part.len() && self.iter().zip(part).all(|(a, b)| a == b)
    }
}

/// Runs the commands of a document that `run` wants to run, and compares; `run`
/// returns what a command prints. Returns the number of those that ran.
pub(crate) fn check(path: &Path, mut run: impl FnMut(&str) -> Option<String>) -> usize {
    let text = std::fs::read_to_string(path).expect("a document");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let all = transcripts(&text);
    let done: Vec<(&Transcript, String)> = all
        .iter()
        .filter_map(|t| Some((t, run(&t.command)?)))
        .collect();
    let mut differs = String::new();
    // From the end: what is replaced moves no line that is still to be looked at.
    for (t, output) in done.iter().rev() {
        let printed: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
        if t.shows(&printed) {
            continue;
        }
        let new = t.shown_of(&printed);
        if let (Some(new), true) = (&new, std::env::var_os("BLKLAB_UPDATE_DOCS").is_some()) {
            lines.splice(t.lines.clone(), new.iter().cloned());
            continue;
        }
        let _ = writeln!(
            differs,
            "{}:{}: {} prints\n{output}",
            path.display(),
            t.lines.start,
            t.command
        );
    }
    assert!(
        differs.is_empty(),
        "{differs}(BLKLAB_UPDATE_DOCS=1 writes it into the document)"
    );
    let new = lines.join("\n") + "\n";
    if new != text {
        std::fs::write(path, new).expect("the document is written");
    }
    done.len()
}

#[cfg(test)]
mod tests {
    use super::transcripts;

    const TEXT: &str = "x\n```text\n$ blklab list \\\n    kernels\na\n…\nc\n\n$ blklab x\n```\n\
                        ```text\nnot output\n```\n```sh\n$ y\n```\n";

    #[test]
    fn commands_and_their_output_are_found() {
        let all = transcripts(TEXT);
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(all[0].command, "blklab list kernels");
        assert_eq!((all[0].lines.clone(), all[0].shown.len()), (4..8, 4));
        assert_eq!(
            (all[1].command.as_str(), all[1].lines.clone()),
            ("blklab x", 9..9)
        );
    }

    #[test]
    fn lines_may_be_left_out() {
        let all = transcripts("```text\n$ x\na\n…\nb\n…\nc\n```\n");
        assert!(all[0].shows(&["a", "1", "2", "b", "c"]));
        assert!(all[0].shows(&["a", "b", "c"]));
        assert!(!all[0].shows(&["a", "c"]));
        assert!(!all[0].shows(&["a", "b", "c", "d"]));
        let all = transcripts("```text\n$ x\na\n…\nc\n```\n");
        let shown = all[0].shown_of(&["A", "1", "2", "C"]).expect("one gap");
        assert_eq!(shown, ["A", "…", "C"]);
        let whole = transcripts("```text\n$ x\na\n```\n");
        assert!(whole[0].shows(&["a"]) && !whole[0].shows(&["a", "b"]));
    }
}
