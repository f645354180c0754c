// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's log: tasks that the hung-task detector, SysRq-W or `/proc/PID/stack` show with their
//! stacks, and what drivers say of their devices.

mod devices;
mod waits;

use crate::number::figures;
use crate::reading::{LOG, Reading, Subject, record};
use blklab_analysis::findings::counted;
use blklab_types::Error;
use devices::Device;
use waits::Sort;

/// Tasks that are shown; logs have hundreds of them.
const TASKS_MAX: usize = 12;

/// A task of which only the stack is shown.
const UNNAMED: &str = "a task";

/// A task with its stack.
#[derive(Clone, Debug, Default)]
struct Task<'a> {
    name: String,
    /// It was not seen to run for that long.
    blocked_s: Option<f64>,
    /// Who has the lock that it waits for, where the kernel says it.
    owner: Option<String>,
    /// Functions from the innermost on, and those that may be remains of earlier calls.
    frames: Vec<&'a str>,
    doubtful: Vec<&'a str>,
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let mut devices: Vec<Device> = Vec::new();
    for line in text.lines() {
        devices::read(&mut devices, line);
        if let Some(task) = hung(line) {
            tasks.push(task);
        } else if let Some(name) = shown(line) {
            // The detector's own line stands before this one.
            if tasks
                .last()
                .is_none_or(|task| task.name != name || !task.is_empty())
            {
                tasks.push(Task {
                    name,
                    ..Task::default()
                });
            }
        } else if let (Some(owner), Some(task)) = (owner(line), tasks.last_mut()) {
            task.owner = Some(owner.to_owned());
        } else if let Some((function, is_doubtful)) = frame(line) {
            if tasks.is_empty() {
                tasks.push(Task {
                    name: UNNAMED.to_owned(),
                    ..Task::default()
                });
            }
            if let Some(task) = tasks.last_mut() {
                if is_doubtful {
                    task.doubtful.push(function);
                } else {
                    task.frames.push(function);
                }
            }
        }
    }
    let nr_tasks = tasks.len();
    tasks.truncate(TASKS_MAX);
    let mut subjects: Vec<Subject> = devices.iter().map(Device::subject).collect();
    let told: Vec<Option<waits::Told>> = tasks.iter().map(Task::told).collect();
    subjects.extend(
        tasks
            .iter()
            .zip(&told)
            .filter_map(|(task, told)| task.subject(told.as_ref())),
    );
    if subjects.is_empty() {
        return Err(Error::new(
            "a kernel's log in which no task is shown waiting and no driver tells of a time-out or an \
             error: it says nothing of latencies",
        ));
    }
    let sorts: Vec<Sort> = told.iter().flatten().filter_map(|told| told.sort).collect();
    Ok(Reading {
        what: "the kernel's log",
        form: LOG,
        subjects,
        notes: notes(&devices, &sorts, nr_tasks),
        cannot: vec![
            "what the devices did meanwhile, and whose I/O was before a task's",
            "for how long a task waited: the detector looks every 120 s (hung_task_timeout_secs), and \
             says only that it did not run in between",
        ],
        record: record(disk(&devices)),
    })
}

/// The name of a disk that can be recorded. Of a port or controller that is not known.
fn disk(devices: &[Device]) -> Option<&str> {
    let is_port = |name: &str| ["ata", "mmc"].iter().any(|port| name.starts_with(port));
    let is_controller = |name: &str| name.starts_with("nvme");
    let mut names = devices.iter().map(|device| device.name.as_str());
    names.find(|name| !is_port(name) && !is_controller(name))
}

/// What follows from all of it.
fn notes(devices: &[Device], sorts: &[Sort], nr_tasks: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if nr_tasks > TASKS_MAX {
        notes.push(format!(
            "{} are shown, of {}",
            counted(TASKS_MAX as u64, "tasks"),
            figures(nr_tasks as f64)
        ));
    }
    if nr_tasks > 0 && devices.iter().any(Device::is_unanswered) {
        notes.push(
            "a device did not answer meanwhile: tasks that wait for its I/O wait for that"
                .to_owned(),
        );
    } else if sorts.contains(&Sort::Device) && sorts.contains(&Sort::Others) {
        notes.push(
            "some tasks wait for the device and others for them (journal, locks): begin with those that \
             wait for the device"
                .to_owned(),
        );
    } else if sorts.contains(&Sort::Others) && !sorts.contains(&Sort::Device) {
        notes.push(
            "all that is known of waits for what other tasks have or do. Whoever that is, is not shown: \
             it may wait for the device, or for something that is no I/O"
                .to_owned(),
        );
    }
    notes
}

/// `INFO: task NAME:PID blocked for more than 120 seconds.`
fn hung<'a>(line: &str) -> Option<Task<'a>> {
    let (_, behind) = line.split_once("INFO: task ")?;
    let (who, time) = behind.split_once(" blocked for more than ")?;
    let seconds = time.split_whitespace().next()?;
    Some(Task {
        name: name(who.rsplit_once(':')?)?,
        blocked_s: seconds
            .parse()
            .ok()
            .filter(|s: &f64| (0.0..1e9).contains(s)),
        ..Task::default()
    })
}

/// `… blocked on a mutex likely owned by task NAME:PID.`
fn owner(line: &str) -> Option<&str> {
    let (_, owner) = line.split_once("likely owned by task ")?;
    Some(owner.trim_end_matches('.'))
}

fn name((name, pid): (&str, &str)) -> Option<String> {
    let is_number = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| format!("{} ({pid})", name.trim()))
}

/// The line above a stack: `task:NAME state:D stack:0 pid:1 …`, before 5.10 `NAME D 0 1 2 0x…`.
fn shown(line: &str) -> Option<String> {
    if let Some((_, behind)) = line.split_once("task:") {
        let (task, rest) = behind.split_once(" state:D")?;
        let pid = rest.split_once("pid:")?.1.split_whitespace().next()?;
        return name((task, pid));
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., flags] = words.as_slice() else {
        return None;
    };
    // Behind D: an address in old kernels, the free stack, the process, its parent, flags.
    let at = words.iter().position(|word| *word == "D")?;
    let is_flags = flags.starts_with("0x") && words.len() >= at + 5;
    let pid = words
        .get(words.len().checked_sub(3)?)
        .filter(|_| is_flags)?;
    // A name may have blanks; a time stands before it.
    let first = words[..at]
        .iter()
        .rposition(|word| word.ends_with([']', ':', '>']))
        .map_or(0, |i| i + 1);
    name((&words[first.min(at)..at].join(" "), pid))
}

/// A function of a stack, and whether the kernel doubts it: `? schedule+0x36/0x80 [ext4]`.
fn frame(line: &str) -> Option<(&str, bool)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| word.contains("+0x") && word.contains("/0x"))?;
    // Without the end of a part that the compiler made of it: get_request.isra.6.
    let function = words[at].split(['+', '.']).next()?;
    // Registers have the same form.
    let is_name = !function.is_empty() && !function.starts_with(|c: char| c.is_ascii_digit());
    let is_register = at > 0
        && words[..at]
            .iter()
            .any(|word| word.starts_with("RIP") || word.starts_with("EIP"));
    (is_name && !is_register).then_some((function, at > 0 && words[at - 1] == "?"))
}

impl Task<'_> {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.doubtful.is_empty()
    }

    /// What its stack says. Where all of it is doubted, that is taken.
    fn told(&self) -> Option<waits::Told> {
        if self.frames.is_empty() {
            waits::told(&self.doubtful, true)
        } else {
            waits::told(&self.frames, false)
        }
    }

    /// What is said of it; nothing if neither its stack nor a time is known.
    fn subject(&self, told: Option<&waits::Told>) -> Option<Subject> {
        // The rest of a stack above the first task, or an oops.
        let says_nothing = told.is_none_or(|told| told.waits.is_empty());
        if says_nothing && self.blocked_s.is_none() && (told.is_none() || self.name == UNNAMED) {
            return None;
        }
        let mut subject = Subject::new(self.name.clone());
        if let Some(seconds) = self.blocked_s {
            subject.show("did not run", format!("for {} s or more", figures(seconds)));
            subject.figure("blocked_s", seconds);
        }
        if let Some(told) = told {
            let doubt = if self.frames.is_empty() {
                " (the kernel is not sure of this stack)"
            } else {
                ""
            };
            subject.show("in", format!("{}{doubt}", told.function));
            let mut waits = told.waits.iter();
            match waits.next() {
                Some(first) => subject.show("waits for", *first),
                None => subject.show(
                    "waits for",
                    "what this function waits for is not known to blklab",
                ),
            }
            for further in waits {
                subject.show("on its way to", *further);
            }
        }
        if let Some(owner) = &self.owner {
            subject.show("which has", format!("{owner}: look for its stack"));
        }
        Some(subject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FSYNC: &str = "> [Wed Dec 19 03:36:07 2018] INFO: task rotate:17344 blocked for more than 120 seconds.\n\
        > [Wed Dec 19 03:36:07 2018]       Not tainted 4.16.2 #1\n\
        > [Wed Dec 19 03:36:07 2018] rotate       D    0 17344  17342 0x00000080\n\
        > [Wed Dec 19 03:36:07 2018] Call Trace:\n\
        > [Wed Dec 19 03:36:07 2018]  __schedule+0x293/0x8a0\n\
        > [Wed Dec 19 03:36:07 2018]  jbd2_log_wait_commit+0x98/0x120 [jbd2]\n\
        > [Wed Dec 19 03:36:07 2018]  ? remove_wait_queue+0x60/0x60\n\
        > [Wed Dec 19 03:36:07 2018]  ext4_sync_file+0x1ef/0x370 [ext4]\n\
        > [Wed Dec 19 03:36:07 2018] RIP: 0033:wait_on_page_bit+0x10/0x20\n";

    fn text(subject: &Subject, about: &str) -> String {
        let of = subject.shows.iter().filter(|s| s.about == about);
        of.map(|s| s.text.as_str()).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn functions_of_a_stack() {
        assert_eq!(
            frame(" ? get_request.isra.6+0x160/0x220"),
            Some(("get_request", true))
        );
        // What is left of one that was cut.
        assert_eq!(frame(".6+0x160/0x220"), None);
        assert_eq!(frame("RIP: 0033:wait_on_page_bit+0x10/0x20"), None);
    }

    #[test]
    fn a_hung_task_with_its_stack() {
        let reading = read(FSYNC).unwrap();
        let [task] = reading.subjects.as_slice() else {
            panic!("{reading:?}");
        };
        assert_eq!(task.name, "rotate (17344)");
        assert_eq!(task.figures["blocked_s"], 120.0);
        assert_eq!(text(task, "in"), "jbd2_log_wait_commit");
        assert!(text(task, "waits for").starts_with("a commit of ext4's journal"));
        assert_eq!(text(task, "on its way to"), "");
        assert!(reading.notes[0].contains("what other tasks have or do"));
    }

    #[test]
    fn stacks_of_old_and_new_kernels() {
        let old = "[2.1] kworker/0:0     D    0  2904      2 0x00000000\n[2.2] Call Trace:\n\
                   [2.3]  [<ffffffff8780fe79>] ? __schedule+0x239/0x6f0\n\
                   [2.3]  [<ffffffff8780fe80>] ? queue_work+0x1/0x2\n\
                   [2.4]  [<ffffffff8750fcb0>] ? bt_get.isra.6+0x160/0x220\n";
        let reading = read(old).unwrap();
        assert_eq!(reading.subjects[0].name, "kworker/0:0 (2904)");
        assert!(text(&reading.subjects[0], "in").starts_with("bt_get (the kernel is not sure"));
        let new = "[9.1] task:jbd2/sda1-8     state:D stack:    0 pid:  161 ppid:     2 flags:0x00004000\n\
                   [9.2]  wbt_wait+0x9f/0x130\n[9.3] INFO: task db:9 blocked for more than 241 seconds.\n\
                   [9.4] INFO: task db:9 blocked on a mutex likely owned by task dump:8.\n\
                   [9.5]  __mutex_lock+0x1/0x2\n";
        let reading = read(new).unwrap();
        assert!(text(&reading.subjects[0], "waits for").contains("(wbt)"));
        assert!(text(&reading.subjects[1], "which has").starts_with("dump:8"));
        assert!(reading.notes[0].starts_with("some tasks wait for the device"));
        let proc = "[<0>] wait_on_page_bit+0x1/0x2\n[<0>] ext4_writepages+0x1/0x2\n";
        assert!(text(&read(proc).unwrap().subjects[0], "waits for").starts_with("a page"));
    }

    #[test]
    fn a_device_that_does_not_answer_comes_first() {
        let log = format!("nvme nvme0: I/O 9 QID 1 timeout, aborting\n{FSYNC}");
        let reading = read(&log).unwrap();
        assert_eq!(reading.subjects[0].name, "nvme0");
        assert!(reading.notes[0].starts_with("a device did not answer"));
    }

    #[test]
    fn a_log_of_something_else_is_refused() {
        assert!(read("[1.0]  SyS_fsync+0x10/0x20\n").is_err());
        let error = read("[0.0] Call Trace:\nEXT4-fs (sda1): mounted filesystem\n").unwrap_err();
        assert!(error.to_string().contains("says nothing of latencies"));
    }
}
