// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splitting bios that are larger than a request may be (X).

use crate::mq::{Limits, Queue};
use crate::{Cx, Pending, events};
use blklab_types::{Bio, BioFlags, Completion, Op, Slab, Time};

/// A bio that went on in parts (`bio_chain`).
#[derive(Clone, Copy, Debug)]
struct Chain {
    bio: Bio,
    queued: Time,
    /// Parts that have not finished.
    left: u32,
    error: u16,
}

/// Bios of which parts are on their way. The completion of a part names its chain.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    chains: Slab<u32, Chain>,
}

impl Chains {
    /// Notes a bio that becomes two parts.
    fn start(&mut self, pending: &Pending) -> u32 {
        self.chains.insert(Chain {
            bio: pending.bio,
            queued: pending.queued,
            left: 2,
            error: 0,
        })
    }

    /// A part is split further.
    fn grow(&mut self, chain: u32) {
        self.chains[chain].left += 1;
    }

    /// When the bio that its parts make was queued.
    pub(crate) fn queued(&self, chain: u32) -> Time {
        self.chains[chain].queued
    }

    /// A part finished (`__bio_chain_endio`); the whole bio, if it was the last.
    pub(crate) fn end(&mut self, id: u32, error: u16) -> Option<(Pending, u16)> {
        let chain = &mut self.chains[id];
        chain.left -= 1;
        if chain.error == 0 {
            chain.error = error;
        }
        if chain.left > 0 {
            return None;
        }
        let chain = self.chains.remove(id);
        Some((Pending::new(chain.bio, chain.queued), chain.error))
    }
}

impl Queue {
    /// Whether a bio is too large ([`Queue::split`]).
    pub(crate) fn splits(&self, bio: &Bio) -> bool {
        front_sectors(&self.core.limits, bio).is_some()
    }

    /// Cuts the front off a bio that is too large: X, and the front part, which
    /// does not merge; `pending` becomes the rest. None if it fits
    /// (`__blk_queue_split`, later `__bio_split_to_limits`).
    pub(crate) fn split(&mut self, cx: &mut Cx<'_>, pending: &mut Pending) -> Option<Pending> {
        let bio = pending.bio;
        let front = front_sectors(&self.core.limits, &bio)?;
        let [segments, rest_segments] = match bio.op {
            // A discard has no data: each part of it is what the whole was.
            Op::Discard => [bio.segments; 2],
            _ => {
                let front = segments_of_front(&bio, front);
                [front, bio.segments - front]
            }
        };
        let chain = match bio.completion {
            Completion::Split { chain } => {
                self.chains.grow(chain);
                chain
            }
            _ => self.chains.start(pending),
        };
        let part = Bio {
            completion: Completion::Split { chain },
            flags: bio.flags.without(BioFlags::NOWAIT),
            ..bio
        };
        let head = Bio {
            nr_sectors: front,
            segments,
            flags: part.flags | BioFlags::NOMERGE,
            ..part
        };
        pending.bio = Bio {
            sector: bio.sector + u64::from(front),
            nr_sectors: bio.nr_sectors - front,
            segments: rest_segments,
            ..part
        };
        events::split_event(self.core.dev, cx, &head, pending.bio.sector);
        let mut front = Pending::new(head, pending.queued);
        front.qos.issued = cx.now;
        Some(front)
    }
}

/// Sectors of the front part of a bio that has to be split.
fn front_sectors(limits: &Limits, bio: &Bio) -> Option<u32> {
    match bio.op {
        _ if bio.nr_sectors == 0 => None,
        Op::Flush => None,
        Op::Discard => {
            let discard = limits.queue.discard?;
            discard.front_sectors(bio.sector, u64::from(bio.nr_sectors))
        }
        Op::Read | Op::Write => front_of_data(limits, bio),
    }
}

/// The same of a bio with data (`get_max_io_size`).
fn front_of_data(limits: &Limits, bio: &Bio) -> Option<u32> {
    let mut most = limits.queue.max_sectors;
    if limits.chunk_sectors > 0 {
        let chunk = u64::from(limits.chunk_sectors);
        most = most.min((chunk - bio.sector % chunk) as u32);
    }
    let by_segments = sectors_of_segments(bio, limits.queue.max_segments);
    if bio.nr_sectors <= most && bio.nr_sectors <= by_segments {
        return None;
    }
    let logical = limits.logical_block_sectors.max(1);
    let physical = u64::from(limits.physical_block_sectors.max(1));
    let into = bio.sector % physical;
    let end = (into + u64::from(most)) / physical * physical;
    let aligned = if end > into {
        (end - into) as u32
    } else {
        most / logical * logical
    };
    let front = aligned.min(by_segments / logical * logical);
    (front > 0 && front < bio.nr_sectors).then_some(front)
}

/// Sectors that the first `n` segments hold; segments are taken as equal.
fn sectors_of_segments(bio: &Bio, n: u32) -> u32 {
    let segments = u32::from(bio.segments).max(1);
    if segments <= n {
        return bio.nr_sectors;
    }
    (u64::from(bio.nr_sectors).div_ceil(u64::from(segments)) * u64::from(n)) as u32
}

/// Segments of the first `front` sectors.
fn segments_of_front(bio: &Bio, front: u32) -> u16 {
    let segments = u32::from(bio.segments).max(1);
    let each = bio.nr_sectors.div_ceil(segments);
    let n = front.div_ceil(each).min(segments.saturating_sub(1)).max(1);
    n.min(u32::from(bio.segments)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use blklab_types::DiscardLimits;

    fn front(sector: u64, nr_sectors: u32, change: impl FnOnce(&mut Limits)) -> Option<u32> {
        let mut limits = Limits {
            physical_block_sectors: 8,
            ..Limits::default()
        };
        limits.queue.max_segments = 1024;
        change(&mut limits);
        let bio = Bio {
            sector,
            nr_sectors,
            segments: Bio::segments_of_pages(nr_sectors),
            ..Bio::default()
        };
        front_sectors(&limits, &bio)
    }

    #[test]
    fn vector_v5_alignment() {
        assert_eq!(front(3, 4000, |_| {}), Some(2557));
        assert_eq!(front(8, 4000, |_| {}), Some(2560));
        assert_eq!(front(3, 20, |l| l.queue.max_sectors = 7), Some(5));
        assert_eq!(front(0, 20, |l| l.queue.max_sectors = 7), Some(7));
        assert_eq!(front(200, 100, |l| l.chunk_sectors = 256), Some(56));
        assert_eq!(front(0, 2560, |_| {}), None);
    }

    #[test]
    fn discards_have_limits_of_their_own() {
        let mut limits = Limits::default();
        let discard = |limits: &Limits, sector, nr_sectors| {
            let bio = Bio {
                op: Op::Discard,
                sector,
                nr_sectors,
                segments: 1,
                ..Bio::default()
            };
            front_sectors(limits, &bio)
        };
        assert_eq!(discard(&limits, 0, 1 << 22), None);
        limits.queue.discard = Some(DiscardLimits {
            max_sectors: 2048,
            granularity_sectors: 8,
        });
        assert_eq!(discard(&limits, 8, 5114), Some(2048));
        assert_eq!(discard(&limits, 3, 5114), Some(2045));
        assert_eq!(discard(&limits, 0, 2048), None);
    }

    #[test]
    fn vector_v4_segments() {
        assert_eq!(front(0, 3000, |l| l.queue.max_segments = 128), Some(1024));
        assert_eq!(
            front(1024, 1976, |l| l.queue.max_segments = 128),
            Some(1024)
        );
        assert_eq!(front(2048, 952, |l| l.queue.max_segments = 128), None);
    }
}
