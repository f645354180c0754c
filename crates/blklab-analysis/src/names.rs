// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of processes.

use blklab_types::{Pid, visible};
use std::collections::BTreeMap;
use std::fmt;

/// Names that are kept unless more are asked for.
const NAMES_MAX: usize = 1 << 16;

/// No process has a number above this (`PID_MAX_LIMIT`, include/linux/threads.h of 6.12):
/// readers give such to tasks that a trace names without their number.
const PID_MAX: Pid = 4 << 20;

/// The latest name of each process, as far as there is room.
#[derive(Clone, Debug)]
pub struct Names {
    names: BTreeMap<Pid, String>,
    max: usize,
}

impl Default for Names {
    fn default() -> Names {
        Names::with_room(NAMES_MAX)
    }
}

impl Names {
    /// None yet; at most so many processes will have one.
    pub fn with_room(max: usize) -> Names {
        Names {
            names: BTreeMap::new(),
            max,
        }
    }

    /// A process has this name from now on. A task can give itself any bytes for a name; here
    /// they are as people may see them.
    pub fn set(&mut self, pid: Pid, comm: &str) {
        if self.names.len() < self.max || self.names.contains_key(&pid) {
            self.names.insert(pid, visible(comm).into_owned());
        }
    }

    /// The name of a process, if it is known.
    pub fn get(&self, pid: Pid) -> Option<&str> {
        self.names.get(&pid).map(String::as_str)
    }

    /// A process in words.
    pub fn who(&self, pid: Pid) -> String {
        who(pid, self.get(pid))
    }
}

/// A process in words, by its name if that is known.
pub fn who(pid: Pid, comm: Option<&str>) -> String {
    match comm {
        // Its number is not known.
        Some(comm) if pid > PID_MAX => comm.to_owned(),
        Some(comm) => format!("{comm} ({pid})"),
        None => format!("process {pid}"),
    }
}

/// A process as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// By its number.
    Pid(Pid),
    /// By its name; several may have the same.
    Comm(String),
}

impl Who {
    /// Reads `pid 1234` or `comm NAME`; without the word in front a number is that of a process.
    ///
    /// # Errors
    /// In a line: what is expected.
    pub fn parse(text: &str) -> Result<Who, String> {
        let number = |text: &str| text.trim().parse::<Pid>().ok();
        let comm = |text: &str| Who::Comm(text.trim().to_owned());
        let expected = || {
            "expected a process: its number (1234, 'pid 1234') or its name (fio, 'comm fio')"
                .to_owned()
        };
        let who = match text.trim().split_once(char::is_whitespace) {
            Some(("pid", rest)) => number(rest).map(Who::Pid).ok_or_else(expected)?,
            Some(("comm", rest)) => comm(rest),
            _ => number(text).map_or_else(|| comm(text), Who::Pid),
        };
        match &who {
            Who::Comm(name) if name.is_empty() => Err(expected()),
            _ => Ok(who),
        }
    }

    /// Whether a process of this number and name is meant.
    pub fn means(&self, pid: Pid, comm: Option<&str>) -> bool {
        match self {
            Who::Pid(number) => pid == *number,
            Who::Comm(name) => comm == Some(name),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Pid(pid) => write!(f, "process {pid}"),
            Who::Comm(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_name_counts_and_room_is_bound() {
        let mut names = Names::with_room(1);
        names.set(7, "sh");
        names.set(7, "dd");
        names.set(8, "ls");
        assert_eq!([names.get(7), names.get(8)], [Some("dd"), None]);
        assert_eq!(names.who(7), "dd (7)");
        assert_eq!(names.who(8), "process 8");
        assert_eq!(who(PID_MAX + 1, Some("jbd2/sda1-8")), "jbd2/sda1-8");
        names.set(7, "\u{1b}[31m");
        assert_eq!(names.who(7), "\\u{1b}[31m (7)");
    }

    #[test]
    fn processes_are_named_by_number_or_name() {
        let comm = |name: &str| Ok(Who::Comm(name.to_owned()));
        assert_eq!(Who::parse("pid 7"), Ok(Who::Pid(7)));
        assert_eq!(Who::parse("7"), Ok(Who::Pid(7)));
        assert_eq!(Who::parse("comm 7"), comm("7"));
        assert_eq!(Who::parse("jbd2/sda1-8"), comm("jbd2/sda1-8"));
        // A name may have blanks.
        assert_eq!(Who::parse("comm Web Content"), comm("Web Content"));
        assert_eq!(Who::parse("Web Content"), comm("Web Content"));
        for wrong in ["", " ", "pid x", "pid -1"] {
            assert!(Who::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(Who::Comm("dd".to_owned()).means(9, Some("dd")));
        assert!(!Who::Comm("dd".to_owned()).means(9, None));
    }
}
