// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded outputs of fio, and the result they describe.
//!
//! The JSON of a recording holds nearly all there is to know about its run; the rest
//! (number of merged jobs, process ids, error texts) is read from the text for people.

use std::fs;
use std::path::PathBuf;

use blklab_fiostat::{FioResult, ReadResult};
use serde_json::{Map, Value};

/// The parts of one recorded output.
pub(crate) struct Recorded {
    pub(crate) name: String,
    pub(crate) preamble: String,
    pub(crate) terse: String,
    pub(crate) json: String,
    pub(crate) normal: String,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fiostat/recorded")
}

/// All recordings, by name.
pub(crate) fn all() -> Vec<Recorded> {
    let entries = fs::read_dir(folder()).expect("testdata/fiostat/recorded exists");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names.iter().map(|name| load(name)).collect()
}

pub(crate) fn load(name: &str) -> Recorded {
    let text = file(name, "out.txt");
    let json_start = text.find("\n{\n").expect("JSON begins") + 1;
    let json_end = text.find("\n}\n").expect("JSON ends") + 3;
    let terse_start = text
        .match_indices('\n')
        .map(|(i, _)| i + 1)
        .find(|&i| matches!(text.as_bytes()[i..i + 2], [b'2'..=b'5', b';']))
        .expect("terse line");
    Recorded {
        name: name.to_string(),
        preamble: text[..terse_start].to_string(),
        terse: text[terse_start..json_start].to_string(),
        json: text[json_start..json_end].to_string(),
        normal: text[json_end..].to_string(),
    }
}

/// A file recorded with a case.
pub(crate) fn file(case: &str, file: &str) -> String {
    let path = folder().join(case).join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

impl Recorded {
    pub(crate) fn tree(&self) -> Value {
        serde_json::from_str(&self.json).expect("valid JSON")
    }

    /// The result that was printed.
    pub(crate) fn result(&self) -> FioResult {
        let read = ReadResult::parse(&self.json).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        let mut result = read.result;
        let mut heads = self.normal.lines().filter_map(Head::parse).peekable();
        for entry in &mut result.entries {
            let named = |head: &Head| entry.info.name == head.name;
            let head = heads.next_if(named).unwrap_or_default();
            entry.members = head.members;
            let info = &mut entry.info;
            info.pid = head.pid;
            info.error_text = head.error_text;
            let error_mark = format!("first_error={}/<", info.first_error);
            let marked = self.normal.split(&error_mark).nth(1);
            let marked = marked.and_then(|s| s.split('>').next());
            info.first_error_text = marked.unwrap_or_default().to_string();
        }
        // An empty object means that a job had options, none of them with a value.
        let tree = self.tree();
        let jobs = tree["jobs"].as_array().expect("jobs");
        for (entry, job) in result.entries.iter_mut().zip(jobs) {
            let options = job.get("job options").and_then(Value::as_object);
            if options.is_some_and(Map::is_empty) {
                entry.info.options = vec![("stonewall".into(), String::new())];
            }
        }
        result
    }
}

/// What the first line of a job says: `NAME: (groupid=0, jobs=2): err= 0: pid=…`.
#[derive(Default)]
struct Head {
    name: String,
    members: u32,
    pid: u32,
    error_text: String,
}

impl Head {
    fn parse(line: &str) -> Option<Head> {
        let (name, rest) = line.split_once(": (groupid=")?;
        let members = rest.split_once("jobs=")?.1.split(')').next()?;
        let (error, pid) = rest.split_once(": pid=")?;
        let error_text = error
            .split_once(" (")
            .map_or("", |(_, e)| e.trim_end_matches(')'));
        Some(Head {
            name: name.to_string(),
            members: members.parse().ok()?,
            pid: pid.split(':').next()?.parse().ok()?,
            error_text: error_text.to_string(),
        })
    }
}
