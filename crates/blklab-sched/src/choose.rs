// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of two requests is next: `cfq_choose_req` of every release, and
//! `bfq_choose_req`.

use blklab_block::{Request, Requests, RqId};
use blklab_types::BioFlags;

/// What the head's position and the tunables make of a distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Where the head is, in sectors.
    pub(crate) last: u64,
    /// Largest distance backward that counts: twice `back_seek_max`, so KiB
    /// become sectors.
    pub(crate) back_max: u64,
    /// Factor on distances backward.
    pub(crate) penalty: u64,
}

/// How far a request is; none if it lies too far behind and has to wait for
/// the sweep to come round.
fn distance(reach: &Reach, sector: u64) -> Option<u64> {
    if sector >= reach.last {
        Some(sector - reach.last)
    } else if sector.saturating_add(reach.back_max) >= reach.last {
        Some((reach.last - sector).saturating_mul(reach.penalty))
    } else {
        None
    }
}

/// Which of two requests is better next: sync before async, then the one that
/// is boosted, then the nearer to the head.
pub(crate) fn better(
    rqs: &Requests,
    a: Option<RqId>,
    b: Option<RqId>,
    boosted: fn(&Request) -> bool,
    reach: &Reach,
) -> Option<RqId> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    if a == b {
        return Some(a);
    }
    let (ra, rb) = (&rqs[a], &rqs[b]);
    only_one((a, ra), (b, rb), Request::is_sync)
        .or_else(|| only_one((a, ra), (b, rb), boosted))
        .or_else(|| Some(nearer(reach, (a, ra.sector), (b, rb.sector))))
}

/// A request with metadata.
pub(crate) fn is_meta(rq: &Request) -> bool {
    rq.flags.has(BioFlags::META)
}

/// The nearer of two; if both are equally far, the one ahead.
pub(crate) fn nearer(reach: &Reach, a: (RqId, u64), b: (RqId, u64)) -> RqId {
    match (distance(reach, a.1), distance(reach, b.1)) {
        (Some(da), Some(db)) if da != db => {
            if da < db {
                a.0
            } else {
                b.0
            }
        }
        (Some(_), Some(_)) => {
            if a.1 >= b.1 {
                a.0
            } else {
                b.0
            }
        }
        (Some(_), None) => a.0,
        (None, Some(_)) => b.0,
        (None, None) => {
            if a.1 <= b.1 {
                a.0
            } else {
                b.0
            }
        }
    }
}

/// The one that has a property that the other lacks.
pub(crate) fn only_one(
    a: (RqId, &Request),
    b: (RqId, &Request),
    has: fn(&Request) -> bool,
) -> Option<RqId> {
    match (has(a.1), has(b.1)) {
        (true, false) => Some(a.0),
        (false, true) => Some(b.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ahead_behind_and_wrapped() {
        let reach = Reach {
            last: 100_000,
            back_max: 32_768,
            penalty: 2,
        };
        let (a, b) = (RqId(1), RqId(2));
        let pick = |x, y| nearer(&reach, (a, x), (b, y)).0;
        assert_eq!(pick(100_100, 99_960), 2, "80 is nearer than 100");
        assert_eq!(pick(99_950, 100_100), 2, "equally far: the one ahead");
        assert_eq!(pick(67_231, 200_000), 2, "one wrapped: the other");
        assert_eq!(pick(67_232, 200_000), 1, "just within reach");
        assert_eq!(pick(50, 40), 2, "both wrapped: the lower");
        assert_eq!(pick(100_008, 100_008), 1, "the same place: the first");
    }

    #[test]
    fn as_bfq_chooses() {
        let pick = |last, x, y| {
            let reach = Reach {
                last,
                back_max: 2 * 16384,
                penalty: 2,
            };
            let near = nearer(&reach, (RqId(0), x), (RqId(1), y));
            [x, y][near.idx()]
        };
        assert_eq!(pick(1000, 900, 1150), 1150);
        assert_eq!(pick(1000, 950, 1150), 950);
        assert_eq!(pick(1000, 900, 1200), 1200);
        assert_eq!(pick(100_000_000, 1000, 2000), 1000);
        assert_eq!(pick(100_000_000, 1000, 99_999_000), 99_999_000);
    }
}
