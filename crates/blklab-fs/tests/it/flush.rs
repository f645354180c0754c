// SPDX-License-Identifier: MIT OR Apache-2.0
//! The pdflush pool and its jobs.

use crate::write::dd;
use crate::{DISK, MIB, boot, boot_with, rules_of};
use blklab_pagecache::Config;
use blklab_types::{Op, Time};

#[test]
fn a_page_is_written_by_the_first_tick_after_thirty_seconds() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    machine.run_until(&cache, Time(1_000_000_000));
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
    });
    machine.run_until(&cache, Time(34_999_000_000));
    assert!(machine.log().is_empty());
    machine.run_until(&cache, Time(36_000_000_000));
    let log = machine.log();
    assert_eq!(
        (log.len(), log[0].op, log[0].submitted),
        (1, Op::Write, Time(35_000_000_000))
    );
    let before = machine.events_handled();
    machine.run_until(&cache, Time(336_000_000_000));
    assert_eq!(
        machine.events_handled() - before,
        60,
        "an idle machine: one event in 5 s"
    );
}

#[test]
fn background_writing_starts_at_its_limit_and_stops_at_congestion() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let limit = cache.usage().background_limit;
    let bytes = (limit + 2048) * 4096;
    dd(&machine, &cache, bytes);
    machine.run(&cache);
    machine.run_until(&cache, Time(20_000_000_000));
    let (usage, stats) = (cache.usage(), cache.stats());
    assert!(
        usage.dirty < limit && usage.dirty + 1036 >= limit,
        "{usage:?}"
    );
    assert_eq!(
        stats.pages_written % 14,
        0,
        "batches of 14 are finished: {stats:?}"
    );
    assert_eq!(usage.pdflush_threads, 2);
}

#[test]
fn a_refused_periodic_job_comes_back_a_second_later() {
    let config = Config {
        pdflush_min: 1,
        pdflush_max: 1,
        ..Config::new(rules_of("2.6.28"), 4096 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    dd(&machine, &cache, 2048 * MIB);
    machine.run(&cache);
    assert!(cache.stats().pdflush_refused > 0);
    machine.run_until(&cache, Time(90_000_000_000));
    assert_eq!((cache.usage().dirty, cache.usage().pdflush_threads), (0, 1));
}

#[test]
fn background_work_leaves_requests_to_others() {
    for (release, most) in [("2.6.29", 114), ("2.6.28", 114 + 13)] {
        let config = Config {
            bio_pages: 1,
            ..Config::new(rules_of(release), 512 * MIB)
        };
        let (machine, cache) = boot_with(config, DISK);
        let pages = cache.usage().background_limit + 1024;
        dd(&machine, &cache, pages * 4096);
        machine.run(&cache);
        machine.run_until(&cache, Time(10_000_000_000));
        // 113 requests are congestion; the bio under construction follows.
        let seen = machine.most_in_flight(1);
        assert!(
            (Some(113)..=Some(most)).contains(&seen),
            "{release}: {seen:?}"
        );
    }
}

#[test]
fn the_pool_grows_after_a_second_without_an_idle_thread_and_shrinks_again() {
    let config = Config {
        pdflush_min: 1,
        ..Config::new(rules_of("2.6.28"), 8192 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    dd(&machine, &cache, 560 * MIB);
    machine.run_until(&cache, Time(4_000_000_000));
    assert_eq!(
        cache.usage().pdflush_threads,
        2,
        "a background job of more than a second has ended"
    );
    machine.run_until(&cache, Time(20_000_000_000));
    assert_eq!(
        (cache.usage().pdflush_threads, cache.stats().pdflush_started),
        (1, 2)
    );
}
