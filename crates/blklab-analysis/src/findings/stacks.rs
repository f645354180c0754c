// SPDX-License-Identifier: MIT OR Apache-2.0
//! Through which functions of the kernel a task came to queue a bio, where the recorder has kept
//! that (`blklab record --stacks`).

use blklab_trace::{Action, BETWEEN_FRAMES, Event};
use blklab_types::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A stack comes right behind its Q on the same CPU: between them are events of other CPUs.
const EVENTS_BETWEEN_MAX: usize = 256;

/// Different stacks that are kept of a section; of more, the first.
const STACKS_MAX: usize = 1 << 16;

/// Functions that are shown of a stack, and of a longer one those at both ends.
const FUNCTIONS_SHOWN: usize = 8;
const INNER_SHOWN: usize = 5;
const OUTER_SHOWN: usize = 2;

/// How the block layer's own functions begin, through which every bio goes.
const BLOCK_LAYER: [&str; 4] = [
    "submit_bio",
    "__submit_bio",
    "generic_make_request",
    "blk_mq_submit_bio",
];

/// The functions through which every system call and every thread comes.
const ENTRIES: [&str; 11] = [
    "entry_SYSCALL",
    "do_syscall",
    "x64_sys_call",
    "el0_",
    "el0t_",
    "do_el0_svc",
    "invoke_syscall",
    "ret_from_fork",
    "kthread",
    "asm_",
    "system_call",
];

/// The stacks of a section, by the places of their Q.
#[derive(Clone, Debug, Default)]
pub(super) struct Stacks {
    of: BTreeMap<usize, Rc<str>>,
    all: BTreeSet<Rc<str>>,
}

impl Stacks {
    /// Takes the stack of a task, whose last Q is among the last of these events.
    pub(super) fn add(&mut self, events: &[Event], pid: Pid, functions: &str) {
        let latest = events.iter().enumerate().rev().take(EVENTS_BETWEEN_MAX);
        let mut own = latest.filter(|(_, e)| e.pid == pid && e.action == Action::Queue);
        let Some((place, _)) = own.next().filter(|(place, _)| !self.of.contains_key(place)) else {
            // Of what comes behind a Q that has its stack: G, I, D.
            return;
        };
        let known = self.all.get(functions).cloned();
        let stack = known.unwrap_or_else(|| Rc::from(functions));
        if self.all.len() < STACKS_MAX {
            self.all.insert(Rc::clone(&stack));
        }
        self.of.insert(place, stack);
    }

    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// That of the Q at a place.
    pub(super) fn at(&self, place: usize) -> Option<&str> {
        self.of.get(&place).map(AsRef::as_ref)
    }
}

/// The names of the functions of a stack, the innermost first, without what the compiler adds.
pub(super) fn names(functions: &str) -> impl Iterator<Item = &str> {
    let names = functions.split(BETWEEN_FRAMES);
    names.map(|name| name.split('.').next().unwrap_or(name))
}

fn is_one(name: &str, begins: &[&str]) -> bool {
    begins.iter().any(|b| name.starts_with(b))
}

/// The function that submitted the bio: the innermost outside of the block layer.
pub(super) fn submitter(functions: &str) -> Option<&str> {
    let mut outside = names(functions).filter(|name| !is_one(name, &BLOCK_LAYER));
    outside.next()
}

/// What of a stack says something, on a line: from the submission of the bio to the system call
/// or thread, and of many functions those at both ends.
pub fn short(functions: &str) -> String {
    let all: Vec<&str> = names(functions).collect();
    let inner = all.iter().rposition(|name| is_one(name, &BLOCK_LAYER));
    let mut told: Vec<&str> = all[inner.unwrap_or(0)..].to_vec();
    while told.len() > 1 && told.last().is_some_and(|name| is_one(name, &ENTRIES)) {
        told.pop();
    }
    told.dedup();
    if told.len() > FUNCTIONS_SHOWN {
        let outer = told.len() - OUTER_SHOWN;
        told.splice(INNER_SHOWN..outer, ["..."]);
    }
    told.join(BETWEEN_FRAMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;
    use blklab_types::{Dev, Time};

    #[test]
    fn what_every_bio_goes_through_is_not_shown() {
        let whole = "submit_bio_noacct_nocheck < submit_bio_noacct < submit_bio < \
                     xfs_buf_submit.part.0 < xfs_buf_read_map < xfs_trans_read_buf_map < \
                     xfs_imap_to_bp < do_syscall_64 < entry_SYSCALL_64_after_hwframe";
        assert_eq!(
            short(whole),
            "submit_bio < xfs_buf_submit < xfs_buf_read_map < xfs_trans_read_buf_map < \
             xfs_imap_to_bp"
        );
        assert_eq!(
            short(
                "submit_bio < a < b < c < d < e < f < g < h < worker_thread < kthread < ret_from_fork < ret_from_fork_asm"
            ),
            "submit_bio < a < b < c < d < ... < h < worker_thread"
        );
        assert_eq!(submitter(whole), Some("xfs_buf_submit"));
        assert_eq!(submitter("submit_bio_wait"), None);
        // Nothing to leave out, and nothing but that.
        assert_eq!(short("a < b"), "a < b");
        assert_eq!(short("kthread < ret_from_fork"), "kthread");
        assert_eq!(short(""), "");
    }

    #[test]
    fn a_stack_is_of_the_last_q_of_its_task() {
        let event = |pid, action| Event {
            time: Time(1),
            sector: 8,
            arg: 0,
            bytes: 512,
            pid,
            dev: Dev::default(),
            from_dev: Dev::default(),
            error: 0,
            cpu: 0,
            rwbs: Rwbs::READ,
            action,
        };
        let mut events = vec![event(1, Action::Queue), event(2, Action::Queue)];
        let mut stacks = Stacks::default();
        stacks.add(&events, 1, "submit_bio < read");
        // Another event of the task has one, too, and a task that has queued nothing.
        events.push(event(1, Action::GetRequest));
        stacks.add(&events, 1, "blk_mq_submit_bio < read");
        stacks.add(&events, 3, "submit_bio < write");
        let at = [0, 1, 2].map(|place| stacks.at(place));
        assert_eq!(at, [Some("submit_bio < read"), None, None]);
        // The same again is kept once.
        events.push(event(1, Action::Queue));
        stacks.add(&events, 1, "submit_bio < read");
        assert_eq!((stacks.at(3), stacks.all.len()), (stacks.at(0), 1));
    }
}
