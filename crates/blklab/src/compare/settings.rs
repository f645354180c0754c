// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment says, setting by setting.

use blklab_experiment::{Catalogue, Experiment};
use std::collections::BTreeMap;

/// What names an experiment, or differs between its repetitions.
const NAMES: [&str; 6] = ["format", "id", "title", "seed", "job_file", "published"];

/// Settings by name.
pub(super) type Settings = BTreeMap<String, String>;

/// Every setting of an experiment by its name, with the tables it is in.
pub(super) fn settings(e: &Experiment, catalogue: &Catalogue) -> Settings {
    let mut all = Settings::new();
    let text = e.to_toml("job.fio", catalogue).unwrap_or_default();
    if let Ok(table) = text.parse::<toml::Table>() {
        let names = table
            .into_iter()
            .filter(|(key, _)| !NAMES.contains(&key.as_str()));
        for (key, value) in names {
            flatten(&key, &value, &mut all);
        }
    }
    all
}

fn flatten(key: &str, value: &toml::Value, out: &mut Settings) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                flatten(&format!("{key}.{name}"), value, out);
            }
        }
        toml::Value::String(text) => {
            out.insert(key.to_owned(), text.clone());
        }
        value => {
            out.insert(key.to_owned(), value.to_string());
        }
    }
}
