// SPDX-License-Identifier: MIT OR Apache-2.0
//! XFS: what reaches the disk, in which order, and who waits for it.

use crate::draw::Draw;
use crate::machine::{Disk, Machine, Served};
use crate::{DISK, MIB, boot_on, rules_of};
use blklab_fs::{Filesystem, XfsFeatures, XfsOptions};
use blklab_pagecache::{Config, FileId, Name, PageCache, Runtime};
use blklab_types::{Op, Span, Time};
use std::cell::Cell;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 8 GiB, in groups of 2 GiB.
const DISK_SECTORS: u64 = 16 << 20;
/// The log: behind four blocks of the third group, 10 MiB.
const LOG: std::ops::Range<u64> = DISK_SECTORS / 2 + 32..DISK_SECTORS / 2 + 32 + 20_480;

fn mount_on(disk: Disk, change: impl FnOnce(&mut XfsOptions)) -> (Machine, PageCache<Machine>) {
    let mut options = XfsOptions::new(XfsFeatures::of(crate::kernel([2, 6, 26])));
    options.barrier = false;
    change(&mut options);
    let mut config = Config::new(rules_of("2.6.28"), 1024 * MIB);
    config.layout.start_sector = 0;
    config.layout.end_sector = DISK_SECTORS;
    boot_on(Filesystem::Xfs(options), config, disk)
}

fn mount(change: impl FnOnce(&mut XfsOptions)) -> (Machine, PageCache<Machine>) {
    mount_on(DISK, change)
}

fn name(n: u32) -> Name {
    Name {
        bytes: 9,
        hash: n.wrapping_mul(0x9e37_79b9),
    }
}

/// A file of so many bytes, written and closed.
async fn write_file(c: &PageCache<Machine>, directory: FileId, n: u32, bytes: u64) -> FileId {
    let id = c.create(directory, name(n)).await.expect("there is room");
    let fd = c.open_file(id).await.expect("it is there");
    if bytes > 0 {
        assert_eq!(c.write(fd, 0, bytes).await, Ok(bytes));
    }
    assert_eq!(c.close(fd).await, Ok(()));
    id
}

fn is_record(s: &&Served) -> bool {
    s.op == Op::Write && LOG.contains(&s.sector)
}

#[test]
fn a_small_file_is_one_bio_of_its_size_beside_its_neighbours() {
    let (machine, cache) = mount(|_| {});
    let c = cache.clone();
    machine.task("files", async move {
        for (n, pages) in [1, 5, 6, 7, 3].into_iter().enumerate() {
            write_file(&c, c.root(), n as u32, pages * 4096 - 100).await;
        }
        c.sync().await;
    });
    machine.run(&cache);
    let log = machine.log();
    let data = log.iter().filter(|s| s.op == Op::Write && !s.sync);
    let data: Vec<(u64, u32)> = data.map(|s| (s.sector, s.nr_sectors)).collect();
    let sizes: Vec<u32> = data.iter().map(|d| d.1).collect();
    assert_eq!(sizes, [8, 40, 48, 56, 24]);
    assert!(
        data.windows(2)
            .all(|w| w[0].0 + u64::from(w[0].1) == w[1].0)
    );
    // The first group's first chunk of inodes lies before them.
    assert_eq!(data[0].0, (8 + 4) * 8);
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn full_records_lie_one_behind_another_and_inodes_follow_their_records() {
    let (machine, cache) = mount(|o| o.log_buffer_bytes = 64 << 10);
    let c = cache.clone();
    machine.task("files", async move {
        for n in 0..400 {
            write_file(&c, c.root(), n, 100).await;
        }
    });
    machine.run(&cache);
    let log = machine.log();
    let mut records: Vec<&Served> = log.iter().filter(is_record).collect();
    records.sort_by_key(|s| s.submitted);
    assert!(records.len() > 8 && records.iter().all(|s| s.sync && s.nr_sectors == 128));
    assert!(records.windows(2).all(|w| w[0].sector + 128 == w[1].sector));
    machine.run_until(&cache, Time(120 * SECONDS));
    let log = machine.log();
    let clusters: Vec<&Served> = log
        .iter()
        .filter(|s| s.op == Op::Write && s.nr_sectors == 16)
        .collect();
    assert!(clusters.len() >= 400 / 32, "{}", clusters.len());
    let first = clusters.iter().map(|s| s.submitted).min();
    assert!(first > records.iter().map(|s| s.done).min());
}

#[test]
fn a_creator_sleeps_when_all_log_buffers_are_on_their_way() {
    let slow = Disk {
        per_request: Span::from_ms(400),
        ..DISK
    };
    let (machine, cache) = mount_on(slow, |_| {});
    let (c, made) = (cache.clone(), Rc::new(Cell::new(0_u32)));
    let count = made.clone();
    machine.task("files", async move {
        for n in 0..5000 {
            write_file(&c, c.root(), n, 0).await;
            count.set(n);
        }
    });
    machine.run_until(&cache, Time(5 * SECONDS));
    // 1660 bytes a file, 32256 a record: what is done and 8 more.
    let records = machine.log().iter().filter(is_record).count() as u64;
    let bytes = u64::from(made.get()) * 1660;
    assert!(
        bytes > 0 && bytes / 32_256 <= records + 8,
        "{bytes} {records}"
    );
    assert!(made.get() < 4999, "it still sleeps");
}

#[test]
fn the_tail_of_a_small_log_is_pushed() {
    let (machine, cache) = mount(|o| o.log_blocks = Some(512));
    let c = cache.clone();
    machine.task("files", async move {
        for n in 0..4000 {
            write_file(&c, c.root(), n, 100).await;
        }
    });
    machine.run(&cache);
    let log = machine.log();
    let logged: u64 = log
        .iter()
        .filter(is_record)
        .map(|s| u64::from(s.nr_sectors))
        .sum();
    assert!(logged > 2 * 512 * 8, "the log went round: {logged}");
}

#[test]
fn old_kernels_push_the_tail_themselves() {
    let (machine, cache) = mount(|o| {
        o.log_blocks = Some(512);
        o.features.tail_thread = false;
    });
    let c = cache.clone();
    machine.task("files", async move {
        for n in 0..4000 {
            write_file(&c, c.root(), n, 100).await;
        }
    });
    machine.run(&cache);
}

#[test]
fn fsync_waits_for_its_record_and_not_for_the_inode() {
    let (machine, cache) = mount(|_| {});
    let c = cache.clone();
    machine.task("fsync", async move {
        let id = c.create(c.root(), name(1)).await.expect("there is room");
        let fd = c.open_file(id).await.expect("it is there");
        assert_eq!(c.write(fd, 0, 8192).await, Ok(8192));
        assert_eq!(c.fsync(fd).await, Ok(()));
    });
    machine.run(&cache);
    let log = machine.log();
    let data = log
        .iter()
        .find(|s| s.nr_sectors == 16 && !s.sync && s.op == Op::Write);
    let record = log.iter().rfind(is_record).expect("a record");
    let last = data.expect("the pages").done.max(record.done);
    assert_eq!(machine.now(), last);
    let writes = log.iter().filter(|s| s.op == Op::Write).count();
    assert_eq!(writes, 2, "no buffer went to its place");
}

#[test]
fn a_cold_stat_reads_the_directory_and_a_cluster_of_32() {
    let (machine, cache) = mount(|_| {});
    let c = cache.clone();
    let files = Rc::new(std::cell::RefCell::new(Vec::new()));
    let made = files.clone();
    machine.task("files", async move {
        for n in 0..64 {
            let file = write_file(&c, c.root(), n, 0).await;
            made.borrow_mut().push(file);
        }
        c.sync().await;
    });
    machine.run(&cache);
    // Queued buffers go after 15 s, then nothing is dirty.
    machine.run_until(&cache, Time(60 * SECONDS));
    cache.drop_caches();
    let before = machine.log().len();
    let (c, files) = (cache.clone(), files.clone());
    machine.task("stat", async move {
        let files = files.borrow().clone();
        for id in files {
            assert_eq!(c.stat(id).await, Ok(()));
        }
    });
    machine.run(&cache);
    let reads: Vec<u32> = machine.log()[before..]
        .iter()
        .filter(|s| s.op == Op::Read)
        .map(|s| s.nr_sectors)
        .collect();
    // One block of entries; 64 inodes and the root's own in three clusters.
    assert_eq!(reads, [8, 16, 16, 16]);
}

#[test]
fn delayed_logging_writes_a_tenth() {
    let sectors = |delayed| {
        let (machine, cache) = mount(|o| o.delayed_logging = delayed);
        let c = cache.clone();
        machine.task("files", async move {
            for n in 0..3000 {
                write_file(&c, c.root(), n, 0).await;
            }
            c.sync().await;
        });
        machine.run(&cache);
        let log = machine.log();
        let records = log.iter().filter(is_record);
        records.map(|s| u64::from(s.nr_sectors)).sum::<u64>()
    };
    let (delayed, direct) = (sectors(true), sectors(false));
    assert!(delayed * 3 < direct, "{delayed} {direct}");
}

#[test]
fn holes_read_as_zeroes_without_the_disk() {
    let (machine, cache) = mount(|_| {});
    let c = cache.clone();
    machine.task("holes", async move {
        let id = c.create(c.root(), name(1)).await.expect("there is room");
        let fd = c.open_file(id).await.expect("it is there");
        assert_eq!(c.write(fd, 10 * 4096, 4096).await, Ok(4096));
        assert_eq!(c.write(fd, 3 * 4096, 4096).await, Ok(4096));
        assert_eq!(c.fsync(fd).await, Ok(()));
        assert_eq!(c.extents(id).len(), 2);
        c.drop_caches();
        assert_eq!(c.read(fd, 0, 11 * 4096).await, Ok(11 * 4096));
        assert_eq!(c.direct_read(fd, 0, 11 * 4096).await, Ok(11 * 4096));
    });
    machine.run(&cache);
    let log = machine.log();
    let read: u32 = log
        .iter()
        .filter(|s| s.op == Op::Read && s.sector >= 96)
        .map(|s| s.nr_sectors)
        .sum();
    assert_eq!(read, 4 * 8, "two pages, twice");
}

/// Random operations of one task in a directory of its own.
async fn random_task(c: PageCache<Machine>, seed: u64, top: FileId) {
    let mut draw = Draw(seed);
    let mut files: Vec<FileId> = Vec::new();
    for n in 0..150 {
        let some = (!files.is_empty()).then(|| files[draw.below(files.len() as u64) as usize]);
        match (draw.below(10), some) {
            (0..=3, _) | (_, None) => {
                let bytes = draw.below(200_000);
                files.push(write_file(&c, top, n, bytes).await);
            }
            (4, Some(id)) => {
                files.retain(|f| *f != id);
                assert_eq!(c.unlink(id).await, Ok(()));
            }
            (what, Some(id)) => {
                let fd = c.open_file(id).await.expect("it is there");
                let (at, bytes) = (draw.below(400_000), 1 + draw.below(50_000));
                let done = match what {
                    5 => c.write(fd, at, bytes).await,
                    6 => c.read(fd, at, bytes).await,
                    7 => c.truncate(fd).await.map(|()| 0),
                    8 => c.direct_write(fd, at / 4096 * 4096, 8192).await,
                    _ => c.fsync(fd).await.map(|()| 0),
                };
                assert!(done.is_ok(), "{done:?}");
                assert_eq!(c.close(fd).await, Ok(()));
            }
        }
    }
    for id in files {
        assert_eq!(c.unlink(id).await, Ok(()));
    }
    assert_eq!(c.unlink(top).await, Ok(()));
}

fn random_run(seed: u64, change: fn(&mut XfsOptions)) -> Vec<Served> {
    let (machine, cache) = mount(change);
    let free = cache.free_space().expect("XFS counts it");
    for task in 0..3 {
        let c = cache.clone();
        machine.task("random", async move {
            let top = c.mkdir(c.root(), name(task)).await.expect("there is room");
            random_task(c, seed * 10 + u64::from(task) + 1, top).await;
        });
    }
    machine.run(&cache);
    let c = cache.clone();
    machine.task("sync", async move { c.sync().await });
    machine.run(&cache);
    let usage = cache.usage();
    assert_eq!((usage.dirty, usage.writeback), (0, 0));
    // The root's chunk of inodes was there; trees of free space may have grown.
    assert_eq!(cache.free_space(), Some(free), "seed {seed}");
    machine.run_until(&cache, Time(machine.now().0 + 120 * SECONDS));
    assert_eq!(cache.bios_in_flight(), 0);
    machine.log()
}

#[test]
fn random_operations_end_and_give_all_space_back() {
    for seed in 1..12 {
        let plain = random_run(seed, |_| {});
        assert_eq!(plain, random_run(seed, |_| {}), "a second run is the same");
        random_run(seed, |o| o.delayed_logging = true);
        random_run(seed, |o| {
            o.log_blocks = Some(512);
            o.log_buffers = 2;
            o.features.tail_thread = false;
        });
        random_run(seed, |o| {
            o.lazy_count = true;
            o.features = XfsFeatures::of(crate::kernel([3, 7, 0]));
        });
    }
}
