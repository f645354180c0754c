// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::IoGroup;
use crate::mq::qos::rig::{Load, Rig};

/// Groups by target in us, all below the root, and their loads; 32 requests.
fn rig(targets: &[u64], loads: &[Load]) -> Rig<IoLatency> {
    let mut tasks = TaskTable::default();
    for &us in targets {
        tasks.add_group(IoGroup {
            latency_us: (us > 0).then_some(us),
            ..IoGroup::default()
        });
    }
    Rig::new(tasks, loads, |tasks, timers| {
        IoLatency::new(tasks, false, 32, timers).expect("a target")
    })
}

fn depths(rig: &Rig<IoLatency>) -> Vec<u32> {
    rig.policy.groups[1..].iter().map(|g| g.depth).collect()
}

#[test]
fn without_a_target_there_is_nothing() {
    let mut tasks = TaskTable::default();
    tasks.add_group(IoGroup::default());
    let mut timers = Timers::new(blklab_types::Hz(1000));
    assert!(IoLatency::new(&tasks, false, 32, &mut timers).is_none());
}

#[test]
fn a_missed_target_holds_siblings_back() {
    // Reads of 1 ms; the first group wants 800 us.
    let batch = [Load::reads(2, 1000); 16];
    let loads = [&[Load::reads(1, 1000)], &batch[..]].concat();
    let mut rig = rig(&[800, 0], &loads);
    // The first window ends at 100 ms, and the scale goes down; the next change is half a
    // second later.
    rig.until_ms(99);
    assert_eq!(depths(&rig), [ANY_DEPTH, ANY_DEPTH]);
    rig.until_ms(599);
    assert_eq!(depths(&rig), [ANY_DEPTH, 16]);
    rig.until_ms(1050);
    assert_eq!(depths(&rig), [ANY_DEPTH, 8]);
    assert_eq!(rig.policy.groups[2].inflight, 8);
    assert_eq!(rig.policy.groups[2].sleepers.len(), 8);
    // 8 of them a ms.
    let ended = rig.until_ms(1090);
    assert_eq!(ended[2], 320);
    rig.until_ms(5000);
    assert_eq!(depths(&rig), [ANY_DEPTH, 1]);
    assert!(rig.policy.groups[2].delays > 0, "it is as low as can be");
}

#[test]
fn a_kept_target_holds_nobody_back() {
    let loads = [Load::reads(1, 700), Load::reads(2, 1000)];
    let mut rig = rig(&[800, 0], &loads);
    rig.until_ms(3000);
    assert_eq!(depths(&rig), [ANY_DEPTH, ANY_DEPTH]);
}

#[test]
fn a_tighter_target_is_not_held_back_for_a_looser_one() {
    // Both miss, and 1 is the tighter one: 2 is held back for it.
    let loads = [[Load::reads(1, 1000); 4], [Load::reads(2, 1000); 4]].concat();
    let mut rig = rig(&[500, 900], &loads);
    rig.until_ms(5000);
    let depths = depths(&rig);
    assert_eq!(depths[0], ANY_DEPTH);
    assert!(depths[1] <= 4, "{depths:?}");
}

#[test]
fn metadata_goes_on_and_counts() {
    let mut meta = Load::reads(2, 1000);
    meta.bio.flags = blklab_types::BioFlags::META;
    let mut loads = vec![Load::reads(1, 1000)];
    loads.extend([meta; 16]);
    let mut rig = rig(&[800, 0], &loads);
    rig.until_ms(5000);
    assert_eq!(depths(&rig)[1], 1);
    assert_eq!(rig.policy.groups[2].inflight, 16);
    assert!(rig.policy.groups[2].sleepers.is_empty());
}

#[test]
fn depth_comes_back_when_the_target_is_kept() {
    let loads = [[Load::reads(1, 1000); 1], [Load::reads(2, 1000); 1]].concat();
    let mut rig = rig(&[800, 0], &loads);
    rig.until_ms(1700);
    assert_eq!(depths(&rig), [ANY_DEPTH, 2]);
    rig.policy.groups[1].target_ns = 2_000_000;
    // Two a step of half a second, and all at the default.
    rig.until_ms(3000);
    assert!(
        depths(&rig)[1] > 2 && depths(&rig)[1] < 16,
        "{:?}",
        depths(&rig)
    );
    rig.until_ms(30_000);
    assert_eq!(depths(&rig)[1], ANY_DEPTH);
}

/// 2 has a target of its own, looser than that of 1, and half of its bios are metadata,
/// which pass though it is held back to one: they are faster than its target by 4 ms.
#[test]
fn metadata_that_pass_a_limit_hold_up_their_tasks() {
    let mut meta = Load::reads(2, 1000);
    meta.bio.flags = blklab_types::BioFlags::META;
    let own = [Load::reads(2, 1000); 16];
    let loads = [&[Load::reads(1, 1000)], &own[..], &[meta; 4][..]].concat();
    let mut rig = rig(&[800, 5000], &loads);
    rig.until_ms(500);
    assert_eq!(rig.policy.hold_up(2, Time(500_000_000)), Span::ZERO);
    rig.until_ms(6000);
    assert_eq!(rig.policy.groups[2].depth, 1);
    let now = Time(6_000_000_000);
    assert_eq!(rig.policy.hold_up(2, now), Span::from_ms(250));
    assert_eq!(rig.policy.hold_up(1, now), Span::ZERO);
}
