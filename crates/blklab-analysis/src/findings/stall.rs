// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls: a bio waits for [`STALL_NS`] or more from Q to D, and others behind it.
//!
//! What is queued on the device while the first bio waits belongs to its stall. Those
//! whose bios went to the device in that time are the cause: they were served
//! instead. A stall during which nothing else went there has no cause among
//! processes: the queue was plugged, the scheduler idled, or the device was busy.

use super::{Confidence, Cost, Detector, Finding, Kind, Seen};
use crate::lifecycle::BioLife;
use blklab_trace::Action;
use blklab_types::{Dev, Pid, SECTOR_BYTES, Span, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "stall",
    what: "a bio that waits 300 ms or more from Q to D, and what is queued behind it",
    detector: || Box::new(Stalls::default()),
};

/// A wait of this length from Q to D is a stall.
pub const STALL_NS: u64 = 300_000_000;

/// Bios of a device that are kept. When there are more, the stalls of the first half of
/// them are found at once.
const BIOS_MAX: usize = 1 << 20;

/// A time in which a bio waited, and others behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The device.
    pub dev: Dev,
    /// Q of the first bio.
    pub begin: Time,
    /// From its Q to its D.
    pub waited: Span,
    /// Bios queued meanwhile, itself included.
    pub bios: u64,
    /// From the first Q to the last.
    pub fill: Span,
    /// The longest time from Q to D of all of them.
    pub longest: Span,
    /// Who queued them.
    victims: Vec<Pid>,
    /// Who queued what went to the device meanwhile.
    causes: Vec<Pid>,
    evidence: [Option<u64>; 2],
}

/// A bio: who, when.
#[derive(Clone, Copy, Debug)]
struct Waited {
    queue: Time,
    issue: Option<Time>,
    pid: Pid,
    /// Numbers of Q and D, where it waited long.
    evidence: [Option<u64>; 2],
}

impl Waited {
    fn wait(&self) -> Span {
        self.issue.map_or(Span(0), |d| d.since(self.queue))
    }
}

/// Finds stalls.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    bios: BTreeMap<Dev, Vec<Waited>>,
    found: Vec<Stall>,
}

impl Stalls {
    /// Takes in a bio that has ended.
    pub fn add(&mut self, bio: &BioLife, seen: &Seen) {
        let sectors = [bio.sector, bio.sector + u64::from(bio.bytes) / SECTOR_BYTES];
        let number = |action, time| seen.number(action, bio.dev, time, sectors);
        let mut new = Waited {
            queue: bio.queue,
            issue: bio.issue,
            pid: bio.pid,
            evidence: [None; 2],
        };
        if new.wait().0 >= STALL_NS {
            let issue = bio.issue.and_then(|d| number(Action::Issue, d));
            new.evidence = [number(Action::Queue, bio.queue), issue];
        }
        let bios = self.bios.entry(bio.dev).or_default();
        bios.push(new);
        if bios.len() == BIOS_MAX {
            bios.sort_by_key(|b| b.queue);
            let rest = bios.split_off(BIOS_MAX / 2);
            let first = std::mem::replace(bios, rest);
            find(bio.dev, &first, &mut self.found);
        }
    }

    /// The stalls, in order of time on each device.
    pub fn finish(&mut self) -> &[Stall] {
        for (dev, mut bios) in std::mem::take(&mut self.bios) {
            bios.sort_by_key(|b| b.queue);
            find(dev, &bios, &mut self.found);
        }
        &self.found
    }
}

/// Finds the stalls among bios in order of their Q.
fn find(dev: Dev, bios: &[Waited], found: &mut Vec<Stall>) {
    let mut issued: Vec<(Time, Pid)> = bios
        .iter()
        .filter_map(|b| Some((b.issue?, b.pid)))
        .collect();
    issued.sort_unstable();
    let mut open: Option<Stall> = None;
    for b in bios {
        let end = |s: &Stall| Time(s.begin.0 + s.waited.0);
        match &mut open {
            Some(stall) if b.queue < end(stall) => {
                stall.bios += 1;
                stall.fill = b.queue.since(stall.begin);
                stall.longest = stall.longest.max(b.wait());
                stall.victims.push(b.pid);
            }
            _ if b.wait().0 >= STALL_NS => {
                found.extend(open.replace(Stall {
                    dev,
                    begin: b.queue,
                    waited: b.wait(),
                    bios: 1,
                    fill: Span(0),
                    longest: b.wait(),
                    victims: vec![b.pid],
                    causes: issued_between(&issued, b.queue, Time(b.queue.0 + b.wait().0)),
                    evidence: b.evidence,
                }));
            }
            _ => {}
        }
    }
    found.extend(open);
}

/// Whose bios went to the device after `begin` and before `end`.
fn issued_between(issued: &[(Time, Pid)], begin: Time, end: Time) -> Vec<Pid> {
    let first = issued.partition_point(|(time, _)| *time <= begin);
    let within = issued[first..].iter().take_while(|(time, _)| *time < end);
    within.map(|(_, pid)| *pid).collect()
}

impl Detector for Stalls {
    fn bio(&mut self, bio: &BioLife, seen: &Seen) {
        if bio.bytes > 0 {
            self.add(bio, seen);
        }
    }

    fn finish(&mut self, seen: &Seen) -> Vec<Finding> {
        let finding = |s: &Stall| Finding {
            kind: KIND.name,
            dev: s.dev,
            time: s.begin,
            victims: seen.parties(s.victims.iter().copied()),
            causes: seen.parties(s.causes.iter().copied()),
            cost: Cost::WaitedNs(s.longest.0),
            evidence: s.evidence.into_iter().flatten().collect(),
            confidence: Confidence::Certain,
            figures: vec![
                ("bios queued meanwhile", s.bios, ""),
                ("from the first Q to the last", s.fill.0, "ns"),
            ],
        };
        let mut all: Vec<Finding> = Stalls::finish(self).iter().map(finding).collect();
        all.sort_by_key(|f| f.time);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;

    const MS: u64 = 1_000_000;

    fn bio(pid: Pid, minor: u16, queue_ms: u64, issue_ms: u64) -> BioLife {
        BioLife {
            dev: Dev { major: 8, minor },
            pid,
            rwbs: Rwbs::WRITE,
            sector: 0,
            bytes: 4096,
            queue: Time(queue_ms * MS),
            sleep: None,
            get: Some(Time(queue_ms * MS)),
            merge: None,
            insert: None,
            issue: Some(Time(issue_ms * MS)),
            complete: Some(Time((issue_ms + 1) * MS)),
            error: 0,
            is_part: false,
            request: None,
        }
    }

    #[test]
    fn a_stall_holds_what_is_queued_while_its_first_bio_waits() {
        let mut stalls = Stalls::default();
        // In order of completion.
        for (pid, q, d) in [
            (9, 200, 210),
            (1, 0, 592),
            (1, 12, 604),
            (2, 86, 792),
            (3, 800, 1200),
        ] {
            Detector::bio(&mut stalls, &bio(pid, 0, q, d), &Seen::default());
        }
        let found = Detector::finish(&mut stalls, &Seen::default());
        let shown: Vec<_> = found
            .iter()
            .map(|f| (f.time.0 / MS, f.cost, f.figures[0].1, f.figures[1].1 / MS))
            .collect();
        let waited = |ms: u64| Cost::WaitedNs(ms * MS);
        assert_eq!(shown, [(0, waited(706), 4, 200), (800, waited(400), 1, 0)]);
        let pids = |all: &[super::super::Party]| {
            let pids = all.iter().map(|p| (p.pid, p.bios));
            pids.collect::<Vec<_>>()
        };
        assert_eq!(pids(&found[0].victims), [(1, 2), (2, 1), (9, 1)]);
        // The only one whose bio went to the device meanwhile.
        assert_eq!(pids(&found[0].causes), [(9, 1)]);
        assert_eq!(pids(&found[1].causes), []);
    }

    #[test]
    fn devices_stall_by_themselves() {
        let mut stalls = Stalls::default();
        for b in [bio(1, 0, 0, 400), bio(2, 1, 10, 300), bio(3, 1, 20, 30)] {
            stalls.add(&b, &Seen::default());
        }
        let found = stalls.finish();
        assert_eq!((found.len(), found[0].bios), (1, 1));
    }
}
