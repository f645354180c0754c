// SPDX-License-Identifier: MIT OR Apache-2.0
//! The texts of options that take lists, what contradicts what, and which option
//! an error is about.
//!
//! Every message begins with the option that the text stands behind.

use blklab::experiment::{DeviceSpec, MdSpec};
use blklab::matrix::{Choice, Overrides, PatchSet, Refused, Setting};
use blklab::types::{Error, shown};
use std::path::Path;

/// A setting with its values, and the option that gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// `--set`, or the option that is short for one: `--memory`, `--fs` …
    pub(crate) option: &'static str,
    /// What it sets.
    pub(crate) setting: Setting,
}

impl Given {
    /// The values of an option that is short for `--set key=…`.
    pub(crate) fn new(option: &'static str, key: &str, values: Vec<String>) -> Given {
        let key = key.to_owned();
        Given {
            option,
            setting: Setting { key, values },
        }
    }

    /// As it was written.
    fn text(&self) -> String {
        let values = self.setting.values.join(",");
        let text = match self.option {
            "--set" => format!("{}={values}", self.setting.key),
            _ => values,
        };
        format!("{} {}", self.option, shown(&text))
    }
}

/// A list of values between commas, none of them empty.
///
/// # Errors
/// If one is.
pub(crate) fn parse_values(option: &str, texts: &[String]) -> Result<Vec<String>, Error> {
    let parts = texts.iter().flat_map(|t| t.split(','));
    let values: Vec<String> = parts.map(|v| v.trim().to_owned()).collect();
    if values.iter().any(String::is_empty) {
        let text = texts.join(" ");
        return Err(Error::new(format!(
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
fn parse_named(text: &str, named: &Named) -> Result<Vec<DeviceSpec>, Error> {
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
                        return Err(Error::new(format!(
                            "{option}: {} has two values, {} and {}",
                            shown(key),
                            shown(other),
                            shown(value)
                        )));
                    }
                }
            }
            (Some(_), None) => {
                return Err(Error::new(format!(
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
        return Err(Error::new(format!(
            "{option}: no name; blklab list {} shows all",
            named.list
        )));
    }
    Ok(all)
}

/// Splits `NAME,key=value,NAME…` into devices: a part without `=` starts the
/// next device. What ends in `.toml` is a file that describes one; parameters behind it
/// replace those of the file.
///
/// # Errors
/// If the first part is a parameter, or a parameter has two values, or a file is
/// no description of a device.
pub(crate) fn parse_devices(text: &str) -> Result<Vec<DeviceSpec>, Error> {
    let mut devices = parse_device_names(text)?;
    for device in &mut devices {
        if !device.name.ends_with(".toml") {
            continue;
        }
        let mut described = blklab::experiment::load_device(
            Path::new(&device.name),
            &blklab::targets::catalogue(),
        )?;
        let given = std::mem::take(&mut device.params);
        let is_given = |key: &str| given.iter().any(|(k, _)| k == key);
        described.params.retain(|(key, _)| !is_given(key));
        described.params.extend(given);
        *device = described;
    }
    Ok(devices)
}

fn parse_device_names(text: &str) -> Result<Vec<DeviceSpec>, Error> {
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
pub(crate) fn parse_filesystems(text: &str) -> Result<Vec<String>, Error> {
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
pub(crate) fn parse_arrays(text: &str) -> Result<Vec<Option<MdSpec>>, Error> {
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
    let in_md = |e: Error| in_option(e, &format!("--md {}", shown(text)));
    arrays.collect::<Result<_, _>>().map_err(in_md)
}

/// Splits `KIND,key=value,KIND+KIND…` into stacks of device mapper, each in the form that
/// the setting `dm` takes, `KIND:key=value+KIND`: a part that begins with `key=` belongs
/// to the last kind before it. The setting says what is wrong with them.
pub(crate) fn split_dm(text: &str) -> Vec<String> {
    let mut stacks: Vec<String> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let begins_with_key = part
            .split(['+', ':'])
            .next()
            .is_some_and(|p| p.contains('='));
        match stacks.last_mut() {
            Some(stack) if begins_with_key => {
                stack.push(':');
                stack.push_str(part);
            }
            _ => stacks.push(part.to_owned()),
        }
    }
    stacks
}

/// Splits `A,B+C,none` into alternatives: A; B and C together; no patch.
///
/// # Errors
/// If an alternative has no name.
pub(crate) fn parse_patches(text: &str) -> Result<Vec<PatchSet>, Error> {
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
            return Err(Error::new(format!(
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
pub(crate) fn parse_setting(text: &str) -> Result<Given, Error> {
    let fail = |what: &str| {
        Err(Error::new(format!(
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
    Ok(Given::new("--set", key.trim(), values))
}

/// Refuses two options that give one setting different values. Several values
/// to compare stand behind one option.
///
/// # Errors
/// If there are such.
pub(crate) fn check_contradictions(o: &Overrides, given: &[Given]) -> Result<(), Error> {
    let seed = o
        .seed
        .map(|seed| Given::new("--seed", "seed", vec![seed.to_string()]));
    let all: Vec<&Given> = seed.iter().chain(given).collect();
    for (key, value) in o.devices.iter().flat_map(|d| &d.params) {
        let contradicts =
            |g: &&&Given| g.setting.key == *key && g.setting.values[..] != [value.clone()];
        if let Some(setting) = all.iter().find(contradicts) {
            return Err(Error::new(format!(
                "{} contradicts --device …,{}={}",
                setting.text(),
                shown(key),
                shown(value)
            )));
        }
    }
    for (i, b) in all.iter().enumerate() {
        let (key, values) = (&b.setting.key, &b.setting.values);
        let contradicts = |a: &&&Given| a.setting.key == *key && a.setting.values != *values;
        if let Some(a) = all[..i].iter().find(contradicts) {
            let hint = match (a.option, b.option) {
                ("--set", "--set") => {
                    format!("; to compare them, write --set {}=V1,V2", shown(key))
                }
                _ => format!(": both set {}", shown(key)),
            };
            return Err(Error::new(format!(
                "{} contradicts {}{hint}",
                b.text(),
                a.text()
            )));
        }
    }
    Ok(())
}

/// The error in an option instead of a file.
fn in_option(err: Error, option: &str) -> Error {
    Error {
        file: Some(option.to_owned()),
        line: None,
        ..err
    }
}

/// The error of a matrix, with the option that it is about.
pub(crate) fn told(refused: Refused, given: &[Given]) -> Error {
    let option = match refused.choice {
        None => return refused.error,
        Some(Choice::Kernel(v)) => format!("--kernel {}", shown(&v)),
        Some(Choice::Scheduler(name)) => format!("--sched {}", shown(&name)),
        Some(Choice::Device(None)) => "--device".to_owned(),
        Some(Choice::Device(Some(name))) => format!("--device {}", shown(&name)),
        Some(Choice::Array(array)) => format!("--md {array}"),
        Some(Choice::Patches(names)) => format!("--patch {}", shown(&names)),
        Some(Choice::Setting(place)) => given[place].option.to_owned(),
        Some(Choice::Seed) => "--seed".to_owned(),
    };
    in_option(refused.error, &option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_of_device_mapper_are_split_at_kinds() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split_dm(text), expected, "{text}");
        check("crypt", &["crypt"]);
        check(
            "none,crypt,sector_size=4096,key_bits=256,striped:3",
            &["none", "crypt:sector_size=4096:key_bits=256", "striped:3"],
        );
        check(
            "thin:chunk_kb=64+crypt,key_bits=256",
            &["thin:chunk_kb=64+crypt:key_bits=256"],
        );
    }

    #[test]
    fn lists_that_are_not_written_like_that() {
        assert!(parse_patches("a,,b").is_err());
        assert!(parse_devices("rpm=5400").is_err());
        assert!(parse_devices("").is_err());
        assert!(parse_setting("=1").is_err());
        assert!(parse_setting("quantum").is_err());
        for text in [
            "",
            "raid1",
            "raid1:",
            "raid1:x",
            "raid1:2,chunk=4",
            "chunk_kb=4",
        ] {
            let said = parse_arrays(text).unwrap_err().to_string();
            assert!(
                said.ends_with("write raid1:2, or raid0:2,chunk_kb=64"),
                "{said}"
            );
        }
    }
}
