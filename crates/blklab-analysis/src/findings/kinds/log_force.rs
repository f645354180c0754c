// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an fsync of XFS waits for: the log.
//!
//! fsync has the log written up to the last change of the file (`xfs_log_force_seq`,
//! fs/xfs/xfs_log.c): what was changed is copied into the log's buffers, a buffer is written
//! with a flush of the device's cache before it and FUA, and when it and all before it are on
//! the device, whoever waits goes on.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{LogForce, Spell, What};
use crate::findings::sums::{add, parts_text};
use crate::findings::tasks::Tasks;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_trace::Rwbs;
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "log-force",
    what: "fsync of XFS waits for the log to be written",
    rule: Rule {
        condition: "a task that raises xfs_log_force waits: from 5.14 on until the buffer of \
                    xlog_iclog_wait_on is clean; before until the first write with a flush or FUA \
                    that begins behind it ends",
        threshold: "1 ms or more; 20 % of its waiting or more",
        exception: "before 5.14: the task does something in between",
    },
    explains: &["flush", "journal-chain"],
    remedies: &[FEWER_FSYNCS, OTHER_LOG, LARGER_BUFFERS],
    rests_on_absence: false,
    detector: || Box::new(Log::default()),
};

const FEWER_FSYNCS: Remedy = Remedy::outside(
    "fewer-fsyncs",
    Outside::Applications,
    "fewer fsyncs: one for several changes, or for several files",
);

const OTHER_LOG: Remedy = Remedy::outside(
    "journal-elsewhere",
    Outside::Storage,
    "a device whose cache is protected against loss of power, or the log on one \
     (mkfs.xfs -l logdev=)",
);

const LARGER_BUFFERS: Remedy = Remedy::outside(
    "larger-log-buffers",
    Outside::Storage,
    "larger buffers of the log (logbsize=256k)",
);

/// Who waits less did not.
const SLOW_NS: u64 = 1_000_000;

/// The log's write begins at most so long after it was asked for.
const SOON_NS: u64 = 100_000_000;

/// So many writes may be under way when it is asked for.
const BEGUN_SEEN: usize = 64;

/// Parts of a wait, in order of time.
const PARTS: [&str; 3] = [
    "until the log's last write begins",
    "for that write, with its flush",
    "for what is done behind it",
];

#[derive(Debug, Default)]
struct Log {
    /// Threads that have the log written and wait for nothing.
    workers: Tasks,
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    parts_ns: [u64; 3],
    is_inferred: bool,
}

impl Detector for Log {
    fn process(&mut self, pid: Pid, comm: &str) {
        self.workers.named(
            pid,
            comm.starts_with("kworker") || comm.starts_with("xfsaild"),
        );
    }

    fn section(&mut self, section: &Section, _: &Context) {
        let is_force = |s: &&Spell| matches!(s.what, What::LogForce(_)) && !self.workers.has(s.pid);
        let forces: Vec<&Spell> = section.spells.iter().filter(is_force).collect();
        // The log's own events say more than what is inferred.
        let is_told = forces.iter().any(|s| s.ns() > 0);
        let mut of_disks: BTreeMap<Dev, Option<Writes<'_>>> = BTreeMap::new();
        for spell in forces.into_iter().filter(|s| (s.ns() > 0) == is_told) {
            let What::LogForce(log) = spell.what else {
                continue;
            };
            let dev = section.disk_of(spell.dev);
            let writes = of_disks.entry(dev).or_insert_with(|| {
                let disk = section.disk(dev);
                disk.map(Writes::new)
            });
            let record = writes.as_ref().and_then(|w| w.record(spell, log));
            let end = match (is_told, record) {
                (true, _) => spell.to,
                (false, Some(r)) => r.life.complete.unwrap_or(spell.from),
                (false, None) => continue,
            };
            let ns = end.since(spell.from).0;
            if ns >= SLOW_NS {
                let sum = self.disks.entry(dev).or_default();
                sum.is_inferred |= !is_told;
                let parts = divide(spell.from, end, log, record);
                sum.parts_ns
                    .iter_mut()
                    .zip(parts)
                    .for_each(|(s, p)| add(s, p));
                if let Some(r) = record {
                    sum.harm.blame(r.pid, 1);
                }
                sum.harm
                    .add(spell.pid, ns, || instance(section, spell, record, ns));
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// What a device got that may be the log's, and what each process asked for when.
struct Writes<'a> {
    /// Writes with a flush or FUA that ended, in order of their D.
    forced: Vec<&'a Request>,
    /// When a process's requests begin, in order.
    starts: BTreeMap<Pid, Vec<Time>>,
}

impl<'a> Writes<'a> {
    fn new(disk: &'a Disk) -> Writes<'a> {
        let forces = |r: &&Request| r.flags.has(Rwbs::FLUSH) || r.flags.has(Rwbs::FUA);
        let written = disk.issued().iter().filter(|r| r.is_write());
        let forced = written.filter(forces).filter(|r| r.life.complete.is_some());
        let mut starts: BTreeMap<Pid, Vec<Time>> = BTreeMap::new();
        for r in &disk.requests {
            starts.entry(r.pid).or_default().extend(r.start());
        }
        starts.values_mut().for_each(|all| all.sort_unstable());
        Writes {
            forced: forced.collect(),
            starts,
        }
    }

    /// The log's write that a task waits for: the last one while it waits; where its end is not
    /// told, the first that begins behind it, if the task does nothing until that has ended.
    fn record(&self, spell: &Spell, log: LogForce) -> Option<&'a Request> {
        let issued = |r: &&Request, by: Time| r.life.issue.is_some_and(|d| d <= by);
        let first = self.forced.partition_point(|r| issued(r, spell.from));
        if spell.ns() > 0 {
            let latest = log.written[1].unwrap_or(spell.to);
            let upto = self.forced.partition_point(|r| issued(r, latest));
            let last = self.forced.get(first..upto)?.last()?;
            return Some(*last).filter(|r| r.start() >= Some(spell.from));
        }
        let begun = |r: &&&Request| r.start() >= Some(spell.from);
        let record = *self.forced[first..].iter().take(BEGUN_SEEN).find(begun)?;
        let is_soon = record.start()?.since(spell.from).0 <= SOON_NS;
        let own = self.starts.get(&spell.pid).map_or(&[][..], Vec::as_slice);
        let next = own.partition_point(|t| *t <= spell.from);
        let waits = own
            .get(next)
            .is_none_or(|t| Some(*t) >= record.life.complete);
        (is_soon && (waits || record.pid == spell.pid)).then_some(record)
    }
}

/// Divides a wait into [`PARTS`], in ns.
fn divide(from: Time, to: Time, log: LogForce, record: Option<&Request>) -> [u64; 3] {
    let of_request = record.map(|r| [r.start(), r.life.complete]);
    let written = match log.written {
        [Some(_), Some(_)] => log.written,
        _ => of_request.unwrap_or_default(),
    };
    let [Some(begin), Some(end)] = written else {
        return [to.since(from).0, 0, 0];
    };
    let (begin, end) = (begin.clamp(from, to), end.clamp(from, to));
    [
        begin.since(from).0,
        end.max(begin).since(begin).0,
        to.since(end.max(begin)).0,
    ]
}

fn instance(section: &Section, spell: &Spell, record: Option<&Request>, ns: u64) -> Instance {
    let mut evidence = spell.evidence.clone();
    evidence.extend(record.into_iter().flat_map(|r| section.of_request(r)));
    in_order(&mut evidence);
    Instance {
        time: spell.from,
        delay_ns: Some(ns),
        evidence,
    }
}

impl Sum {
    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "waits for the log";
        f.weight = Weight::Harm;
        f.what = format!(
            "{} wait{} for XFS to write its log: {} on average.",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        f.how = format!("They wait {}.", parts_text(self.parts_ns, PARTS));
        let is_write = self.parts_ns[1] >= self.parts_ns[0];
        f.cause = Some(
            if is_write {
                "the log's write: the device's cache is flushed for it"
            } else {
                "what is written to the log before it"
            }
            .to_owned(),
        );
        if self.is_inferred {
            f.doubt(
                Confidence::Likely,
                "xlog_iclog_wait_on and _clean (from 5.14 on): until when it waits",
            );
        }
        f.remedies = vec![
            FEWER_FSYNCS,
            if is_write { OTHER_LOG } else { LARGER_BUFFERS },
        ];
        Some(f)
    }
}
