// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that time out, fail and are tried again below the block layer.
//!
//! The block layer sees one D and, much later, one C; what happened in between the middle
//! layer of SCSI and the driver of NVMe tell: a time-out with the host's error handling, a
//! refusal (`SCSI_MLQUEUE_*`), a status that is tried again.

use crate::findings::disk::{Disk, Request};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{CommandTry, Fault, Spell, What};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole, counted, time_text,
};
use blklab_types::{Dev, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "command-fault",
    what: "commands time out, fail or are refused below the block layer, and are tried again",
    rule: Rule {
        condition: "an event of the driver (scsi_dispatch_cmd_timeout, _error, _done with an \
                    error, nvme_complete_rq with a status) is of a request's first block and \
                    within its time",
        threshold: "1 ms or more beyond what a request takes alone; 20 % of its process's waiting \
                    or more",
        exception: "",
    },
    explains: &["device-slow", "rate-capped"],
    remedies: &[READ_LOGS, EARLIER_ABORT],
    rests_on_absence: false,
    detector: || Box::new(CommandFaults::default()),
};

const READ_LOGS: Remedy = Remedy::outside(
    "read-logs",
    Outside::Nowhere,
    "look into the kernel's log and the device's own (smartctl -x, nvme error-log): cable, \
     controller, medium or path",
);

const EARLIER_ABORT: Remedy = Remedy::outside(
    "earlier-abort",
    Outside::Machine,
    "device/timeout says after how many seconds a command is aborted: lower where \
     another path or mirror can answer",
);

/// A try that costs less delays nobody.
const SLOW_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct CommandFaults {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    /// In words, how often.
    faults: BTreeMap<String, u64>,
    timeouts: u64,
    tries: u64,
}

impl Detector for CommandFaults {
    fn section(&mut self, section: &Section, _: &Context) {
        let failed: Vec<(&Spell, CommandTry, Fault)> = section
            .spells
            .iter()
            .filter_map(|s| match s.what {
                What::Command(c) => Some((s, c, c.fault?)),
                _ => None,
            })
            .collect();
        if failed.is_empty() {
            return;
        }
        for disk in &section.disks {
            // All tries of a request together.
            let mut of_request: BTreeMap<usize, Vec<(&Spell, Fault)>> = BTreeMap::new();
            for (spell, command, fault) in &failed {
                if let Some(place) = request_of(disk, spell, command) {
                    of_request.entry(place).or_default().push((*spell, *fault));
                }
            }
            for (place, tries) in of_request {
                let r = &disk.requests[place];
                self.disks
                    .entry(disk.dev)
                    .or_default()
                    .request(section, disk, r, &tries);
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

/// The request that a command is for.
fn request_of(disk: &Disk, spell: &Spell, command: &CommandTry) -> Option<usize> {
    let has = |r: &Request| {
        let begun = r.start().is_some_and(|t| t <= spell.to);
        let goes_on = r.life.complete.is_none_or(|c| c >= spell.from);
        begun && goes_on && r.sectors() > 0 && command.is_at(r.life.sector)
    };
    disk.requests.iter().position(has)
}

impl Sum {
    fn request(&mut self, section: &Section, disk: &Disk, r: &Request, tries: &[(&Spell, Fault)]) {
        let from = tries.iter().map(|(s, _)| s.from).min().unwrap_or_default();
        let until: Option<Time> = tries.iter().map(|(s, _)| s.to).max();
        let end = r.life.complete.or(until).unwrap_or(from);
        let alone = disk.service.alone(r.op()).unwrap_or(0);
        let ns = end.since(from).0.saturating_sub(alone);
        for (_, fault) in tries {
            *self.faults.entry(fault.words()).or_default() += 1;
            self.timeouts += u64::from(*fault == Fault::Timeout);
            self.tries += 1;
        }
        if ns < SLOW_NS {
            return;
        }
        self.harm.add(r.pid, ns, || {
            let mut evidence = section.of_request(r);
            evidence.extend(tries.iter().flat_map(|(s, _)| s.evidence.iter().cloned()));
            in_order(&mut evidence);
            Instance {
                time: r.start().unwrap_or(from),
                delay_ns: Some(ns),
                evidence,
            }
        });
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let mut faults: Vec<(&String, &u64)> = self.faults.iter().collect();
        faults.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let shown: Vec<String> = faults
            .iter()
            .take(3)
            .map(|(words, n)| format!("{n} {words}"))
            .collect();
        f.what = format!(
            "Commands of {} go wrong below the block layer: {}: {}.",
            f.victim_names(),
            counted(self.tries, "tries"),
            shown.join(", ")
        );
        f.how = format!(
            "Until they succeed or are given up, their requests take {} longer on average; the \
             block layer sees one D and one C.",
            time_text(self.harm.total_ns() / self.harm.count().max(1))
        );
        f.cause = Some("the device, or the way to it".to_owned());
        // The size of a logical block is not in the events: another request may begin there.
        f.confidence = Confidence::Likely;
        f.remedies = vec![READ_LOGS];
        if self.timeouts > 0 {
            f.remedies.push(EARLIER_ABORT);
        }
        Some(f)
    }
}
