// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discards in many small pieces: each is a command of its own, and most devices take
//! as long for a small one as for a large one.

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Whole,
};
use blklab_trace::{Action, Rwbs};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "small-discards",
    what: "discards come in many small pieces",
    rule: Rule {
        condition: "discards come one beside the other in steps of one length, or are small",
        threshold: "8 discards or more, half of them at most 1 MiB away from the one before; or \
                    64 or more, a quarter of them of 64 KiB or less",
        exception: "",
    },
    explains: &["misaligned"],
    remedies: &[LARGE_RANGES, WHOLE_RANGES],
    rests_on_absence: false,
    detector: || Box::new(Discards::default()),
};

const LARGE_RANGES: Remedy = Remedy::outside(
    "large-discards",
    Outside::Storage,
    "discard large ranges only (fstrim --minimum, no mount option discard)",
);

const WHOLE_RANGES: Remedy = Remedy::kernel(
    "whole-ranges-down",
    Act::Outside(Outside::Kernel),
    "arrays and filesystems that cut discards at their chunks or extents should hand \
     whole ranges down",
);

/// A discard of this length or less is small.
const SMALL_SECTORS: u64 = 128;

/// Discards so often.
const COUNT_MIN: u64 = 8;

/// Of them, the small ones.
const SMALL_SHARE: f64 = 0.25;

/// So many, if they are but small.
const SMALL_COUNT_MIN: u64 = 64;

/// Of all, those at one step from the one before.
const BESIDE_SHARE: f64 = 0.5;

/// Sectors of such a step at most.
const STEP_MAX: u64 = 2048;

#[derive(Debug, Default)]
struct Discards {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    small: u64,
    sizes: BTreeMap<u64, u64>,
    ascending: u64,
    descending: u64,
    sectors: u64,
    last: Option<u64>,
    step: u64,
}

impl Detector for Discards {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            if !disk.shown.flags.has(Rwbs::DISCARD) {
                continue;
            }
            let kinds = [Action::Queue, Action::Issue, Action::Remap];
            let shown = |a: &Action| {
                let mut of_kind = section.events().iter().filter(|e| e.action == *a);
                of_kind.any(|e| e.dev == disk.dev && e.rwbs.has(Rwbs::DISCARD))
            };
            let Some(kind) = kinds.into_iter().find(shown) else {
                continue;
            };
            let sum = self.disks.entry(disk.dev).or_default();
            for (place, e) in section.events().iter().enumerate() {
                let wanted = e.action == kind && e.dev == disk.dev && e.rwbs.has(Rwbs::DISCARD);
                let n = e.nr_sectors();
                if !wanted || n == 0 {
                    continue;
                }
                if let Some(last) = sum.last {
                    let step = last.abs_diff(e.sector);
                    let regular = step == sum.step && step <= STEP_MAX && step > 0;
                    sum.ascending += u64::from(regular && e.sector > last);
                    sum.descending += u64::from(regular && e.sector < last);
                    sum.step = step;
                }
                sum.last = Some(e.sector);
                sum.small += u64::from(n <= SMALL_SECTORS);
                sum.sectors += n;
                if sum.sizes.len() < 4096 || sum.sizes.contains_key(&n) {
                    *sum.sizes.entry(n).or_default() += 1;
                }
                // The size stands for the delay: the first and the smallest are shown.
                sum.harm
                    .add(e.pid, u64::from(n <= SMALL_SECTORS), || Instance {
                        time: e.time,
                        delay_ns: None,
                        evidence: (place..section.events().len().min(place + 4))
                            .map(|i| section.evidence(i))
                            .collect(),
                    });
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn finding(self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let n = self.harm.count();
        let beside = self.ascending + self.descending;
        let many_small = self.small as f64 >= SMALL_SHARE * n as f64;
        let many_beside = beside as f64 >= BESIDE_SHARE * n as f64;
        if n < COUNT_MIN || !(many_beside || (many_small && n >= SMALL_COUNT_MIN)) {
            return None;
        }
        let mut f = Finding::new(KIND.name, dev, "");
        self.harm.fill(&mut f, whole);
        (f.total_ns, f.worst_ns) = (None, None);
        f.of = "discards";
        f.causes = std::mem::take(&mut f.victims);
        for party in &mut f.causes {
            party.delay_ns = 0;
        }
        let mut sizes: Vec<(u64, u64)> = self.sizes.into_iter().collect();
        sizes.sort_by_key(|(size, n)| (std::cmp::Reverse(*n), *size));
        let shown = sizes
            .iter()
            .take(4)
            .map(|(size, n)| format!("{n} of {size} sectors"));
        f.what = format!(
            "{n} discards of {}: {}.",
            f.cause_names(),
            shown.collect::<Vec<_>>().join(", ")
        );
        f.how = format!(
            "{} of them are of 64 KiB or less, and {beside} follow the one before in equal steps \
             ({} going up, {} going down): few large ones would do. On average one discards {:.0} KiB.",
            self.small,
            self.ascending,
            self.descending,
            self.sectors as f64 / 2.0 / n as f64
        );
        f.confidence = Confidence::Likely;
        let sum = whole.disk(dev);
        if sum.nr(Action::Complete) == 0 || sum.nr(Action::Issue) == 0 {
            f.missing.push(
                "D and C: how long the discards take, and who waits meanwhile, is not shown"
                    .to_owned(),
            );
        }
        f.remedies = vec![LARGE_RANGES, WHOLE_RANGES];
        Some(f)
    }
}
