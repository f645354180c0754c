// SPDX-License-Identifier: MIT OR Apache-2.0
//! Geometry and dirty ranges against slow, obvious versions of themselves.

use super::SplitMix64;
use crate::disk::dirty::DirtySet;
use crate::disk::geometry::{Geometry, Layout, Place, ZoneSpec};
use crate::disk::mechanism::Mechanism;
use crate::disk::seek::{SeekCurve, SeekTable};
use crate::disk::spares::Spares;
use blklab_types::Time;
use std::collections::BTreeSet;

const REVOLUTION_NS: u32 = 1_000_003;
const HEAD_SWITCH_NS: u32 = 90_000;

fn table(cylinders: u32) -> SeekTable {
    // Goes down at 4, as measured tables do.
    let points = vec![(1, 0.1), (3, 0.3), (4, 0.25), (cylinders, 0.9)];
    SeekTable::new(&SeekCurve::Table(points), cylinders)
}

fn geometry(layout: Layout, surfaces: u32) -> Geometry {
    let zone = |first_cylinder, cylinders, track_sectors, first_angle_ns| ZoneSpec {
        first_cylinder,
        tracks: cylinders * u64::from(surfaces),
        track_sectors,
        track_skew_ns: 95_001,
        cylinder_skew_ns: 120_007,
        first_angle_ns,
        sectors: None,
        spares: Spares::default(),
    };
    let zones = [
        zone(0, 8, 17, None),
        zone(8, 12, 11, None),
        zone(20, 4, 7, Some(5)),
    ];
    let capacity = u64::from(surfaces) * (8 * 17 + 12 * 11 + 4 * 7);
    let seek = table(24);
    Geometry::new(
        &zones,
        layout,
        surfaces,
        REVOLUTION_NS,
        capacity,
        &seek,
        HEAD_SWITCH_NS,
    )
}

fn all() -> Vec<Geometry> {
    vec![
        geometry(Layout::Classic, 1),
        geometry(Layout::Classic, 3),
        geometry(Layout::Alternating { in_zone: true }, 3),
        geometry(Layout::Alternating { in_zone: false }, 4),
        geometry(Layout::Serpentine(4), 2),
        geometry(Layout::Serpentine(4), 3),
    ]
}

/// Time from the begin of one sector to the begin of the next must lead from
/// one angle to the other, and leave time for the switch.
#[test]
fn angles_and_transfer_times_agree() {
    let revolution = u64::from(REVOLUTION_NS);
    for g in all() {
        let mut places = BTreeSet::new();
        for sector in 0..g.capacity_sectors() {
            let here = g.place(sector);
            assert!(
                places.insert((here.cylinder, here.surface, here.angle_ns)),
                "twice: {here:?}"
            );
            if sector + 1 == g.capacity_sectors() {
                break;
            }
            let next = g.place(sector + 1);
            let one = g.transfer_ns(sector, 1);
            let step = one + g.gap_before_ns(sector + 1);
            let angle_ns = (u64::from(here.angle_ns) + step) % revolution;
            assert_eq!(
                angle_ns,
                u64::from(next.angle_ns),
                "{sector}: {here:?} {next:?}"
            );
            assert_eq!(
                g.transfer_ns(sector, 2),
                step + g.transfer_ns(sector + 1, 1)
            );
            let distance = here.cylinder.abs_diff(next.cylinder);
            let switch_ns = match (distance, here.surface == next.surface) {
                (0, true) => 0,
                (0, false) => HEAD_SWITCH_NS,
                (d, _) => table(24).ns(d).max(HEAD_SWITCH_NS),
            };
            assert!(
                g.gap_before_ns(sector + 1) >= u64::from(switch_ns),
                "{sector}"
            );
        }
    }
}

#[test]
fn what_has_passed_is_the_inverse_of_transfer() {
    let mut random = SplitMix64(1);
    for g in all() {
        for _ in 0..2000 {
            let from = random.below(g.capacity_sectors());
            let limit = from + random.below(g.capacity_sectors() - from) + 1;
            let n = random.below(limit - from) + 1;
            let time_ns = g.transfer_ns(from, n);
            assert_eq!(g.passed(from, time_ns, limit), from + n, "{from}+{n}");
            assert_eq!(
                g.passed(from, time_ns - 1, limit),
                from + n - 1,
                "{from}+{n}"
            );
            assert_eq!(g.passed(from, u64::MAX / 4, limit), limit);
        }
    }
}

#[test]
fn tracks_and_cylinders_end_where_the_place_changes() {
    for g in all() {
        for sector in 0..g.capacity_sectors() {
            let track = |p: Place| (p.cylinder, p.surface);
            let end = g.track_end(sector);
            assert_eq!(track(g.place(sector)), track(g.place(end - 1)));
            if end < g.capacity_sectors() {
                assert_ne!(track(g.place(sector)), track(g.place(end)));
            }
            assert!(g.cylinder_end(sector) >= end);
        }
    }
    let g = geometry(Layout::Classic, 3);
    assert_eq!(g.cylinder_end(0), 51);
    assert_eq!(g.cylinder_end(51), 102);
}

fn mechanism(layout: Layout) -> Mechanism {
    Mechanism::new(
        geometry(layout, 3),
        table(24),
        REVOLUTION_NS,
        HEAD_SWITCH_NS,
        20_000,
        false,
    )
}

/// With a window, the next range is one of those begun first.
#[test]
fn a_window_chooses_among_the_ranges_begun_first() {
    let mech = mechanism(Layout::Classic);
    let mut dirty = DirtySet::with_capacity(8);
    let starts = [200, 40, 300, 120, 10];
    for (i, start) in starts.into_iter().enumerate() {
        dirty.insert(&mech, start, start + 2, Time(i as u64));
    }
    // The third goes on being the third when it grows.
    dirty.insert(&mech, 302, 304, Time(9));
    let cost = |s: u64| {
        let place = mech.geometry.place(s);
        mech.positioning_ns(mech.moment(77), &place, true)
    };
    for window in 1..=6 {
        let chosen = dirty.nearest_of(window, &mech, mech.moment(77));
        let best = starts.iter().take(window).map(|&s| cost(s)).min();
        assert_eq!(chosen.map(|(_, ns)| ns), best, "window {window}");
    }
    for expected in starts {
        let (i, _) = dirty.nearest_of(1, &mech, mech.moment(0)).expect("a range");
        assert_eq!(dirty.take(&mech, i, 100).0, expected);
    }
}

#[test]
fn dirty_ranges_are_the_set_of_dirty_sectors() {
    for layout in [Layout::Classic, Layout::Serpentine(4)] {
        let mut mech = mechanism(layout);
        let capacity = mech.geometry.capacity_sectors();
        let (mut dirty, mut model) = (DirtySet::with_capacity(8), BTreeSet::new());
        let mut random = SplitMix64(5);
        for round in 0..20_000 {
            let start = random.below(capacity - 12);
            let end = start + 1 + random.below(12);
            match random.below(8) {
                0..4 => {
                    dirty.insert(&mech, start, end, Time(round));
                    model.extend(start..end);
                }
                4 => {
                    dirty.remove(&mech, start, end);
                    model.retain(|s| !(start..end).contains(s));
                }
                _ => {
                    mech.moved_to(start + 1);
                    let moment = mech.moment(random.below(1 << 40));
                    let nearest = dirty.nearest(&mech, moment);
                    let begins = |s: &&u64| **s == 0 || !model.contains(&(**s - 1));
                    let cost = |s| mech.positioning_ns(moment, &mech.geometry.place(s), true);
                    let best = model.iter().filter(begins).map(|&s| cost(s)).min();
                    assert_eq!(nearest.map(|(_, ns)| ns), best);
                    if let Some((i, _)) = nearest {
                        let (from, to, place) = dirty.take(&mech, i, 5);
                        assert_eq!(place, mech.geometry.place(from));
                        assert!((from..to).all(|s| model.remove(&s)));
                        assert!(to - from == 5 || !model.contains(&to));
                    }
                }
            }
            assert_eq!(dirty.sectors(), model.len() as u64);
            let inside = (start..end).all(|s| model.contains(&s));
            assert_eq!(dirty.contains(start, end), inside);
            assert_eq!(dirty.is_empty(), dirty.oldest() == Time::MAX);
        }
    }
}

/// Every address of a zone with spares has a place of its own, in ascending
/// order, and the inverse finds it; times agree with angles.
#[test]
fn spares_leave_every_address_a_place() {
    let kinds = [
        Spares {
            front_empty: 5,
            slips: vec![(3, 1), (3, 1), (60, 1)],
            ..Spares::default()
        },
        Spares {
            region: 17,
            region_end: 2,
            slips: vec![(20, 1), (21, 1), (40, 1)],
            slips_use_spares: true,
            ..Spares::default()
        },
        Spares {
            region: 51,
            region_front: 4,
            front_empty: 20,
            slips: vec![(7, 1), (90, 1)],
            ..Spares::default()
        },
        Spares {
            slips: vec![(17, 17), (51, 17)],
            slips_use_spares: true,
            ..Spares::default()
        },
    ];
    for spares in kinds {
        let places = 17 * 24;
        let whole = if spares.region == 0 && spares.slips_use_spares {
            places - 34
        } else {
            places
        };
        let sectors = spares.addresses(whole);
        assert!(sectors > 250 && sectors < places, "{spares:?}: {sectors}");
        let mut last = None;
        for address in 0..sectors {
            let place = spares.place(address);
            assert!(
                place < places && last.is_none_or(|l| l < place),
                "{spares:?} {address}"
            );
            assert_eq!(spares.address_from(place), address, "{spares:?}");
            if let Some(last) = last {
                assert_eq!(spares.address_from(last + 1), address, "{spares:?}");
            }
            last = Some(place);
        }
        let zone = ZoneSpec {
            first_cylinder: 0,
            tracks: 24,
            track_sectors: 17,
            track_skew_ns: 95_001,
            cylinder_skew_ns: 120_007,
            first_angle_ns: Some(77),
            sectors: Some(sectors),
            spares,
        };
        let g = Geometry::new(
            &[zone],
            Layout::Alternating { in_zone: true },
            3,
            REVOLUTION_NS,
            sectors,
            &table(24),
            HEAD_SWITCH_NS,
        );
        check_times(&g);
    }
}

/// Times from sector to sector add up and lead from angle to angle.
fn check_times(g: &Geometry) {
    let revolution = u64::from(REVOLUTION_NS);
    let mut random = SplitMix64(9);
    for sector in 0..g.capacity_sectors() - 1 {
        let (here, next) = (g.place(sector), g.place(sector + 1));
        let step = g.transfer_ns(sector, 1) + g.gap_before_ns(sector + 1);
        let angle_ns = (u64::from(here.angle_ns) + step) % revolution;
        assert_eq!(angle_ns, u64::from(next.angle_ns), "{sector}");
        let n = 1 + random.below(g.capacity_sectors() - sector);
        let time_ns = g.transfer_ns(sector, n);
        assert_eq!(g.passed(sector, time_ns, u64::MAX), sector + n);
        assert_eq!(g.passed(sector, time_ns - 1, u64::MAX), sector + n - 1);
        assert!(g.track_begin(sector) <= sector && g.track_end(sector) > sector);
    }
}
