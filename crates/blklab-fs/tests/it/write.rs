// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffered writes, throttling, fsync.

use crate::machine::{Disk, Machine};
use crate::{DISK, MIB, boot, boot_with, rules_of};
use blklab_pagecache::{Config, Features, FsError, Layout, PageCache, SyncRange};
use blklab_types::{BioKey, Op, Span, TaskId, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Writes a new file from the start to the end in 1 MiB pieces; returns the
/// task and the longest single write.
pub(crate) fn dd(
    machine: &Machine,
    cache: &PageCache<Machine>,
    bytes: u64,
) -> (TaskId, Rc<Cell<Span>>) {
    let file = cache.create_empty(Some(bytes)).expect("the disk is large");
    let fd = cache.open(file, false).expect("it exists");
    let longest = Rc::new(Cell::new(Span::ZERO));
    let (c, m, l) = (cache.clone(), machine.clone(), longest.clone());
    let task = machine.task("dd", async move {
        use blklab_pagecache::Runtime;
        for at in (0..bytes).step_by(MIB as usize) {
            let from = m.now();
            assert_eq!(
                c.write(fd, at, MIB.min(bytes - at)).await,
                Ok(MIB.min(bytes - at))
            );
            l.set(l.get().max(m.now().since(from)));
        }
    });
    (task, longest)
}

#[test]
fn dd_stays_within_the_dirty_limits_and_everything_is_written() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let (task, longest) = dd(&machine, &cache, 1024 * MIB);
    machine.run(&cache);
    let (usage, stats) = (cache.usage(), cache.stats());
    assert_eq!(stats.pages_dirtied, 262_144);
    assert!(
        stats.dirty_or_writeback_max <= usage.dirty_limit + 1536 + 14,
        "{stats:?} {usage:?}"
    );
    assert!(
        stats.throttled(task).exceeded > 0 && longest.get() > Span::from_ms(10),
        "{longest:?}"
    );
    // A chunk is 1536 pages in batches of 14; checks that exceed come on top of
    // one per 1024 pages.
    let t = stats.throttled(task);
    assert!(t.pages_written <= t.exceeded * 1540, "{t:?}");
    assert!(t.checks > 262_144 / 1024 + t.exceeded, "{t:?}");
    // 1 GiB at 75 MB/s takes 14.3 s, the dirty rest is written later.
    let rest = (usage.dirty + usage.writeback) * 4096;
    let least = Time((1024 * MIB - rest) * 1_000_000_000 / 75_000_000);
    use blklab_pagecache::Runtime;
    assert!(
        machine.now() >= least && machine.now() < Time(16_000_000_000),
        "{}",
        machine.now()
    );

    machine.run_until(&cache, Time(80_000_000_000));
    let (usage, stats) = (cache.usage(), cache.stats());
    assert_eq!((usage.dirty, usage.writeback), (0, 0));
    assert_eq!(stats.pages_written, 262_144, "every page once");
    let written: u64 = machine.log().iter().map(|b| u64::from(b.nr_sectors)).sum();
    assert_eq!(written, 2 * 1024 * 1024);
}

#[test]
fn a_throttled_writer_hovers_below_its_limit() {
    // 262144 pages besides the kernel's: limits 13107, 26214, free-run 19660.
    let memory = Config {
        kernel_bytes: 64 * MIB,
        ..Config::new(rules_of("2.6.28"), (1024 + 64) * MIB)
    };
    for (task_share, most) in [
        (blklab_pagecache::TaskShare::Mapped, 26_214),
        (blklab_pagecache::TaskShare::All, 22_938),
    ] {
        let config = Config {
            features: Features {
                task_share,
                ..rules_of("2.6.28")
            },
            ..memory
        };
        let (machine, cache) = boot_with(config, DISK);
        dd(&machine, &cache, 2048 * MIB);
        let mut seen = (u64::MAX, 0);
        for ms in (12_000..20_000).step_by(5) {
            machine.run_until(&cache, Time(ms * 1_000_000));
            let usage = cache.usage();
            assert_eq!(
                (usage.background_limit, usage.dirty_limit),
                (13_107, 26_214)
            );
            let pages = usage.dirty + usage.writeback;
            seen = (seen.0.min(pages), seen.1.max(pages));
        }
        assert!(
            seen.0 >= 19_660 - 1536 && seen.1 <= most + 1536,
            "{task_share:?}: {seen:?}"
        );
        assert!(seen.1 > most - 1536, "{task_share:?}: {seen:?}");
    }
}

#[test]
fn the_old_kernel_throttles_at_forty_percent() {
    let (machine, cache) = boot(rules_of("2.6.16"), 512 * MIB);
    let (task, _) = dd(&machine, &cache, 512 * MIB);
    machine.run(&cache);
    let (usage, stats) = (cache.usage(), cache.stats());
    assert_eq!(
        usage.dirty_limit,
        (512 * MIB - 512 * MIB / 20 - 64 * MIB) / 4096 * 40 / 100
    );
    assert!(
        stats.dirty_or_writeback_max <= usage.dirty_limit + 1024,
        "{stats:?} {usage:?}"
    );
    assert!(stats.dirty_or_writeback_max >= usage.dirty_limit);
    assert!(stats.throttled(task).pages_written >= 1536);
}

#[test]
fn fsync_returns_when_the_data_is_on_the_device() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let file = cache.create_empty(Some(MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("fsync", async move {
        assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!((c.usage().dirty, c.usage().writeback), (0, 0));
        let log = m.log();
        assert_eq!(
            log.iter().map(|b| b.nr_sectors).collect::<Vec<_>>(),
            [1024, 1024]
        );
        // Overwriting writes again; a second fsync has nothing to do.
        assert_eq!(c.write(fd, 8192, 100).await, Ok(100));
        assert_eq!(c.fdatasync(fd).await, Ok(()));
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!(m.log().len(), 3);
        assert_eq!((m.log()[2].sector, m.log()[2].nr_sectors), (2048 + 16, 8));
    });
    machine.run(&cache);
}

#[test]
fn a_task_is_marked_while_it_writes_for_integrity() {
    let (machine, cache) = boot(rules_of("2.6.16"), 1024 * MIB);
    let plain = cache.create_empty(Some(MIB)).expect("space");
    let synced = cache.create_laid_out(MIB).expect("space");
    let (fd, o_sync) = (cache.open(plain, false), cache.open(synced, true));
    let (fd, o_sync) = (fd.expect("it exists"), o_sync.expect("it exists"));
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("writer", async move {
        assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!(m.marked(), 2, "fsync");
        assert_eq!(c.write(o_sync, 4096, 4096).await, Ok(4096));
        assert_eq!(m.marked(), 3, "O_SYNC");
        assert_eq!(c.read(o_sync, 0, 4096).await, Ok(4096));
        assert_eq!(m.marked(), 3, "a read after it");
    });
    machine.run(&cache);
}

#[test]
fn o_sync_and_partial_pages_cost_reads_and_writes_at_once() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, true).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("o_sync", async move {
        assert_eq!(c.write(fd, 4096 + 100, 200).await, Ok(200));
        assert_eq!(c.write(fd, 4096 * 2, 4096).await, Ok(4096));
        assert_eq!(c.write(fd, MIB, 10).await, Ok(10));
        assert_eq!(c.write(fd, MIB + 10, 10).await, Ok(10));
        let got: Vec<_> = m
            .log()
            .iter()
            .map(|b| (b.op, (b.sector - 2048) / 8))
            .collect();
        use Op::{Read, Write};
        assert_eq!(
            got,
            [
                (Read, 1),
                (Write, 1),
                (Write, 2),
                (Write, 256),
                (Write, 256)
            ]
        );
        assert_eq!(c.size_bytes(file), MIB + 20);
    });
    machine.run(&cache);
}

#[test]
fn writers_of_one_file_take_turns_and_fsync_waits_for_theirs() {
    let (machine, cache) = boot(rules_of("2.6.28"), 1024 * MIB);
    let file = cache.create_empty(Some(8 * MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let order = Rc::new(RefCell::new(Vec::new()));
    for i in 0..4 {
        let (c, o) = (cache.clone(), order.clone());
        machine.task("writer", async move {
            for round in 0..2 {
                assert_eq!(c.write(fd, (round * 4 + i) * MIB, MIB).await, Ok(MIB));
                o.borrow_mut().push(i);
            }
        });
    }
    machine.run(&cache);
    assert_eq!(*order.borrow(), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(cache.stats().pages_dirtied, 2048);
}

#[test]
fn bios_end_at_their_capacity_and_where_the_disk_does() {
    let layout = Layout {
        chunk_pages: 100,
        gap_sectors: 64,
        ..Layout::default()
    };
    let config = Config {
        layout,
        bio_pages: 64,
        ..Config::new(rules_of("2.6.29"), 512 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    let file = cache.create_empty(Some(250 * 4096)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 250 * 4096).await, Ok(250 * 4096));
        assert_eq!(c.fsync(fd).await, Ok(()));
    });
    machine.run(&cache);
    let got: Vec<_> = machine.log().iter().map(|b| b.nr_sectors / 8).collect();
    assert_eq!(got, [64, 36, 64, 36, 50]);
}

#[test]
fn sync_file_range_starts_and_waits_as_told() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_empty(Some(2 * MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 2 * MIB).await, Ok(2 * MIB));
        let start = SyncRange {
            write: true,
            ..SyncRange::default()
        };
        assert_eq!(c.sync_file_range(fd, 0, MIB, start).await, Ok(()));
        assert_eq!(
            (m.log().len(), c.usage().writeback, c.usage().dirty),
            (0, 256, 256)
        );
        let wait = SyncRange {
            wait_before: true,
            ..SyncRange::default()
        };
        assert_eq!(c.sync_file_range(fd, 0, 0, wait).await, Ok(()));
        assert_eq!(
            (m.log().len(), c.usage().writeback, c.usage().dirty),
            (2, 0, 256)
        );
        c.sync().await;
        assert_eq!((c.usage().writeback, c.usage().dirty), (0, 0));
    });
    machine.run(&cache);
}

#[test]
fn errors_of_the_device_reach_fsync_once() {
    let disk = Disk {
        bad_sector: Some(2048 + 128 * 8),
        ..DISK
    };
    let (machine, cache) = boot_with(Config::new(rules_of("2.6.28"), 512 * MIB), disk);
    let file = cache.create_empty(Some(MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
        assert_eq!(c.fsync(fd).await, Err(FsError::Io));
        assert_eq!(c.fsync(fd).await, Ok(()));
    });
    machine.run(&cache);
    assert_eq!(cache.stats().failed_bios, 1);
}

#[test]
fn a_small_machine_drops_clean_pages_and_waits_when_there_are_none() {
    let config = Config {
        kernel_bytes: 16 * MIB,
        anon_bytes: 100 * MIB,
        dirty_ratio: 60,
        dirty_background_ratio: 50,
        ..Config::new(rules_of("2.6.28"), 128 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    dd(&machine, &cache, 64 * MIB);
    machine.run(&cache);
    let (usage, stats) = (cache.usage(), cache.stats());
    assert!(
        usage.dirty_limit > 12 * 256,
        "the limits count anonymous memory: {usage:?}"
    );
    assert!(
        stats.reclaim_waits > 0 && stats.reclaimed_pages >= 52 * 256,
        "{stats:?}"
    );
    assert!(usage.cached <= 12 * 256, "{usage:?}");
}

#[test]
fn full_disks_bad_handles_and_bad_settings_are_errors() {
    let layout = Layout {
        end_sector: 2048 + 800,
        ..Layout::default()
    };
    let config = Config {
        layout,
        ..Config::new(rules_of("2.6.28"), 512 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    assert_eq!(cache.create_laid_out(MIB), Err(FsError::NoSpace));
    let file = cache.create_empty(None).expect("nothing yet");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 0, 400 * 1024).await, Ok(400 * 1024));
        assert_eq!(c.write(fd, 400 * 1024, 1).await, Err(FsError::NoSpace));
        assert_eq!(c.write(fd, u64::MAX, 2).await, Err(FsError::TooBig));
        assert_eq!(
            c.write(blklab_pagecache::Fd(9), 0, 1).await,
            Err(FsError::BadHandle)
        );
        assert_eq!(c.write(fd, 0, 0).await, Ok(0));
    });
    machine.run(&cache);
    assert!(cache.end_bio(BioKey::new(77), false).is_err());
    let tiny = PageCache::new(
        machine,
        Config::new(rules_of("2.6.28"), 64 * MIB),
        blklab_fs::Filesystem::Extents(()),
    )
    .map(|_| ());
    let text = tiny.expect_err("64 MiB are the kernel's own").to_string();
    assert!(text.contains("at least 1024"), "{text}");
}

#[test]
fn fsync_writes_again_what_was_changed_on_its_way() {
    let (machine, cache) = boot(rules_of("2.6.28"), 512 * MIB);
    let file = cache.create_empty(Some(MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("write", async move {
        let start = SyncRange {
            write: true,
            ..SyncRange::default()
        };
        assert_eq!(c.write(fd, 0, MIB).await, Ok(MIB));
        assert_eq!(c.sync_file_range(fd, 0, 0, start).await, Ok(()));
        assert_eq!(
            c.write(fd, 4096, 8192).await,
            Ok(8192),
            "no waiting for pages in flight"
        );
        assert_eq!(
            (c.usage().dirty, c.usage().writeback, m.log().len()),
            (2, 256, 0)
        );
        assert_eq!(c.fsync(fd).await, Ok(()));
        let last = m.log()[2];
        assert_eq!(
            (m.log().len(), last.sector, last.nr_sectors),
            (3, 2048 + 8, 16)
        );
    });
    machine.run(&cache);
}

#[test]
fn checks_are_rare_again_when_the_limit_is_no_longer_exceeded() {
    let (machine, cache) = boot(rules_of("2.6.28"), 256 * MIB);
    let (task, _) = dd(&machine, &cache, 256 * MIB);
    machine.run(&cache);
    assert!(cache.stats().throttled(task).exceeded > 0);
    machine.run_until(&cache, Time(60_000_000_000));
    let (task, _) = dd(&machine, &cache, 4 * MIB);
    machine.run(&cache);
    let checks = cache.stats().throttled(task).checks;
    assert!((1..=3).contains(&checks), "{checks}");
}

#[test]
fn from_2_6_31_on_a_throttled_task_leaves_small_rests_to_others() {
    // With most pages under write-back the dirty ones alone are below the
    // limit: nothing is left to write for the task, it waits.
    let waits_of = |features| {
        let config = Config {
            dirty_ratio: 10,
            dirty_background_ratio: 5,
            ..Config::new(features, 256 * MIB)
        };
        let (machine, cache) = boot_with(config, DISK);
        let (task, _) = dd(&machine, &cache, 256 * MIB);
        machine.run(&cache);
        let t = cache.stats().throttled(task);
        (t.waits, t.pages_written)
    };
    let (old, new) = (waits_of(rules_of("2.6.30")), waits_of(rules_of("2.6.31")));
    assert!(new.0 > old.0 && new.1 < old.1, "{old:?} {new:?}");
}
