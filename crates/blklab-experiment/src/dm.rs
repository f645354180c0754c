// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices of device mapper on the disk or the array, and loop devices, which stand in the
//! same rows: what each does, and how.
//!
//! No model has them: targets that are kernels make them.

mod kinds;

pub use kinds::{DM_KINDS, DmKind, DmParam, DmTakes};

use crate::Experiment;
use blklab_types::{Error, no_such, shown};
use std::fmt;

/// Devices of device mapper, each on the one before it. There may be none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DmSpec {
    /// From below to the top.
    pub layers: Vec<DmLayer>,
}

/// A device of device mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmLayer {
    /// What it does.
    pub kind: &'static DmKind,
    /// The value of each of its parameters, in their order.
    values: Vec<String>,
}

/// Most devices on each other.
const LAYERS_MAX: usize = 8;

fn fail(what: String) -> Error {
    Error::new(format!("dm: {what}")).about("dm")
}

impl DmLayer {
    /// A device by the name of what it does.
    ///
    /// # Errors
    /// If nothing is called so, or a parameter is not one of it.
    pub fn new(name: &str, params: &[(String, String)]) -> Result<DmLayer, Error> {
        let Some(kind) = DM_KINDS.iter().find(|kind| kind.name == name) else {
            let names: Vec<&str> = DM_KINDS.iter().map(|kind| kind.name).collect();
            return Err(fail(no_such("kind", name, &names)));
        };
        let defaults = kind.params.iter().map(|p| p.default.to_owned());
        let mut layer = DmLayer {
            kind,
            values: defaults.collect(),
        };
        let mut given: Vec<&str> = Vec::new();
        for (key, value) in params {
            let Some(place) = kind.params.iter().position(|p| p.name == key) else {
                return Err(fail(no_parameter(kind, key)));
            };
            if given.contains(&key.as_str()) && layer.values[place] != *value {
                let other = shown(&layer.values[place]).to_string();
                let what = format!("{key} has two values, {other} and {}", shown(value));
                return Err(fail(what));
            }
            given.push(key);
            let checked = kind.params[place].check(value);
            layer.values[place] = checked.map_err(|what| fail(format!("{name}: {what}")))?;
        }
        Ok(layer)
    }

    /// `KIND`, `KIND:NUMBER` (of disks) or `KIND:KEY=VALUE:KEY=VALUE`.
    fn parse(text: &str) -> Result<DmLayer, Error> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let params = parts.map(|part| match part.split_once('=') {
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
            None if part.parse::<u32>().is_ok() => Ok(("disks".to_owned(), part.to_owned())),
            None => Err(fail(format!(
                "'{}': expected KEY=VALUE after the kind, as in crypt:sector_size=4096",
                shown(text)
            ))),
        });
        DmLayer::new(name, &params.collect::<Result<Vec<_>, _>>()?)
    }

    /// The value of a parameter; empty if it has none of that name.
    pub fn value(&self, name: &str) -> &str {
        let mut all = self.values();
        all.find(|(param, _)| param.name == name)
            .map_or("", |(_, value)| value)
    }

    /// The same for a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).parse().ok()
    }

    /// All parameters with their values.
    pub fn values(&self) -> impl Iterator<Item = (&'static DmParam, &str)> {
        let values = self.values.iter().map(String::as_str);
        self.kind.params.iter().zip(values)
    }

    /// Disks that it puts together by itself.
    pub fn nr_disks(&self) -> u32 {
        let disks = self.number("disks").unwrap_or(1);
        u32::try_from(disks).unwrap_or(1)
    }
}

fn no_parameter(kind: &DmKind, key: &str) -> String {
    let known: Vec<&str> = kind.params.iter().map(|p| p.name).collect();
    no_such(&format!("parameter of {}", kind.name), key, &known)
}

/// As it is read: parameters that are not the default stand behind it.
impl fmt::Display for DmLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name)?;
        let mut set = self
            .values()
            .filter(|(param, value)| param.default != *value);
        set.try_for_each(|(param, value)| write!(f, ":{}={value}", param.name))
    }
}

impl DmSpec {
    /// These devices.
    ///
    /// # Errors
    /// If they cannot lie on each other.
    pub fn new(layers: Vec<DmLayer>) -> Result<DmSpec, Error> {
        if layers.len() > LAYERS_MAX {
            let what = format!(
                "{} devices on each other; at most {LAYERS_MAX}",
                layers.len()
            );
            return Err(fail(what));
        }
        let above = layers.iter().skip(1);
        if let Some(layer) = above.into_iter().find(|l| l.nr_disks() > 1) {
            let what = format!(
                "{} puts disks together, so it is the first: {} is below it",
                layer.kind.name, layers[0].kind.name
            );
            return Err(fail(what));
        }
        let with_fast = layers.iter().filter(|l| l.kind.has_fast_device());
        if with_fast.count() > 1 {
            return Err(fail("one cache at most".to_owned()));
        }
        Ok(DmSpec { layers })
    }

    /// `none`, or one device or several, the lowest first: `thin:chunk_kb=256+crypt`.
    ///
    /// # Errors
    /// If it is not written like that, or something is not known.
    pub fn parse(text: &str) -> Result<DmSpec, Error> {
        if text.trim() == "none" {
            return Ok(DmSpec::default());
        }
        let layers = text.split('+').map(|part| DmLayer::parse(part.trim()));
        DmSpec::new(layers.collect::<Result<_, _>>()?)
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.layers.is_empty()
    }

    /// Disks that it puts together by itself.
    pub fn nr_disks(&self) -> u32 {
        self.layers.first().map_or(1, DmLayer::nr_disks)
    }

    /// The device of a cache, which is a disk of its own; none if there is no cache.
    pub fn fast_device(&self) -> Option<&str> {
        let layer = self.layers.iter().find(|l| l.kind.has_fast_device())?;
        Some(layer.value(kinds::FAST))
    }
}

/// As [`DmSpec::parse`] reads it.
impl fmt::Display for DmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        for (i, layer) in self.layers.iter().enumerate() {
            let plus = if i == 0 { "" } else { "+" };
            write!(f, "{plus}{layer}")?;
        }
        Ok(())
    }
}

impl Experiment {
    /// Disks of its machine that are like its device.
    pub fn nr_disks(&self) -> u32 {
        self.md.map_or(self.dm.nr_disks(), |md| md.members)
    }

    /// Block devices that lie on its disks: the array, and those of device mapper.
    pub fn nr_on_disks(&self) -> usize {
        usize::from(self.md.is_some()) + self.dm.layers.len()
    }

    /// Refuses devices that no model has.
    pub(crate) fn check_dm(&self) -> Result<(), Error> {
        if self.dm.is_none() {
            return Ok(());
        }
        Err(Error::not_modelled(format!(
            "{}: neither device mapper nor loop devices are modelled; the target kernel has them",
            self.dm
        ))
        .about("dm"))
    }

    /// Refuses a device that puts disks together on an array, which has done so.
    ///
    /// # Errors
    /// If there are both.
    pub fn check_stack(&self) -> Result<(), Error> {
        match (&self.md, self.dm.layers.first()) {
            (Some(md), Some(layer)) if layer.nr_disks() > 1 => Err(fail(format!(
                "{layer} puts disks together, and so does {md}: choose one"
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DmSpec;

    #[test]
    fn what_is_written_is_read() {
        for text in [
            "none",
            "crypt",
            "crypt:sector_size=4096:no_read_workqueue=1",
            "striped:disks=3:chunk_kb=16",
            "thin:chunk_kb=256+crypt+delay:read_ms=5",
            "crypt+loop:fs=ext4:direct_io=1",
        ] {
            let spec = DmSpec::parse(text).expect(text);
            assert_eq!(spec.to_string(), text);
            assert_eq!(DmSpec::parse(&spec.to_string()), Ok(spec));
        }
        let three = DmSpec::parse("linear:3").expect("a number of disks");
        assert_eq!(three.nr_disks(), 3);
        assert_eq!(three.to_string(), "linear:disks=3");
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        for (text, said) in [
            ("", "no kind is called ''"),
            ("cript", "did you mean 'crypt'?"),
            ("crypt:size=1", "no parameter of crypt is called 'size'"),
            (
                "crypt:sector_size=300",
                "expected one of 512, 1024, 2048, 4096",
            ),
            ("crypt:sector_size", "expected KEY=VALUE"),
            ("delay:read_ms=x", "expected a number from 0 to 60000"),
            ("delay:3", "no parameter of delay is called 'disks'"),
            ("crypt+striped", "puts disks together"),
            ("cache+writecache", "one cache at most"),
            ("crypt:allow_discards=2", "expected 0 or 1"),
            ("thin:chunk_kb=100", "a multiple of 64"),
            ("loop:fs=btrfs", "expected one of none, ext4, xfs"),
        ] {
            let error = DmSpec::parse(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
