// SPDX-License-Identifier: MIT OR Apache-2.0
//! Write-back throttling has scaled the number of writes down, and writes wait for it.
//!
//! wbt looks at the latency of reads, one window after the other; where the fastest of a
//! window takes longer than `wbt_lat_usec`, it halves how many writes may be under way
//! (`wb_timer_fn`, block/blk-wbt.c).

use crate::findings::harm::{Harm, of_disks};
use crate::findings::remedy::Act;
use crate::findings::section::{Section, in_order};
use crate::findings::spells::{Spell, What};
use crate::findings::{
    Confidence, Context, Detector, Finding, Instance, Kind, Remedy, Rule, Weight, Whole, counted,
    time_text,
};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "wbt",
    what: "writes wait since write-back throttling allows few of them: reads took too long",
    rule: Rule {
        condition: "a write waits from Q to G while the last wbt_step of the device says that the \
                    limit is scaled down (step above 0)",
        threshold: "more than 4 times what the device takes for one, 50 us at least; 20 % of its \
                    process's waiting or more",
        exception: "",
    },
    explains: &["no-request-free", "wbt-likely"],
    remedies: &[LONGER_TARGET, NO_THROTTLING],
    rests_on_absence: false,
    detector: || Box::new(Wbt::default()),
};

const LONGER_TARGET: Remedy = Remedy::act(
    "longer-target",
    Act::LaxerThrottling,
    "a larger queue/wbt_lat_usec ({}as long as the reader can bear)",
);

const NO_THROTTLING: Remedy = Remedy::set(
    "no-write-back-throttling",
    "queue/wbt_lat_usec",
    "0",
    "no write-back throttling; reads wait behind writes then",
);

#[derive(Debug, Default)]
struct Wbt {
    disks: BTreeMap<Dev, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    harm: Harm,
    nr_sync: u64,
    step_max: i32,
    /// Writes of write-back and others at the highest step.
    limits: [u32; 2],
    window_us: u64,
    read_min_ns: u64,
    scaled_ns: u64,
}

impl Detector for Wbt {
    fn section(&mut self, section: &Section, _: &Context) {
        for disk in &section.disks {
            let scaled = section.spells.iter().filter(|s| {
                let is_down = matches!(s.what, What::Wbt(w) if w.step > 0);
                is_down && section.disk_of(s.dev) == disk.dev
            });
            let scaled: Vec<&Spell> = scaled.collect();
            if scaled.is_empty() {
                continue;
            }
            let sum = self.disks.entry(disk.dev).or_default();
            scaled.iter().for_each(|s| sum.scaled(s));
            for (r, w) in disk.long_waits() {
                let (Some(queue), Some(get)) = (r.queue, r.life.get) else {
                    continue;
                };
                if !r.is_write() || w.get.is_none() {
                    continue;
                }
                let Some(spell) = scaled.iter().find(|s| s.within(queue, get) > 0) else {
                    continue;
                };
                sum.nr_sync += u64::from(r.is_sync);
                // Who reads meanwhile is protected.
                for read in disk.issued_between(queue, get).map(|i| &disk.requests[i]) {
                    if read.is_read() && read.is_owner_known {
                        sum.harm.blame(read.pid, 1);
                    }
                }
                sum.harm.add(r.pid, w.get_ns, || {
                    let mut evidence = section.of_request(r);
                    evidence.extend(spell.evidence.iter().cloned());
                    in_order(&mut evidence);
                    Instance {
                        time: queue,
                        delay_ns: Some(w.get_ns),
                        evidence,
                    }
                });
            }
        }
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |sum, dev| sum.finding(dev, whole))
    }
}

impl Sum {
    fn scaled(&mut self, spell: &Spell) {
        let What::Wbt(w) = spell.what else { return };
        self.scaled_ns = self.scaled_ns.saturating_add(spell.ns());
        self.read_min_ns = self.read_min_ns.max(w.read_min_ns);
        if w.step > self.step_max {
            self.step_max = w.step;
            self.limits = [w.background, w.normal];
            self.window_us = w.window_us;
        }
    }

    fn finding(mut self, dev: Dev, whole: &Whole<'_>) -> Option<Finding> {
        let mut f = self.harm.finding(&KIND, dev, whole)?;
        let [background, normal] = self.limits;
        f.what = format!(
            "{} wait{} {} on average for a request: write-back throttling allows {} \
             and {} at a time (step {}).",
            f.victim_names(),
            f.verb_end(),
            time_text(self.harm.total_ns() / self.harm.count().max(1)),
            counted(background.into(), "writes of write-back"),
            counted(normal.into(), "others"),
            self.step_max,
        );
        f.how = format!(
            "The limit was scaled down for {} in all, with a window of {} us, since reads took too \
             long{}.",
            time_text(self.scaled_ns),
            self.window_us,
            match self.read_min_ns {
                0 => String::new(),
                ns => format!(": {} the fastest of a window", time_text(ns)),
            }
        );
        f.cause = Some("write-back throttling (wbt), which protects reads".to_owned());
        if self.read_min_ns == 0 {
            f.doubt(
                Confidence::Likely,
                "wbt_stat or wbt_lat: how long reads took",
            );
        }
        if self.nr_sync == 0 {
            f.weight = Weight::Background;
        }
        let target = match whole.context.queue("wbt_lat_usec") {
            Some(us) => format!("it is {us} now; "),
            None => String::new(),
        };
        f.remedies = vec![LONGER_TARGET.filled_with(target), NO_THROTTLING];
        Some(f)
    }
}
