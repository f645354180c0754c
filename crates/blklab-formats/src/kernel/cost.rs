// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of io.cost (include/trace/events/iocost.h, 5.4 to 6.18). They name the disk and the
//! control group: in text in brackets in front, `[sda:/blkcg1]`.

use super::Happened;
use crate::disks::scsi_disk;
use crate::fields::Fields;
use blklab_trace::{GroupPath, GroupShare, Tracepoint};

/// What a device does in a microsecond of virtual time at the rate of its model
/// (`VTIME_PER_USEC`, block/blk-iocost.c).
const FULL_RATE: u64 = 137_438;

/// Of an event that names a disk; of one whose number is not fixed it is 0,0.
pub(super) fn on_disk<F: Fields>(
    f: &F,
    decode: impl FnOnce(&F) -> Option<Tracepoint>,
) -> Option<Happened> {
    let (disk, _) = names(f)?;
    Some((scsi_disk(disk).unwrap_or_default(), decode(f)?))
}

/// The disk and the control group, which may be none.
fn names<F: Fields>(f: &F) -> Option<(&[u8], &[u8])> {
    if let Some(disk) = f.text("devname") {
        return Some((disk, f.text("cgroup").unwrap_or_default()));
    }
    let inside = f.line()?.trim_ascii_start().strip_prefix(b"[")?;
    let end = inside.iter().position(|b| *b == b']')?;
    let inside = &inside[..end];
    let colon = inside.iter().position(|b| *b == b':');
    Some(match colon {
        Some(at) => (&inside[..at], &inside[at + 1..]),
        None => (inside, b""),
    })
}

fn group(f: &impl Fields) -> Option<GroupPath> {
    Some(GroupPath::new(names(f)?.1))
}

pub(super) fn activate(f: &impl Fields) -> Option<Tracepoint> {
    let share = f.number("hweight_inuse").or_else(|| f.number("hweight"))?;
    Some(Tracepoint::CostActivate {
        group: group(f)?,
        share: GroupShare(small(share)),
    })
}

pub(super) fn shortage(f: &impl Fields) -> Option<Tracepoint> {
    Some(Tracepoint::CostShortage {
        group: group(f)?,
        inuse: pair(f, "inuse", ["old_inuse", "new_inuse"], b"->")?.map(small),
    })
}

pub(super) fn rate(f: &impl Fields) -> Option<Tracepoint> {
    let rate = pair(f, "vrate", ["old_vrate", "new_vrate"], b"->")?;
    let permille = rate.map(|r| small(r.saturating_mul(1000).div_ceil(FULL_RATE)));
    let missed = ["read_missed_ppm", "write_missed_ppm"];
    Some(Tracepoint::CostRate {
        permille,
        missed_ppm: pair(f, "missed_ppm", missed, b":")?.map(small),
        rq_wait_percent: small(f.number("rq_wait_pct")?),
        nr_lagging: small(f.number("lagging").or_else(|| f.number("nr_lagging"))?),
        nr_shortages: small(f.number("shortages").or_else(|| f.number("nr_shortages"))?),
    })
}

pub(super) fn debt(f: &impl Fields) -> Option<Tracepoint> {
    let [delay_us, _] = pair(f, "delay", ["old_delay", "new_delay"], b"->")?;
    Some(Tracepoint::CostDebt {
        group: group(f)?,
        delay_us: small(delay_us),
    })
}

/// Two numbers: fields of their own in binary, one in text with something between them.
fn pair(f: &impl Fields, name: &str, apart: [&str; 2], between: &[u8]) -> Option<[u64; 2]> {
    if let (Some(a), Some(b)) = (f.number(apart[0]), f.number(apart[1])) {
        return Some([a, b]);
    }
    let word = f.text(name)?;
    let at = memchr::memmem::find(word, between)?;
    let second = super::text::number(&word[at + between.len()..])?;
    Some([super::text::number(word)?, second])
}

fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
