// SPDX-License-Identifier: MIT OR Apache-2.0
//! The jobs as fio in the machine is given them: as they are, but for what belongs to the
//! machine.

use super::job_logs::Logs;
use std::fmt::Write as _;

/// The results are put together here, and there is one clock.
const OURS: [&str; 2] = ["group_reporting", "clocksource"];

/// Logs that are written: they lie where the machine keeps results.
const LOGS: [&str; 5] = [
    "write_bw_log",
    "write_hist_log",
    "write_iolog",
    "write_iops_log",
    "write_lat_log",
];

/// Options by which contents matter, or are chosen.
const CONTENTS: [&str; 10] = [
    "buffer_compress_percentage",
    "buffer_pattern",
    "dedupe_percentage",
    "do_verify",
    "refill_buffers",
    "scramble_buffers",
    "verify",
    "verify_pattern",
    "verify_only",
    "zero_buffers",
];

/// What is written where nobody reads it: zeroes take no memory of the host.
const ZEROES: &str = "zero_buffers=1\n";

/// A file that a log reads, which fio itself would not lay out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadFile {
    pub(super) name: String,
    pub(super) bytes: u64,
}

fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or_default().trim()
}

/// The name of the section that a line begins, if it is no global one.
fn section_of(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    (!name.starts_with("global")).then_some(name)
}

/// What fio runs. With `any_contents` nobody looks at what is written but the jobs.
pub(super) fn to_run(spelled_out: &str, any_contents: bool, logs: &Logs) -> String {
    let contents_matter = spelled_out
        .lines()
        .any(|line| CONTENTS.contains(&key(line)));
    let zeroes = if any_contents && !contents_matter {
        ZEROES
    } else {
        ""
    };
    write(spelled_out, zeroes, &[], logs)
}

/// What fio lays files out by: they stay. `read` are those that logs read.
pub(super) fn to_lay_out(spelled_out: &str, any_contents: bool, read: &[ReadFile]) -> String {
    let zeroes = if any_contents { ZEROES } else { "" };
    let without = ["unlink", "unlink_each_loop"];
    let mut text = write(spelled_out, zeroes, &without, &Logs::default());
    for (i, file) in read.iter().enumerate() {
        let ReadFile { name, bytes } = file;
        let _ = write!(
            text,
            "[blklab-read-{i}]\nioengine=psync\nrw=read\nfilename={name}\nsize={bytes}\n"
        );
    }
    text
}

fn write(spelled_out: &str, more: &str, without: &[&str], logs: &Logs) -> String {
    // Groups stay until it is known what they moved.
    let mut text = format!("[global]\nclocksource=clock_gettime\ncgroup_nodelete=1\n{more}");
    let names: Vec<&str> = spelled_out.lines().filter_map(section_of).collect();
    let mut of_logs = logs.lines(&names).into_iter();
    let mut own: &[String] = &[];
    let add = |text: &mut String, line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    let is_out = |line: &&str| {
        let key = key(line);
        OURS.contains(&key) || LOGS.contains(&key) || without.contains(&key)
    };
    for line in spelled_out.lines().filter(|line| !is_out(line)) {
        if line.starts_with('[') {
            // What stands last in a section is what counts.
            own.iter().for_each(|line| add(&mut text, line));
            own = match section_of(line) {
                Some(_) => of_logs.next().unwrap_or_default(),
                None => &[],
            };
        }
        add(&mut text, line);
    }
    own.iter().for_each(|line| add(&mut text, line));
    text
}

#[cfg(test)]
mod tests {
    use super::{ReadFile, to_lay_out, to_run};
    use crate::kernel::job_logs::Logs;

    #[test]
    fn a_job_keeps_everything_but_its_clock_and_its_grouping() {
        let text = "[a]\nrw=read\ngroup_reporting\nclocksource=cpu\nsize=1m\n";
        let expected =
            "[global]\nclocksource=clock_gettime\ncgroup_nodelete=1\n[a]\nrw=read\nsize=1m\n";
        assert_eq!(to_run(text, false, &Logs::default()), expected);
    }

    #[test]
    fn zeroes_are_written_where_nobody_can_tell() {
        let run = |text: &str| to_run(text, true, &Logs::default());
        let job = "[a]\nrw=write\nunlink=1\n";
        assert!(run(job).contains("zero_buffers=1\n[a]"));
        assert!(run(job).contains("unlink=1"));
        assert!(!run("[a]\nverify=crc32c\n").contains("zero_buffers"));
        assert!(!to_lay_out(job, true, &[]).contains("unlink"));
        assert!(!to_lay_out(job, false, &[]).contains("zero_buffers"));
    }

    #[test]
    fn what_logs_read_is_laid_out_and_nothing_is_logged_meanwhile() {
        let job = "[a]\nread_iolog=/work/replayed-0\nwrite_lat_log\n";
        let file = ReadFile {
            name: "d/x".to_owned(),
            bytes: 12_288,
        };
        let text = to_lay_out(job, false, &[file]);
        assert!(text.contains("filename=d/x\nsize=12288\n"), "{text}");
        assert!(!text.contains("write_lat_log"), "{text}");
    }
}
