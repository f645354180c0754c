// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the options of a fio job say about its load.

use crate::cell::{HostTimes, Stream};
use std::collections::BTreeMap;

/// Options that make a load other than what a [`Stream`] can be: with what they do, if
/// they have another value than the first.
const NOT_MODELLED: &[(&str, &[&str])] = &[
    ("bsrange", &[]),
    ("blocksize_range", &[]),
    ("bssplit", &[]),
    ("rate", &["0"]),
    ("rate_iops", &["0"]),
    ("rate_process", &["linear"]),
    ("thinktime", &["0"]),
    ("fsync", &["0"]),
    ("fdatasync", &["0"]),
    ("sync", &["0", "none"]),
    ("verify", &["0"]),
    ("random_distribution", &["random"]),
    ("percentage_random", &["100"]),
    ("zonemode", &["none"]),
    ("zonesize", &["0"]),
    ("iodepth_batch", &["1"]),
    ("iodepth_batch_submit", &["1"]),
    ("iodepth_batch_complete_min", &["0", "1"]),
    ("iodepth_low", &[]),
    ("read_iolog", &[]),
    ("flow", &[]),
];

/// The options of a job over those of its file.
pub(crate) struct Options(pub(crate) BTreeMap<String, String>);

impl Options {
    fn get(&self, names: &[&str]) -> Option<&str> {
        names
            .iter()
            .find_map(|n| self.0.get(*n))
            .map(String::as_str)
    }

    /// fio's engine.
    pub(crate) fn engine(&self) -> &str {
        self.get(&["ioengine"]).unwrap_or("psync")
    }

    /// Whether commands go past the kernel.
    pub(crate) fn bypasses_kernel(&self) -> bool {
        self.engine().contains("spdk")
    }

    /// How many processes there are.
    ///
    /// # Errors
    /// If it is no number.
    pub(crate) fn processes(&self) -> Result<u32, String> {
        self.number("numjobs", 1, 1..=1024)
    }

    fn number(
        &self,
        name: &str,
        default: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, String> {
        let Some(text) = self.get(&[name]) else {
            return Ok(default);
        };
        let number = text.trim().parse().ok().filter(|n| range.contains(n));
        number.ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            format!("{name}={text}: expected a whole number from {low} to {high}")
        })
    }

    /// The load.
    ///
    /// # Errors
    /// If it is none that a device can be fitted to: why, in a clause.
    pub(crate) fn stream(&self, host: HostTimes) -> Result<Stream, String> {
        for (name, usual) in NOT_MODELLED {
            if let Some(value) = self.get(&[name]).filter(|v| !usual.contains(v)) {
                return Err(format!("{name}={value} makes a load that is not modelled"));
            }
        }
        if !self.bypasses_kernel() && !matches!(self.get(&["direct"]), Some("1" | "")) {
            return Err(
                "it goes through the page cache: only direct=1 shows the device".to_owned(),
            );
        }
        let rw = self.get(&["rw", "readwrite"]).unwrap_or("read");
        let (read_pct, sequential) = match rw {
            "read" => (100, true),
            "write" => (0, true),
            "randread" => (100, false),
            "randwrite" => (0, false),
            "rw" | "readwrite" => (self.mix()?, true),
            "randrw" => (self.mix()?, false),
            other => return Err(format!("rw={other} is no load of reads and writes")),
        };
        let depth = match self.engine() {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" | "mmap" => 1,
            _ => self.number("iodepth", 1, 1..=4096)?,
        };
        Ok(Stream {
            processes: self.processes()?,
            depth,
            read_pct,
            bytes: self.sizes()?,
            sequential,
            host,
        })
    }

    /// How many of a hundred are reads.
    fn mix(&self) -> Result<u32, String> {
        match self.get(&["rwmixwrite"]) {
            Some(_) => Ok(100 - self.number("rwmixwrite", 50, 0..=100)?),
            None => self.number("rwmixread", 50, 0..=100),
        }
    }

    /// `bs=4k` or `bs=4k,64k`.
    fn sizes(&self) -> Result<[u32; 2], String> {
        let text = self.get(&["bs", "blocksize"]).unwrap_or("4k");
        let wrong = || format!("bs={text}: expected 512 to 16m, in multiples of 512");
        let mut sizes = text.split(',').map(str::trim);
        let read = size(sizes.next().unwrap_or_default()).ok_or_else(wrong)?;
        let write = match sizes.next() {
            Some("") | None => read,
            Some(text) => size(text).ok_or_else(wrong)?,
        };
        Ok([read, write])
    }
}

/// A block size in bytes.
pub(crate) fn size(text: &str) -> Option<u32> {
    let text = text.to_ascii_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u32 = match unit {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        _ => return None,
    };
    let bytes = number.parse::<u32>().ok()?.checked_mul(factor)?;
    let fits = (512..=16 << 20).contains(&bytes) && bytes.is_multiple_of(512);
    fits.then_some(bytes)
}
