// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of sums.

use serde::Serialize;
use std::collections::BTreeMap;

/// What kind of evidence something is in place of a trace, in the words of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What an answer rests on.
    pub basis: &'static str,
    /// What that means, behind its name.
    pub means: &'static str,
    /// What it is called further below.
    pub these: &'static str,
}

/// Tables of sums, means, histograms.
pub(crate) const SUMS: Form = Form {
    basis: "sums without single I/Os",
    means: "sums, no single I/Os, so that no cause can be named",
    these: "these sums",
};

/// A kernel's log.
pub(crate) const LOG: Form = Form {
    basis: "a kernel's log without I/Os",
    means: "what drivers said and where tasks waited, no I/Os, so that no cause can be named",
    these: "this log",
};

/// What a program says of its own calls.
pub(crate) const CALLS: Form = Form {
    basis: "a program's calls without the I/Os below",
    means: "how long calls took, not what they waited for, so that no cause can be named",
    these: "this output",
};

/// What sums show, and what they cannot show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// What they are: `iostat`.
    pub what: &'static str,
    /// What kind of evidence they are.
    #[serde(skip)]
    pub form: Form,
    /// Of each device, group, histogram or process.
    pub subjects: Vec<Subject>,
    /// Of all of them.
    pub notes: Vec<String>,
    /// What cannot be told from such sums.
    pub cannot: Vec<&'static str>,
    /// A command whose recording would show it.
    pub record: String,
}

/// One device, group, histogram or process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subject {
    /// What it is called.
    pub name: String,
    /// What is shown of it.
    pub shows: Vec<Shown>,
    /// Its figures by name, which ends with the unit.
    pub figures: BTreeMap<String, f64>,
}

/// One thing that is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// A word for it.
    pub about: &'static str,
    /// The sentence.
    pub text: String,
}

impl Subject {
    pub(crate) fn new(name: impl Into<String>) -> Subject {
        Subject {
            name: name.into(),
            shows: Vec::new(),
            figures: BTreeMap::new(),
        }
    }

    pub(crate) fn show(&mut self, about: &'static str, text: impl Into<String>) {
        let text = text.into();
        self.shows.push(Shown { about, text });
    }

    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64) {
        self.figures.insert(name.into(), value);
    }
}

/// The command that records what sums hide, of `device` if one is named.
pub(crate) fn record(device: Option<&str>) -> String {
    // What is no name of a disk is nothing to put into a command.
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.:!+@".contains(c);
    let device = device.filter(|name| !name.is_empty() && name.chars().all(is_part));
    // sar names disks by their numbers where nobody asks for names.
    let numbers = device.and_then(|name| name.strip_prefix("dev")?.split_once('-'));
    let device = match numbers {
        Some((major, minor)) => format!("/dev/block/{major}:{minor}"),
        None => device.unwrap_or("DEVICE").to_owned(),
    };
    format!("sudo blklab record {device} --also jbd2,ext4,writeback,sched --for 30s")
}

/// What no sums show.
pub(crate) const WHO: &str = "who waited, for whom, and in which order";
/// What means hide.
pub(crate) const SINGLE: &str =
    "single slow requests: a mean of 1 ms may be 999 of 0.1 ms and one of 900 ms";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_disks_go_into_a_command() {
        assert!(record(Some("nvme0n1")).starts_with("sudo blklab record nvme0n1 "));
        assert!(record(Some("dev8-16")).contains("record /dev/block/8:16 "));
        for other in ["", "sda; reboot", "a\nb"] {
            assert!(record(Some(other)).contains("record DEVICE "), "{other}");
        }
    }
}
