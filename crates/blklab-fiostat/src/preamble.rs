// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio prints when it starts: the jobs, its version, how many it runs.

use std::fmt;

use crate::Units;

/// The text before a run: one header for each section (its clones included),
/// the version, and the number of threads and processes.
pub fn preamble(headers: &[JobHeader], version: &str, threads: u32, processes: u32) -> String {
    let jobs: String = headers.iter().map(ToString::to_string).collect();
    let counted = |n: u32, name: &str, plural: &str| match n {
        0 => None,
        1 => Some(format!("1 {name}")),
        _ => Some(format!("{n} {name}{plural}")),
    };
    let parts = [
        counted(threads, "thread", "s"),
        counted(processes, "process", "es"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{jobs}{version}\nStarting {}\n", parts.join(" and "))
}

/// The line about a section, and a line `...` if it has clones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobHeader {
    /// Job name.
    pub name: String,
    /// Group number.
    pub group_id: u32,
    /// `rw` as fio names it, such as `randread`.
    pub rw: String,
    /// Smallest and largest block size by direction.
    pub block_sizes: [(u64, u64); 3],
    /// Engine name.
    pub engine: String,
    /// Queue depth.
    pub iodepth: u32,
    /// Threads of the section.
    pub numjobs: u32,
    /// Units to print.
    pub units: Units,
}

impl fmt::Display for JobHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes| self.units.amount(bytes).0;
        let [r, w, t] = self
            .block_sizes
            .map(|(a, b)| format!("{}-{}", size(a), size(b)));
        write!(f, "{}: (g={}): rw={}, ", self.name, self.group_id, self.rw)?;
        write!(f, "bs=(R) {r}, (W) {w}, (T) {t}, ")?;
        writeln!(f, "ioengine={}, iodepth={}", self.engine, self.iodepth)?;
        match self.numjobs {
            0 | 1 => Ok(()),
            _ => writeln!(f, "..."),
        }
    }
}
