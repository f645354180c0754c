// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches and wake-ups of tasks: as the kernel prints them, and as trace-cmd does.

use crate::fields::Fields;
use crate::text::decimal;
use blklab_trace::{TaskState, Tracepoint};
use blklab_types::Pid;

pub(super) fn switch(f: &impl Fields) -> Option<Tracepoint> {
    let pid = |name, other| f.number(name).or_else(|| f.number(other));
    let (Some(prev), Some(next)) = (pid("prev_pid", "prev_tid"), pid("next_pid", "next_tid"))
    else {
        return short_switch(f.line()?);
    };
    let prev_state = match f.number("prev_state") {
        Some(bits) => of_bits(bits),
        None => f.text("prev_state").map_or(TaskState::Other, of_letters),
    };
    Some(Tracepoint::Switch {
        prev: prev as Pid,
        prev_state,
        next: next as Pid,
    })
}

pub(super) fn wakeup(f: &impl Fields) -> Option<Tracepoint> {
    let pid = f.number("pid").or_else(|| f.number("tid"));
    let pid = match pid {
        Some(pid) => pid as Pid,
        None => task(f.line()?)?,
    };
    Some(Tracepoint::Wakeup { pid })
}

/// `fio:1234 [120] S ==> swapper/0:0 [120]`.
fn short_switch(line: &[u8]) -> Option<Tracepoint> {
    let at = memchr::memmem::find(line, b" ==> ")?;
    let (before, after) = (&line[..at], &line[at + 5..]);
    let state = before.rsplit(|b| *b == b' ').next()?;
    Some(Tracepoint::Switch {
        prev: task(before)?,
        prev_state: of_letters(state),
        next: task(after)?,
    })
}

/// The pid in `COMM:PID [PRIORITY] …`.
fn task(text: &[u8]) -> Option<Pid> {
    let at = text.iter().rposition(|b| *b == b'[')?;
    let name = text[..at].trim_ascii_end();
    let digits = name.rsplit(|b| *b == b':').next()?;
    decimal(digits)?.try_into().ok()
}

/// `TASK_*` (include/linux/sched.h): the lowest bits have been the same since 2.6.14. A
/// thread of the kernel that has nothing to do sleeps with `TASK_NOLOAD` (from 4.2 on).
fn of_bits(bits: u64) -> TaskState {
    const IDLE: u64 = 0x402;
    match bits {
        bits if bits & 0xff == 0 => TaskState::Runnable,
        bits if bits & IDLE == IDLE => TaskState::Other,
        bits if bits & 1 != 0 => TaskState::Interruptible,
        bits if bits & 2 != 0 => TaskState::Uninterruptible,
        _ => TaskState::Other,
    }
}

/// `R+`, `S`, `D|K`.
fn of_letters(word: &[u8]) -> TaskState {
    match word.first() {
        Some(b'R') => TaskState::Runnable,
        Some(b'S') => TaskState::Interruptible,
        Some(b'D') => TaskState::Uninterruptible,
        _ => TaskState::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextFields;
    use super::*;

    #[test]
    fn switches_of_kernels_and_programs() {
        let shown = |line: &str| switch(&TextFields(line.as_bytes())).map(|p| p.to_string());
        for (line, expected) in [
            (
                "prev_comm=fio prev_pid=77 prev_prio=120 prev_state=D ==> next_comm=swapper/0 next_pid=0 next_prio=120",
                "sched_switch: 77 D => 0",
            ),
            (
                "prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=fio next_pid=77 next_prio=120",
                "sched_switch: 5 R => 77",
            ),
            (
                "fio:77 [120] D|K ==> swapper/0:0 [120]",
                "sched_switch: 77 D => 0",
            ),
            (
                "kworker/0:1H:9 [100] I ==> a b:5 [120]",
                "sched_switch: 9 ? => 5",
            ),
        ] {
            assert_eq!(shown(line).as_deref(), Some(expected), "{line}");
        }
        assert_eq!(shown("prev_comm=fio prev_pid="), None);
        let woken = |line: &str| wakeup(&TextFields(line.as_bytes())).map(|p| p.to_string());
        for line in [
            "comm=fio pid=77 prio=120 target_cpu=003",
            "comm=fio pid=77 prio=120 success=1 target_cpu=000",
            "fio:77 [120] success=1 CPU:003",
            "fio:77 [120]<CC><87> CPU:000",
        ] {
            assert_eq!(woken(line).as_deref(), Some("sched_wakeup: 77"), "{line}");
        }
        assert_eq!(woken("fio"), None);
    }

    #[test]
    fn states_in_bits() {
        for (bits, state) in [
            (0, TaskState::Runnable),
            (0x100, TaskState::Runnable),
            (0x400, TaskState::Runnable),
            (1, TaskState::Interruptible),
            (2, TaskState::Uninterruptible),
            (0x102, TaskState::Uninterruptible),
            (0x402, TaskState::Other),
            (0x80, TaskState::Other),
        ] {
            assert_eq!(of_bits(bits), state, "{bits:#x}");
        }
    }
}
