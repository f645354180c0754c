// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process reads one block after the other, each when the last has come: no
//! read-ahead.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::sums::add;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, time_text,
};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "no-readahead",
    what: "a sequential reader waits for each small read by itself: read-ahead is off or broken",
    rule: Rule {
        condition: "a process's reads are small, begin where the last one ended, and are queued \
                    only when that has ended, sooner than a read takes; where read_ahead_kb is \
                    known and not 0, only reads marked as read-ahead (RA); where it is known and \
                    less than 64, they need not wait for each other",
        threshold: "64 KiB or less, half or more of its reads, 16 or more in a row",
        exception: "one of those in a row is direct I/O (RS)",
    },
    explains: &["missed-merge", "deep-queue"],
    remedies: &[READ_AHEAD, LARGER_READS],
    rests_on_absence: true,
    detector: || Box::new(NoReadahead::default()),
};

const READ_AHEAD: Remedy = Remedy::set("read-ahead", "queue/read_ahead_kb", "", "the default");

const LARGER_READS: Remedy = Remedy::outside(
    "larger-reads",
    Outside::Applications,
    "larger reads where the application does direct I/O",
);

/// Larger reads carry themselves.
const SMALL_SECTORS: u64 = 128;

/// Reads in a row.
const RUN_MIN: u64 = 16;

/// Of a process's reads, those in such rows.
const SHARE_MIN: f64 = 0.5;

/// What read-ahead reads at a time by default (`VM_READAHEAD_PAGES`, include/linux/mm.h).
const READAHEAD_KB: u64 = 128;

#[derive(Debug, Default)]
struct NoReadahead {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    sectors: u64,
    reads: BTreeMap<Pid, u64>,
}

impl Detector for NoReadahead {
    fn section(&mut self, section: &Section, context: &Context) {
        // Where read-ahead is on, small reads that are none are direct I/O, or of a
        // file that its reader calls random.
        let kb = context.queue("read_ahead_kb");
        let ahead = match kb {
            Some(1..SHORT_KB) => Ahead::Short,
            Some(1..) => Ahead::On,
            _ => Ahead::Off,
        };
        for disk in &section.disks {
            self.disk(section, disk, ahead);
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// Read-ahead of less than this keeps no device busy, KiB.
const SHORT_KB: u64 = 64;

/// What is known of read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ahead {
    /// It is off, or nothing is known of it.
    Off,
    /// It is so short that each small read is soon followed by the next.
    Short,
    /// It is on.
    On,
}

/// Whether `next` follows `r` as a reader without read-ahead makes it.
fn follows(r: &Request, next: &Request, ahead: Ahead) -> bool {
    if ahead == Ahead::Short {
        return next.life.sector == r.end();
    }
    let (Some(end), Some(begin), Some(took)) = (r.life.complete, next.start(), r.d2c()) else {
        return false;
    };
    next.life.sector == r.end() && begin >= end && begin.since(end).0 <= took
}

fn is_small_read(r: &Request, ahead: Ahead) -> bool {
    let is_other = r.flags.has(Rwbs::SYNC) || r.flags.has(Rwbs::META);
    let may_be = r.flags.has(Rwbs::AHEAD) || ahead != Ahead::On;
    r.is_read() && !is_other && may_be && r.life.bytes > 0 && r.sectors() <= SMALL_SECTORS
}

impl NoReadahead {
    fn disk(&mut self, section: &Section, disk: &Disk, ahead: Ahead) {
        // Each of a row but the last.
        let goes_on =
            |r: &&Request| (r.is_followed || ahead == Ahead::Short) && is_small_read(r, ahead);
        if (disk.issued().iter().filter(goes_on).count() as u64) < RUN_MIN - 1 {
            return;
        }
        let mut of_pid: BTreeMap<Pid, Vec<&Request>> = BTreeMap::new();
        for r in disk.issued().iter().filter(|r| r.is_read()) {
            of_pid.entry(r.pid).or_default().push(r);
        }
        for (pid, reads) in of_pid {
            let mut run: Vec<&Request> = Vec::new();
            let mut rows: Vec<Vec<&Request>> = Vec::new();
            for r in &reads {
                let goes_on = is_small_read(r, ahead)
                    && run.last().is_none_or(|last| follows(last, r, ahead));
                if !goes_on {
                    rows.push(std::mem::take(&mut run));
                }
                if is_small_read(r, ahead) {
                    run.push(r);
                }
            }
            rows.push(run);
            rows.retain(|row| row.len() as u64 >= RUN_MIN);
            if rows.is_empty() {
                continue;
            }
            let sum = self.disks.entry(disk.dev).or_default();
            *sum.reads.entry(pid).or_default() += reads.len() as u64;
            for row in rows {
                for r in &row {
                    add(&mut sum.sectors, r.sectors());
                    let took = r.whole().unwrap_or(0);
                    sum.harm.add(pid, took, || instance(section, &row));
                }
            }
        }
    }
}

/// The first three of a row.
fn instance(section: &Section, row: &[&Request]) -> Instance {
    let first = row.iter().take(3);
    let mut evidence: Vec<_> = first.flat_map(|r| section.of_request(r)).collect();
    in_order(&mut evidence);
    Instance {
        time: row[0].start().unwrap_or_default(),
        delay_ns: row[0].whole(),
        evidence,
    }
}

impl Sum {
    fn finding(self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let in_rows: u64 = self.harm.victims().values().map(|(n, _)| n).sum();
        let reads: u64 = self.reads.values().sum();
        if (in_rows as f64) < SHARE_MIN * reads as f64 {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        f.of = "reads";
        let kb = (self.sectors / in_rows.max(1)) as f64 / 2.0;
        let who = f.victim_names();
        f.what = format!(
            "{who} reads {kb:.0} KiB after {kb:.0} KiB of one place, and waits for each: {} every \
             time.",
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        let off = whole.context.queue("read_ahead_kb") == Some(0);
        if off {
            f.cause = Some("read_ahead_kb = 0".to_owned());
            f.how = "read_ahead_kb is 0: every page of a buffered read is read by itself when it \
                     is needed."
                .to_owned();
        } else if let Some(kb @ 1..SHORT_KB) = whole.context.queue("read_ahead_kb") {
            f.cause = Some(format!("read_ahead_kb = {kb}"));
            f.how = format!(
                "read_ahead_kb is {kb}: no more than that is read before it is needed, and the \
                 reader waits for the device after every {kb} KiB."
            );
            f.doubt(
                Confidence::Likely,
                "whether the reader is the page cache's: some direct I/O looks the same",
            );
        } else {
            f.cause = Some("read-ahead is off or does not work".to_owned());
            f.how = "Buffered reads would be marked as read-ahead (RA) and come before they are \
                     needed."
                .to_owned();
            f.doubt(
                Confidence::Possible,
                "read_ahead_kb; direct I/O and a file read with POSIX_FADV_RANDOM look the same",
            );
        }
        f.remedies = vec![READ_AHEAD.to(READAHEAD_KB), LARGER_READS];
        f.figures = vec![("size of a read", kb, "KiB")];
        Some(f)
    }
}
