// SPDX-License-Identifier: MIT OR Apache-2.0
//! The texts of options that take lists, and what contradicts what.
//!
//! Every message begins with the option that the text stands behind.

use super::{Overrides, PatchSet, in_option};
use blklab_experiment::{DeviceSpec, ExperimentError, MdSpec};
use blklab_types::shown;

/// A setting with its values, and the option that gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `--set`, or the option that is short for one: `--memory`, `--fs` …
    pub option: &'static str,
    /// As [`Experiment::set`](blklab_experiment::Experiment::set) takes it.
    pub key: String,
    /// One, or several that make a matrix.
    pub values: Vec<String>,
}

impl Setting {
    /// The values of an option that is short for `--set key=…`.
    pub fn of_option(option: &'static str, key: &str, values: Vec<String>) -> Setting {
        Setting {
            option,
            key: key.to_owned(),
            values,
        }
    }

    /// As it was written.
    fn text(&self) -> String {
        let values = self.values.join(",");
        let text = match self.option {
            "--set" => format!("{}={values}", self.key),
            _ => values,
        };
        format!("{} {}", self.option, shown(&text))
    }
}

/// A list of values between commas, none of them empty.
///
/// # Errors
/// If one is.
pub fn parse_values(option: &str, texts: &[String]) -> Result<Vec<String>, ExperimentError> {
    let parts = texts.iter().flat_map(|t| t.split(','));
    let values: Vec<String> = parts.map(|v| v.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        let text = texts.join(" ");
        return Err(ExperimentError::new(format!(
            "{option} '{}': a value is empty; write {option} V or {option} V1,V2,…",
            shown(&text)
        )));
    }
    Ok(values)
}

/// What the parts of `NAME,key=value,NAME…` name.
struct Named {
    /// The option.
    option: &'static str,
    /// What a name is the name of.
    what: &'static str,
    /// What a key is.
    key: &'static str,
    /// How it is written.
    example: &'static str,
    /// What lists all names.
    list: &'static str,
}

/// Splits a list: a part without `=` starts the next name.
fn parse_named(text: &str, named: &Named) -> Result<Vec<DeviceSpec>, ExperimentError> {
    let option = named.option;
    let mut all: Vec<DeviceSpec> = Vec::new();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        match (part.split_once('='), all.last_mut()) {
            (None, _) => all.push(DeviceSpec {
                name: part.to_owned(),
                params: Vec::new(),
            }),
            (Some((k, v)), Some(last)) => {
                let (key, value) = (k.trim(), v.trim());
                let given = last.params.iter().find(|(k, _)| k == key);
                match given {
                    None => last.params.push((key.to_owned(), value.to_owned())),
                    Some((_, same)) if same == value => {}
                    Some((_, other)) => {
                        return Err(ExperimentError::new(format!(
                            "{option}: {} has two values, {} and {}",
                            shown(key),
                            shown(other),
                            shown(value)
                        )));
                    }
                }
            }
            (Some(_), None) => {
                return Err(ExperimentError::new(format!(
                    "{option} {}: a {} name comes before its {}s, as in {}",
                    shown(text),
                    named.what,
                    named.key,
                    named.example
                )));
            }
        }
    }
    if all.is_empty() {
        return Err(ExperimentError::new(format!(
            "{option}: no name; blklab list {} shows all",
            named.list
        )));
    }
    Ok(all)
}

/// Splits `NAME,key=value,NAME…` into devices: a part without `=` starts the
/// next device.
///
/// # Errors
/// If the first part is a parameter, or a parameter has two values.
pub fn parse_devices(text: &str) -> Result<Vec<DeviceSpec>, ExperimentError> {
    parse_named(
        text,
        &Named {
            option: "--device",
            what: "device",
            key: "parameter",
            example: "sata-7200-2008,rpm=5400",
            list: "devices",
        },
    )
}

/// Splits `NAME,option=value,NAME…` into filesystems, each in the form that
/// the setting `filesystem` takes: `NAME:option=value`.
///
/// # Errors
/// If the first part is an option, or an option has two values.
pub fn parse_filesystems(text: &str) -> Result<Vec<String>, ExperimentError> {
    let all = parse_named(
        text,
        &Named {
            option: "--fs",
            what: "filesystem",
            key: "option",
            example: "ext3,data=journal",
            list: "filesystems",
        },
    )?;
    let written = |fs: DeviceSpec| {
        let options = fs.params.iter().map(|(k, v)| format!(":{k}={v}"));
        fs.name.clone() + &options.collect::<String>()
    };
    Ok(all.into_iter().map(written).collect())
}

/// Splits `LEVEL:MEMBERS,chunk_kb=N,LEVEL:MEMBERS…` into arrays: a part without
/// `=` starts the next one; `none` is no array.
///
/// # Errors
/// If a part is not written like that or names nothing.
pub fn parse_arrays(text: &str) -> Result<Vec<Option<MdSpec>>, ExperimentError> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    for part in text.split(',').map(str::trim) {
        match groups.last_mut() {
            Some(group) if part.contains('=') => group.push(part),
            _ => groups.push(vec![part]),
        }
    }
    let arrays = groups.iter().map(|words| match words[..] {
        ["none"] => Ok(None),
        _ => MdSpec::parse(words).map(Some),
    });
    let in_md = |e: ExperimentError| in_option(&e, &format!("--md {}", shown(text)));
    arrays.collect::<Result<_, _>>().map_err(in_md)
}

/// Splits `A,B+C,none` into alternatives: A; B and C together; no patch.
///
/// # Errors
/// If an alternative has no name.
pub fn parse_patches(text: &str) -> Result<Vec<PatchSet>, ExperimentError> {
    let mut sets = Vec::new();
    for alternative in text.split(',').map(str::trim) {
        let names: PatchSet = match alternative {
            "none" => Vec::new(),
            _ => alternative
                .split('+')
                .map(|n| n.trim().to_owned())
                .collect(),
        };
        if names.iter().any(String::is_empty) {
            return Err(ExperimentError::new(format!(
                "--patch {}: write NAME, NAME+NAME for both, NAME,none to compare",
                shown(text)
            )));
        }
        sets.push(names);
    }
    Ok(sets)
}

/// Splits `KEY=V1,V2,…`.
///
/// # Errors
/// If there is no `=`, no key or no value, or a value is empty.
pub fn parse_setting(text: &str) -> Result<Setting, ExperimentError> {
    let fail = |what: &str| {
        Err(ExperimentError::new(format!(
            "--set {}: {what}write KEY=VALUE or KEY=V1,V2,…",
            shown(text)
        )))
    };
    let Some((key, values)) = text.split_once('=') else {
        return fail("");
    };
    let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
    if key.trim().is_empty() {
        return fail("no key; ");
    }
    if values.iter().all(String::is_empty) {
        return fail("no value; ");
    }
    if values.iter().any(String::is_empty) {
        return fail("a value is empty; ");
    }
    Ok(Setting::of_option("--set", key.trim(), values))
}

/// Refuses two options that give one setting different values. Several values
/// to compare stand behind one option.
///
/// # Errors
/// If there are such.
pub fn check_contradictions(o: &Overrides) -> Result<(), ExperimentError> {
    let seed = o.seed.map(|seed| Setting {
        option: "--seed",
        key: "seed".to_owned(),
        values: vec![seed.to_string()],
    });
    let all: Vec<&Setting> = seed.iter().chain(&o.settings).collect();
    for (key, value) in o.devices.iter().flat_map(|d| &d.params) {
        let contradicts = |s: &&&Setting| s.key == *key && s.values[..] != [value.clone()];
        if let Some(setting) = all.iter().find(contradicts) {
            return Err(ExperimentError::new(format!(
                "{} contradicts --device …,{}={}",
                setting.text(),
                shown(key),
                shown(value)
            )));
        }
    }
    for (i, b) in all.iter().enumerate() {
        let contradicts = |a: &&&Setting| a.key == b.key && a.values != b.values;
        if let Some(a) = all[..i].iter().find(contradicts) {
            let hint = match (a.option, b.option) {
                ("--set", "--set") => {
                    format!("; to compare them, write --set {}=V1,V2", shown(&b.key))
                }
                _ => format!(": both set {}", shown(&b.key)),
            };
            return Err(ExperimentError::new(format!(
                "{} contradicts {}{hint}",
                b.text(),
                a.text()
            )));
        }
    }
    Ok(())
}
