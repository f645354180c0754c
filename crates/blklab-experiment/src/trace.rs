// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as a workload: the table `[replay]`.

use blklab_types::{Dev, shown};
use blklab_types::{Error, no_such};
use serde_json::{Map, Value, json};
use std::fmt;

/// A trace whose bios are run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSpec {
    /// The trace: a file of any format that is read, or `-`.
    pub file: String,
    /// When its bios are submitted.
    pub timing: Timing,
    /// The device whose bios are run; none if the trace has those of one only.
    pub dev: Option<Dev>,
    /// Where on the device they go.
    pub placement: Placement,
}

/// When recorded bios are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// At the recorded times.
    #[default]
    Open,
    /// When what their processes waited for has ended, and after their pauses.
    Closed,
}

/// Where on the device recorded bios go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// To their sectors; a bio beyond the end of the device is refused.
    #[default]
    AsRecorded,
    /// All lower by as many whole MiB as the lowest of them can go; then as above.
    Shift,
    /// Round and round: to the remainder of the device's size.
    Wrap,
}

impl Timing {
    /// All, by name.
    pub const NAMES: [(&'static str, Timing); 2] =
        [("open", Timing::Open), ("closed", Timing::Closed)];
}

impl Placement {
    /// All, by name.
    pub const NAMES: [(&'static str, Placement); 3] = [
        ("as-recorded", Placement::AsRecorded),
        ("shift", Placement::Shift),
        ("wrap", Placement::Wrap),
    ];
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> &'static str {
    let found = names.iter().find(|(_, v)| v == value);
    found.map(|(name, _)| *name).expect("each has a name")
}

fn named<T: Copy>(key: &str, names: &[(&'static str, T)], text: &str) -> Result<T, Error> {
    match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let valid: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            let what = format!("{key}: {}", no_such("value", text, &valid));
            Err(Error::new(what).about(format!("replay.{key}")))
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Timing::NAMES, self))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&Placement::NAMES, self))
    }
}

impl TraceSpec {
    /// The keys of the table beside `trace`.
    pub const KEYS: [&'static str; 3] = ["loop", "device", "sectors"];

    /// A trace, open loop, at its sectors.
    pub fn new(file: &str) -> TraceSpec {
        TraceSpec {
            file: file.to_owned(),
            timing: Timing::default(),
            dev: None,
            placement: Placement::default(),
        }
    }

    /// Sets one of [`TraceSpec::KEYS`].
    ///
    /// # Errors
    /// If there is no such key or value.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), Error> {
        match key {
            "loop" => self.timing = named(key, &Timing::NAMES, text)?,
            "sectors" => self.placement = named(key, &Placement::NAMES, text)?,
            "device" => self.dev = Some(dev_of(text)?),
            _ => {
                let what = format!("replay: {}", no_such("key", key, &TraceSpec::KEYS));
                return Err(Error::new(what).about(format!("replay.{key}")));
            }
        }
        Ok(())
    }

    /// The table, as it is read.
    pub(crate) fn to_value(&self) -> Value {
        let mut table = Map::new();
        table.insert("trace".into(), json!(self.file));
        table.insert("loop".into(), json!(self.timing.to_string()));
        if let Some(dev) = self.dev {
            table.insert("device".into(), json!(dev.to_string()));
        }
        table.insert("sectors".into(), json!(self.placement.to_string()));
        Value::Object(table)
    }
}

/// `8,16`, as traces name devices.
fn dev_of(text: &str) -> Result<Dev, Error> {
    let numbers = text.split_once([',', ':']);
    let dev = numbers.and_then(|(major, minor)| {
        Some(Dev {
            major: major.trim().parse().ok()?,
            minor: minor.trim().parse().ok()?,
        })
    });
    dev.ok_or_else(|| {
        let what = format!(
            "device: '{}' is no device of a trace; give its numbers, as in 8,16",
            shown(text)
        );
        Error::new(what).about("replay.device")
    })
}
