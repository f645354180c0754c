// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O priorities of tasks that have I/O, as far as they have one of their own.

use blklab_types::{IoPrio, PrioClass};
use std::process::{Command, Stdio};

/// Tasks that are asked for, at most: each takes a run of `ionice`.
const TASKS_MAX: usize = 256;

/// The lines `ioprio.PID=PRIORITY` of these tasks, as far as they are there; none where there is
/// no `ionice` (util-linux).
pub fn priorities(tasks: impl IntoIterator<Item = u32>) -> Vec<String> {
    let tasks = tasks.into_iter().take(TASKS_MAX);
    let asked = tasks.map_while(|pid| Some((pid, ask(pid)?)));
    let lines = asked.filter_map(|(pid, text)| line(pid, &text));
    lines.collect()
}

/// What `ionice` says of a task; nothing if the task is gone. None if there is no `ionice`.
fn ask(pid: u32) -> Option<String> {
    let asked = Command::new("ionice")
        .args(["-p", &pid.to_string()])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&asked.stdout).into_owned())
}

/// The line of a task that has a priority of its own.
fn line(pid: u32, text: &str) -> Option<String> {
    let prio: IoPrio = text.trim().parse().ok()?;
    (prio.class != PrioClass::None).then(|| format!("ioprio.{pid}={prio}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_priority_of_its_own_has_a_line() {
        assert_eq!(line(7, "idle\n").as_deref(), Some("ioprio.7=idle"));
        let raised = line(7, "best-effort: prio 2\n");
        assert_eq!(raised.as_deref(), Some("ioprio.7=best-effort: prio 2"));
        assert_eq!(line(7, "none: prio 0\n"), None);
        assert_eq!(line(7, ""), None);
    }

    #[test]
    fn a_task_that_is_gone_has_none() {
        assert!(priorities([u32::MAX]).is_empty());
    }
}
