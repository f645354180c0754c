// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors, and sequential writes that went to the device in another order than they
//! were queued, which a zoned device refuses.

use crate::findings::disk::{Disk, Request, is_error};
use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside, Serving};
use crate::findings::section::{Section, in_order};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, counted,
};
use blklab_trace::Event;
use blklab_types::{Dev, Time};
use std::collections::{BTreeMap, HashMap};

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "write-order",
    what: "a write went to the device before one that was queued before it and lies before it",
    rule: Rule {
        condition: "a write is issued while the one that ends where it begins, of the same \
                    process and inserted earlier, still waits",
        threshold: "",
        exception: "the device is not known to be zoned (queue/zoned) and completes no write with \
                    an error",
    },
    explains: &["io-error", "missed-merge"],
    remedies: &[KEEP_ORDER, REQUEUE_IN_ORDER],
    rests_on_absence: true,
    detector: || Box::new(WriteOrder::default()),
};

/// The row of [`super::ALL`].
pub const IO_ERROR: Kind = Kind {
    name: "io-error",
    what: "the device ended I/O with an error",
    rule: Rule {
        condition: "a C has an error",
        threshold: "",
        exception: "",
    },
    explains: &[],
    remedies: &[READ_LOGS],
    rests_on_absence: false,
    detector: || Box::new(Errors::default()),
};

const KEEP_ORDER: Remedy = Remedy::act(
    "scheduler-in-order",
    Act::Scheduler(Serving::WritesInOrder),
    "for zoned devices a scheduler that keeps the order (mq-deadline)",
);

const REQUEUE_IN_ORDER: Remedy = Remedy::kernel(
    "requeue-in-order",
    Act::Outside(Outside::Kernel),
    "requeued writes of a zone must go before those behind them",
);

const READ_LOGS: Remedy = Remedy::outside(
    "read-logs",
    Outside::Nowhere,
    "look at the kernel's log for what the driver says",
);

#[derive(Debug, Default)]
struct WriteOrder {
    disks: BTreeMap<Dev, Harm>,
}

/// Requests that went ahead of the one before them.
fn ahead(disk: &Disk) -> Vec<(&Request, &Request)> {
    let writes = || {
        disk.requests
            .iter()
            .filter(|r| r.is_write() && r.life.bytes > 0)
    };
    let ends: HashMap<u64, &Request> = writes().map(|r| (r.end(), r)).collect();
    let earlier = |r: &&Request| {
        let before = ends.get(&r.life.sector)?;
        let queued = before.pid == r.pid && before.handed_over() < r.handed_over();
        let issued = r.life.issue?;
        let waits = before.handed_over()? < issued
            && before.life.issue.is_none_or(|d| d > issued)
            && before.life.complete.is_none_or(|c| c > issued);
        (queued && waits).then_some(*before)
    };
    writes().filter_map(|r| Some((earlier(&r)?, r))).collect()
}

impl Detector for WriteOrder {
    fn section(&mut self, section: &Section, context: &Context) {
        let is_zoned = context.is_zoned() == Some(true);
        for disk in &section.disks {
            let fails = |e: &Event| e.dev == disk.dev && is_error(e);
            let has_failed = disk.shown.nr_errors > 0;
            let error = has_failed.then(|| section.events().iter().position(fails));
            let error = error.flatten();
            if !is_zoned && error.is_none() {
                continue;
            }
            for (before, r) in ahead(disk) {
                let harm = self.disks.entry(disk.dev).or_default();
                harm.add(r.pid, 0, || {
                    let mut evidence = section.of_request(before);
                    evidence.extend(section.of_request(r));
                    evidence.extend(error.map(|place| section.evidence(place)));
                    in_order(&mut evidence);
                    Instance {
                        time: r.life.issue.unwrap_or_default(),
                        delay_ns: None,
                        evidence,
                    }
                });
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |harm, dev| {
            let mut f = harm.without_delay(&KIND, dev, whole);
            f.of = "writes";
            f.weight = Weight::Fault;
            f.what = format!(
                "{} of {} went to the device before the write that was queued before it and ends \
                 where it begins.",
                match harm.count() {
                    1 => "A write".to_owned(),
                    n => format!("{n} writes"),
                },
                f.victim_names()
            );
            f.how =
                "A zoned device takes the writes of a zone in order only, and ends others with \
                     an error."
                    .to_owned();
            if whole.context.is_zoned() != Some(true) {
                f.doubt(
                    Confidence::Likely,
                    "whether the device is zoned, and where zones begin",
                );
            }
            f.cause = Some("the order in which the scheduler or a requeue dispatched".to_owned());
            f.remedies = vec![KEEP_ORDER, REQUEUE_IN_ORDER];
            Some(f)
        })
    }
}

#[derive(Debug, Default)]
struct Errors {
    disks: BTreeMap<Dev, Failed>,
}

/// What ended with an error on a device.
#[derive(Debug, Default)]
struct Failed {
    harm: Harm,
    /// How often, by error.
    errors: BTreeMap<u16, u64>,
    /// Flushes whose command to the device did not fail.
    nr_above: u64,
}

impl Detector for Errors {
    fn section(&mut self, section: &Section, _: &Context) {
        if section.disks.iter().all(|d| d.shown.nr_errors == 0) {
            return;
        }
        let all = section.events().iter().enumerate();
        let all: Vec<(usize, &Event)> = all.filter(|(_, e)| is_error(e)).collect();
        let owners = Owners::all(section);
        for (place, e) in all {
            let failed = self.disks.entry(e.dev).or_default();
            *failed.errors.entry(errno(e.error)).or_default() += 1;
            let owner = owners.at(e);
            // A flush whose command ended before, and well.
            let command = owner.filter(|r| r.is_flush() && r.life.error == 0);
            failed.nr_above += u64::from(command.is_some());
            let pid = owner.map_or(e.pid, |r| r.pid);
            failed.harm.add(pid, 0, || {
                let mut evidence = vec![section.evidence(place)];
                evidence.extend(command.into_iter().flat_map(|r| section.of_request(r)));
                in_order(&mut evidence);
                Instance {
                    time: e.time,
                    delay_ns: None,
                    evidence,
                }
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |failed, dev| {
            let mut f = failed.harm.without_delay(&IO_ERROR, dev, whole);
            f.weight = Weight::Fault;
            f.of = "completions";
            let shown = failed
                .errors
                .iter()
                .map(|(error, n)| format!("{n} with {}", error_name(*error)));
            f.what = format!(
                "The device ended I/O with an error: {}.",
                shown.collect::<Vec<_>>().join(", ")
            );
            if failed.nr_above > 0 {
                f.how = format!(
                    "{} the command that empties the device's cache ended without an error: there \
                     it comes from above the device, or is that of a flush before.",
                    counted(failed.nr_above, "times")
                );
            }
            f.remedies = vec![READ_LOGS];
            Some(f)
        })
    }
}

/// Whose requests went where, by device, first sector and time.
struct Owners<'a> {
    requests: Vec<&'a Request>,
    /// Flushes without data, by device and end.
    flushes: Vec<&'a Request>,
}

/// Whoever asked for a flush is told so soon after its command has ended.
const FLUSH_NEAR_NS: u64 = 1_000_000;

/// Requests that begin before a sector and are asked whether it is theirs.
const BEFORE_SEEN: usize = 64;

impl Owners<'_> {
    fn all(section: &Section) -> Owners<'_> {
        let requests = section.disks.iter().flat_map(|d| &d.requests);
        let mut known: Vec<&Request> = requests.filter(|r| r.is_owner_known).collect();
        known.sort_by_key(|r| (r.life.dev, r.life.sector, r.start()));
        let flushes = known.iter().copied();
        let mut flushes: Vec<&Request> = flushes.filter(|r| r.is_flush()).collect();
        flushes.sort_by_key(|r| (r.life.dev, r.life.complete));
        Owners {
            requests: known,
            flushes,
        }
    }

    /// The I/O that an event shows the end of.
    fn at(&self, e: &Event) -> Option<&Request> {
        if e.bytes == 0 {
            return self.flush_at(e);
        }
        let place = (e.dev, e.sector, Some(e.time));
        let upto = self
            .requests
            .partition_point(|r| (r.life.dev, r.life.sector, r.start()) <= place);
        let before = self.requests[..upto].iter().rev().take(BEFORE_SEEN);
        let mut before = before.filter(|r| r.life.dev == e.dev && e.sector < r.end());
        before.find(|r| r.start() <= Some(e.time)).copied()
    }

    /// The flush without data that ends with an event, or right before it.
    fn flush_at(&self, e: &Event) -> Option<&Request> {
        let ended = |r: &&Request| (r.life.dev, r.life.complete) <= (e.dev, Some(e.time));
        let upto = self.flushes.partition_point(ended);
        let last = self.flushes[..upto].last()?;
        let near = |c: Time| e.time.since(c).0 <= FLUSH_NEAR_NS;
        let is_own = last.life.dev == e.dev && last.life.complete.is_some_and(near);
        is_own.then_some(*last)
    }
}

/// blkparse prints the error of some kernels as a number of 16 bits without sign.
fn errno(error: u16) -> u16 {
    if error > 32_767 {
        0_u16.wrapping_sub(error)
    } else {
        error
    }
}

/// The name of an errno that the block layer returns (`blk_errors`, block/blk-core.c).
fn error_name(errno: u16) -> String {
    let name = match errno {
        5 => "EIO",
        11 => "EAGAIN",
        28 => "ENOSPC",
        52 => "EBADE",
        61 => "ENODATA",
        62 => "ETIME",
        67 => "ENOLINK",
        84 => "EILSEQ",
        95 => "EOPNOTSUPP",
        110 => "ETIMEDOUT",
        121 => "EREMOTEIO",
        _ => return format!("error {errno}"),
    };
    format!("-{errno} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_decoded() {
        assert_eq!(error_name(errno(65_531)), "-5 (EIO)");
        assert_eq!(error_name(errno(5)), "-5 (EIO)");
        assert_eq!(error_name(7), "error 7");
    }
}
