// SPDX-License-Identifier: MIT OR Apache-2.0
//! The jobs as fio in the machine is given them: as they are, but for what belongs to the
//! machine.

/// The results are put together here, and there is one clock.
const OURS: [&str; 2] = ["group_reporting", "clocksource"];

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

fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or_default().trim()
}

/// What fio runs. With `any_contents` nobody looks at what is written but the jobs.
pub(super) fn to_run(spelled_out: &str, any_contents: bool) -> String {
    let contents_matter = spelled_out
        .lines()
        .any(|line| CONTENTS.contains(&key(line)));
    let zeroes = if any_contents && !contents_matter {
        ZEROES
    } else {
        ""
    };
    write(spelled_out, zeroes, &[])
}

/// What fio lays files out by: they stay.
pub(super) fn to_lay_out(spelled_out: &str, any_contents: bool) -> String {
    let zeroes = if any_contents { ZEROES } else { "" };
    write(spelled_out, zeroes, &["unlink", "unlink_each_loop"])
}

fn write(spelled_out: &str, more: &str, without: &[&str]) -> String {
    // Groups stay until it is known what they moved.
    let mut text = format!("[global]\nclocksource=clock_gettime\ncgroup_nodelete=1\n{more}");
    let is_out = |line: &&str| OURS.contains(&key(line)) || without.contains(&key(line));
    for line in spelled_out.lines().filter(|line| !is_out(line)) {
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{to_lay_out, to_run};

    #[test]
    fn a_job_keeps_everything_but_its_clock_and_its_grouping() {
        let text = "[a]\nrw=read\ngroup_reporting\nclocksource=cpu\nsize=1m\n";
        let expected =
            "[global]\nclocksource=clock_gettime\ncgroup_nodelete=1\n[a]\nrw=read\nsize=1m\n";
        assert_eq!(to_run(text, false), expected);
    }

    #[test]
    fn zeroes_are_written_where_nobody_can_tell() {
        let job = "[a]\nrw=write\nunlink=1\n";
        assert!(to_run(job, true).contains("zero_buffers=1\n[a]"));
        assert!(to_run(job, true).contains("unlink=1"));
        assert!(!to_run("[a]\nverify=crc32c\n", true).contains("zero_buffers"));
        assert!(!to_lay_out(job, true).contains("unlink"));
        assert!(!to_lay_out(job, false).contains("zero_buffers"));
    }
}
