// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shingled recording: log, cleaning, stalls.

use super::ms;
use crate::host::Host;
use blklab_types::{Op, SplitMix64, Time};

/// A drive of 8 GB with room for 100 pieces.
const SMALL: &str = "smr-8tb,capacity_sectors=16000000,media_cache_bytes=64MiB,\
     media_cache_pieces=100,max_dirty_ranges=4";

fn random_writes(host: &mut Host, random: &mut SplitMix64, count: usize) -> Vec<f64> {
    let one = |_| ms(&host.one(Op::Write, random.below(1_900_000) * 8, 8));
    (0..count).map(one).collect()
}

#[test]
fn random_writes_are_fast_until_the_media_cache_is_full() {
    let (mut host, mut random) = (Host::build(SMALL, 1), SplitMix64(4));
    let first = random_writes(&mut host, &mut random, 90);
    assert!(first.iter().all(|&ms| ms < 30.0), "{first:?}");
    // Then each waits for a band: three passes of 30 MiB.
    let then = random_writes(&mut host, &mut random, 60);
    let stalls = then.iter().filter(|&&ms| ms > 300.0).count();
    assert!(stalls > 20, "{then:?}");
    // A read waits for the band that is being cleaned, but not for more.
    let read = ms(&host.one(Op::Read, 8_000_000, 8));
    assert!((0.1..2500.0).contains(&read), "{read}");
}

#[test]
fn an_idle_drive_cleans_its_media_cache() {
    let (mut host, mut random) = (Host::build(SMALL, 1), SplitMix64(4));
    random_writes(&mut host, &mut random, 130);
    // Not before it has been idle for a second.
    let soon = Time(host.now.ns() + 10_000_000);
    host.run_until(soon);
    assert!(ms(&host.one(Op::Read, 0, 8)) < 2500.0);
    host.drain();
    let fresh = random_writes(&mut host, &mut random, 90);
    assert!(fresh.iter().all(|&ms| ms < 30.0), "{fresh:?}");
    // While it cleans, a read waits.
    let idle = Time(host.now.ns() + 1_200_000_000);
    host.run_until(idle);
    let read = ms(&host.one(Op::Read, 8_000_000, 8));
    assert!(read > 50.0, "{read}");
}

#[test]
fn streams_go_to_their_bands() {
    let mut host = Host::build(SMALL, 1);
    let begin = host.now;
    for i in 0..1000 {
        host.one(Op::Write, i * 2048, 2048);
    }
    let rate = super::rate_mb_s(begin, host.now, 1000 << 20);
    assert!(rate > 120.0, "{rate}");
}

#[test]
fn the_host_does_not_see_the_media_cache() {
    let mut host = Host::build(SMALL, 2);
    assert_eq!(host.capacity(), Some(16_000_000));
    host.one(Op::Write, 16_000_000 - 8, 8);
    let refused = std::panic::catch_unwind(|| Host::build("smr-8tb,media_cache_bytes=4096", 1));
    assert!(refused.is_err(), "smaller than a piece");
}
