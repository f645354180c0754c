// SPDX-License-Identifier: MIT OR Apache-2.0
//! A fio job file that does what the processes of a trace did.
//!
//! ```text
//! bios of a process ─► streams ─► units (what one system call moved) ─► section
//!      plain writes of all processes that nobody waits for ─► buffered writers
//! ```
//!
//! A process is one section, or one for each part that it does not wait for in the same way.
//! Writes that nobody waits for are what the page cache wrote: fio writes such data
//! through the page cache, too, as far as possible in the order of their sectors. Everything
//! else is direct I/O on the disk, with the sizes of the bios.

mod exact;
mod fit;
mod stream;
#[cfg(test)]
mod tests;

pub use exact::{ExactJob, exact_job};
pub use fit::Section;

use crate::recorded::Recorded;
use std::fmt::Write as _;
use stream::{Stream, streams};

/// Most sections of a job file. Of further streams the smallest are left out.
pub const SECTIONS_MAX: usize = 1000;

/// A job file, in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFile {
    /// In the order of their starts.
    pub sections: Vec<Section>,
    /// What it is and what it leaves out, in words.
    pub remarks: Vec<String>,
    /// The disk, as fio names it.
    pub disk: String,
}

impl JobFile {
    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "; {remark}");
        }
        let _ = writeln!(text, "\n[global]\nfilename={}", self.disk);
        for section in &self.sections {
            let _ = write!(text, "\n{section}");
        }
        text
    }
}

/// The job file of a trace, on a disk that fio knows as `disk` (`/dev/sda`).
pub fn job_file(recorded: &Recorded, disk: &str) -> JobFile {
    let mut streams = streams(recorded);
    let mut remarks = vec![format!(
        "inferred from a trace: {} bios of {} processes on device {}",
        recorded.nr_bios(),
        recorded.processes.len(),
        recorded.dev
    )];
    remarks.extend(recorded.notes.iter().cloned());
    if streams.len() > SECTIONS_MAX {
        streams.sort_by_key(|s| std::cmp::Reverse(s.bytes()));
        let left: u64 = streams[SECTIONS_MAX..].iter().map(Stream::bytes).sum();
        let all: u64 = streams.iter().map(Stream::bytes).sum();
        remarks.push(format!(
            "{} of {} streams, the smallest, are left out: {:.1} % of the bytes",
            streams.len() - SECTIONS_MAX,
            streams.len(),
            left as f64 * 100.0 / all.max(1) as f64
        ));
        streams.truncate(SECTIONS_MAX);
    }
    streams.sort_by_key(Stream::begin);
    let begin = streams.first().map_or(0, |s| s.begin().ns());
    let mut sections: Vec<Section> = streams.iter().map(|s| fit::section(s, begin)).collect();
    make_distinct(&mut sections);
    JobFile {
        sections,
        remarks,
        disk: disk.to_owned(),
    }
}

/// fio takes sections of one name for one.
fn make_distinct(sections: &mut [Section]) {
    let mut seen = std::collections::BTreeSet::new();
    for section in sections {
        let base = section.name.clone();
        let mut n = 2;
        while !seen.insert(section.name.clone()) {
            section.name = format!("{base}-{n}");
            n += 1;
        }
    }
}
