// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio printed of its jobs: rates, latencies of calls and of syncs, and of the disks below. How
//! many calls were under way follows from rates and latencies, and whether the job itself made them
//! wait for each other.

mod json;
mod text;

use crate::flow::Kind;
use crate::load::Load;
use crate::number::{figures, ns_text};
use crate::reading::{CALLS, Reading, Subject, record};
use blklab_types::Error;

/// More under way than that wait for each other, or may.
const DEEP: f64 = 1.5;
/// Near the depth that the job was given.
const FULL: f64 = 0.7;
/// Submission takes that share of a call, and so long, or it is nothing to look at.
const SUBMIT_SHARE: f64 = 0.1;
const SUBMIT_NS: f64 = 20_000.0;
/// The slowest are so many times the middle.
const TAIL: f64 = 10.0;
/// Time between calls that stands out.
const OUTSIDE_SHARE: f64 = 0.1;

/// fio's engine on Linux where a job names none.
const DEFAULT_ENGINE: &str = "psync";

/// Whether a job with this engine has one call under way, whatever its depth.
fn is_synchronous(engine: &str) -> bool {
    ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&engine)
}

/// Latencies, in ns.
#[derive(Clone, Debug, Default, PartialEq)]
struct Latency {
    mean_ns: Option<f64>,
    max_ns: Option<f64>,
    /// By percent, ascending.
    percentiles: Vec<(f64, f64)>,
}

impl Latency {
    fn at(&self, percent: f64) -> Option<f64> {
        let found = self.percentiles.iter().find(|(p, _)| *p == percent);
        found.map(|(_, ns)| *ns)
    }

    fn is_known(&self) -> bool {
        self.mean_ns.is_some() || self.max_ns.is_some() || !self.percentiles.is_empty()
    }

    /// `half within 1.00 ms, 99 % within 4.00 ms, 9.00 ms the longest`.
    fn spread(&self) -> Vec<String> {
        let ranks = [(50.0, "half"), (99.0, "99 %"), (99.9, "99.9 %")];
        let within =
            |(percent, name)| Some(format!("{name} within {}", ns_text(self.at(percent)?)));
        let mut parts: Vec<String> = ranks.into_iter().filter_map(within).collect();
        parts.extend(self.max_ns.map(|ns| format!("{} the longest", ns_text(ns))));
        parts
    }
}

/// A mean and a spread, which may be of a part of it.
fn latency_text(mean_ns: Option<f64>, latency: &Latency, of_part: &str) -> Option<String> {
    let mut parts: Vec<String> = mean_ns
        .map(|ns| format!("{} each", ns_text(ns)))
        .into_iter()
        .collect();
    let mut spread = latency.spread();
    if let Some(first) = spread.first_mut().filter(|_| !of_part.is_empty()) {
        *first = format!("{of_part} {first}");
    }
    parts.extend(spread);
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The calls of a job in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
struct Calls {
    per_s: f64,
    /// From before the call to its end; without the submission; the submission.
    lat: Latency,
    clat: Latency,
    slat: Latency,
}

impl Calls {
    /// What a call takes on average.
    fn mean_ns(&self) -> Option<f64> {
        self.lat.mean_ns.or(self.clat.mean_ns)
    }

    /// The latencies that have percentiles, or those that are known.
    fn spread_of(&self) -> &Latency {
        let has_lat = self.lat.is_known() && self.clat.percentiles.is_empty();
        if has_lat { &self.lat } else { &self.clat }
    }

    /// What part of a call is its submission.
    fn submission_share(&self) -> f64 {
        match (self.slat.mean_ns, self.mean_ns()) {
            (Some(submit), Some(all)) if all > 0.0 => submit / all,
            _ => 0.0,
        }
    }

    fn under_way(&self) -> Option<f64> {
        if self.per_s > 0.0 {
            Some(self.per_s * self.mean_ns()? / 1e9)
        } else {
            Some(0.0)
        }
    }
}

/// A job, or a group of them whose figures were put together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Job {
    name: String,
    /// Of each job.
    iodepth: Option<f64>,
    nr_jobs: Option<f64>,
    /// It syncs, by its options.
    syncs: bool,
    /// Reads, writes, trims.
    calls: [Calls; 3],
    sync: Latency,
}

/// Directions, in their order.
const DIRECTIONS: [&str; 3] = ["reads", "writes", "trims"];

/// All that fio printed.
#[derive(Clone, Debug, Default)]
struct Output {
    jobs: Vec<Job>,
    /// Disks, with what they did in all.
    disks: Vec<Load>,
}

/// Reads text or JSON.
pub(crate) fn read(text: &str) -> Result<Reading, Error> {
    let is_json = text.trim_start().starts_with(['{', '[']) || text.contains("\"fio version\"");
    let output = if is_json {
        json::read(text)?
    } else {
        text::read(text)
    };
    let mut subjects: Vec<Subject> = output.jobs.iter().filter_map(Job::subject).collect();
    if subjects.is_empty() {
        return Err(Error::new(
            "fio: no job with a rate ('read: IOPS=…') and a latency ('clat (usec): …'): give the whole \
             output",
        ));
    }
    let disk = output
        .disks
        .iter()
        .max_by(|a, b| a.number().total_cmp(&b.number()));
    let record = record(disk.map(|load| load.device.as_str()));
    for load in &output.disks {
        subjects.push(load.subject(format!("{} below", load.device)));
    }
    let mut notes = Vec::new();
    if output.disks.is_empty() {
        notes.push("the disk's own figures ('Disk stats') are missing".to_owned());
    }
    Ok(Reading {
        what: "fio",
        form: CALLS,
        subjects,
        notes,
        cannot: vec![
            "what a call waited for: the filesystem, a lock, a request, the scheduler, the device",
            "who else used the disk",
            "which calls were slow, and what was under way then (write_lat_log)",
        ],
        record: format!(
            "{record} (while the job runs); or give the job file: blklab why JOB.fio runs it"
        ),
    })
}

impl Job {
    /// What it shows; nothing if no call has a rate or a latency.
    fn subject(&self) -> Option<Subject> {
        let mut subject = Subject::new(self.name.clone());
        for (calls, direction) in self.calls.iter().zip(DIRECTIONS) {
            let latency = calls.spread_of();
            // fio's percentiles are of what is behind the submission.
            let is_part = calls.clat.is_known() && calls.submission_share() > SUBMIT_SHARE;
            let of_part = if is_part {
                "without the submission"
            } else {
                ""
            };
            let text = latency_text(calls.mean_ns(), latency, of_part);
            let Some(text) = text.filter(|_| calls.per_s > 0.0) else {
                continue;
            };
            subject.show(direction, format!("{}/s, {text}", figures(calls.per_s)));
            subject.figure(format!("{direction}_per_s"), calls.per_s);
            if let Some(ns) = calls.mean_ns() {
                subject.figure(format!("{direction}_ms"), ns / 1e6);
            }
            if !is_part {
                show_tail(&mut subject, direction, latency);
            }
        }
        if let Some(text) = latency_text(self.sync.mean_ns, &self.sync, "") {
            subject.show("syncs", text);
            show_tail(&mut subject, "syncs", &self.sync);
        }
        if subject.shows.is_empty() {
            return None;
        }
        self.show_under_way(&mut subject);
        self.show_submission(&mut subject);
        Some(subject)
    }

    fn per_s(&self) -> f64 {
        self.calls.iter().map(|calls| calls.per_s).sum()
    }

    /// How many calls the job has under way at most.
    fn depth(&self) -> Option<f64> {
        Some(self.iodepth? * self.nr_jobs.unwrap_or(1.0))
    }

    fn show_under_way(&self, subject: &mut Subject) {
        let sum: Option<f64> = self.calls.iter().map(Calls::under_way).sum();
        let Some(under_way) = sum.filter(|n| *n > 0.0) else {
            return;
        };
        subject.figure("under_way", under_way);
        let mut text = format!(
            "{} calls under way on average (Little's law: rates times latencies)",
            figures(under_way)
        );
        if let Some(depth) = self.depth() {
            text.push_str(&format!("; the job keeps up to {}", figures(depth)));
        }
        subject.show("at a time", text);
        let between_ns = 1e9 / self.per_s();
        let mean_ns = 1e9 * under_way / self.per_s();
        if under_way > DEEP {
            let whose = match self.depth() {
                Some(depth) if under_way >= FULL * depth => {
                    "The job itself keeps that many under way: with fewer each takes less, and as many end \
                     in a second, as long as what serves them stays busy"
                }
                _ => "Who keeps that many under way (iodepth, numjobs) the options of the job say",
            };
            subject.show(
                "queue",
                format!(
                    "one ends every {}. If what serves them takes one at a time, that is what each takes, \
                     and {} % of the {} are waiting for the others. {whose}",
                    ns_text(between_ns),
                    figures((100.0 * (1.0 - between_ns / mean_ns)).clamp(0.0, 100.0)),
                    ns_text(mean_ns)
                ),
            );
        } else if self.depth() == Some(1.0) && between_ns - mean_ns > OUTSIDE_SHARE * between_ns {
            let why = if self.sync.is_known() || self.syncs {
                "in syncs, whose times fio prints apart"
            } else {
                "in pauses (thinktime, rate) or syncs"
            };
            subject.show(
                "between",
                format!(
                    "a call begins every {}, and takes {}: {} of it are between calls, {why}",
                    ns_text(between_ns),
                    ns_text(mean_ns),
                    ns_text(between_ns - mean_ns)
                ),
            );
        }
    }

    fn show_submission(&self, subject: &mut Subject) {
        for (calls, direction) in self.calls.iter().zip(DIRECTIONS) {
            let (Some(submit), Some(all)) = (calls.slat.mean_ns, calls.mean_ns()) else {
                continue;
            };
            // A synchronous engine has no submission apart.
            if submit < SUBMIT_NS || submit < SUBMIT_SHARE * all {
                // One that waits for long in it has others in the way at times.
                let longest = calls.slat.max_ns.unwrap_or(0.0);
                if longest < calls.clat.max_ns.unwrap_or(f64::MAX) / 2.0 || longest < 1e6 * TAIL {
                    continue;
                }
            }
            subject.show(
                "look at",
                format!(
                    "the submission of {direction}: {} on average, {} the longest (slat). io_submit is \
                     not to wait; it does for a free request or tag, for blocks of the file to be \
                     allocated, for a lock, or for the whole I/O where the page cache is used",
                    ns_text(submit),
                    ns_text(calls.slat.max_ns.unwrap_or(submit))
                ),
            );
        }
    }
}

/// A tail that a mean hides.
fn show_tail(subject: &mut Subject, of: &str, latency: &Latency) {
    let Some(half) = latency.at(50.0).filter(|ns| *ns > 0.0) else {
        return;
    };
    let ranks = [(99.0, "1 in 100"), (99.9, "1 in 1000")];
    let slow = ranks.iter().find_map(|(percent, name)| {
        let ns = latency.at(*percent).filter(|ns| *ns >= TAIL * half)?;
        Some((*name, ns))
    });
    if let Some((name, ns)) = slow {
        let text = format!(
            "{name} of the {of} takes {} times the middle, or more",
            figures(ns / half)
        );
        subject.show("tail", text);
    }
}

/// A disk below the jobs: what it did in all, and for how long it was busy.
fn disk(name: &str, flows: [(f64, f64); 2], busy_ms: Option<f64>) -> Load {
    let mut load = Load {
        device: name.to_owned(),
        busy_ms,
        ..Load::default()
    };
    for (kind, (number, ticks_ms)) in [Kind::Reads, Kind::Writes].into_iter().zip(flows) {
        let flow = load.flow_mut(kind);
        flow.number = number;
        flow.await_ms = (number > 0.0).then(|| ticks_ms / number);
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(subject: &Subject, about: &str) -> String {
        let of = subject.shows.iter().filter(|s| s.about == about);
        of.map(|s| s.text.as_str()).collect::<Vec<_>>().join(" | ")
    }

    const DEEP_JOB: &str = "seq: (g=0): rw=read, bs=(R) 256KiB-256KiB, ioengine=libaio, iodepth=128\n\
        fio-3.33\nseq: (groupid=0, jobs=1): err= 0: pid=9: Wed Feb  1 18:02:22 2023\n\
        \x20 read: IOPS=854, BW=214MiB/s (224MB/s)(2167MiB/10151msec)\n\
        \x20   slat (usec): min=2, max=392528, avg=92.12, stdev=4403.49\n\
        \x20   clat (msec): min=114, max=587, avg=148.78, stdev=44.83\n\
        \x20    lat (msec): min=114, max=590, avg=148.87, stdev=45.08\n\
        \x20   clat percentiles (msec):\n     |  1.00th=[  131], 50.00th=[  142],\n     | 99.00th=[  506], 99.90th=[  575]\n\n\
        Run status group 0 (all jobs):\n   READ: bw=214MiB/s, io=2167MiB, run=10151-10151msec\n\n\
        Disk stats (read/write):\n  sdb: ios=8600/2, merge=0/0, ticks=1265202/4, in_queue=1265206, util=99.05%\n";

    #[test]
    fn a_deep_job_waits_for_itself() {
        let reading = read(DEEP_JOB).unwrap();
        let job = &reading.subjects[0];
        assert_eq!(job.name, "seq");
        assert!((job.figures["under_way"] - 127.1).abs() < 0.1, "{job:?}");
        assert!(
            text(job, "reads").starts_with("854/s, 148.9 ms each, half within 142.0 ms"),
            "{job:?}"
        );
        assert!(
            text(job, "queue").contains("one ends every 1.17 ms"),
            "{job:?}"
        );
        assert!(text(job, "queue").contains("The job itself keeps that many"));
        assert!(text(job, "look at").contains("392.5 ms the longest (slat)"));
        let disk = &reading.subjects[1];
        assert_eq!(disk.name, "sdb below");
        assert!(
            (disk.figures["under_way_while_busy"] - 125.8).abs() < 0.5,
            "{disk:?}"
        );
        assert!(reading.record.contains("record sdb "));
    }

    #[test]
    fn what_is_between_calls_is_not_in_clat() {
        let old = "wal: (g=0): rw=write, bs=4K-4K/4K-4K, ioengine=sync, iodepth=1\nfio-2.1.10\n\
            wal: (groupid=0, jobs=1): err= 0: pid=2\n  write: io=14320KB, bw=4770KB/s, iops=1192, runt=  8411msec\n\
            \x20   clat (usec): min=2, max=15056, avg=326.27, stdev=356.47\n\
            \x20 fsync/fdatasync/sync_file_range:\n    sync (usec): min=110, max=15056, avg=511.2, stdev=3\n\
            \x20   sync percentiles (usec):\n     | 50.00th=[  400], 99.00th=[ 9000]\n";
        let reading = read(old).unwrap();
        let job = &reading.subjects[0];
        assert!(
            text(job, "between").contains("512.7 us of it are between calls, in syncs"),
            "{job:?}"
        );
        assert!(
            text(job, "syncs").starts_with("511.2 us each, half within 400.0 us"),
            "{job:?}"
        );
        assert!(
            text(job, "tail").contains("1 in 100 of the syncs takes 22.5 times"),
            "{job:?}"
        );
        assert!(reading.notes[0].contains("Disk stats"));
    }

    #[test]
    fn json_says_the_same() {
        let json = r#"fio: warning
            {"fio version":"fio-3.33","global options":{"ioengine":"libaio","iodepth":"16","group_reporting":""},"jobs":[{"jobname":"rr","job options":{"numjobs":"2"},
            "read":{"iops":1000.0,"slat_ns":{"mean":500.0,"max":900},"lat_ns":{"mean":30000000.0,"max":90000000},
            "clat_ns":{"mean":29999000.0,"max":90000000,"percentile":{"50.000000":28000000,"99.000000":70000000}}},
            "write":{"iops":0},"job_runtime":10000}],
            "disk_util":[{"name":"vda","read_ios":10000,"write_ios":0,"read_ticks":290000,"write_ticks":0,"util":99.0}]}"#;
        let reading = read(json).unwrap();
        let job = &reading.subjects[0];
        assert_eq!(job.figures["under_way"], 30.0);
        assert!(
            text(job, "at a time").ends_with("the job keeps up to 32"),
            "{job:?}"
        );
        assert_eq!(reading.subjects[1].name, "vda below");
        let sync = json.replace("libaio", "psync");
        assert!(text(&read(&sync).unwrap().subjects[0], "at a time").ends_with("up to 2"));
    }

    #[test]
    fn submission_is_told_from_what_is_behind_it() {
        let blocked = "t: (g=0): rw=read, bs=1M, ioengine=libaio, iodepth=8\nt: (groupid=0, jobs=1): err= 0\n\
            read: IOPS=198, BW=199MiB/s\n  slat (usec): min=364, max=36424, avg=5007.38, stdev=3202.14\n\
            clat (nsec): min=180, max=32741, avg=776.08, stdev=1317.97\n  lat (usec): min=364, max=36427, avg=5008.15, stdev=3\n\
            clat percentiles (nsec):\n | 50.00th=[ 644], 99.90th=[16768]\n";
        let job = &read(blocked).unwrap().subjects[0];
        let reads = text(job, "reads");
        assert!(
            reads.starts_with("198/s, 5.01 ms each, without the submission half within 644 ns"),
            "{reads}"
        );
        assert_eq!(text(job, "tail"), "");
        assert!(text(job, "look at").starts_with("the submission of reads: 5.01 ms on average"));
    }

    #[test]
    fn the_command_says_what_an_excerpt_leaves_out() {
        let excerpt = "sudo fio --rw=randwrite \\\n--ioengine=sync \\\n--iodepth=8 \\\n--fsync=1\n\
            w: (groupid=0, jobs=1): err= 0: pid=2\n write: IOPS=107, BW=430KiB/s\n lat (usec): min=1, max=48588, avg=2432.16, stdev=3\n";
        let job = &read(excerpt).unwrap().subjects[0];
        assert!(
            text(job, "between").contains("6.91 ms of it are between calls, in syncs"),
            "{job:?}"
        );
    }

    #[test]
    fn an_output_without_figures_is_refused() {
        assert!(read("Run status group 0 (all jobs):\n").is_err());
        let cut = read("{\"fio version\":3").unwrap_err();
        assert!(cut.to_string().contains("ends too early"), "{cut}");
    }
}
