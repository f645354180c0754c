// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of the schedulers of this build, for whoever wants to change one of them in a
//! crate of their own.

use std::collections::BTreeSet;

/// Paths below `src` and texts, ordered by path.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// Schedulers whose source stands alone: with modules that they share with others, it compiles
/// in another crate. none has no source.
pub const ALONE: [&str; 7] = [
    "noop",
    "anticipatory",
    "deadline",
    "cfq",
    "mq-deadline",
    "kyber",
    "bfq",
];

/// The source of a scheduler.
#[derive(Clone, Debug)]
pub struct Source {
    /// The module that it is.
    pub module: String,
    /// Modules that it shares with other schedulers.
    pub shared: Vec<String>,
    /// Paths below `src`, and texts.
    pub files: Vec<(&'static str, &'static str)>,
}

/// The source of one of [`ALONE`]; of others none.
pub fn source(name: &str) -> Option<Source> {
    if !ALONE.contains(&name) {
        return None;
    }
    let module = name.replace('-', "_");
    let mut wanted = vec![module.clone()];
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut files = Vec::new();
    while let Some(next) = wanted.pop() {
        if !found.insert(next.clone()) {
            continue;
        }
        for (path, text) in files_of(&next) {
            wanted.extend(names_of_crate(text).filter(|name| is_module(name)));
            files.push((path, text));
        }
    }
    found.remove(&module);
    files.sort_unstable();
    Some(Source {
        module,
        shared: found.into_iter().collect(),
        files,
    })
}

/// The file or the folder of a module of this crate.
fn files_of(module: &str) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let file = format!("{module}.rs");
    let folder = format!("{module}/");
    let own = move |(path, _): &&(&str, &str)| *path == file || path.starts_with(&folder);
    FILES.iter().filter(own).copied()
}

fn is_module(name: &str) -> bool {
    files_of(name).next().is_some()
}

/// What a text names of this crate: `a`, `b` in `crate::a::x` and `crate::{b, C}`.
fn names_of_crate(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("crate::").skip(1).flat_map(|rest| {
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest,
        };
        let is_list = rest.starts_with('{');
        let word = |part: &str| -> String {
            let name = part.trim_start().chars();
            name.take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect()
        };
        let parts: Vec<String> = if is_list {
            list.split(',').map(word).collect()
        } else {
            vec![word(list)]
        };
        parts.into_iter()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_all_that_it_names() {
        let mq_deadline = source("mq-deadline").expect("it stands alone");
        let paths: Vec<&str> = mq_deadline.files.iter().map(|f| f.0).collect();
        let expected = [
            "async_depth.rs",
            "direction.rs",
            "mq_deadline/features.rs",
            "mq_deadline/mod.rs",
            "mq_deadline/select.rs",
            "mq_deadline/tunables.rs",
        ];
        assert_eq!(paths, expected);
        assert_eq!(mq_deadline.shared, ["async_depth", "direction"]);
        assert!(source("none").is_none());
        for name in ALONE {
            let source = source(name).expect("it stands alone");
            let texts = source.files.iter().map(|f| f.1);
            assert!(texts.clone().all(|text| text.starts_with("// SPDX")));
            // Another scheduler's source would be one too many.
            let others = ALONE.iter().filter(|other| **other != name);
            for other in others.map(|other| other.replace('-', "_")) {
                assert!(!source.shared.contains(&other), "{name} has {other}");
            }
        }
    }

    #[test]
    fn names_in_lists_count() {
        let text = "use crate::{Build, a_b};\nlet x = crate::c::D;";
        let names: Vec<String> = names_of_crate(text).collect();
        assert_eq!(names, ["Build", "a_b", "c"]);
    }
}
