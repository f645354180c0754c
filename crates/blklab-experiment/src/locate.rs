// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a key stands in the text of an experiment file.

use crate::source::Source;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// The line of a byte of a text, from 1.
pub(crate) fn line_at(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|&&b| b == b'\n').count()
}

/// The line on which a key is set, as `queue.nr_requests`, `cgroup.a.io.max` or
/// `processes."reader".cgroup`: if it is not there, that of the same key in another table,
/// else of the table that it would be in.
pub(crate) fn line_of_key(text: &str, source: Source, path: &str) -> Option<usize> {
    let root = Node::read(text, source)?;
    let (left, nearest) = root.follow(path);
    if left == 0 {
        return Some(line_at(text, nearest));
    }
    let key = path.split_once('.').map_or(path, |(_, key)| key);
    let below = root.fields.iter().map(|(_, node)| node);
    let elsewhere = [&root].into_iter().chain(below).find_map(|n| n.field(key));
    let at = match elsewhere {
        Some(node) => node.at,
        None if left < path.len() => nearest,
        None => return None,
    };
    Some(line_at(text, at))
}

/// A value of a file.
#[derive(Default)]
struct Node {
    /// The byte at which its key begins; in JSON, the value itself.
    at: usize,
    /// What it is, if it is a text.
    text: Option<String>,
    /// What is below it. Tables in a list are called by their `name`, in quotes.
    fields: Vec<(String, Node)>,
}

impl Node {
    fn read(text: &str, source: Source) -> Option<Node> {
        match source {
            Source::Toml => Some(Node::of_table(DeTable::parse(text).ok()?.get_ref(), 0)),
            Source::Json => Node::of_json(text, serde_json::from_str(text).ok()?),
            Source::Fio => None,
        }
    }

    fn field(&self, name: &str) -> Option<&Node> {
        let found = self.fields.iter().find(|(own, _)| own == name);
        found.map(|(_, node)| node)
    }

    /// How many bytes of a path lead nowhere, and where the rest of it leads.
    fn follow(&self, path: &str) -> (usize, usize) {
        let steps = self.fields.iter().filter_map(|(name, node)| {
            let rest = path.strip_prefix(name.as_str())?;
            match rest.strip_prefix('.') {
                Some(rest) => Some(node.follow(rest)),
                None => rest.is_empty().then_some((0, node.at)),
            }
        });
        let farthest = steps.min_by_key(|(left, _)| *left);
        farthest.unwrap_or((path.len(), self.at))
    }

    fn of_table(table: &DeTable<'_>, at: usize) -> Node {
        let fields = table.iter().map(|(key, value)| {
            let node = Node::of_value(value.get_ref(), key.span().start);
            (key.get_ref().to_string(), node)
        });
        Node {
            at,
            text: None,
            fields: fields.collect(),
        }
    }

    fn of_value(value: &DeValue<'_>, at: usize) -> Node {
        match value {
            DeValue::Table(table) => Node::of_table(table, at),
            DeValue::Array(list) => {
                let tables = list.iter().filter(|item| item.get_ref().is_table());
                let tables = tables.map(|item| Node::of_value(item.get_ref(), item.span().start));
                Node::of_list(tables, at)
            }
            value => Node {
                at,
                text: value.as_str().map(str::to_owned),
                fields: Vec::new(),
            },
        }
    }

    fn of_json(text: &str, value: &RawValue) -> Option<Node> {
        let own = value.get();
        // It is a part of the text.
        let at = (own.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        let mut node = Node {
            at,
            ..Node::default()
        };
        match own.as_bytes().first()? {
            b'{' => {
                let table: BTreeMap<String, &RawValue> = serde_json::from_str(own).ok()?;
                for (key, value) in table {
                    node.fields.push((key, Node::of_json(text, value)?));
                }
            }
            b'[' => {
                let list: Vec<&RawValue> = serde_json::from_str(own).ok()?;
                let tables = list.iter().filter(|item| item.get().starts_with('{'));
                let tables: Option<Vec<Node>> =
                    tables.map(|item| Node::of_json(text, item)).collect();
                node = Node::of_list(tables?, at);
            }
            b'"' => node.text = serde_json::from_str(own).ok(),
            _ => {}
        }
        Some(node)
    }

    /// A list of tables; those without a name cannot be told apart.
    fn of_list(tables: impl IntoIterator<Item = Node>, at: usize) -> Node {
        let named = tables.into_iter().filter_map(|mut table| {
            let name = table.field("name")?;
            let label = format!("\"{}\"", name.text.as_ref()?);
            table.at = name.at;
            Some((label, table))
        });
        Node {
            at,
            text: None,
            fields: named.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "scheduler = 'noop'
job = '''
[a]
nr_requests=7
'''
device = { name = 'x', rpm = 5 }
[[variant]]
name = 'one'
scheduler = 'cfq'
[[variant]]
name = 'two'
[queue]
# nr_requests = 1
nr_requests = 2
[cgroup.a]
'io.max' = 'x'
[cgroup.'a/b']
io.bfq.weight = 5
[[processes]]
name = 'reader'
cgroup = 'b'
[iosched]
quantum = 3
";

    const JSON: &str = r#"{"job": "\"seed\":",
"queue": {"max_sectors": 1,
  "nr_requests": 2},
"processes": [{"name": "writer"},
  {"name": "reader",
   "cgroup": "b"}],
"seed": 1}"#;

    #[test]
    fn keys_have_lines() {
        for (path, line) in [
            ("scheduler", Some(1)),
            ("device.rpm", Some(6)),
            ("device.rpmm", Some(6)),
            ("queue.nr_requests", Some(14)),
            ("queue.nomerges", Some(12)),
            ("cgroup.a.io.max", Some(16)),
            ("cgroup.a/b.io.bfq.weight", Some(18)),
            ("cgroup.a/b.blkio.weight", Some(17)),
            ("cgroup.c", Some(15)),
            ("processes.\"reader\"", Some(20)),
            ("processes.\"reader\".cgroup", Some(21)),
            ("variant.\"two\"", Some(11)),
            ("tunables.quantum", Some(23)),
            ("vm.memory", None),
        ] {
            assert_eq!(line_of_key(TOML, Source::Toml, path), line, "{path}");
        }
        for (path, line) in [
            ("queue.nr_requests", Some(3)),
            ("vm.nr_requests", Some(3)),
            ("processes.\"reader\".cgroup", Some(6)),
            ("processes.\"writer\".cgroup", Some(4)),
            ("seed", Some(7)),
        ] {
            assert_eq!(line_of_key(JSON, Source::Json, path), line, "{path}");
        }
    }
}
