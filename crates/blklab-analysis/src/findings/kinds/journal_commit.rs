// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an fsync of ext4 waits for: the parts of the journal's commits.
//!
//! A commit first waits for the handles that are open (`jbd2_commit_locking`), submits the
//! data that must be on the device before the metadata (`jbd2_commit_flushing`), writes the
//! journal's blocks (`jbd2_commit_logging`), waits for the data and for these, and writes the
//! commit record with a flush of the device's cache and FUA (`fs/jbd2/commit.c`). The events
//! tell the first parts; the last ones are told apart by the requests of the journal's thread.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{Commit, Spell, What};
use crate::findings::sums::{add, parts_text, percent, total};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_trace::{CommitStep, Rwbs};
use blklab_types::{Dev, Pid, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "journal-commit",
    what: "fsync waits for commits of the journal; the journal's own events tell for which part",
    rule: Rule {
        condition: "events of jbd2 and ext4 (jbd2_*, ext4_sync_file_*) show commits while a \
                    process is in fsync; a commit's time is that for open handles, for data, for \
                    the journal's blocks, and for the commit record with its flush",
        threshold: "1 ms or more of an fsync on average, and 20 % of the process's waiting or \
                    more",
        exception: "",
    },
    explains: &["flush", "journal-chain"],
    remedies: &[
        SHORTER_HANDLES,
        LESS_DATA,
        OTHER_JOURNAL,
        PROTECTED_CACHE,
        FEWER_FSYNCS,
        FAST_COMMITS,
    ],
    rests_on_absence: false,
    detector: || Box::new(JournalCommit::default()),
};

const SHORTER_HANDLES: Remedy = Remedy::outside(
    "shorter-handles",
    Outside::Applications,
    "shorter operations in the tasks that keep handles open: truncate and unlink of large files, \
     many small files at a time",
);

const LESS_DATA: Remedy = Remedy::outside(
    "less-dirty-data",
    Outside::Applications,
    "let less data be dirty (vm.dirty_background_bytes, sync_file_range), or keep files that are \
     synced apart from those that are written in bulk",
);

const OTHER_JOURNAL: Remedy = Remedy::outside(
    "journal-elsewhere",
    Outside::Storage,
    "the journal on another device (mke2fs -O journal_dev), or fewer changes of metadata for \
     each commit",
);

const PROTECTED_CACHE: Remedy = Remedy::outside(
    "protected-cache",
    Outside::Device,
    "a device whose cache is protected against loss of power: there the flush costs nothing",
);

const FEWER_FSYNCS: Remedy = Remedy::outside(
    "fewer-fsyncs",
    Outside::Applications,
    "fewer fsyncs: several writes before each, one for several transactions",
);

const FAST_COMMITS: Remedy = Remedy::outside(
    "fast-commits",
    Outside::Storage,
    "fast commits (mke2fs -O fast_commit, from Linux 5.10 on) write less for each fsync",
);

/// Who waits less for commits does not suffer.
const SLOW_NS: u64 = 1_000_000;

/// A part that has so much of a commit is what it waits for.
const MOST_PERCENT: u64 = 40;

/// Parts of a commit, in order of time.
const PARTS: [&str; 4] = [
    "for handles that tasks had open",
    "for data that has to be written first",
    "for the journal's blocks",
    "for the commit record and its flush",
];

#[derive(Debug, Default)]
struct JournalCommit {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    commits: u64,
    commit_ns: u64,
    worst_ns: u64,
    parts_ns: [u64; 4],
    journals: BTreeSet<Pid>,
    holders: BTreeMap<Pid, u64>,
    blocks: u64,
    /// Measured ns and ticks of the same parts: how long a tick is.
    logging: (u64, u64),
    wait_ticks: u64,
    /// Whether requests of the journal's thread tell the last parts apart.
    is_divided: bool,
}

impl Detector for JournalCommit {
    fn section(&mut self, section: &Section, _: &Context) {
        let is_fsync = |s: &&Spell| matches!(s.what, What::Fsync { .. });
        let fsyncs: Vec<&Spell> = section.spells.iter().filter(is_fsync).collect();
        let longest_ns = fsyncs.iter().map(|f| f.ns()).max().unwrap_or(0);
        for spell in &section.spells {
            let What::Commit(commit) = &spell.what else {
                continue;
            };
            let dev = section.disk_of(spell.dev);
            let disk = section.disk(dev);
            let (parts, record) = divide(disk, spell, commit);
            let sum = self.disks.entry(dev).or_default();
            sum.commit(spell, commit, parts, record.is_some());
            // In order of their ends; none that began before this commit ended ends later.
            let first = fsyncs.partition_point(|f| f.to < spell.to);
            let latest = Time(spell.to.0.saturating_add(longest_ns));
            let meanwhile = fsyncs[first..].iter().take_while(|f| f.to <= latest);
            for fsync in meanwhile.filter(|f| f.dev == spell.dev) {
                let ns = fsync.within(spell.from, spell.to);
                if ns > 0 {
                    sum.harm
                        .add(fsync.pid, ns, || instance(section, fsync, spell, record));
                }
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// Divides a commit into [`PARTS`], in ns; the commit record, if its request is there.
fn divide<'a>(
    disk: Option<&'a Disk>,
    spell: &Spell,
    commit: &Commit,
) -> ([u64; 4], Option<&'a Request>) {
    let whole = spell.ns();
    let handles = commit.between(CommitStep::Start, CommitStep::Flushing);
    let data = commit.between(CommitStep::Flushing, CommitStep::Logging);
    let (handles, data) = (handles.unwrap_or(0), data.unwrap_or(0));
    let rest = whole.saturating_sub(handles).saturating_sub(data);
    let Some(logging) = commit.steps[CommitStep::Logging as usize] else {
        return ([handles, data, rest, 0], None);
    };
    let issued = disk.into_iter().flat_map(|d| {
        let places = d.issued_between(logging, spell.to);
        d.requests[places].iter()
    });
    let own = issued.filter(|r| {
        let began = r.start().is_some_and(|t| logging <= t);
        r.pid == spell.pid && r.is_write() && began
    });
    let own: Vec<&Request> = own.collect();
    let forces = |r: &&&Request| r.flags.has(Rwbs::FLUSH) || r.flags.has(Rwbs::FUA);
    let Some(record) = own.iter().filter(forces).min_by_key(|r| r.start()) else {
        return ([handles, data, rest, 0], None);
    };
    let record_at = record.start().unwrap_or(spell.to);
    let before = record_at.since(logging).0;
    let logged = own.iter().filter(|r| r.start() < Some(record_at));
    let logged = logged.filter_map(|r| r.life.complete).max();
    let log = logged.map_or(0, |t| t.min(record_at).since(logging).0);
    let parts = [
        handles,
        data + (before - log),
        log,
        rest.saturating_sub(before),
    ];
    (parts, Some(*record))
}

fn instance(
    section: &Section,
    fsync: &Spell,
    commit: &Spell,
    record: Option<&Request>,
) -> Instance {
    let mut evidence = fsync.evidence.clone();
    evidence.extend(commit.evidence.iter().cloned());
    evidence.extend(record.into_iter().flat_map(|r| section.of_request(r)));
    in_order(&mut evidence);
    Instance {
        time: fsync.from,
        delay_ns: Some(fsync.within(commit.from, commit.to)),
        evidence,
    }
}

impl Sum {
    fn commit(&mut self, spell: &Spell, commit: &Commit, parts: [u64; 4], is_divided: bool) {
        self.commits += 1;
        add(&mut self.commit_ns, spell.ns());
        self.worst_ns = self.worst_ns.max(spell.ns());
        for (sum, part) in self.parts_ns.iter_mut().zip(parts) {
            add(sum, part);
        }
        self.journals.insert(spell.pid);
        self.is_divided |= is_divided;
        add(&mut self.blocks, commit.blocks_logged.into());
        self.wait_ticks = self.wait_ticks.max(commit.wait_ticks.into());
        if commit.logging_ticks > 0
            && let Some(ns) = commit.between(CommitStep::Logging, CommitStep::End)
        {
            add(&mut self.logging.0, ns);
            add(&mut self.logging.1, commit.logging_ticks.into());
        }
        if let Some((pid, ns)) = commit.holder.filter(|(_, ns)| *ns >= SLOW_NS) {
            add(self.holders.entry(pid).or_default(), ns);
        }
    }

    /// The part that most of the time goes to.
    fn most(&self) -> (usize, u64) {
        let all = total(self.parts_ns);
        let (place, ns) = (0..)
            .zip(self.parts_ns)
            .max_by_key(|(_, ns)| *ns)
            .unwrap_or_default();
        (place, percent(ns, all))
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let count = self.harm.count();
        if count == 0 || self.harm.total_ns() / count < SLOW_NS {
            return None;
        }
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        f.of = "waits in fsync";
        f.causes = self
            .journals
            .iter()
            .map(|pid| crate::findings::Party {
                pid: *pid,
                comm: whole.comm(*pid),
                requests: self.commits,
                delay_ns: 0,
                writes_for: None,
            })
            .collect();
        f.what = format!(
            "fsync of {} waits for commits of {}, {} on average: {}, {} each.",
            f.victim_names(),
            f.cause_names(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            crate::findings::counted(self.commits, "commits"),
            time_text(self.commit_ns / self.commits.max(1)),
        );
        f.how = format!("A commit waits {}.", parts_text(self.parts_ns, PARTS));
        if let Some(tick_ns) = self.tick_ns()
            && self.wait_ticks > 0
        {
            let ns = self.wait_ticks * tick_ns;
            f.how += &format!(
                " A task waited up to {} for a handle meanwhile.",
                time_text(ns)
            );
        }
        if !self.is_divided {
            f.doubt(
                Confidence::Likely,
                "requests of the journal's thread: which part the flush has",
            );
        }
        f.figures = vec![
            ("commits", self.commits as f64, ""),
            ("longest commit", self.worst_ns as f64 / 1e6, "ms"),
            (
                "journal blocks per commit",
                self.blocks as f64 / self.commits as f64,
                "",
            ),
        ];
        f.weight = Weight::Harm;
        let (part, share) = self.most();
        self.remedies(part, share, &mut f, whole);
        Some(f)
    }

    /// ns of a tick, if the parts that were measured both ways say so: kernels count 100, 250,
    /// 300 or 1000 of them a second.
    fn tick_ns(&self) -> Option<u64> {
        const ENOUGH_TICKS: u64 = 20;
        let (ns, ticks) = self.logging;
        if ticks < ENOUGH_TICKS {
            return None;
        }
        let each = ns as f64 / ticks as f64;
        let off = |tick: &u64| (each / *tick as f64).ln().abs();
        let known = [1_000_000_u64, 3_333_333, 4_000_000, 10_000_000];
        let best = known.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)))?;
        (off(&best) < 0.3).then_some(best)
    }

    fn remedies(&self, part: usize, share: u64, f: &mut Finding, whole: &Whole<'_>) {
        if share >= MOST_PERCENT {
            f.cause = Some(match part {
                0 => match self.holders.iter().max_by_key(|(_, ns)| **ns) {
                    Some((pid, _)) => format!("handles that {} keeps open", whole.who(*pid)),
                    None => "handles that tasks keep open".to_owned(),
                },
                1 => "data that must be written before the commit (data=ordered)".to_owned(),
                2 => "the journal's own writes".to_owned(),
                _ => "the commit record: the device's cache is flushed for it".to_owned(),
            });
        }
        let own = match part {
            0 => SHORTER_HANDLES,
            1 => LESS_DATA,
            2 => OTHER_JOURNAL,
            _ => PROTECTED_CACHE,
        };
        f.remedies.push(own);
        f.remedies.push(FEWER_FSYNCS);
        if part >= 2 {
            f.remedies.push(FAST_COMMITS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instant.
    const fn us(n: u64) -> Time {
        Time(n * 1000)
    }

    #[test]
    fn a_tick_is_what_both_measures_agree_on() {
        let sum = |ns, ticks| Sum {
            logging: (ns, ticks),
            ..Sum::default()
        };
        assert_eq!(sum(400_000_000, 100).tick_ns(), Some(4_000_000));
        assert_eq!(sum(103_000_000, 100).tick_ns(), Some(1_000_000));
        assert_eq!(sum(4_000_000, 1).tick_ns(), None);
        assert_eq!(sum(9_000_000_000, 100).tick_ns(), None);
    }

    #[test]
    fn parts_add_up_to_the_commit() {
        let mut commit = Commit {
            tid: 1,
            ..Commit::default()
        };
        commit.steps = [us(0), us(0), us(300), us(500), us(2000)].map(Some);
        let spell = Spell {
            from: us(0),
            to: us(2000),
            dev: Dev::default(),
            pid: 9,
            what: What::Commit(commit.clone()),
            evidence: Vec::new(),
        };
        let (parts, record) = divide(None, &spell, &commit);
        assert_eq!(parts, [300_000, 200_000, 1_500_000, 0]);
        assert!(record.is_none());
    }
}
