// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that wait for a buffer of metadata that is being written.
//!
//! Who wants to change a block of metadata while it is written where it belongs waits for the end
//! of that write (`do_get_write_access`, fs/jbd2/transaction.c). Such a write is write-back, for
//! which no process waits otherwise, and it may stand behind much of it.

use crate::findings::harm::{Harm, add_spells, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::spells::What;
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "buffer-stall",
    what: "tasks wait to change metadata of ext4, since its block is being written",
    rule: Rule {
        condition: "jbd2_lock_buffer_stall says that a task waited for a buffer",
        threshold: "20 ms or more, and 20 % of its waiting for I/O or more, or 100 ms on average",
        exception: "",
    },
    explains: &[],
    remedies: &[LESS_WRITE_BACK, NO_ACCESS_TIMES],
    rests_on_absence: false,
    detector: || Box::new(BufferStalls::default()),
};

const LESS_WRITE_BACK: Remedy = Remedy::outside(
    "smaller-write-back",
    Outside::Machine,
    "less write-back at a time, behind which the block waits (a smaller \
     vm.dirty_background_bytes, a scheduler that lets few asynchronous writes go at once)",
);

const NO_ACCESS_TIMES: Remedy = Remedy::outside(
    "no-access-times",
    Outside::Storage,
    "fewer changes of metadata (mount options noatime, lazytime)",
);

/// A write takes as long where nothing is wrong.
const SLOW_NS: u64 = 20_000_000;

#[derive(Debug, Default)]
struct BufferStalls {
    disks: BTreeMap<Dev, Harm>,
}

impl Detector for BufferStalls {
    fn section(&mut self, section: &Section, _: &Context) {
        add_spells(&mut self.disks, section, What::BufferStall, SLOW_NS);
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut harm, dev| {
            let mut f = harm.finding(&KIND, dev, whole)?;
            f.of = "stalls";
            f.what = format!(
                "{} wait{} to change metadata of ext4 until the block is written, {} on average.",
                f.victim_names(),
                f.verb_end(),
                time_text(harm.total_ns() / harm.count().max(1))
            );
            f.how = "The block is on its way to where it belongs, as write-back, for which the \
                     scheduler takes its time; whoever wants to change it waits in \
                     do_get_write_access."
                .to_owned();
            f.cause = Some("the write of a block of metadata".to_owned());
            if whole.disk(dev).nr_ended == 0 {
                f.missing.push(
                    "why that write takes so long: events of the block layer (Q, I, D, C) of the \
                     same time"
                        .to_owned(),
                );
            }
            f.remedies = vec![LESS_WRITE_BACK, NO_ACCESS_TIMES];
            Some(f)
        })
    }
}
