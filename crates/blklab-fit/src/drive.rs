// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device as a fit changes it: a preset, texts of parameters over it.

use crate::cell::{Cell, State};
use blklab_device::{Device, DeviceInfo};
use blklab_types::Error;

/// A preset with parameters over its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    /// The preset.
    pub name: &'static str,
    /// Parameters that differ from it, in the order in which they were set.
    pub params: Vec<(String, String)>,
}

impl Drive {
    /// As on the command line: `NAME,key=value…`.
    ///
    /// # Errors
    /// If there is no such device, or it is none of the flash drives that a fit can look for.
    pub fn parse(text: &str) -> Result<Drive, Error> {
        let told = |e: blklab_device::DeviceError| Error::new(e.to_string());
        let (info, params) = blklab_device::parse_spec(text).map_err(told)?;
        if !is_flash(info) {
            let names: Vec<&str> = presets().map(|i| i.name).collect();
            return Err(Error::new(format!(
                "{} is no flash drive with channels and dies; expected one of {}",
                info.name,
                names.join(", ")
            )));
        }
        let mut drive = Drive {
            name: info.name,
            params,
        };
        drive.build(None).map_err(Error::new)?;
        for (key, value) in std::mem::take(&mut drive.params) {
            drive.set(&key, value);
        }
        Ok(drive)
    }

    /// The preset alone.
    pub(crate) fn preset(name: &'static str) -> Drive {
        Drive {
            name,
            params: Vec::new(),
        }
    }

    fn info(&self) -> &'static DeviceInfo {
        blklab_device::find(self.name).expect("a drive is made of a preset")
    }

    /// Commands that it takes at a time.
    pub(crate) fn queue_depth(&self) -> u32 {
        self.info().queue_depth
    }

    /// The text of a parameter; empty if it follows from others.
    pub(crate) fn get(&self, name: &str) -> &str {
        if let Some((_, value)) = self.params.iter().find(|(k, _)| k == name) {
            return value;
        }
        let info = self.info();
        let param = info.params.iter().find(|p| p.name == name);
        info.default_of(param.expect("a parameter of flash drives"))
    }

    /// Sets a parameter; what the preset says itself is not repeated.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.params.retain(|(k, _)| k != name);
        if self.get(name) != value {
            self.params.push((name.to_owned(), value));
        }
    }

    /// The same drive as it was before a cell.
    fn before(&self, cell: Option<&Cell>) -> Vec<(String, String)> {
        let mut params = self.params.clone();
        let is_fresh = self.get("state") == "fresh";
        let state = match cell.map(|c| c.state) {
            Some(State::Fresh) if !is_fresh => "fresh",
            Some(State::Used) if is_fresh => "used",
            _ => return params,
        };
        params.retain(|(k, _)| k != "state");
        params.push(("state".to_owned(), state.to_owned()));
        params
    }

    /// The device, as it was before a cell.
    pub(crate) fn build(&self, cell: Option<&Cell>) -> Result<Box<dyn Device>, String> {
        let none = |_: &str| Err("no files".to_owned());
        let params = self.before(cell);
        blklab_device::build(self.name, &params, self.queue_depth(), &none)
            .map_err(|e| e.to_string())
    }
}

/// Whether a device is a flash drive with channels, dies and garbage collection.
fn is_flash(info: &DeviceInfo) -> bool {
    info.params.iter().any(|p| p.name == "gc_burst_bytes")
}

/// The flash drives among the presets.
pub(crate) fn presets() -> impl Iterator<Item = &'static DeviceInfo> {
    blklab_device::ALL.iter().filter(|i| is_flash(i))
}

/// A parameter's text as a number in the unit of a plain number; none if it has none.
pub(crate) fn number(name: &str, text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return Some(number);
    }
    let lower = text.to_ascii_lowercase();
    let at = lower.find(|c: char| c.is_ascii_alphabetic())?;
    let number: f64 = lower[..at].trim().parse().ok()?;
    let unit = match lower[at..].trim() {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "b" => 1.0,
        "kb" => 1e3,
        "kib" => 1024.0,
        "mb" => 1e6,
        "mib" => 1_048_576.0,
        "gb" => 1e9,
        "gib" => 1_073_741_824.0,
        _ => return None,
    };
    let is_time = name.ends_with("_us") == lower.ends_with('s');
    is_time.then_some(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_the_units_that_devices_take() {
        assert_eq!(number("read_us", "60"), Some(60.0));
        assert_eq!(number("read_us", "0.5ms"), Some(500.0));
        assert_eq!(number("buffer_bytes", "4MiB"), Some(4_194_304.0));
        assert_eq!(number("read_us", ""), None);
        assert_eq!(number("read_us", "4MiB"), None);
    }

    #[test]
    fn what_is_no_flash_drive_is_refused_with_what_there_is() {
        let told = Drive::parse("sata-7200-2008")
            .expect_err("refused")
            .to_string();
        assert!(told.contains("nvme-datacenter"), "{told}");
        let told = Drive::parse("nvme-consumer,red_us=1")
            .expect_err("refused")
            .to_string();
        assert!(told.contains("read_us"), "{told}");
    }

    #[test]
    fn a_value_that_the_preset_has_is_not_repeated() {
        let mut drive = Drive::preset("nvme-consumer");
        drive.set("read_us", "31".to_owned());
        assert_eq!(drive.params.len(), 1);
        drive.set("read_us", "29.8".to_owned());
        assert_eq!(drive.params.len(), 0);
    }
}
