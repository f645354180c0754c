// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of a control group: which there are, what may be written to them.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller
//! and block/bfq-iosched.rst.

use super::Cgroup;
use crate::no_such;
use blklab_block::IoMax;
use blklab_kernel::KernelVersion;
use blklab_types::shown;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// The first release on the multi-queue path: BFQ's weights and `io.max`.
pub(super) const MULTI_QUEUE: KernelVersion = KernelVersion::new(5, 0);
/// The first release with weights of a group against its children.
pub(super) const LEAF_WEIGHTS: KernelVersion = KernelVersion::new(3, 9);

/// What the words of `io.max` are called.
const LIMITS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// Weights of BFQ's groups.
const BFQ_WEIGHTS: RangeInclusive<u32> = 1..=1000;

/// A file of a group that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum File {
    /// Limits per second.
    IoMax,
    /// Weight under BFQ.
    BfqWeight,
    /// Weight under CFQ.
    BlkioWeight,
    /// The same against its own children.
    BlkioLeafWeight,
}

/// The files that are modelled, by name. `io.weight` is another name of BFQ's
/// weight: in the kernel it belongs to io.cost, and systemd copies it.
pub(super) const FILES: [(&str, File); 5] = [
    ("io.max", File::IoMax),
    ("io.bfq.weight", File::BfqWeight),
    ("io.weight", File::BfqWeight),
    ("blkio.weight", File::BlkioWeight),
    ("blkio.leaf_weight", File::BlkioLeafWeight),
];

/// Beginnings of the names of files that are not modelled.
const NOT_MODELLED: [&str; 5] = [
    "io.cost.",
    "io.latency",
    "io.prio.class",
    "blkio.throttle.",
    "blkio.bfq.",
];

impl File {
    /// Whether a release has it.
    pub(super) fn is_in(self, v: KernelVersion) -> bool {
        match self {
            File::IoMax | File::BfqWeight => v >= MULTI_QUEUE,
            File::BlkioWeight => v < MULTI_QUEUE,
            File::BlkioLeafWeight => (LEAF_WEIGHTS..MULTI_QUEUE).contains(&v),
        }
    }
}

impl Cgroup {
    /// Writes to one of its files.
    pub(super) fn write(&mut self, file: &str, text: &str) -> Result<(), String> {
        let Some((_, kind)) = FILES.iter().find(|(name, _)| *name == file) else {
            return Err(no_file(file));
        };
        match kind {
            File::IoMax => write_io_max(&mut self.io_max, text),
            File::BfqWeight => put_weight(&mut self.bfq_weight, file, text, BFQ_WEIGHTS),
            File::BlkioWeight => put_weight(&mut self.blkio_weight, file, text, 10..=1000),
            File::BlkioLeafWeight => put_weight(&mut self.blkio_leaf_weight, file, text, 10..=1000),
        }
    }
}

fn no_file(file: &str) -> String {
    if NOT_MODELLED.iter().any(|start| file.starts_with(start)) {
        return format!(
            "{file} is not modelled; modelled are io.max and io.bfq.weight from 5.0 on, and \
             blkio.weight under cfq before"
        );
    }
    no_such("file", file, &FILES.map(|(name, _)| name))
}

fn put_weight(
    weight: &mut Option<u32>,
    file: &str,
    text: &str,
    range: RangeInclusive<u32>,
) -> Result<(), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = match words[..] {
        [number] | ["default", number] => number.parse().ok(),
        _ => None,
    };
    let (low, high) = (range.start(), range.end());
    match number.filter(|n| range.contains(n)) {
        Some(n) => *weight = Some(n),
        None => {
            return Err(format!(
                "{file} = {text}: expected a number from {low} to {high}"
            ));
        }
    }
    Ok(())
}

/// Writes words such as `rbps=1048576`: the limits that they name change.
fn write_io_max(max: &mut IoMax, text: &str) -> Result<(), String> {
    let bad = |what: &str| {
        Err(format!(
            "io.max: {what}; write rbps=, wbps= (bytes per second), riops=, wiops= (I/Os per \
             second) with a number above 0 or max, as in rbps=1048576 wiops=120"
        ))
    };
    let mut any = false;
    for word in text.split_whitespace() {
        let Some((key, value)) = word.split_once('=') else {
            return bad(&format!("'{}' is not KEY=VALUE", shown(word)));
        };
        let limit = match value {
            "max" => None,
            _ => match value.parse::<u64>() {
                Ok(n) if n > 0 => Some(n),
                _ => return bad(&format!("'{}' has no such value", shown(word))),
            },
        };
        match key {
            "rbps" => max.read_bytes_per_s = limit,
            "wbps" => max.write_bytes_per_s = limit,
            "riops" => max.read_ios_per_s = limit,
            "wiops" => max.write_ios_per_s = limit,
            _ => return bad(&no_such("limit", key, &LIMITS)),
        }
        any = true;
    }
    if any { Ok(()) } else { bad("no limit") }
}

pub(super) fn io_max_text(max: &IoMax) -> String {
    let values = [
        max.read_bytes_per_s,
        max.write_bytes_per_s,
        max.read_ios_per_s,
        max.write_ios_per_s,
    ];
    let mut text = String::new();
    for (key, value) in LIMITS.iter().zip(values) {
        if let Some(n) = value {
            let blank = if text.is_empty() { "" } else { " " };
            let _ = write!(text, "{blank}{key}={n}");
        }
    }
    text
}
