// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands in front of an event: process, CPU and time, in the ways of all programs that
//! print tracepoints.

use crate::text::{Rest, decimal, time, unlogged};
use blklab_types::{Pid, Time};
use memchr::memmem;

/// What stands in front of every event.
pub(super) struct Head<'a> {
    pub(super) comm: &'a [u8],
    pub(super) pid: Pid,
    pub(super) cpu: u16,
    pub(super) time: Time,
    pub(super) has_time: bool,
}

impl<'a> Head<'a> {
    /// The name of the process, if the line says it.
    pub(super) fn known_comm(&self) -> Option<&'a [u8]> {
        let is_known = !self.comm.is_empty() && self.comm != b"<...>" && self.comm != b"<idle>";
        is_known.then_some(self.comm)
    }
}

/// Takes process, CPU and time off the line, if all are there, with what a log has in front.
pub(super) fn strict<'a>(rest: &mut Rest<'a>) -> Option<Head<'a>> {
    let line = rest.0;
    let Some(head) = plain(rest) else {
        return latency(rest);
    };
    // That stands where the name of the process is looked for: most lines have none.
    let is_logged = head.comm.starts_with(b"[") || memmem::find(head.comm, b"kernel: ").is_some();
    if !is_logged {
        return Some(head);
    }
    rest.0 = unlogged(line).1;
    plain(rest)
}

fn plain<'a>(rest: &mut Rest<'a>) -> Option<Head<'a>> {
    let line = rest.0;
    let (at, cpu, behind) = cpu(line)?;
    let (comm, pid) = task(line[..at].trim_ascii_end())?;
    rest.0 = &line[behind..];
    let mut word = rest.word();
    if !word.ends_with(b":") {
        // How interrupts and preemption stand.
        word = rest.word();
    }
    Some(Head {
        comm,
        pid,
        cpu,
        time: time(word.strip_suffix(b":")?)?,
        has_time: true,
    })
}

/// The latency format, also of `trace-cmd report -l`: `COMM-PID 4d.h2. 119.323158:`.
fn latency<'a>(rest: &mut Rest<'a>) -> Option<Head<'a>> {
    let line = rest.0;
    let colon = line
        .windows(2)
        .position(|w| w[0] == b':' && w[1].is_ascii_whitespace())?;
    let (before, behind) = line.split_at(colon + 1);
    let (stamp, before) = clock(before);
    let (before, cpu) = flagged_cpu(before)?;
    let (comm, pid) = task(before).filter(|(comm, _)| !comm.is_empty())?;
    rest.0 = behind;
    Some(Head {
        comm,
        pid,
        cpu,
        time: stamp?,
        has_time: true,
    })
}

/// `[003]` between spaces: where it begins, the CPU, and where it ends.
fn cpu(line: &[u8]) -> Option<(usize, u16, usize)> {
    let opening = |at: usize| line[at] == b'[' && at > 0 && line[at - 1].is_ascii_whitespace();
    (0..line.len()).filter(|at| opening(*at)).find_map(|at| {
        let inside = &line[at + 1..];
        let end = inside.iter().position(|b| *b == b']')?;
        let cpu = decimal(&inside[..end])?.try_into().ok()?;
        let behind = at + end + 2;
        line.get(behind)?
            .is_ascii_whitespace()
            .then_some((at, cpu, behind))
    })
}

/// `COMM-PID`, perhaps with the thread group in parentheses, or perf's `COMM PID`
/// and `COMM PID/TID`.
fn task(text: &[u8]) -> Option<(&[u8], Pid)> {
    let text = match text.strip_suffix(b")") {
        Some(text) => text[..text.iter().rposition(|b| *b == b'(')?].trim_ascii_end(),
        None => text,
    };
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (before, pid) = text.split_at(text.len() - digits);
    let pid = decimal(pid)?.try_into().ok()?;
    let comm = match before.split_last()? {
        (b'-' | b' ' | b'\t', comm) => comm,
        (b'/', group) => {
            let digits = group.iter().rev().take_while(|b| b.is_ascii_digit());
            &group[..group.len() - digits.count()]
        }
        _ => return None,
    };
    Some((comm.trim_ascii(), pid))
}

/// What is there of them, in front of an event; `last_time` if there is no time.
pub(super) fn loose(before: &[u8], last_time: Time) -> Head<'_> {
    let (logged, before) = unlogged(before);
    let (at, mut before) = clock(before);
    let time = at.or(logged);
    let mut head = Head {
        comm: b"",
        pid: 0,
        cpu: 0,
        time: time.unwrap_or(last_time),
        has_time: time.is_some(),
    };
    if let Some((rest, cpu)) = last_cpu(before) {
        head.cpu = cpu;
        before = rest;
    }
    if let Some((comm, pid)) = task(before) {
        (head.comm, head.pid) = (comm, pid);
    }
    head
}

/// The time at the end of what stands before an event, or at its beginning, and the rest.
fn clock(before: &[u8]) -> (Option<Time>, &[u8]) {
    let text = before.trim_ascii_end();
    if let Some(front) = text.strip_suffix(b":") {
        // The latency format marks long delays: `6913us!: `, `6426us : `.
        let front = front.trim_ascii_end();
        let front = match front {
            [front @ .., b'!' | b'+' | b'#' | b'*' | b'@' | b'$'] => front,
            unmarked => unmarked,
        };
        let last = last_word(front);
        let rest = front[..front.len() - last.len()].trim_ascii_end();
        let us = last.strip_suffix(b"us").and_then(decimal);
        let stamp = us.map(|us| Time(us.saturating_mul(1000)));
        if let Some(stamp) = stamp.or_else(|| time(last)) {
            return (Some(stamp), rest);
        }
    }
    match traced_ms(text) {
        Some((stamp, rest)) => (Some(stamp), rest),
        None => (None, text),
    }
}

/// perf trace's `MS ( TOOK ms): COMM/TID`, of which the parentheses may be missing.
fn traced_ms(text: &[u8]) -> Option<(Time, &[u8])> {
    let mut rest = Rest(text);
    let stamp = rest.word();
    let digits = stamp.len().checked_sub(4)?;
    if stamp[digits] != b'.' {
        return None;
    }
    let ms = time(stamp)?;
    if rest.bracketed_first(b'(', b')').is_some() {
        rest.take(b':');
    }
    let task = rest.0.trim_ascii();
    let is_task = task.contains(&b'/') || task.starts_with(b":");
    is_task.then_some((Time(ms.0 / 1000), task))
}

/// The CPU at the end: `[003]`, or `3d..1` of the latency format; and what stands before.
fn last_cpu(text: &[u8]) -> Option<(&[u8], u16)> {
    if let Some((at, cpu, _)) = cpu(&[text, b" "].concat()) {
        return Some((text[..at].trim_ascii_end(), cpu));
    }
    flagged_cpu(text)
}

/// `3d..1` of the latency format at the end.
fn flagged_cpu(text: &[u8]) -> Option<(&[u8], u16)> {
    let last = last_word(text);
    let digits = last.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, flags) = last.split_at(digits);
    let is_flag = |b: &u8| b.is_ascii_alphanumeric() || matches!(*b, b'.' | b'#');
    let are_flags = matches!(flags.first(), Some(b'.' | b'd' | b'D' | b'b' | b'B' | b'X'));
    if !(4..=6).contains(&flags.len()) || !are_flags || !flags.iter().all(is_flag) {
        return None;
    }
    let rest = text[..text.len() - last.len()].trim_ascii_end();
    Some((rest, decimal(number)?.try_into().ok()?))
}

fn last_word(text: &[u8]) -> &[u8] {
    text.rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str) -> String {
        let head = loose(before.as_bytes(), Time(7));
        let comm = String::from_utf8_lossy(head.comm).into_owned();
        let (pid, cpu, ns) = (head.pid, head.cpu, head.time.0);
        format!("{comm} {pid} cpu {cpu} {ns} {}", head.has_time)
    }

    #[test]
    fn heads_of_all_programs() {
        for (before, expected) in [
            // The latency format, whose times may be marked.
            (
                "     fio-12345     1d..1. 6426us : ",
                "fio 12345 cpu 1 6426000 true",
            ),
            (
                "  <idle>-0         0d.h1 6913us!: ",
                "<idle> 0 cpu 0 6913000 true",
            ),
            // trace-cmd report -l.
            (
                " my fio-5   12d..1 64.859875: ",
                "my fio 5 cpu 12 64859875000 true",
            ),
            // What an oops dumps, in the kernel's log.
            (
                "[   12.345680]    fio-5    1d..1. 6426000us : ",
                "fio 5 cpu 1 6426000000 true",
            ),
            // tp_printk, in the log and in syslog.
            ("[   12.345680] ", " 0 cpu 0 12345680000 true"),
            (
                "Jan  2 03:04:05 host kernel: [   12.345680] ",
                " 0 cpu 0 12345680000 true",
            ),
            // perf script without CPUs; perf trace.
            ("fio 5 6426.859875: ", "fio 5 cpu 0 6426859875000 true"),
            ("     0.412 ( 0.000 ms): fio/5 ", "fio 5 cpu 0 412000 true"),
            ("  1024.412 fio/5 ", "fio 5 cpu 0 1024412000 true"),
            // A clock that counts: no time.
            (
                "fio-5   [001] d..1. 64268598750000: ",
                "fio 5 cpu 1 7 false",
            ),
            ("", " 0 cpu 0 7 false"),
        ] {
            assert_eq!(shown(before), expected, "{before:?}");
        }
    }

    #[test]
    fn whole_heads_with_and_without_a_log_in_front() {
        let head = "fio-1234    [003] d..1.  64.859875: ";
        for log in [
            "",
            "   ",
            "[   12.345680] ",
            "kernel: ",
            "Jan  2 03:04:05 host kernel: [   12.345680] ",
            "Jan  2 03:04:05 host kernel: ",
        ] {
            let line = format!("{log}{head}block_rq_issue: 8,0 R");
            let mut rest = Rest(line.as_bytes());
            let head = strict(&mut rest).expect("process, CPU and time");
            assert_eq!(head.comm, b"fio", "{line}");
            assert_eq!((head.pid, head.cpu, head.time.0), (1234, 3, 64_859_875_000));
            assert_eq!(rest.word(), b"block_rq_issue:", "{line}");
        }
        let mut rest =
            Rest(b"  <idle>-0       4d.h2.   119.323158: ata_qc_complete_done: ata_port=1");
        let head = strict(&mut rest).expect("the latency format");
        assert_eq!((head.pid, head.cpu, head.time.0), (0, 4, 119_323_158_000));
        assert_eq!(rest.word(), b"ata_qc_complete_done:");
        assert!(strict(&mut Rest(b"We saw fio-5 wait 0.5 s: more than that")).is_none());
        let mut none = Rest(b"[   12.345680] fio 64.859875: block_rq_issue: 8,0 R");
        assert!(strict(&mut none).is_none());
    }
}
