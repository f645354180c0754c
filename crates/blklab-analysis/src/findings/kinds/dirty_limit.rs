// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writers that the limit of dirty pages holds back (`balance_dirty_pages`,
//! mm/page-writeback.c).
//!
//! Who dirties pages sleeps from time to time once too many are dirty, so that all together
//! dirty them as fast as the device takes them. For whoever writes most of them this is what
//! the device can do. Who writes little waits for the others.

use crate::findings::harm::{Harm, of_disks, parties};
use crate::findings::remedy::{Act, Outside};
use crate::findings::section::Section;
use crate::findings::spells::What;
use crate::findings::sums::{add, percent, total};
use crate::findings::{
    Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, time_text,
};
use blklab_types::{Dev, Pid, Time};
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "dirty-limit",
    what: "writers are held back since too many pages are dirty (balance_dirty_pages)",
    rule: Rule {
        condition: "a process pauses in balance_dirty_pages; if it dirties few of the pages it \
                    waits for the others, else that is its own choice",
        threshold: "pauses that add up to 100 ms and to 20 % of the time from its first to its \
                    last; few are less than 20 % of the pages",
        exception: "",
    },
    explains: &[],
    remedies: &[DIRECT_IO, OWN_GROUP, EARLIER_WRITE_BACK],
    rests_on_absence: false,
    detector: || Box::new(DirtyLimit::default()),
};

const DIRECT_IO: Remedy = Remedy::outside(
    "direct-io",
    Outside::Applications,
    "nothing makes the device faster; vm.dirty_ratio higher only lets a burst end sooner, \
     direct I/O leaves memory to others",
);

const OWN_GROUP: Remedy = Remedy::outside(
    "own-group",
    Outside::Groups,
    "a control group of its own, with memory.high or io.max, for {}: then the limit is its own",
);

const EARLIER_WRITE_BACK: Remedy = Remedy::act(
    "earlier-write-back",
    Act::EarlierWriteBack,
    "a lower vm.dirty_background_bytes, so that write-back begins before any writer is \
     held back",
);

/// Who pauses for less in all is not held back.
const TOTAL_MIN_NS: u64 = 100_000_000;

/// Who pauses for a smaller part of its time is not held back; who dirties a smaller part of
/// the pages does not fill the limit.
const SHARE_PERCENT: u64 = 20;

/// Of a page, bytes: of nearly all machines.
const PAGE_KIB: u64 = 4;

#[derive(Debug, Default)]
struct DirtyLimit {
    disks: BTreeMap<Dev, BTreeMap<Pid, Writer>>,
}

#[derive(Debug, Default)]
struct Writer {
    harm: Harm,
    span: Option<[Time; 2]>,
    dirtied_pages: u64,
}

impl Detector for DirtyLimit {
    fn section(&mut self, section: &Section, _: &Context) {
        for spell in &section.spells {
            let What::DirtyPause { dirtied_pages, .. } = spell.what else {
                continue;
            };
            let dev = section.disk_of(spell.dev);
            let writers = self.disks.entry(dev).or_default();
            let writer = writers.entry(spell.pid).or_default();
            let span = writer.span.get_or_insert([spell.from, spell.to]);
            span[1] = span[1].max(spell.to);
            add(&mut writer.dirtied_pages, dirtied_pages.into());
            writer.harm.add(spell.pid, spell.ns(), || Instance {
                time: spell.from,
                delay_ns: Some(spell.ns()),
                evidence: spell.evidence.clone(),
            });
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |writers, dev| {
            finding(&writers, dev, whole)
        })
    }
}

impl Writer {
    fn is_held_back(&self) -> bool {
        let all = self.span.map_or(0, |[from, to]| to.since(from).0);
        let paused = self.harm.total_ns();
        paused >= TOTAL_MIN_NS && percent(paused, all) >= SHARE_PERCENT
    }
}

fn finding(writers: &BTreeMap<Pid, Writer>, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
    let pages = total(writers.values().map(|w| w.dirtied_pages));
    let fills = |w: &Writer| percent(w.dirtied_pages, pages) >= SHARE_PERCENT;
    let held: Vec<(&Pid, &Writer)> = writers.iter().filter(|(_, w)| w.is_held_back()).collect();
    let innocent: Vec<_> = held.iter().filter(|(_, w)| !fills(w)).copied().collect();
    let is_own = innocent.is_empty();
    let victims = if is_own { held } else { innocent };
    let (_, worst) = victims.iter().max_by_key(|(_, w)| w.harm.worst_ns())?;
    let mut f = Finding::new(KIND.name, dev, "");
    worst.harm.fill(&mut f, whole);
    let sums = victims
        .iter()
        .map(|(pid, w)| (**pid, (w.harm.count(), w.harm.total_ns())));
    f.victims = parties(&sums.collect(), whole);
    f.count = victims.iter().map(|(_, w)| w.harm.count()).sum();
    f.total_ns = Some(total(victims.iter().map(|(_, w)| w.harm.total_ns())));
    f.of = "pauses";
    let filling = writers.iter().filter(|(_, w)| fills(w));
    let causes = filling.map(|(pid, w)| (*pid, (w.dirtied_pages, 0)));
    f.what = format!(
        "{} pause{} in write: {} in all, since too many pages of the device are dirty.",
        f.victim_names(),
        f.verb_end(),
        time_text(f.total_ns.unwrap_or(0)),
    );
    f.figures = vec![(
        "dirtied while held back",
        pages.saturating_mul(PAGE_KIB) as f64 / 1024.0,
        "MiB",
    )];
    if is_own {
        f.weight = Weight::OwnChoice;
        f.how =
            "It dirties pages faster than the device takes them; the pauses make it as fast as \
                 the device."
                .to_owned();
        f.cause = Some("its own writes: what the device can take".to_owned());
        f.remedies = vec![DIRECT_IO];
    } else {
        f.causes = parties(&causes.collect(), whole);
        f.how = format!(
            "{} dirties most pages; the limit is for all who write to the device.",
            f.cause_names()
        );
        f.remedies = vec![OWN_GROUP.filled_with(f.cause_names()), EARLIER_WRITE_BACK];
    }
    Some(f)
}
