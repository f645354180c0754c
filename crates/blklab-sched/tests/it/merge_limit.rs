// SPDX-License-Identifier: MIT OR Apache-2.0
//! The patch `cached_merge_limit`: at most 128 bios in a row join the request
//! that was merged with last.

use crate::rig::{Rig, Setup};

/// Bios of 8 sectors, by number from 1, contiguous from sector 1000.
fn submit(r: &mut Rig, numbers: impl IntoIterator<Item = u64>) {
    let t = r.task();
    for n in numbers {
        assert!(r.submit(t, &format!("R {}+8", 1000 + 8 * (n - 1))));
    }
}

/// `start+length` of what waits, in order of sectors, none dispatched yet.
fn waiting(
    sched: &'static str,
    patches: &'static [&'static str],
    max_sectors: u32,
    numbers: &[std::ops::RangeInclusive<u64>],
) -> Vec<String> {
    let mut r = Setup {
        kernel: "2.6.28",
        sched,
        patches,
        limits: |l| {
            l.queue.max_segments = 1000;
            l.queue_depth = 100;
        },
        ..Setup::default()
    }
    .rig_with(|l| l.queue.max_sectors = max_sectors);
    submit(&mut r, numbers.iter().cloned().flatten());
    r.events();
    r.enter(blklab_block::sq::Queue::unplug);
    let mut shown = r.only("D");
    shown.sort_by_key(|s| s.split('+').next().and_then(|n| n.parse::<u64>().ok()));
    shown
}

/// Schedulers of the kernel that the patch fits.
fn schedulers() -> impl Iterator<Item = &'static str> {
    let version = "2.6.28".parse().expect("a version");
    let all = blklab_sched::ALL.iter().map(|s| s.name);
    all.filter(move |name| blklab_sched::find(name, version).is_some())
}

const ON: &[&str] = &["cached_merge_limit"];

#[test]
fn pm_1_a_stream_is_cut() {
    for sched in schedulers() {
        let merged = |patches, max| waiting(sched, patches, max, &[1..=200]);
        assert_eq!(merged(&[], 4096), ["1000+1600"], "{sched}");
        assert_eq!(merged(ON, 4096), ["1000+1032", "2032+568"], "{sched}");
        for patches in [&[], ON] {
            assert_eq!(merged(patches, 1024), ["1000+1024", "2024+576"], "{sched}");
        }
    }
}

/// The request that the cache moves to counts from 0, and two requests are
/// joined whatever the count. Neighbours of noop are those of its FIFO, where
/// the second request is behind the first.
#[test]
fn pm_2_the_count_is_of_the_cached_request() {
    for sched in schedulers() {
        let got = waiting(sched, ON, 4096, &[130..=200, 1..=129]);
        let expected: &[&str] = if sched == "noop" {
            &["1000+1032", "2032+568"]
        } else {
            &["1000+1600"]
        };
        assert_eq!(got, expected, "{sched}");
    }
}

/// After the joining the survivor is the cached request, as it was before:
/// the count of 127 goes on, one more bio fits, the next does not.
#[test]
fn the_count_survives_a_joining() {
    let got = waiting("deadline", ON, 4096, &[130..=200, 1..=129, 201..=202]);
    assert_eq!(got, ["1000+1608", "2608+8"]);
}
