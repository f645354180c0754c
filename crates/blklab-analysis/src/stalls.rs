// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls: a bio waits for [`STALL_NS`] or more from Q to D, and others behind it.
//!
//! What is queued on the device while the first bio waits belongs to its stall.

use crate::lifecycle::BioLife;
use blklab_types::{Dev, Span, Time};
use std::collections::BTreeMap;

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
}

/// A bio: when.
#[derive(Clone, Copy, Debug)]
struct Waited {
    queue: Time,
    issue: Option<Time>,
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
    pub fn add(&mut self, bio: &BioLife) {
        let new = Waited {
            queue: bio.queue,
            issue: bio.issue,
        };
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
    let mut open: Option<Stall> = None;
    for b in bios {
        let end = |s: &Stall| Time(s.begin.0 + s.waited.0);
        match &mut open {
            Some(stall) if b.queue < end(stall) => {
                stall.bios += 1;
                stall.fill = b.queue.since(stall.begin);
                stall.longest = stall.longest.max(b.wait());
            }
            _ if b.wait().0 >= STALL_NS => {
                found.extend(open.replace(Stall {
                    dev,
                    begin: b.queue,
                    waited: b.wait(),
                    bios: 1,
                    fill: Span(0),
                    longest: b.wait(),
                }));
            }
            _ => {}
        }
    }
    found.extend(open);
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_trace::Rwbs;

    const MS: u64 = 1_000_000;

    fn bio(minor: u16, queue_ms: u64, issue_ms: u64) -> BioLife {
        BioLife {
            dev: Dev { major: 8, minor },
            pid: 1,
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
        for (q, d) in [(200, 210), (0, 592), (12, 604), (86, 792), (800, 1200)] {
            stalls.add(&bio(0, q, d));
        }
        let shown = |s: &Stall| [s.begin.0, s.longest.0, s.bios, s.fill.0];
        let shown: Vec<_> = stalls.finish().iter().map(shown).collect();
        let stall = |begin, longest, bios, fill| [begin * MS, longest * MS, bios, fill * MS];
        assert_eq!(shown, [stall(0, 706, 4, 200), stall(800, 400, 1, 0)]);
    }

    #[test]
    fn devices_stall_by_themselves() {
        let mut stalls = Stalls::default();
        for b in [bio(0, 0, 400), bio(1, 10, 300), bio(1, 20, 30)] {
            stalls.add(&b);
        }
        let found = stalls.finish();
        assert_eq!((found.len(), found[0].bios), (1, 1));
    }
}
