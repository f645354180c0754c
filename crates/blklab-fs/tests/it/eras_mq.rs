// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels from 5.0 on: marks for write-back throttling, bios that the block
//! layer splits, read-ahead, whole loads on ext4 and XFS.

use crate::machine::{Disk, Machine, SECTOR0, Served};
use crate::read::read_pieces;
use crate::write::dd;
use crate::{DISK, MIB, boot, boot_on, boot_with, rules_of};
use blklab_fs::{Ext4Features, Ext4Options, Filesystem, XfsFeatures, XfsOptions};
use blklab_pagecache::{Advice, Config, DirectRequest, Features, Name, PageCache, Runtime};
use blklab_types::{BioFlags, Op, Span, TaskId, Time};
use std::cell::Cell;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;

/// Sectors of a volume: 8 GiB.
const DISK_SECTORS: u64 = 16 << 20;

fn features(release: [u16; 3]) -> Features {
    let [a, b, c] = release;
    Features::of(crate::kernel([a, b, c]))
}

fn ext4(release: [u16; 3]) -> Filesystem {
    Filesystem::Ext4(Ext4Options::new(Ext4Features::of(crate::kernel(release))))
}

fn xfs(release: [u16; 3]) -> Filesystem {
    Filesystem::Xfs(XfsOptions::new(XfsFeatures::of(crate::kernel(release))))
}

/// A machine with a volume.
fn mount(
    release: [u16; 3],
    filesystem: fn([u16; 3]) -> Filesystem,
) -> (Machine, PageCache<Machine>) {
    let mut config = Config::new(features(release), 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    boot_on(filesystem(release), config, DISK)
}

#[test]
fn limits_are_percentages_of_file_memory_less_one_percent() {
    // 262144 pages; 262144 - 2621 + 1 = 259524.
    let config = Config {
        kernel_bytes: 64 * MIB,
        ..Config::new(features([6, 1, 0]), (1024 + 64) * MIB)
    };
    let (_, cache) = boot_with(config, DISK);
    let usage = cache.usage();
    assert_eq!(
        (usage.background_limit, usage.dirty_limit),
        (25_952, 51_904)
    );
}

#[test]
fn the_throttle_announces_each_sleep() {
    let config = Config {
        dirty_ratio: 10,
        dirty_background_ratio: 5,
        ..Config::new(features([6, 12, 0]), 512 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    let (task, _) = dd(&machine, &cache, 256 * MIB);
    machine.run(&cache);
    let t = cache.stats().throttled(task);
    assert!(t.waits > 0 && t.pages_written == 0, "{t:?}");
    assert_eq!(machine.dirty_sleeps(), t.waits);
}

/// Flags of the bios of a file of 64 KiB: written back by age, with fsync, by
/// the flusher that sync(2) wakes before it waits, and directly.
fn flags_of_writes(features: Features) -> [BioFlags; 4] {
    let (machine, cache) = boot(features, 512 * MIB);
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("writes", async move {
        assert_eq!(c.write(fd, 0, 65_536).await, Ok(65_536));
        m.sleep(Span::from_s(40)).await;
        assert_eq!(c.write(fd, 0, 65_536).await, Ok(65_536));
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!(c.write(fd, 0, 65_536).await, Ok(65_536));
        c.sync().await;
        assert_eq!(c.direct_write(fd, 0, 65_536).await, Ok(65_536));
    });
    machine.run(&cache);
    let log = machine.data();
    assert!(log.iter().all(|s| s.op == Op::Write && s.nr_sectors == 128));
    let flags: Vec<_> = log.iter().map(|s| s.flags).collect();
    flags.try_into().expect("four writes")
}

#[test]
fn background_and_direct_writes_are_marked_from_4_10_on() {
    let (none, sync) = (BioFlags::NONE, BioFlags::SYNC);
    let (no_idle, idle) = (sync | BioFlags::NOIDLE, sync | BioFlags::IDLE);
    let background = BioFlags::BACKGROUND;
    assert_eq!(
        flags_of_writes(rules_of("4.4")),
        [none, no_idle, none, sync]
    );
    assert_eq!(
        flags_of_writes(rules_of("4.10")),
        [background, no_idle, none, idle]
    );
    for release in [[5, 0, 0], [5, 10, 0], [6, 1, 0], [6, 18, 0]] {
        let flags = flags_of_writes(features(release));
        assert_eq!(flags, [background, sync, none, idle], "{release:?}");
    }
}

#[test]
fn writing_above_the_background_limit_is_marked() {
    let config = Config {
        dirty_background_bytes: Some(8 * MIB),
        ..Config::new(features([6, 1, 0]), 512 * MIB)
    };
    let (machine, cache) = boot_with(config, DISK);
    dd(&machine, &cache, 32 * MIB);
    machine.run(&cache);
    machine.run_until(&cache, Time(2 * SECONDS));
    let log = machine.log();
    assert!(!log.is_empty());
    assert!(log.iter().all(|s| s.flags == BioFlags::BACKGROUND));
}

#[test]
fn bios_hold_256_pages_whatever_the_queue_takes() {
    let direct = |features| {
        let (machine, cache) = boot(features, 512 * MIB);
        let file = cache.create_laid_out(4 * MIB).expect("space");
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("direct", async move {
            assert_eq!(c.direct_write(fd, 0, MIB + 4096).await, Ok(MIB + 4096));
            assert_eq!(c.write(fd, 2 * MIB, MIB).await, Ok(MIB));
            assert_eq!(c.fsync(fd).await, Ok(()));
        });
        machine.run(&cache);
        machine.served()
    };
    assert_eq!(
        direct(rules_of("4.10")),
        [(0, 128), (128, 128), (256, 1), (512, 128), (640, 128)]
    );
    assert_eq!(
        direct(features([6, 1, 0])),
        [(0, 256), (256, 1), (512, 256)]
    );
    let pages = |features| Config::bio_pages_of_queue(&features, 255, 64);
    assert_eq!([rules_of("4.10"), rules_of("5.0")].map(pages), [31, 256]);
}

#[test]
fn a_random_reader_reads_its_request_in_one_bio_that_may_fail() {
    let read = [(400 * 4096, 44 << 10)];
    let log = read_pieces(features([6, 1, 0]), 16 * MIB, Advice::Random, &read).log();
    assert_eq!(log.len(), 1);
    let only = log[0];
    assert_eq!((only.nr_sectors, only.flags), (88, BioFlags::AHEAD));
    assert_eq!(only.segments, 11, "single pages");
}

#[test]
fn sequential_readers_start_with_one_window() {
    let calls: Vec<_> = (0..3).map(|i| (i * 131_072, 131_072)).collect();
    let served = |features| read_pieces(features, 16 * MIB, Advice::Normal, &calls).served();
    assert_eq!(served(rules_of("4.10")), [(0, 64), (64, 32), (96, 32)]);
    assert_eq!(
        served(features([5, 10, 0])),
        [(0, 32), (32, 32), (64, 32), (96, 32)]
    );
    let small: Vec<_> = (0..64).map(|i| (i * 4096, 4096)).collect();
    let machine = read_pieces(features([6, 1, 0]), 16 * MIB, Advice::Normal, &small);
    assert_eq!(
        machine.served(),
        [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 32)]
    );
    assert!(machine.log().iter().all(|s| s.flags == BioFlags::AHEAD));
}

#[test]
fn windows_of_a_reader_measured_on_6_1() {
    // fio 3.33, rw=read bs=4k direct=0 on a disk: what blktrace showed of the
    // first 256 pages, in sectors.
    let measured = [
        (0, 32),
        (32, 64),
        (96, 128),
        (224, 256),
        (480, 512),
        (992, 512),
        (1504, 512),
        (2016, 512),
        (2528, 512),
    ];
    let calls: Vec<_> = (0..256).map(|i| (i * 4096, 4096)).collect();
    let machine = read_pieces(features([6, 1, 0]), 16 * MIB, Advice::Sequential, &calls);
    let seen: Vec<_> = machine
        .log()
        .iter()
        .map(|s| (s.sector - SECTOR0, s.nr_sectors))
        .collect();
    assert_eq!(seen, measured);
}

#[test]
fn the_disk_as_a_file_is_written_page_by_page_and_read_in_windows() {
    let served = |features| {
        let (machine, cache) = boot(features, 512 * MIB);
        let file = cache.create_raw(SECTOR0, 16 * MIB);
        let fd = cache.open(file, false).expect("it exists");
        let c = cache.clone();
        machine.task("program", async move {
            assert_eq!(c.write(fd, MIB, 12 * 4096).await, Ok(12 * 4096));
            assert_eq!(c.fsync(fd).await, Ok(()));
            assert_eq!(c.read(fd, 0, 16 * 4096).await, Ok(16 * 4096));
        });
        machine.run(&cache);
        assert_eq!((cache.usage().dirty, cache.usage().writeback), (0, 0));
        machine.served()
    };
    let single: Vec<_> = (256..268).map(|p| (p, 1)).collect();
    let new = served(features([6, 1, 0]));
    assert_eq!((&new[..12], new[12]), (&single[..], (0, 32)));
    assert_eq!(served(rules_of("4.10"))[..2], [(256, 12), (0, 32)]);
}

/// Writes 64 KiB at a time for eight seconds, with limits of 4 and 16 MiB, to a
/// disk that takes 0.2 ms and 5 us per sector; the calls and their mean time.
fn writer_of_64_kib(features: Features) -> (u64, Span) {
    let config = Config {
        dirty_bytes: Some(16 * MIB),
        dirty_background_bytes: Some(4 * MIB),
        page_cost: Span::from_us(12),
        copy_bytes_per_s: 10_000_000_000,
        bio_pages: 128,
        ..Config::new(features, 2048 * MIB)
    };
    let disk = Disk {
        per_request: Span::from_us(200),
        bytes_per_s: 102_400_000,
        bad_sector: None,
    };
    let (machine, cache) = boot_with(config, disk);
    let file = cache.create_empty(Some(1024 * MIB)).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let calls = Rc::new(Cell::new(0));
    let (c, m, n) = (cache.clone(), machine.clone(), calls.clone());
    machine.task("writer", async move {
        while m.now() < Time(8 * SECONDS) {
            let at = n.get() * 65_536;
            assert_eq!(c.write(fd, at, 65_536).await, Ok(65_536));
            n.set(n.get() + 1);
        }
    });
    machine.run(&cache);
    let throttled = cache.stats().throttled(TaskId(2));
    (calls.get(), Span(throttled.time.ns() / throttled.waits))
}

#[test]
fn a_throttled_writer_goes_as_fast_as_measured_on_6_1() {
    // Measured, under mq-deadline without write-back throttling: 12210 calls;
    // from their mean and deviation, sleeps of about 14 ms.
    let (calls, pause) = writer_of_64_kib(features([6, 1, 0]));
    assert!((12_100..12_320).contains(&calls), "{calls}");
    assert!(
        pause > Span::from_ms(10) && pause < Span::from_ms(16),
        "{pause:?}"
    );
    let (calls, shorter) = writer_of_64_kib(rules_of("4.10"));
    assert!((12_100..12_320).contains(&calls), "{calls}");
    assert!(shorter < Span::from_ms(9), "{shorter:?}");
}

#[test]
fn a_page_read_to_be_changed_in_part_is_no_read_ahead() {
    let (machine, cache) = boot(features([6, 1, 0]), 512 * MIB);
    let file = cache.create_laid_out(MIB).expect("space");
    let fd = cache.open(file, false).expect("it exists");
    let c = cache.clone();
    machine.task("write", async move {
        assert_eq!(c.write(fd, 100, 10).await, Ok(10));
    });
    machine.run(&cache);
    let log = machine.log();
    assert_eq!((log[0].op, log[0].flags), (Op::Read, BioFlags::NONE));
}

/// Reads two windows of a file while 120 other reads are in flight; how many
/// pages the second call found asked for when the first one returned.
fn pages_read_beside_many_reads(features: Features) -> u64 {
    let (machine, cache) = boot(features, 512 * MIB);
    let other = cache.create_laid_out(16 * MIB).expect("space");
    let file = cache.create_laid_out(16 * MIB).expect("space");
    let (other, fd) = (cache.open(other, false), cache.open(file, false));
    let (other, fd) = (other.expect("it exists"), fd.expect("it exists"));
    let c = cache.clone();
    machine.task("reader", async move {
        // Pages 0 to 3, of which page 1 carries the marker.
        assert_eq!(c.read(fd, 0, 4096).await, Ok(4096));
        let context = c.aio_setup();
        for i in 0..120 {
            let request = DirectRequest {
                fd: other,
                write: false,
                offset: i * 8192,
                bytes: 4096,
                user_data: i,
                nowait: false,
            };
            assert_eq!(c.aio_submit(context, request).await, Ok(()));
        }
        assert_eq!(c.read(fd, 4096, 4096).await, Ok(4096));
    });
    machine.run(&cache);
    cache.stats().pages_read
}

#[test]
fn nothing_looks_at_congestion_from_5_0_on() {
    assert_eq!(pages_read_beside_many_reads(rules_of("4.10")), 4);
    assert_eq!(pages_read_beside_many_reads(features([6, 1, 0])), 4 + 8);
}

/// Segments of the bios of a file that is read from its start in pieces of
/// 128 KiB, and their pages.
fn segments(release: [u16; 3], filesystem: fn([u16; 3]) -> Filesystem) -> Vec<(u16, u32)> {
    let (machine, cache) = mount(release, filesystem);
    let c = cache.clone();
    machine.task("reader", async move {
        let name = Name { bytes: 4, hash: 7 };
        let id = c.create(c.root(), name).await.expect("there is room");
        let fd = c.open_file(id).await.expect("it is there");
        assert_eq!(c.write(fd, 0, 2 * MIB).await, Ok(2 * MIB));
        assert_eq!(c.fsync(fd).await, Ok(()));
        c.drop_caches();
        for i in 0..4 {
            assert_eq!(c.read(fd, i * 131_072, 131_072).await, Ok(131_072));
        }
        assert_eq!(c.close(fd).await, Ok(()));
    });
    machine.run(&cache);
    machine.run_until(&cache, machine.now() + Span::from_s(10));
    let log = machine.log();
    let read = log.iter().filter(|s| s.flags.has(BioFlags::AHEAD));
    read.map(|s| (s.segments, s.nr_sectors / 8)).collect()
}

#[test]
fn windows_of_large_folios_have_few_segments() {
    let single = [(32, 32); 5];
    // Folios of 4 pages, of 16, of 64 that do not fit: of 32, in segments of
    // 64 KiB.
    let large = [(8, 32), (2, 32), (2, 32), (2, 32), (2, 32)];
    assert_eq!(segments([5, 17, 0], xfs), single);
    assert_eq!(segments([5, 18, 0], xfs), large);
    assert_eq!(segments([6, 12, 0], xfs), large);
    assert_eq!(segments([6, 15, 0], ext4), single);
    assert_eq!(segments([6, 16, 0], ext4), large);
}

/// Writes files by age and with fsync, reads them back cold, removes some.
fn load(machine: &Machine, cache: &PageCache<Machine>) {
    let (c, m) = (cache.clone(), machine.clone());
    machine.task("load", async move {
        let mut files = Vec::new();
        for n in 0..40_u32 {
            let name = Name {
                bytes: 9,
                hash: n.wrapping_mul(0x9e37_79b9),
            };
            let id = c.create(c.root(), name).await.expect("there is room");
            let fd = c.open_file(id).await.expect("it is there");
            let bytes = 4096 * (1 + u64::from(n % 7) * 20);
            assert_eq!(c.write(fd, 0, bytes).await, Ok(bytes));
            if n % 8 == 0 {
                assert_eq!(c.fsync(fd).await, Ok(()));
            }
            assert_eq!(c.close(fd).await, Ok(()));
            files.push((id, bytes));
        }
        m.sleep(Span::from_s(70)).await;
        c.sync().await;
        c.drop_caches();
        for (id, bytes) in &files {
            let fd = c.open_file(*id).await.expect("it is there");
            assert_eq!(c.read(fd, 0, *bytes).await, Ok(*bytes));
            assert_eq!(c.close(fd).await, Ok(()));
        }
        for (id, _) in files.iter().step_by(2) {
            assert_eq!(c.unlink(*id).await, Ok(()));
        }
        c.sync().await;
    });
    machine.run(cache);
    machine.run_until(cache, machine.now() + Span::from_s(90));
    let usage = cache.usage();
    assert_eq!((usage.dirty, usage.writeback), (0, 0));
    assert_eq!(cache.bios_in_flight(), 0);
}

#[test]
fn ext4_and_xfs_run_under_6_1() {
    for (filesystem, marked) in [(ext4 as fn([u16; 3]) -> _, false), (xfs, true)] {
        let (machine, cache) = mount([6, 1, 0], filesystem);
        load(&machine, &cache);
        let log = machine.log();
        let any = |flag| log.iter().any(|s| s.flags.has(flag));
        assert!(any(BioFlags::AHEAD) && any(BioFlags::FLUSH | BioFlags::FUA));
        assert!(!any(BioFlags::BARRIER));
        // Data of files without fsync, in the background; ext4 leaves the mark
        // to its metadata.
        let data = |s: &&Served| s.op == Op::Write && s.nr_sectors > 64 && !s.sync;
        let data: Vec<&Served> = log.iter().filter(data).collect();
        assert!(data.len() > 20, "{}", data.len());
        let count = data
            .iter()
            .filter(|s| s.flags.has(BioFlags::BACKGROUND))
            .count();
        assert_eq!(count, if marked { data.len() } else { 0 });
    }
}

/// Flags of the blocks that fsync of a page writes behind its data.
fn flags_of_fsync(release: [u16; 3], filesystem: fn([u16; 3]) -> Filesystem) -> Vec<BioFlags> {
    let (machine, cache) = mount(release, filesystem);
    let c = cache.clone();
    machine.task("fsync", async move {
        let name = Name { bytes: 4, hash: 7 };
        let id = c.create(c.root(), name).await.expect("there is room");
        let fd = c.open_file(id).await.expect("it is there");
        assert_eq!(c.write(fd, 0, 4096).await, Ok(4096));
        assert_eq!(c.fsync(fd).await, Ok(()));
    });
    machine.run(&cache);
    let log = machine.log();
    let writes = log.iter().filter(|s| s.op == Op::Write).skip(1);
    writes
        .map(|s| s.flags.without(BioFlags::UNPLUG | BioFlags::NOIDLE))
        .collect()
}

#[test]
fn log_writes_are_marked_from_5_4_on_xfs_and_6_8_on_ext4() {
    let sync = BioFlags::SYNC;
    let marked = sync | BioFlags::META | BioFlags::IDLE;
    let last = BioFlags::FLUSH | BioFlags::FUA;
    // Before 5.4 its records are buffers, all of which are metadata from 3.1 on.
    let meta = sync | BioFlags::META;
    assert_eq!(flags_of_fsync([4, 19, 0], xfs), [meta | last]);
    assert_eq!(flags_of_fsync([6, 1, 0], xfs), [marked | last]);
    for (release, each) in [([6, 1, 0], sync), ([6, 12, 0], marked)] {
        let flags = flags_of_fsync(release, ext4);
        let (commit, blocks) = flags.split_last().expect("a commit block");
        assert_eq!(*commit, each | last, "{release:?}");
        assert!(!blocks.is_empty() && blocks.iter().all(|f| *f == each));
    }
}
