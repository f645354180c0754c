// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::IoGroup;
use crate::mq::qos::rig::{Load, Rig};
use blklab_kernel::KernelVersion;
use blklab_types::{BioFlags, IoCostModel, IoCostQos, IoCostRates, IoCostTarget};

/// A device of 8000 random or sequential reads a second.
fn model() -> IoCostModel {
    let read = IoCostRates {
        bytes_per_s: Some(4_000_000_000),
        sequential_per_s: Some(8000),
        random_per_s: Some(8000),
    };
    IoCostModel {
        is_user: true,
        read,
        write: read,
    }
}

/// Latency does not matter, periods last 200 ms, the rate is this.
fn fixed(percent: u32) -> IoCostQos {
    let target = IoCostTarget {
        ppm: Some(0),
        latency_us: Some(100_000),
    };
    IoCostQos {
        enable: true,
        is_user: true,
        read: target,
        write: target,
        min_ppm: Some(percent * 10_000),
        max_ppm: Some(percent * 10_000),
    }
}

/// Groups by parent and weight, with their loads.
fn rig(qos: IoCostQos, groups: &[(u16, u32)], loads: &[Load]) -> Rig<IoCost> {
    let mut tasks = TaskTable::default();
    tasks.set_cost(qos, model());
    for &(parent, weight) in groups {
        tasks.add_group(IoGroup {
            parent,
            cost_weight: Some(weight),
            ..IoGroup::default()
        });
    }
    let feat = Features::of(KernelVersion::new(6, 12));
    Rig::new(tasks, loads, |tasks, timers| {
        IoCost::new(tasks, &feat, &Limits::default(), 64, timers).expect("switched on")
    })
}

/// Reads of 100 us by so many tasks.
fn readers(group: u16, tasks: usize) -> Vec<Load> {
    vec![Load::reads(group, 100); tasks]
}

fn is_near(n: u64, expected: u64) -> bool {
    n.abs_diff(expected) * 50 <= expected
}

#[test]
fn it_is_off_unless_switched_on() {
    let mut tasks = TaskTable::default();
    tasks.set_cost(IoCostQos::default(), model());
    let feat = Features::of(KernelVersion::new(6, 12));
    let mut timers = Timers::new(blklab_types::Hz(1000));
    assert!(IoCost::new(&tasks, &feat, &Limits::default(), 64, &mut timers).is_none());
}

#[test]
fn time_is_shared_by_weight() {
    let loads = [readers(1, 8), readers(2, 8)].concat();
    let mut rig = rig(fixed(100), &[(0, 100), (0, 300)], &loads);
    rig.until_ms(1000);
    let ended = rig.until_ms(6000);
    assert!(is_near(ended[1], 10_000), "{ended:?}");
    assert!(is_near(ended[2], 30_000), "{ended:?}");
    let says = rig.policy.says(1);
    assert!(says[0].starts_with("cost.usage=1"), "{says:?}");
    assert_ne!(says[1], "cost.wait=0");
}

#[test]
fn the_rate_is_that_of_min_and_max() {
    let mut rig = rig(fixed(50), &[(0, 100)], &readers(1, 8));
    rig.until_ms(5000);
    assert_eq!(rig.policy.base_rate, PER_US / 2);
    let ended = rig.until_ms(10_000);
    assert!(is_near(ended[1], 20_000), "{ended:?}");
}

#[test]
fn shares_follow_the_tree() {
    // 1 (200) above 2 (100) and 3 (300), beside 4 (100).
    let groups = [(0, 200), (1, 100), (1, 300), (0, 100)];
    let loads = [readers(2, 8), readers(3, 8), readers(4, 8)].concat();
    let mut rig = rig(fixed(100), &groups, &loads);
    rig.until_ms(1000);
    let ended = rig.until_ms(7000);
    assert!(is_near(ended[2], 8000), "{ended:?}");
    assert!(is_near(ended[3], 24_000), "{ended:?}");
    assert!(is_near(ended[4], 16_000), "{ended:?}");
}

#[test]
fn what_a_group_does_not_use_goes_to_others() {
    // One read a ms of a group that may have half.
    let loads = [vec![Load::reads(1, 1000)], readers(2, 8)].concat();
    let mut rig = rig(fixed(100), &[(0, 100), (0, 100)], &loads);
    rig.until_ms(2000);
    let ended = rig.until_ms(7000);
    assert!(is_near(ended[1], 5000), "{ended:?}");
    assert!(ended[2] > 33_000, "{ended:?}");
}

#[test]
fn an_idle_device_is_not_held_back() {
    // Two tasks that need less than the device has.
    let loads = [vec![Load::reads(1, 500)], vec![Load::reads(2, 500)]].concat();
    let mut rig = rig(fixed(100), &[(0, 100), (0, 300)], &loads);
    let ended = rig.until_ms(5000);
    assert_eq!(ended[1..], [10_000, 10_000]);
}

#[test]
fn the_root_is_not_controlled() {
    let loads = [readers(0, 4), readers(1, 8)].concat();
    let mut rig = rig(fixed(100), &[(0, 100)], &loads);
    let ended = rig.until_ms(1000);
    assert_eq!(ended[0], 40_000);
    assert!(ended[1] < 12_000, "{ended:?}");
}

#[test]
fn missed_latencies_lower_the_rate() {
    let target = IoCostTarget {
        ppm: Some(950_000),
        latency_us: Some(80),
    };
    let qos = IoCostQos {
        read: target,
        write: target,
        min_ppm: Some(250_000),
        max_ppm: Some(1_500_000),
        ..fixed(100)
    };
    let mut slow = rig(qos, &[(0, 100)], &readers(1, 8));
    slow.until_ms(3000);
    assert_eq!(slow.policy.base_rate, PER_US.div_ceil(4), "down to min");
    let met = IoCostQos {
        read: IoCostTarget {
            latency_us: Some(1000),
            ..target
        },
        ..qos
    };
    let mut fast = rig(met, &[(0, 100)], &readers(1, 8));
    fast.until_ms(3000);
    assert_eq!(fast.policy.base_rate, PER_US * 3 / 2, "up to max");
}

#[test]
fn metadata_is_owed() {
    let mut meta = Load::reads(1, 100);
    meta.bio.flags = BioFlags::META;
    let loads = [vec![meta; 8], readers(2, 8)].concat();
    let mut rig = rig(fixed(100), &[(0, 100), (0, 100)], &loads);
    rig.until_ms(1000);
    assert!(rig.policy.groups[1].debt > 0);
    assert!(rig.policy.groups[1].waiters.is_empty());
    assert!(rig.policy.groups[1].delay_us > 0);
    let now = Time(1_000_000_000);
    assert!(rig.policy.hold_up(1, now) > Span::ZERO);
    assert_eq!(rig.policy.hold_up(2, now), Span::ZERO);
    assert!(rig.policy.says(1)[2] != "cost.indebt=0");
}

/// Any groups, weights and loads: what all got of the device is never more than its rate
/// allows, beside what groups begin with.
#[test]
fn the_device_is_not_oversold() {
    for seed in 0..20 {
        let mut random = blklab_engine::Stream::named(seed, "io.cost");
        let nr = 2 + random.below(4) as u16;
        let groups: Vec<(u16, u32)> = (0..nr).map(|_| (0, 1 + random.below(999) as u32)).collect();
        let mut loads = Vec::new();
        for n in 1..=nr {
            let service = 50 + random.below(2000);
            loads.extend(vec![Load::reads(n, service); 1 + random.below(12) as usize]);
        }
        let mut rig = rig(fixed(100), &groups, &loads);
        let ended: u64 = rig.until_ms(10_000).iter().sum();
        let most = 80_000 + 8000 * u64::from(nr) / 5;
        assert!(ended <= most, "{ended} of {most}, seed {seed}");
    }
}
