// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's documents as data: their blocks, quotations and links.

use crate::support::root;
use std::path::{Path, PathBuf};

/// A document.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    /// Below the root of the project.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// What stands behind the fence.
    pub(crate) kind: String,
    pub(crate) text: String,
}

/// Every document of the project, sorted.
pub(crate) fn documents() -> Vec<Document> {
    let root = root().canonicalize().expect("the project");
    let mut paths = Vec::new();
    for folder in [".", "docs", "testdata"] {
        collect(&root.join(folder), folder != ".", &mut paths);
    }
    paths.sort();
    let read = |path: PathBuf| Document {
        name: path
            .strip_prefix(&root)
            .expect("below the root")
            .display()
            .to_string(),
        text: std::fs::read_to_string(&path).expect("a document"),
        path,
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, below: bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && below {
            collect(&path, below, found);
        } else if path.extension() == Some("md".as_ref()) {
            found.push(path.canonicalize().expect("a document"));
        }
    }
}

impl Document {
    /// The fenced blocks.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut found = Vec::new();
        let mut block: Option<Block> = None;
        for line in self.text.lines() {
            match (&mut block, line.trim().strip_prefix("```")) {
                (Some(_), Some(_)) => found.extend(block.take()),
                (Some(b), None) => {
                    b.text.push_str(line);
                    b.text.push('\n');
                }
                (None, Some(kind)) => {
                    block = Some(Block {
                        kind: kind.to_owned(),
                        text: String::new(),
                    });
                }
                (None, None) => {}
            }
        }
        assert!(block.is_none(), "{}: a block has no end", self.name);
        found
    }

    /// The text without its blocks.
    fn prose(&self) -> String {
        let parts = self.text.split("\n```");
        parts.step_by(2).collect::<Vec<_>>().join("\n")
    }

    /// What stands between backticks, a line break in it as a blank.
    pub(crate) fn quoted(&self) -> Vec<String> {
        let mut found = Vec::new();
        // A quotation does not go beyond its paragraph.
        for paragraph in self.prose().split("\n\n") {
            let words = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
            found.extend(paragraph.split('`').skip(1).step_by(2).map(words));
        }
        found
    }

    /// Targets of links that lie in the project.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose = self.prose();
        let targets = prose.split("](").skip(1);
        let targets = targets.filter_map(|t| Some(t.split_once(')')?.0.to_owned()));
        targets.filter(|t| !t.starts_with("http")).collect()
    }

    /// Names of its headings, as links have them behind `#`.
    fn anchors(&self) -> Vec<String> {
        let headings = self.text.lines().filter(|l| l.starts_with('#'));
        let kept = |c: &char| c.is_alphanumeric() || "- _".contains(*c);
        headings
            .map(|h| h.trim_start_matches('#').trim().to_lowercase())
            .map(|h| h.chars().filter(kept).collect::<String>().replace(' ', "-"))
            .collect()
    }
}

/// What is missing of what documents name.
struct Missing(Vec<String>);

impl Missing {
    fn report(test: impl Fn(&Document, &mut Missing)) {
        let mut missing = Missing(Vec::new());
        for document in documents() {
            test(&document, &mut missing);
        }
        assert!(missing.0.is_empty(), "{}", missing.0.join("\n"));
    }

    fn unless(&mut self, there: bool, document: &Document, what: &str) {
        if !there {
            self.0
                .push(format!("{}: there is no {what}", document.name));
        }
    }
}

#[test]
fn links_lead_somewhere() {
    let all = documents();
    Missing::report(|document, missing| {
        for link in document.links() {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = match file {
                "" => document.path.clone(),
                file => document.path.parent().expect("a folder").join(file),
            };
            missing.unless(path.exists(), document, &link);
            if !anchor.is_empty() && path.exists() {
                let path = path.canonicalize().expect("a document");
                let target = all.iter().find(|d| d.path == path);
                let there = target.is_some_and(|d| d.anchors().iter().any(|a| a == anchor));
                missing.unless(there, document, &link);
            }
        }
    });
}

/// Whether there is a file of this name below the root, or blktrace's files of a
/// trace of this name.
fn is_there(path: &str) -> bool {
    let path = root().join(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let trace = format!("{name}.blktrace.");
    let folder = path
        .parent()
        .and_then(|folder| std::fs::read_dir(folder).ok());
    let mut entries = folder.into_iter().flatten().flatten();
    path.exists() || entries.any(|e| e.file_name().to_string_lossy().starts_with(&trace))
}

/// Quotations that are paths below the root, and targets of make.
#[test]
fn files_and_targets_exist() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let is_target = |t: &str| makefile.lines().any(|l| l.starts_with(&format!("{t}:")));
    let folders = [
        "crates/",
        "docs/",
        "examples/",
        "fuzz/",
        "scripts/",
        "testdata/",
    ];
    Missing::report(|document, missing| {
        let blocks = document.blocks();
        let shell = blocks.iter().filter(|b| b.kind == "sh" || b.kind == "text");
        let lines = shell.flat_map(|b| b.text.lines().map(|l| l.trim_start_matches("$ ")));
        let quoted = document.quoted();
        for text in quoted.iter().map(String::as_str).chain(lines) {
            if let Some(target) = text.strip_prefix("make ") {
                let target = target.split_whitespace().next().unwrap_or_default();
                missing.unless(is_target(target), document, &format!("make {target}"));
            }
        }
        let is_path = |q: &&String| folders.iter().any(|f| q.starts_with(f));
        let is_name = |q: &&String| !q.contains(['*', '{', '<', ' ', '…']);
        for path in quoted.iter().filter(is_path).filter(is_name) {
            missing.unless(is_there(path), document, path);
        }
    });
}

#[test]
fn blocks_quotations_and_links_are_found() {
    let d = Document {
        path: PathBuf::new(),
        name: String::new(),
        text: "# A b: `c`\n`x\ny` [l](m.md#n) [o](https://p)\n```sh\nls `q`\n```\n`z`\n".into(),
    };
    assert_eq!(d.quoted(), ["c", "x y", "z"]);
    assert_eq!(d.links(), ["m.md#n"]);
    assert_eq!(d.anchors(), ["a-b-c"]);
    let sh = Block {
        kind: "sh".into(),
        text: "ls `q`\n".into(),
    };
    assert_eq!(d.blocks(), [sh]);
}
