// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tools that time calls: ext4slower and its kin, `strace -T`, ioping. Who waited for how long in which
//! call, and for which file.

mod methods;

use crate::number::{figures, ms_text, number};
use crate::reading::{CALLS, Reading, Subject, WHO, record};
use blklab_types::Error;

/// Callers that are shown.
const CALLERS_MAX: usize = 10;

/// Calls of strace that are about files; others wait for something else.
const OF_FILES: [&str; 29] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "open",
    "openat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fallocate",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
];

/// A call that ended.
#[derive(Clone, Debug, PartialEq)]
struct Call<'a> {
    who: String,
    what: &'a str,
    ms: f64,
    /// The file, and when.
    file: Option<&'a str>,
    time: Option<&'a str>,
}

/// Calls of one caller of one kind.
#[derive(Debug)]
struct Group<'a> {
    number: u64,
    sum_ms: f64,
    longest: Call<'a>,
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for line in text.lines() {
        let line = line.trim_start_matches(['>', ' ', '\t']).trim_end();
        let call = slower(line)
            .or_else(|| synced(line))
            .or_else(|| traced(line));
        let Some(call) = call.or_else(|| pinged(line)) else {
            continue;
        };
        let is_same = |g: &&mut Group<'_>| g.longest.who == call.who && g.longest.what == call.what;
        match groups.iter_mut().find(is_same) {
            Some(group) => {
                group.number += 1;
                group.sum_ms += call.ms;
                if call.ms > group.longest.ms {
                    group.longest = call;
                }
            }
            None => groups.push(Group {
                number: 1,
                sum_ms: call.ms,
                longest: call,
            }),
        }
    }
    let methods = methods::subject(text);
    if groups.is_empty() && methods.is_none() {
        return Err(Error::new(
            "no call with the time that it took (of strace: option -T)",
        ));
    }
    groups.sort_by(|a, b| b.sum_ms.total_cmp(&a.sum_ms));
    let mut notes = Vec::new();
    if text.contains("FILENAME") {
        notes.push(
            "such tools show only calls that take longer than a limit (10 ms, unless it is given)"
                .to_owned(),
        );
    }
    Ok(Reading {
        what: "times of calls",
        form: CALLS,
        subjects: methods.into_iter().chain(subjects(&groups)).collect(),
        notes,
        cannot: vec![
            WHO,
            "what a call waited for: the page cache, a lock, the journal, the device, or a server where \
             the filesystem is one of a network",
        ],
        record: record(None),
    })
}

/// Of each caller, the one that waited for longest first.
fn subjects(groups: &[Group<'_>]) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    for group in groups {
        let who = &group.longest.who;
        let place = subjects.iter().position(|subject| subject.name == *who);
        if place.is_none() && subjects.len() == CALLERS_MAX {
            continue;
        }
        let place = place.unwrap_or_else(|| {
            subjects.push(Subject::new(who.clone()));
            subjects.len() - 1
        });
        let subject = &mut subjects[place];
        let about = about(group.longest.what);
        subject.show(about, group.text());
        subject.figure(format!("{about}_number"), group.number as f64);
        subject.figure(format!("{about}_longest_ms"), group.longest.ms);
    }
    subjects
}

/// A word for a kind of call.
fn about(what: &str) -> &'static str {
    match what {
        "R" | "read" | "pread64" | "readv" | "preadv" | "preadv2" => "reads",
        "W" | "write" | "pwrite64" | "writev" | "pwritev" | "pwritev2" => "writes",
        "O" | "open" | "openat" => "opens",
        "S" | "fsync" | "fdatasync" | "sync" | "syncfs" | "msync" | "sync_file_range" => "syncs",
        "C" => "commits",
        "request" => "requests",
        _ => "calls",
    }
}

impl Group<'_> {
    fn text(&self) -> String {
        let longest = &self.longest;
        let is_named = longest.what.len() > 1 && longest.what != "request";
        let name = if is_named { longest.what } else { "" };
        let mut text = format!(
            "{}{}{}, {} each, {} the longest",
            figures(self.number as f64),
            if name.is_empty() { "" } else { " of " },
            name,
            ms_text(self.sum_ms / self.number as f64),
            ms_text(longest.ms)
        );
        if let Some(file) = longest.file {
            text.push_str(&format!(", of {file}"));
        }
        if let Some(time) = longest.time {
            text.push_str(&format!(" at {time}"));
        }
        text
    }
}

/// `16:46:13 dd  1212  W 1048576 663552  751.02 testfile`; fileslower has no offset.
fn slower(line: &str) -> Option<Call<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_kind = |word: &&str| ["R", "W", "O", "S", "C"].contains(word);
    let is_whole = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let at = words.iter().position(is_kind).filter(|at| *at >= 3)?;
    let pid = words[at - 1];
    let behind = &words[at + 1..];
    let (ms, file) = match behind {
        [bytes, offset, ms, file, ..] if is_whole(bytes) && is_whole(offset) => (ms, file),
        [bytes, ms, file, ..] if is_whole(bytes) && ms.contains('.') => (ms, file),
        _ => return None,
    };
    is_whole(pid).then_some(())?;
    Some(Call {
        who: format!("{} ({pid})", words[1..at - 1].join(" ")),
        what: words[at],
        ms: number(ms)?,
        file: Some(file),
        time: Some(words[0]),
    })
}

/// fsyncsnoop: `multilog  4371  62.01  6 0x0 /var/log/current`.
fn synced(line: &str) -> Option<Call<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_whole = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let at = words
        .iter()
        .position(|word| word.starts_with("0x"))
        .filter(|at| *at >= 4)?;
    let (pid, ms, fd) = (words[at - 3], words[at - 2], words[at - 1]);
    (is_whole(pid) && is_whole(fd) && ms.contains('.')).then_some(())?;
    Some(Call {
        who: format!("{} ({pid})", words[..at - 3].join(" ")),
        what: "fsync",
        ms: number(ms)?,
        file: words.get(at + 1).copied(),
        time: None,
    })
}

/// `1234 12:00:01.5 fsync(9) = 0 <0.012>`, `[pid 9] <... fsync resumed>) = 0 <0.012>`.
fn traced(line: &str) -> Option<Call<'_>> {
    let (rest, seconds) = line.strip_suffix('>')?.rsplit_once(" <")?;
    let ms = 1e3 * number(seconds)?;
    rest.rsplit_once(" = ")
        .filter(|(call, _)| call.trim_end().ends_with(')'))?;
    let (head, what) = match rest.split_once("<... ") {
        Some((head, behind)) => (head, behind.split_whitespace().next()?),
        None => {
            let (before, _) = rest.split_once('(')?;
            let at = before.rfind(' ').map_or(0, |at| at + 1);
            (&before[..at], &before[at..])
        }
    };
    OF_FILES.contains(&what).then_some(())?;
    let mut words = head.split(|c: char| c.is_whitespace() || c == ']');
    let pid = words.find(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()));
    let time = head
        .split_whitespace()
        .find(|word| word.contains(':') || word.contains('.'));
    Some(Call {
        who: pid.map_or_else(|| "the process".to_owned(), |pid| format!("process {pid}")),
        what,
        ms,
        file: None,
        time,
    })
}

/// `4 KiB <<< . (ext4 /dev/sda1): request=2 time=3.33 ms`; the first one warms up.
fn pinged(line: &str) -> Option<Call<'_>> {
    let (head, behind) = line.split_once(": request=")?;
    let (_, time) = behind.split_once(" time=")?;
    let mut words = time.split_whitespace();
    let (value, unit) = (number(words.next()?)?, words.next()?);
    words.all(|word| word != "(warmup)").then_some(())?;
    let ms = value
        * match unit {
            "ns" => 1e-6,
            "us" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            _ => return None,
        };
    Some(Call {
        who: format!("ioping of {}", head.rsplit(['<', '>']).next()?.trim()),
        what: "request",
        ms,
        file: None,
        time: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(String, Vec<String>)> {
        let reading = read(text).unwrap();
        let shows = |s: &Subject| {
            s.shows
                .iter()
                .map(|s| format!("{} {}", s.about, s.text))
                .collect()
        };
        reading
            .subjects
            .iter()
            .map(|s| (s.name.clone(), shows(s)))
            .collect()
    }

    #[test]
    fn slow_calls_of_filesystems() {
        let text = "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n\
            16:46:11 db writer      1212   S 0       0          46.50 wal.log\n\
            16:46:12 db writer      1212   S 0       0         205.50 wal.log\n\
            16:46:13 tar            9      R 65536   128        12.00 a file\n";
        let shown = shown(text);
        assert_eq!(shown[0].0, "db writer (1212)");
        assert_eq!(
            shown[0].1,
            ["syncs 2, 126.0 ms each, 205.5 ms the longest, of wal.log at 16:46:12"]
        );
        assert_eq!(
            shown[1].1,
            ["reads 1, 12.0 ms each, 12.0 ms the longest, of a at 16:46:13"]
        );
        assert!(read(text).unwrap().notes[0].contains("longer than a limit"));
        let older = "1.000  tar  9  R 65536  12.00 file\n";
        assert_eq!(
            read(older).unwrap().subjects[0].figures["reads_longest_ms"],
            12.0
        );
    }

    #[test]
    fn calls_of_strace_that_are_about_files() {
        let text = "27255 02:42:01.5 fdatasync(83) = 0 <0.030100>\n27255 futex(0x1, FUTEX_WAIT) = 0 <9.1>\n\
            [pid 27256] <... fdatasync resumed>) = 0 <0.050000>\n27255 02:42:02.5 fdatasync(83)    = 0 <0.010100>\n\
            fsync(3) = 0\n";
        let shown = shown(text);
        assert_eq!(shown.len(), 2);
        assert_eq!(shown[0].0, "process 27256");
        assert_eq!(
            shown[1].1,
            ["syncs 2 of fdatasync, 20.1 ms each, 30.1 ms the longest at 02:42:01.5"]
        );
        assert!(read("fsync(3) = 0\n").is_err());
    }

    #[test]
    fn syncs_of_fsyncsnoop() {
        let text = "COMM             PID     LATms   FD RVAL FILE\nlog er  4371    62.01    6 0x0 /log/current\n\
                    <...>            4813     0.72 3100 0x0 ***the fd has closed[/proc/4813/fd/3100]\n";
        let shown = shown(text);
        assert_eq!(shown[0].0, "log er (4371)");
        assert_eq!(
            shown[0].1,
            ["syncs 1 of fsync, 62.0 ms each, 62.0 ms the longest, of /log/current"]
        );
    }

    #[test]
    fn requests_of_ioping() {
        let text = "4 KiB <<< . (ext4 /dev/sda1): request=1 time=201.2 us (warmup)\n\
            4 KiB <<< . (ext4 /dev/sda1): request=2 time=3.00 ms\n4 KiB <<< . (ext4 /dev/sda1): request=3 time=1.00 ms (fast)\n";
        let shown = shown(text);
        assert_eq!(shown[0].0, "ioping of . (ext4 /dev/sda1)");
        assert_eq!(
            shown[0].1,
            ["requests 2, 2.00 ms each, 3.00 ms the longest"]
        );
    }
}
