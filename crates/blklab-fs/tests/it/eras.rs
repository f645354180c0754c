// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from 2.6.32 on: flusher threads, pauses, read-ahead.

use crate::machine::Machine;
use crate::read::read_pieces;
use crate::write::dd;
use crate::{DISK, MIB, boot, boot_with, rules_of};
use blklab_pagecache::{Advice, Config, Fault, Features, PageCache, Runtime};
use blklab_types::{Op, Span, Time};
use std::cell::Cell;
use std::rc::Rc;

const FLUSHERS: [&str; 5] = ["2.6.32", "3.0", "3.6", "4.10", "6.6"];

/// A machine whose limits are 13107 and 26214 pages before 3.2.
fn thousand(features: Features) -> Config {
    Config {
        kernel_bytes: 64 * MIB,
        dirty_ratio: 10,
        dirty_background_ratio: 5,
        ..Config::new(features, (1024 + 64) * MIB)
    }
}

#[test]
fn a_lone_writer_gets_the_disk_and_stays_within_the_limits() {
    for release in FLUSHERS {
        let features = rules_of(release);
        let (machine, cache) = boot(features, 1024 * MIB);
        dd(&machine, &cache, 2048 * MIB);
        machine.run(&cache);
        let (usage, stats) = (cache.usage(), cache.stats());
        let over = stats
            .dirty_or_writeback_max
            .saturating_sub(usage.dirty_limit);
        assert!(over <= 1536, "{release}: {over} pages over");
        // 512 KiB in 6.99 ms and 0.1 ms per request.
        let least = Time(((2048 * MIB) / 4096 - stats.dirty_or_writeback_max) * 55_000);
        let most = Time(2048 * 2 * 7_400_000);
        let now = machine.now();
        assert!(least <= now && now <= most, "{release}: {now} of {most}");
        machine.run_until(&cache, now + Span::from_s(60));
        let usage = cache.usage();
        assert_eq!((usage.dirty, usage.writeback), (0, 0), "{release}");
        assert_eq!(cache.stats().pages_written, 524_288, "every page once");
    }
}

#[test]
fn from_3_2_on_writers_only_sleep_near_the_setpoint() {
    for release in ["3.2", "3.6", "4.10", "5.18"] {
        let features = rules_of(release);
        let (machine, cache) = boot_with(thousand(features), DISK);
        let (task, longest) = dd(&machine, &cache, 2048 * MIB);
        let (mut least, mut most) = (u64::MAX, 0);
        for ms in (12_000..20_000).step_by(5) {
            machine.run_until(&cache, Time(ms * 1_000_000));
            let usage = cache.usage();
            // 1 % of the pages are kept back.
            assert_eq!(
                (usage.background_limit, usage.dirty_limit),
                (12_976, 25_952)
            );
            let pages = usage.dirty + usage.writeback;
            (least, most) = (least.min(pages), most.max(pages));
        }
        let (freerun, setpoint) = ((12_976 + 25_952) / 2, (19_464 + 25_952) / 2);
        assert!(
            least > freerun && most < 25_952,
            "{release}: {least} {most}"
        );
        assert!(
            least < setpoint + 1500 && most > setpoint - 1500,
            "{release}"
        );
        let t = cache.stats().throttled(task);
        assert!(t.waits > 500 && t.pages_written == 0, "{release}: {t:?}");
        assert!(machine.log().iter().all(|b| b.task != task), "{release}");
        assert!(longest.get() < Span::from_ms(250), "{release}: {longest:?}");
    }
}

#[test]
fn two_writers_share_the_device_evenly() {
    let (machine, cache) = boot_with(thousand(rules_of("3.6")), DISK);
    let written: Vec<Rc<Cell<u64>>> = (0..2).map(|_| Rc::default()).collect();
    for count in &written {
        let file = cache.create_empty(Some(4096 * MIB)).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let (c, count) = (cache.clone(), count.clone());
        machine.task("writer", async move {
            for at in (0..4096 * MIB).step_by(1 << 16) {
                assert_eq!(c.write(fd, at, 1 << 16).await, Ok(1 << 16));
                count.set(count.get() + (1 << 16));
            }
        });
    }
    machine.run_until(&cache, Time(10_000_000_000));
    let start: Vec<u64> = written.iter().map(|c| c.get()).collect();
    machine.run_until(&cache, Time(40_000_000_000));
    let got: Vec<u64> = (0..2).map(|i| written[i].get() - start[i]).collect();
    let both = got[0] + got[1];
    assert!(got[0] * 10 > both * 4 && got[1] * 10 > both * 4, "{got:?}");
    assert!(both > 30 * 68_000_000, "{got:?}: the disk is busy");
}

#[test]
fn a_throttled_writer_of_2_6_32_writes_or_waits_by_the_clock() {
    let (machine, cache) = boot_with(thousand(rules_of("2.6.32")), DISK);
    let (task, longest) = dd(&machine, &cache, 1024 * MIB);
    let (mut least, mut most) = (u64::MAX, 0);
    for ms in (6_000..12_000).step_by(5) {
        machine.run_until(&cache, Time(ms * 1_000_000));
        let usage = cache.usage();
        assert_eq!(
            (usage.background_limit, usage.dirty_limit),
            (13_107, 26_214)
        );
        let pages = usage.dirty + usage.writeback;
        (least, most) = (least.min(pages), most.max(pages));
    }
    assert!(least >= 19_660 - 1536, "{least}");
    assert!(most <= 22_938 + 1536, "{most}");
    let t = cache.stats().throttled(task);
    assert!(t.waits > 0 && t.exceeded > 0, "{t:?}");
    assert!(longest.get() < Span::from_ms(700), "{longest:?}");
}

/// When a page dirtied after one second on an idle machine is written.
fn written_at(features: Features) -> Time {
    let (machine, cache) = boot(features, 1024 * MIB);
    let file = cache.create_empty(None).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    machine.run_until(&cache, Time(1_000_000_000));
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
    });
    machine.run_until(&cache, Time(40_000_000_000));
    let log = machine.log();
    assert_eq!((log.len(), log[0].op), (1, Op::Write));
    log[0].submitted
}

#[test]
fn old_pages_go_with_the_next_tick_of_the_flusher() {
    assert_eq!(written_at(rules_of("2.6.32")), Time(35_000_000_000));
    // The flusher that slept without a timer ticks from the first page on,
    // which was dirty one jiffy after it was copied at the latest.
    for release in ["2.6.36", "3.0", "3.6", "5.18"] {
        let features = rules_of(release);
        let at = written_at(features);
        assert!(
            Time(31_000_000_000) <= at && at <= Time(31_010_000_000),
            "{release}: {at}"
        );
    }
}

#[test]
fn an_idle_flusher_costs_nothing_from_2_6_36_on() {
    let idle_events = |features| {
        let (machine, cache) = boot(features, 1024 * MIB);
        machine.run_until(&cache, Time(1_000_000_000));
        let before = machine.events_handled();
        machine.run_until(&cache, Time(301_000_000_000));
        machine.events_handled() - before
    };
    assert_eq!(idle_events(rules_of("2.6.32")), 60);
    assert_eq!(idle_events(rules_of("2.6.36")), 0);
    assert_eq!(idle_events(rules_of("4.10")), 0);
}

#[test]
fn the_flusher_does_not_leave_requests_to_others() {
    for release in FLUSHERS {
        let features = rules_of(release);
        let config = Config {
            bio_pages: 1,
            ..Config::new(features, 512 * MIB)
        };
        let (machine, cache) = boot_with(config, DISK);
        let pages = cache.usage().background_limit + 1024;
        dd(&machine, &cache, pages * 4096);
        machine.run(&cache);
        machine.run_until(&cache, Time(10_000_000_000));
        let most = machine.most_in_flight(16);
        assert!(most >= Some(127), "{release}: {most:?} of 128");
    }
}

#[test]
fn background_writing_ends_below_its_limit() {
    for release in FLUSHERS {
        let features = rules_of(release);
        // The requests hold less than what is dirty: some end before it is
        // looked at again.
        let config = Config {
            bio_pages: 128,
            ..Config::new(features, 1024 * MIB)
        };
        let (machine, cache) = boot_with(config, DISK);
        let limit = cache.usage().background_limit;
        dd(&machine, &cache, (limit + 4096) * 4096);
        machine.run(&cache);
        machine.run_until(&cache, Time(4_000_000_000));
        let usage = cache.usage();
        // The last slice or round is finished.
        let slice = 14 * 1024;
        assert!(
            usage.dirty <= limit && usage.dirty + slice >= limit,
            "{release}: {usage:?} {limit}"
        );
        // From 3.2 on the inode waits for its next slice, which the periodic
        // job gives it however young its pages are.
        machine.run_until(&cache, Time(8_000_000_000));
        let sliced = features.inode_lists == blklab_pagecache::InodeLists::Slices;
        assert_eq!(cache.usage().dirty == 0, sliced, "{release}");
    }
}

/// Writes a page that is on its way to the disk; returns how long that took.
fn rewrite(features: Features) -> Span {
    let (machine, cache) = boot(features, 512 * MIB);
    let file = cache.create_empty(Some(8 * MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let took = Rc::new(Cell::new(Span::ZERO));
    let (c, m, t) = (cache.clone(), machine.clone(), took.clone());
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 8 * MIB).await, Ok(8 * MIB));
        let start = blklab_pagecache::SyncRange {
            write: true,
            ..blklab_pagecache::SyncRange::default()
        };
        assert_eq!(c.sync_file_range(fd, 0, 0, start).await, Ok(()));
        let from = m.now();
        assert_eq!(c.write(fd, 4096 * 2000, 4096).await, Ok(4096));
        t.set(m.now().since(from));
    });
    machine.run(&cache);
    took.get()
}

#[test]
fn pages_on_their_way_are_stable_from_3_0_to_3_8() {
    assert!(rewrite(rules_of("2.6.39")) < Span::from_ms(1));
    assert!(rewrite(rules_of("3.0")) > Span::from_ms(90));
    assert!(rewrite(rules_of("3.6")) > Span::from_ms(90));
    assert!(rewrite(rules_of("3.9")) < Span::from_ms(1));
}

/// A file is synced while another task dirties it from its end towards its
/// start; returns the pages that fsync wrote.
fn fsync_beside_a_writer(features: Features) -> u64 {
    let (machine, cache) = boot(features, 512 * MIB);
    let file = cache.create_laid_out(16 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let pages = Rc::new(Cell::new(0));
    let (c, p) = (cache.clone(), pages.clone());
    machine.task("fsync", async move {
        for page in (0..2048).step_by(2) {
            assert_eq!(c.write(fd, page * 4096, 4096).await, Ok(4096));
        }
        assert_eq!(c.fsync(fd).await, Ok(()));
        p.set(c.stats().pages_written);
    });
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("writer", async move {
        m.sleep(Span::from_ms(20)).await;
        for page in (2048..4096).rev() {
            assert_eq!(c.write(fd, page * 4096, 4096).await, Ok(4096));
        }
    });
    machine.run(&cache);
    pages.get()
}

#[test]
fn from_2_6_36_on_fsync_writes_what_was_dirty_when_it_began() {
    assert_eq!(fsync_beside_a_writer(rules_of("2.6.36")), 1024);
    let before = fsync_beside_a_writer(rules_of("2.6.34"));
    assert!(before > 1024, "{before}: it ran after the writer");
}

#[test]
fn sync_returns_when_everything_is_on_the_device() {
    for release in FLUSHERS {
        let features = rules_of(release);
        let (machine, cache) = boot(features, 512 * MIB);
        for _ in 0..3 {
            let file = cache.create_empty(Some(4 * MIB)).expect("space");
            let fd = cache.open(file, false).expect("it exists");
            let c = cache.clone();
            machine.task("write", async move {
                assert_eq!(c.write(fd, 0, 4 * MIB).await, Ok(4 * MIB));
            });
        }
        machine.run(&cache);
        for _ in 0..2 {
            let c = cache.clone();
            machine.task("sync", async move {
                c.sync().await;
                assert_eq!((c.usage().dirty, c.usage().writeback), (0, 0), "{release}");
            });
        }
        machine.run(&cache);
        assert_eq!(cache.stats().pages_written, 3072);
    }
}

/// Reads pieces of a file of 16 MiB after an advice: what the device served.
fn pieces(features: Features, advice: Advice, reads: &[(u64, u64)]) -> Vec<(u64, u64)> {
    read_pieces(features, 16 * MIB, advice, reads).served()
}

#[test]
fn random_readers_read_whole_requests_from_2_6_34_on() {
    let read = [(400 * 4096, 44 << 10)];
    let single: Vec<_> = (400..411).map(|p| (p, 1)).collect();
    for release in ["2.6.32", "2.6.33"] {
        let features = rules_of(release);
        assert_eq!(pieces(features, Advice::Random, &read), single);
    }
    for release in ["2.6.34", "3.6", "4.10", "5.18"] {
        let features = rules_of(release);
        assert_eq!(pieces(features, Advice::Random, &read), [(400, 11)]);
    }
    let large = [(400 * 4096, 1 << 20)];
    let whole = [(400, 128), (528, 128)];
    assert_eq!(pieces(rules_of("3.6"), Advice::Random, &large), whole);
    let device: Vec<_> = (0..8).map(|i| (400 + i * 32, 32)).collect();
    assert_eq!(pieces(rules_of("4.4"), Advice::Random, &large), device);
    assert_eq!(pieces(rules_of("4.10"), Advice::Random, &large), whole);
    assert_eq!(pieces(rules_of("5.0"), Advice::Random, &large), whole);
}

#[test]
fn large_requests_are_read_as_the_kernels_age_allows() {
    let first = |features| pieces(features, Advice::Normal, &[(0, 1 << 20)])[0];
    assert_eq!(first(rules_of("3.6")), (0, 64));
    assert_eq!(first(rules_of("4.4")), (0, 64));
    assert_eq!(first(rules_of("4.10")), (0, 128), "a request of the device");
    assert_eq!(first(rules_of("5.0")), (0, 128));
}

/// Faults on pages in order; returns the reads and the major faults.
fn faults(features: Features, pages: &[u64]) -> (Vec<(u64, u64)>, u64) {
    let (machine, cache) = boot(features, 512 * MIB);
    let file = cache.create_laid_out(16 * MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let major = Rc::new(Cell::new(0));
    let (c, n, pages) = (cache.clone(), major.clone(), pages.to_vec());
    machine.task("program", async move {
        for page in pages {
            let fault = c.fault(fd, page, false).await.expect("it is in the file");
            n.set(n.get() + u64::from(fault == Fault::Major));
        }
    });
    machine.run(&cache);
    machine.run_until(&cache, Time(60_000_000_000));
    (machine.served(), major.get())
}

#[test]
fn faults_read_around_and_from_3_0_on_ahead_at_the_marker() {
    let run: Vec<u64> = (1000..1048).collect();
    let (old, _) = faults(rules_of("2.6.31"), &run);
    assert_eq!(old, [(984, 32), (1016, 16), (1032, 16)]);
    // The page behind the last one: a first window of a sequential reader.
    let (reads, major) = faults(rules_of("2.6.32"), &run);
    assert_eq!((reads[0], major), ((984, 32), 2));
    assert_eq!(reads[1].0, 1016);
    // At page 984 + 24 the marker starts the next window; no second miss.
    let (reads, major) = faults(rules_of("3.0"), &run);
    assert_eq!((reads[0], reads[1], major), ((984, 32), (1016, 32), 1));
}

#[test]
fn limits_in_bytes_take_the_place_of_ratios() {
    let limits = |dirty, background, ratio| {
        let config = Config {
            dirty_bytes: dirty,
            dirty_background_bytes: background,
            dirty_ratio: ratio,
            ..thousand(rules_of("3.6"))
        };
        let (_, cache): (_, PageCache<Machine>) = boot_with(config, DISK);
        (cache.usage().background_limit, cache.usage().dirty_limit)
    };
    assert_eq!(limits(None, None, 1), (1_297, 2_595), "no floor of 5 %");
    assert_eq!(limits(Some(4097 * 4096), Some(1), 10), (1, 4097));
    assert_eq!(limits(Some(8_000_000), None, 10), (977, 1954));
}

#[test]
fn memory_without_swap_lowers_the_limits_from_2_6_32_on() {
    let limit = |features, swap| {
        let config = Config {
            swap,
            anon_bytes: 512 * MIB,
            ..thousand(features)
        };
        boot_with(config, DISK).1.usage().dirty_limit
    };
    assert_eq!(limit(rules_of("2.6.32"), true), 26_214);
    assert_eq!(limit(rules_of("2.6.32"), false), 13_107);
    assert_eq!(limit(rules_of("3.6"), false), (131_072 - 2_621 + 1) / 10);
    assert_eq!(limit(rules_of("2.6.31"), false), 26_214);
}

#[test]
fn o_sync_writes_the_whole_file_up_to_2_6_32() {
    let written = |features| {
        let (machine, cache) = boot(features, 512 * MIB);
        let file = cache.create_laid_out(MIB).expect("space");
        let plain = cache.open(file, false).expect("it exists");
        let synced = cache.open(file, true).expect("it exists");
        let c = cache.clone();
        machine.task("write", async move {
            assert_eq!(c.write(plain, 0, 8 * 4096).await, Ok(8 * 4096));
            assert_eq!(c.write(synced, MIB - 4096, 4096).await, Ok(4096));
        });
        machine.run(&cache);
        machine.served()
    };
    assert_eq!(written(rules_of("2.6.28")), [(0, 8), (255, 1)]);
    assert_eq!(written(rules_of("2.6.32")), [(0, 8), (255, 1)]);
    assert_eq!(written(rules_of("2.6.33")), [(255, 1)]);
    assert_eq!(written(rules_of("4.10")), [(255, 1)]);
}

#[test]
fn writes_for_integrity_carry_the_sync_flag_from_2_6_30_on() {
    for (release, sync) in [
        ("2.6.29", false),
        ("2.6.30", true),
        ("2.6.32", true),
        ("3.6", true),
        ("4.10", true),
    ] {
        let (machine, cache) = boot(rules_of(release), 512 * MIB);
        let file = cache.create_empty(Some(MIB)).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("write", async move {
            assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
            assert_eq!(c.fsync(fd).await, Ok(()));
            assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
        });
        machine.run(&cache);
        machine.run_until(&cache, Time(60_000_000_000));
        let flags: Vec<_> = machine.data().iter().map(|b| b.sync).collect();
        assert_eq!(flags, [sync, sync, false, false], "{release}");
    }
}

#[test]
fn sync_ends_beside_a_writer_from_3_2_on() {
    for release in ["3.9", "4.10", "6.6"] {
        let features = rules_of(release);
        let (machine, cache) = boot(features, 512 * MIB);
        let file = cache.create_laid_out(64 * MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let (synced, s) = (Rc::new(Cell::new(Time::ZERO)), cache.clone());
        let (c, w) = (cache.clone(), machine.clone());
        machine.task("writer", async move {
            for at in (0..40_000).map(|i| i * 64 % 16_384 * 4096) {
                assert_eq!(c.write(fd, at, 4096).await, Ok(4096));
                w.sleep(Span::from_us(100)).await;
            }
        });
        let (m, t) = (machine.clone(), synced.clone());
        machine.task("sync", async move {
            m.sleep(Span::from_ms(50)).await;
            s.sync().await;
            t.set(m.now());
        });
        machine.run(&cache);
        assert!(machine.now() > Time(4_000_000_000));
        assert!(synced.get() < Time(1_000_000_000), "{}", synced.get());
    }
}

#[test]
fn pauses_are_bounded_and_limits_hold_under_any_number_of_writers() {
    for release in ["3.2", "3.6", "4.10", "5.18"] {
        let features = rules_of(release);
        for writers in [1_u64, 3, 20, 60] {
            let (machine, cache) = boot(features, 256 * MIB);
            let mut tasks = Vec::new();
            for i in 0..writers {
                let file = cache.create_empty(Some(256 * MIB)).expect("space");
                let fd = cache.open(file, false).expect("it exists");
                let (c, piece) = (cache.clone(), 4096 << (i % 7));
                tasks.push(machine.task("writer", async move {
                    for at in (0..768 * MIB / writers / piece).map(|n| n * piece) {
                        let at = at % (256 * MIB);
                        assert_eq!(c.write(fd, at, piece).await, Ok(piece));
                    }
                }));
            }
            machine.run(&cache);
            let name = format!("{release}, {writers} writers");
            let (usage, stats) = (cache.usage(), cache.stats());
            // Each may be on its way to the next check with what it was given.
            let most = usage.dirty_limit + writers * 64 + 512;
            assert!(stats.dirty_or_writeback_max <= most, "{name}: {stats:?}");
            for task in tasks {
                let t = stats.throttled(task);
                assert!(t.time.ns() <= t.waits * 204_000_000, "{release}: {t:?}");
            }
            let busy = stats.pages_dirtied - usage.dirty - usage.writeback;
            let rate = busy * 4096 * 1000 / (machine.now().ns() / 1_000_000);
            // Reading nothing, seeking nowhere: 512 KiB in 7.1 ms.
            assert!(rate > 60_000_000, "{name}: {rate} bytes/s");
        }
    }
}
