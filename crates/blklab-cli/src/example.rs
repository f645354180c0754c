// SPDX-License-Identifier: MIT OR Apache-2.0
//! `blklab example`: the example files, which the command carries in itself.

use crate::Outcome;
use crate::args::{ExampleArgs, PlainFormat};
use crate::guard::{self, Guard};
use crate::output::{entry, fold};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

/// Name and text of each, ordered by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

pub(crate) fn example(a: &ExampleArgs) -> Result<Outcome> {
    match (&a.name, &a.out) {
        (None, _) => list(a.output_format)?,
        (Some(name), None) => print(name)?,
        (Some(name), Some(dir)) => write(name, dir)?,
    }
    Ok(Outcome::Done)
}

fn list(format: PlainFormat) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if format == PlainFormat::Json {
        let entry = |&(name, text): &(&str, &str)| {
            let needs: Vec<&str> = needs(name, text).into_iter().collect();
            serde_json::json!({"name": name, "summary": summary(text), "needs": needs})
        };
        let all: Vec<_> = FILES.iter().map(entry).collect();
        serde_json::to_writer_pretty(&mut out, &all).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else {
        for (name, text) in FILES {
            let needs = match words(name, text) {
                needs if needs.is_empty() => String::new(),
                needs => format!(" Needs {needs}."),
            };
            entry(&mut out, name, &format!("{}{needs}", summary(text)))?;
        }
        writeln!(
            out,
            "\nblklab example NAME prints one; with --out DIR it is written there, with the\n\
             files it needs."
        )?;
    }
    Ok(out.flush()?)
}

fn print(name: &str) -> Result<()> {
    let text = find(name)?;
    let needs = words(name, text);
    if !needs.is_empty() {
        let note = format!(
            "blklab: note: {name} needs {needs} beside it; \
             blklab example {name} --out DIR writes all of it"
        );
        let _ = writeln!(std::io::stderr(), "{}", fold(&note, 80).join("\n"));
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes an example and what it needs. Files that are there already stay as
/// they are: one with another text is an error before anything is written.
fn write(name: &str, dir: &Path) -> Result<()> {
    let mut files = vec![(name, find(name)?)];
    for needed in needs(name, files[0].1) {
        files.push((needed, find(needed)?));
    }
    let mut guard = Guard::default();
    let mut places = Vec::new();
    for (name, text) in files {
        places.push((guard.writes_same(dir, name, text.as_bytes())?, text));
    }
    let mut out = std::io::stdout().lock();
    guard::write_all(&places)?;
    for (place, _) in places {
        writeln!(out, "{}", place.path().display())?;
    }
    Ok(out.flush()?)
}

fn find(name: &str) -> Result<&'static str> {
    let found = FILES.iter().find(|(n, _)| *n == name);
    let Some((_, text)) = found else {
        let valid: Vec<&str> = FILES.iter().map(|(n, _)| *n).collect();
        bail!("{}", blklab::types::no_such("example", name, &valid));
    };
    Ok(text)
}

/// The first sentence of the comment at the head of a file.
fn summary(text: &str) -> String {
    let comment = text.lines().map_while(|l| l.strip_prefix(['#', ';']));
    let words = comment.flat_map(str::split_whitespace);
    let mut sentence = String::new();
    for word in words {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if word.ends_with('.') {
            break;
        }
    }
    sentence
}

/// The other examples that a file names outside its comments, and what these
/// name.
fn needs(name: &str, text: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let mut texts = vec![text];
    while let Some(text) = texts.pop() {
        let lines = text.lines().filter(|l| !l.starts_with(['#', ';']));
        let words = lines.flat_map(|l| l.split(['"', '\'', '=', ',', ' ']));
        for word in words.filter(|word| *word != name) {
            if let Some((file, text)) = FILES.iter().find(|(n, _)| *n == word)
                && found.insert(*file)
            {
                texts.push(text);
            }
        }
    }
    found
}

fn words(name: &str, text: &str) -> String {
    let needs: Vec<&str> = needs(name, text).into_iter().collect();
    needs.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_says_in_a_sentence_what_it_is() {
        assert!(FILES.len() >= 8);
        for (name, text) in FILES {
            let summary = summary(text);
            assert!(
                summary.len() > 20 && summary.ends_with('.'),
                "{name}: {summary}"
            );
        }
    }

    #[test]
    fn an_experiment_needs_its_job_file() {
        let text = find("sixteen-years.toml").unwrap();
        let needs = needs("sixteen-years.toml", text);
        assert_eq!(needs.into_iter().collect::<Vec<_>>(), ["ssh-beside-dd.fio"]);
    }
}
