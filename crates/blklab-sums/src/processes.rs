// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pidstat -d`, biotop and iotop: who reads and writes how much, for how long it waited for block I/O, and
//! what its requests took on average.

use crate::number::{figures, kib_text, ms_text, number};
use crate::reading::{Reading, SINGLE, SUMS, Subject, record};
use blklab_analysis::findings::counted;
use blklab_types::Error;

/// Processes that are shown.
const SHOWN_MAX: usize = 8;
/// A tick of `iodelay`: USER_HZ is 100.
const TICK_MS: f64 = 10.0;

/// What a process did.
#[derive(Clone, Debug, Default)]
struct Process {
    name: String,
    /// In the interval in which it was most, in KiB in a second.
    read_kib: f64,
    write_kib: f64,
    /// In all of them together.
    delay_ticks: f64,
    /// Share of an interval, the longest.
    waited_percent: f64,
    /// On a disk, in one direction (biotop), in the interval in which it took longest together.
    on_disk: Vec<OnDisk>,
}

/// Requests of a process on a disk in an interval.
#[derive(Clone, Debug, PartialEq)]
struct OnDisk {
    disk: String,
    about: &'static str,
    number: f64,
    kib: f64,
    mean_ms: f64,
}

impl OnDisk {
    fn waited_ms(&self) -> f64 {
        self.number * self.mean_ms
    }
}

/// Reads it.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let mut processes: Vec<Process> = Vec::new();
    let mut head: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line
            .trim_start_matches(['>', ' '])
            .split_whitespace()
            .collect();
        if words.contains(&"PID") && (words.contains(&"kB_wr/s") || words.contains(&"AVGms")) {
            head = words;
        } else if iotop(&mut processes, &words) {
            // A row of its own kind.
        } else if head.contains(&"AVGms") {
            biotop(&mut processes, &words);
        } else {
            pidstat(&mut processes, &head, &words);
        }
    }
    let weight = |p: &Process| p.on_disk.iter().map(OnDisk::waited_ms).sum::<f64>();
    let amount = |p: &Process| p.read_kib + p.write_kib;
    processes.retain(|p| weight(p) + amount(p) + p.delay_ticks + p.waited_percent > 0.0);
    if processes.is_empty() {
        return Err(Error::new(
            "no process below a head with PID and kB_wr/s (pidstat -d), AVGms (biotop) or IO> (iotop)",
        ));
    }
    processes.sort_by(|a, b| {
        let by_delay = b.delay_ticks.total_cmp(&a.delay_ticks);
        let by_delay = by_delay.then(b.waited_percent.total_cmp(&a.waited_percent));
        by_delay.then((weight(b) + amount(b)).total_cmp(&(weight(a) + amount(a))))
    });
    let nr = processes.len();
    let mut notes = Vec::new();
    if nr > SHOWN_MAX {
        notes.push(format!(
            "{} of {} are shown",
            SHOWN_MAX,
            counted(nr as u64, "processes")
        ));
    }
    let disk = processes
        .iter()
        .flat_map(|p| &p.on_disk)
        .map(|d| d.disk.clone())
        .next();
    Ok(Reading {
        what: "processes",
        form: SUMS,
        subjects: processes
            .iter()
            .take(SHOWN_MAX)
            .map(Process::subject)
            .collect(),
        notes,
        cannot: vec![
            "for whom a process waited, and in which order",
            SINGLE,
            "what a flusher (kworker) writes for others: it counts as the flusher's, or as theirs when \
             they dirtied the page",
        ],
        record: record(disk.as_deref()),
    })
}

fn process(processes: &mut Vec<Process>, name: String) -> &mut Process {
    let place = processes.iter().position(|p| p.name == name);
    let place = place.unwrap_or_else(|| {
        processes.push(Process {
            name,
            ..Process::default()
        });
        processes.len() - 1
    });
    &mut processes[place]
}

/// A row of `pidstat -d`; the command is last and may have blanks.
fn pidstat(processes: &mut Vec<Process>, head: &[&str], words: &[&str]) {
    let at = |title: &str| head.iter().position(|t| *t == title);
    let (Some(pid), Some(command)) = (at("PID"), at("Command")) else {
        return;
    };
    // 'Average:' stands in place of a time of one word or two.
    if words.len() <= command || words[0] == "Average:" {
        return;
    }
    let get = |title: &str| words.get(at(title)?).and_then(|word| number(word));
    let is_number = words[pid].bytes().all(|b| b.is_ascii_digit());
    let (Some(read), Some(write)) = (get("kB_rd/s"), get("kB_wr/s")) else {
        return;
    };
    if !is_number {
        return;
    }
    let process = process(
        processes,
        format!("{} ({})", words[command..].join(" "), words[pid]),
    );
    process.read_kib = process.read_kib.max(read);
    process.write_kib = process.write_kib.max(write);
    process.delay_ticks += get("iodelay").unwrap_or(0.0);
}

/// A row of iotop: `1640 be/3 root  0.00 B/s  2.02 M/s  0.00 % 25.97 % [jbd2/dm-1-8]`.
fn iotop(processes: &mut Vec<Process>, words: &[&str]) -> bool {
    let [tid, prio, _, read, read_unit, write, write_unit, rest @ ..] = words else {
        return false;
    };
    let is_number = tid.bytes().all(|b| b.is_ascii_digit()) && prio.contains('/');
    let (Some(read), Some(write)) = (amount_kib(read, read_unit), amount_kib(write, write_unit))
    else {
        return false;
    };
    // Without delay accounting the shares are not there.
    let (percent, command) = match rest {
        [_, "%", waited, "%", command @ ..] => (number(waited).unwrap_or(0.0), command),
        command => (0.0, command),
    };
    if !is_number || command.is_empty() {
        return false;
    }
    let process = process(processes, format!("{} ({tid})", command.join(" ")));
    process.read_kib = process.read_kib.max(read);
    process.write_kib = process.write_kib.max(write);
    process.waited_percent = process.waited_percent.max(percent);
    true
}

/// An amount in a second as iotop prints it, in KiB.
fn amount_kib(value: &str, unit: &str) -> Option<f64> {
    let factor = match unit {
        "B/s" => 1.0 / 1024.0,
        "K/s" => 1.0,
        "M/s" => 1024.0,
        "G/s" => 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number(value)? * factor)
}

/// `9056 dd  W 253 0 vda  14  14336 138.17`; names may have blanks.
fn biotop(processes: &mut Vec<Process>, words: &[&str]) {
    let [
        pid,
        name @ ..,
        way,
        major,
        minor,
        disk,
        number_of,
        kib,
        mean,
    ] = words
    else {
        return;
    };
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let about = match *way {
        "R" => "reads",
        "W" => "writes",
        _ => return,
    };
    let (Some(number), Some(kib), Some(mean_ms)) = (number(number_of), number(kib), number(mean))
    else {
        return;
    };
    if !is_number(pid) || !is_number(major) || !is_number(minor) {
        return;
    }
    let process = process(processes, format!("{} ({pid})", name.join(" ")));
    let now = OnDisk {
        disk: (*disk).to_owned(),
        about,
        number,
        kib,
        mean_ms,
    };
    match process
        .on_disk
        .iter_mut()
        .find(|d| d.disk == now.disk && d.about == about)
    {
        Some(known) if known.waited_ms() < now.waited_ms() => *known = now,
        Some(_) => {}
        None => process.on_disk.push(now),
    }
}

impl Process {
    fn subject(&self) -> Subject {
        let mut subject = Subject::new(self.name.clone());
        let most = "at most of all intervals";
        if self.read_kib > 0.0 {
            subject.show(
                "reads",
                format!("{} in a second {most}", kib_text(self.read_kib)),
            );
            subject.figure("read_kib_per_s", self.read_kib);
        }
        if self.write_kib > 0.0 {
            subject.show(
                "writes",
                format!("{} in a second {most}", kib_text(self.write_kib)),
            );
            subject.figure("write_kib_per_s", self.write_kib);
        }
        if self.delay_ticks > 0.0 {
            let text = format!(
                "{} for block I/O in all (iodelay; ticks of 10 ms)",
                ms_text(TICK_MS * self.delay_ticks)
            );
            subject.show("waited", text);
            subject.figure("iodelay_ms", TICK_MS * self.delay_ticks);
        }
        if self.waited_percent > 0.0 {
            let text = format!(
                "{} % of an interval for block I/O (IO>)",
                figures(self.waited_percent)
            );
            subject.show("waited", text);
            subject.figure("waited_percent", self.waited_percent);
        }
        for d in &self.on_disk {
            let each = if d.number > 0.0 {
                d.kib / d.number
            } else {
                0.0
            };
            subject.show(
                d.about,
                format!(
                    "{} of {} on {} in an interval, {} each: {} together",
                    figures(d.number),
                    kib_text(each),
                    d.disk,
                    ms_text(d.mean_ms),
                    ms_text(d.waited_ms())
                ),
            );
            subject.figure(format!("{}_ms", d.about), d.mean_ms);
        }
        subject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_comes_first() {
        let text = "Linux 5.14 (a)  08/17/2026 _x86_64_ (24 CPU)\n\n\
            11:03:26 AM   UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command\n\
            11:03:28 AM     0      4876      0.00  56026.00      0.00       0  log writer\n\
            11:03:28 AM  1003     16573     97.14      0.00      0.00      31  db\n\
            11:03:28 AM  1003     16574     -1.00     -1.00     -1.00       3  gone\n\n\
            Average:     1003     16573     97.14      0.00      0.00      31  db\n";
        let reading = read(text).unwrap();
        let names: Vec<&str> = reading.subjects.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["db (16573)", "log writer (4876)"]);
        assert_eq!(reading.subjects[0].figures["iodelay_ms"], 310.0);
        assert!(
            reading.subjects[1].shows[0]
                .text
                .starts_with("54.7 MiB in a second")
        );
    }

    #[test]
    fn rows_of_iotop() {
        let text = "Total DISK READ :  0.00 B/s | Total DISK WRITE : 50.19 M/s\n\
            \x20 TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND\n\
            17863 be/4 app        0.00 B/s    4.60 M/s  0.00 %  8.43 % java -Xms1g\n\
            \x20 1640 be/3 root        0.00 B/s    2.02 M/s  0.00 % 25.97 % [jbd2/dm-1-8]\n\
            \x20 1641 be/3 root        0.00 B/s    1.00 K/s  ?unavailable?  sync\n";
        let reading = read(text).unwrap();
        let jbd2 = &reading.subjects[0];
        assert_eq!(jbd2.name, "[jbd2/dm-1-8] (1640)");
        assert_eq!(jbd2.figures["waited_percent"], 25.97);
        assert!(
            jbd2.shows[0].text.starts_with("2.02 MiB in a second"),
            "{jbd2:?}"
        );
        assert_eq!(reading.subjects.len(), 3);
    }

    #[test]
    fn rows_of_biotop() {
        let text = "PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n\
            9056   my dd            W 253 0   vda         14   14336 138.17 \n10:22:47 loadavg: 0.75 0.36 0.16 1/168 9339\n\n\
            PID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n\
            9056   my dd            W 253 0   vda          8    8192 156.73 \n";
        let reading = read(text).unwrap();
        let dd = &reading.subjects[0];
        assert_eq!((dd.name.as_str(), dd.shows.len()), ("my dd (9056)", 1));
        assert!(dd.shows[0].text.starts_with("14 of 1 MiB on vda"), "{dd:?}");
        assert!(reading.record.contains("record vda "));
        assert!(read("PID COMM D AVGms\n").is_err());
    }
}
