// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tasks that wait for room in the journal of ext4 or the log of XFS.
//!
//! Metadata stay in the journal until they were written where they belong. When it is full,
//! whoever wants to change something waits until the oldest were: it writes them itself
//! (`jbd2_log_do_checkpoint`, fs/jbd2/checkpoint.c), or sleeps (`xlog_grant_head_wait`,
//! fs/xfs/xfs_log.c).

use crate::findings::harm::{Harm, add_spells, of_disks};
use crate::findings::remedy::Outside;
use crate::findings::section::Section;
use crate::findings::spells::What;
use crate::findings::{Context, Detector, Finding, Kind, Remedy, Rule, Whole, time_text};
use blklab_types::Dev;
use std::collections::BTreeMap;

/// The row of [`super::ALL`].
pub const KIND: Kind = Kind {
    name: "journal-full",
    what: "tasks wait for room in the journal (ext4) or log (XFS)",
    rule: Rule {
        condition: "time passes between xfs_log_grant_sleep and _wake of a task, or between \
                    jbd2_checkpoint and jbd2_checkpoint_stats with buffers written",
        threshold: "1 ms or more, and 20 % of its waiting for I/O or more",
        exception: "",
    },
    explains: &[],
    remedies: &[LARGER_LOG, OTHER_LOG],
    rests_on_absence: false,
    detector: || Box::new(LogFull::default()),
};

const LARGER_LOG: Remedy = Remedy::outside(
    "larger-journal",
    Outside::Storage,
    "a larger journal or log (tune2fs -J size=, mkfs.xfs -l size=)",
);

const OTHER_LOG: Remedy = Remedy::outside(
    "journal-elsewhere",
    Outside::Storage,
    "the journal on another device, so that the disk has time for the rest",
);

/// Who waits less did not.
const SLOW_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct LogFull {
    disks: BTreeMap<Dev, Harm>,
}

impl Detector for LogFull {
    fn section(&mut self, section: &Section, _: &Context) {
        add_spells(&mut self.disks, section, What::LogFull, SLOW_NS);
    }

    fn finish(&mut self, whole: &Whole<'_>) -> Vec<Finding> {
        of_disks(&mut self.disks, |mut harm, dev| {
            let mut f = harm.finding(&KIND, dev, whole)?;
            f.of = "waits";
            f.what = format!(
                "{} wait{} for room in the journal, {} on average.",
                f.victim_names(),
                f.verb_end(),
                time_text(harm.total_ns() / harm.count().max(1))
            );
            f.how = "Changes of metadata come faster than they are written where they belong, and \
                     the journal has no room left."
                .to_owned();
            f.cause = Some("a journal that is too small for these changes".to_owned());
            f.remedies = vec![LARGER_LOG, OTHER_LOG];
            Some(f)
        })
    }
}
