// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filesystems that write elsewhere, btrfs and NILFS2: what is written when,
//! and that nothing is lost, by random operations.

use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_on, rules_of};
use blklab_fs::{BtrfsOptions, Filesystem, NilfsOptions};
use blklab_pagecache::{Config, Features, FileId, FsError, Name, PageCache, Runtime};
use blklab_types::{Op, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;

/// A volume of so many MiB from sector 0 on.
fn mount(
    filesystem: Filesystem,
    features: Features,
    memory_mib: u64,
    disk_mib: u64,
) -> (Machine, PageCache<Machine>) {
    let mut config = Config::new(features, memory_mib * MIB);
    config.kernel_bytes = 8 << 20;
    config.layout.start_sector = 0;
    config.layout.end_sector = disk_mib * MIB / 512;
    boot_on(filesystem, config, DISK)
}

fn nilfs(change: impl FnOnce(&mut NilfsOptions)) -> Filesystem {
    let mut options = NilfsOptions::default();
    change(&mut options);
    Filesystem::Nilfs(options)
}

fn btrfs() -> Filesystem {
    Filesystem::Btrfs(BtrfsOptions::of_0_16())
}

fn name(n: u64) -> Name {
    Name {
        bytes: 8 + (n % 20) as u8,
        hash: (n as u32).wrapping_mul(0x9e37_79b9),
    }
}

/// Runs one task to its end.
fn run<F: Future<Output = ()> + 'static>(
    machine: &Machine,
    cache: &PageCache<Machine>,
    body: impl FnOnce(PageCache<Machine>) -> F,
) {
    machine.task("test", body(cache.clone()));
    machine.run(cache);
}

/// Writes a new file of so many bytes in the root.
async fn new_file(c: &PageCache<Machine>, n: u64, bytes: u64) -> Result<FileId, FsError> {
    let id = c.create(c.root(), name(n)).await?;
    let fd = c.open_file(id).await?;
    let written = write_all(c, fd, bytes).await;
    c.close(fd).await?;
    written.map(|()| id)
}

async fn write_all(
    c: &PageCache<Machine>,
    fd: blklab_pagecache::Fd,
    bytes: u64,
) -> Result<(), FsError> {
    let mut at = 0;
    while at < bytes {
        let piece = (bytes - at).min(256 << 10);
        c.write(fd, at, piece).await?;
        at += piece;
    }
    Ok(())
}

fn writes(machine: &Machine) -> Vec<Served> {
    let log = machine.log();
    log.into_iter().filter(|s| s.op == Op::Write).collect()
}

fn pages(served: &[Served]) -> u64 {
    served.iter().map(|s| u64::from(s.nr_sectors) / 8).sum()
}

// NILFS2 ---------------------------------------------------------------------

#[test]
fn the_3601st_dirty_block_has_files_written_before_the_timer() {
    for (blocks, early) in [(3599, false), (3600, true)] {
        let (machine, cache) = mount(nilfs(|_| {}), rules_of("2.6.28"), 512, 1024);
        // The root's directory block is one of them.
        run(&machine, &cache, |c| async move {
            assert!(new_file(&c, 1, blocks * 4096).await.is_ok());
        });
        let first = machine.now();
        assert!(first < Time(SECONDS));
        machine.run_until(&cache, Time(4 * SECONDS));
        assert_eq!(writes(&machine).is_empty(), !early, "{blocks}");
        machine.run_until(&cache, Time(10 * SECONDS));
        assert_eq!(cache.usage().dirty, 0, "the timer's log has all");
    }
}

#[test]
fn a_log_lies_in_one_piece_behind_its_summary() {
    let (machine, cache) = mount(nilfs(|_| {}), rules_of("2.6.28"), 512, 1024);
    run(&machine, &cache, |c| async move {
        for n in 0..100 {
            assert!(new_file(&c, n, 3 * 4096).await.is_ok());
        }
        c.sync().await;
    });
    let log = writes(&machine);
    // 300 data blocks, a directory block, the 4 blocks of 100 inodes and of
    // the translation each with bitmap and descriptor, and so on: in a row.
    let (superblock, log): (Vec<_>, Vec<_>) = log.into_iter().partition(|s| s.sector == 0);
    assert!(superblock.len() <= 1);
    assert!(
        log.windows(2)
            .all(|w| w[0].sector + u64::from(w[0].nr_sectors) == w[1].sector)
    );
    assert!((310..340).contains(&pages(&log)), "{}", pages(&log));
    assert!(
        log.last().is_some_and(|s| s.sync),
        "the last one is waited for"
    );
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn what_is_overwritten_goes_elsewhere_and_the_cleaner_frees_the_rest() {
    let options = nilfs(|o| {
        o.protection_s = 20;
        o.interval_s = 2;
    });
    let (machine, cache) = mount(options, rules_of("2.6.28"), 256, 256);
    let m = machine.clone();
    run(&machine, &cache, |c| async move {
        let id = new_file(&c, 1, 20 * MIB).await.expect("room");
        c.sync().await;
        let before = c.extents(id);
        for _ in 0..30 {
            let fd = c.open_file(id).await.expect("it is there");
            assert_eq!(write_all(&c, fd, 20 * MIB).await, Ok(()), "600 MiB on 256");
            assert_eq!(c.fsync(fd).await, Ok(()));
            assert_eq!(c.close(fd).await, Ok(()));
            m.sleep(Span::from_s(20)).await;
        }
        let after = c.extents(id);
        assert!(
            before
                .iter()
                .all(|b| after.iter().all(|a| a.sector != b.sector))
        );
        assert_eq!(after.iter().map(|e| e.pages).sum::<u64>(), 5120);
    });
}

// btrfs ----------------------------------------------------------------------

#[test]
fn small_files_lie_in_leaves_and_tree_blocks_are_written_twice() {
    small_files(false);
    small_files(true);
}

/// One superblock at 16 KiB, or two, at 64 KiB and 64 MiB.
fn small_files(copies: bool) {
    let options = BtrfsOptions {
        early_superblock: !copies,
        ..BtrfsOptions::of_0_16()
    };
    let supers = if copies { 128 } else { 32 };
    let (machine, cache) = mount(Filesystem::Btrfs(options), rules_of("2.6.28"), 512, 4096);
    run(&machine, &cache, |c| async move {
        for n in 0..400 {
            assert!(new_file(&c, n, 3899).await.is_ok());
        }
        let large = new_file(&c, 1000, 3900).await.expect("room");
        c.sync().await;
        assert_eq!(c.extents(large).len(), 1);
    });
    let log = writes(&machine);
    // Chunks of tree blocks end at 2 * 256 MiB and 17 MiB; data lie behind.
    let data_start = (1 + 16 + 512) * MIB / 512;
    let data: Vec<Served> = log
        .iter()
        .copied()
        .filter(|s| s.sector >= data_start)
        .collect();
    assert_eq!(
        pages(&data),
        1,
        "the one file that does not fit into a leaf"
    );
    // One copy of the superblock lies in a chunk, at 64 MiB.
    let first = |s: &&Served| {
        let copy = copies && s.sector == 64 * MIB / 512;
        s.sector >= 17 * MIB / 512 && s.sector < data_start && !copy
    };
    let blocks: Vec<Served> = log.iter().filter(first).copied().collect();
    // A leaf for each of 400 files of 4 KB at the least.
    assert!(pages(&blocks) >= 2 * 400);
    let (low, high): (Vec<_>, Vec<_>) = blocks
        .iter()
        .partition(|s| s.sector < (17 + 256) * MIB / 512);
    let places = |half: &[Served], shift: u64| {
        let mut p: Vec<u64> = half.iter().map(|s| s.sector - shift).collect();
        p.sort_unstable();
        p
    };
    assert_eq!(places(&low, 0), places(&high, 256 * MIB / 512));
    let sectors = log.iter().map(|s| s.sector);
    let low: Vec<u64> = sectors.filter(|s| *s < MIB / 512).collect();
    assert!(!low.is_empty() && low.iter().all(|s| *s == supers));
    let copy = log.iter().filter(|s| s.sector == 64 * MIB / 512).count();
    assert!(!copies || copy == low.len());
    let last = log.iter().map(|s| s.done).max();
    let commit = log
        .iter()
        .filter(|s| s.sector == supers)
        .map(|s| s.submitted);
    let blocks_done = blocks.iter().map(|s| s.done).max();
    assert!(commit.max() >= blocks_done && last.is_some());
}

/// Several tasks that wait for the end of a commit have all found the same small file: one
/// of them puts it into its leaf.
#[test]
fn a_small_file_is_written_by_one_task_at_a_time() {
    let (machine, cache) = mount(btrfs(), rules_of("2.6.28"), 64, 1024);
    for task in 0..4 {
        let c = cache.clone();
        machine.task("writer", async move {
            for round in 0..150 {
                let made = new_file(&c, task * 1000 + round, 1500).await;
                assert!(made.is_ok());
                if round % 8 == task {
                    c.sync().await;
                }
            }
        });
    }
    for _ in 0..3 {
        let c = cache.clone();
        machine.task("sync", async move {
            for _ in 0..60 {
                c.sync().await;
            }
        });
    }
    machine.run(&cache);
    machine.run_until(&cache, Time(200 * SECONDS));
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn data_are_packed_and_bios_come_from_the_submit_thread() {
    let (machine, cache) = mount(btrfs(), rules_of("2.6.28"), 512, 4096);
    run(&machine, &cache, |c| async move {
        for n in 0..50 {
            assert!(new_file(&c, n, 20_000).await.is_ok());
        }
        c.sync().await;
    });
    let data_start = (1 + 16 + 512) * MIB / 512;
    let log = writes(&machine);
    let mut data: Vec<&Served> = log.iter().filter(|s| s.sector >= data_start).collect();
    data.sort_by_key(|s| s.sector);
    assert_eq!(data.len(), 50, "a bio for each file");
    assert!(data.windows(2).all(|w| w[0].sector + 40 == w[1].sector));
    assert!(
        data.iter()
            .all(|s| s.task == data[0].task && s.task != machine.current())
    );
}

#[test]
fn an_idle_volume_commits_after_30_seconds_and_then_rests() {
    let (machine, cache) = mount(btrfs(), rules_of("2.6.28"), 512, 4096);
    run(&machine, &cache, |c| async move {
        assert!(new_file(&c, 1, 100).await.is_ok());
    });
    machine.run_until(&cache, Time(29 * SECONDS));
    assert_eq!(writes(&machine).len(), 0);
    machine.run_until(&cache, Time(80 * SECONDS));
    let log = writes(&machine);
    assert!(log.iter().any(|s| s.sector == 32), "a superblock");
    assert!(log.iter().all(|s| s.submitted >= Time(30 * SECONDS)));
    let so_far = log.len();
    machine.run_until(&cache, Time(300 * SECONDS));
    assert_eq!(writes(&machine).len(), so_far);
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn fsync_commits_all_in_2008_and_logs_one_file_today() {
    let blocks_of = |options: BtrfsOptions| {
        let (machine, cache) = mount(Filesystem::Btrfs(options), rules_of("2.6.28"), 512, 4096);
        run(&machine, &cache, |c| async move {
            for n in 0..500 {
                assert!(new_file(&c, n, 1000).await.is_ok());
            }
            c.sync().await;
            for n in 500..1000 {
                assert!(new_file(&c, n, 1000).await.is_ok());
            }
            let id = new_file(&c, 2000, 10_000).await.expect("room");
            let fd = c.open_file(id).await.expect("it is there");
            let before = c.stats().pages_written;
            assert_eq!(c.fsync(fd).await, Ok(()));
            PAGES.with(|p| *p.borrow_mut() = c.stats().pages_written - before);
        });
        PAGES.with(|p| *p.borrow())
    };
    thread_local! { static PAGES: RefCell<u64> = const { RefCell::new(0) } }
    let old = BtrfsOptions::of_0_16();
    let full = blocks_of(old);
    let logged = blocks_of(BtrfsOptions {
        log_tree: true,
        ..old
    });
    assert!(full > 40, "the names of 500 files at the least: {full}");
    assert!(
        (4..=6).contains(&logged),
        "3 pages of data, a leaf: {logged}"
    );
}

// Both -----------------------------------------------------------------------

fn all() -> Vec<Filesystem> {
    vec![
        btrfs(),
        Filesystem::Btrfs(BtrfsOptions::of_unstable()),
        Filesystem::Btrfs(BtrfsOptions::today()),
        nilfs(|o| o.protection_s = 0),
    ]
}

#[test]
fn cold_files_are_read_from_where_they_lie() {
    for filesystem in all() {
        let (machine, cache) = mount(filesystem, rules_of("2.6.28"), 512, 4096);
        run(&machine, &cache, |c| async move {
            let mut files = Vec::new();
            for n in 0..60 {
                files.push(new_file(&c, n, n * 700).await.expect("room"));
            }
            c.sync().await;
            c.drop_caches();
            let listed = c.list(c.root()).await.expect("it is a directory");
            assert_eq!(listed, files, "in order of creation");
            for (n, id) in files.iter().enumerate() {
                let before = c.stats().pages_read;
                assert_eq!(c.stat(*id).await, Ok(()));
                let fd = c.open_file(*id).await.expect("it is there");
                let bytes = n as u64 * 700;
                assert_eq!(c.read(fd, 0, 1 << 20).await, Ok(bytes));
                assert_eq!(c.close(fd).await, Ok(()));
                let pages = bytes.div_ceil(4096);
                let read = c.stats().pages_read - before;
                assert!(bytes <= 3899 || read >= pages, "{n}: {read}");
            }
            let before = c.stats().pages_read;
            for id in files {
                let fd = c.open_file(id).await.expect("it is there");
                assert!(c.read(fd, 0, 1 << 20).await.is_ok());
                assert_eq!(c.close(fd).await, Ok(()));
            }
            assert_eq!(c.stats().pages_read, before, "all is in memory now");
        });
    }
}

#[test]
fn a_full_volume_says_so_and_what_is_deleted_can_be_used_again() {
    for size in [300_000, 3000] {
        fill_and_empty(size);
    }
}

/// Fills a volume with files of so many bytes three times.
fn fill_and_empty(size: u64) {
    let disk_mib = if size > 4096 { 256 } else { 136 };
    for filesystem in all() {
        let (machine, cache) = mount(filesystem, rules_of("2.6.28"), 256, disk_mib);
        let filled = Rc::new(RefCell::new(Vec::new()));
        let (out, m) = (filled.clone(), machine.clone());
        run(&machine, &cache, |c| async move {
            let empty = c.free_space().expect("it is counted").bytes;
            for round in 0..3 {
                let mut bytes = 0;
                let end = loop {
                    match new_file(&c, (round << 20) | (bytes / size), size).await {
                        Ok(_) => bytes += size,
                        Err(e) => break e,
                    }
                    assert!(bytes < 400 * MIB, "there is less");
                };
                assert_eq!(end, FsError::NoSpace);
                out.borrow_mut().push(bytes);
                c.sync().await;
                for id in c.list(c.root()).await.expect("it is a directory") {
                    assert_eq!(c.unlink(id).await, Ok(()));
                }
                c.sync().await;
                // The cleaner of nilfs2 needs its time.
                m.sleep(Span::from_s(120)).await;
                let free = c.free_space().expect("it is counted").bytes;
                // Chunks stay what they were made for.
                assert!(
                    size < 4096 || free * 100 > empty * 90,
                    "{free} of {empty}: {filesystem:?}"
                );
            }
        });
        let filled = filled.borrow();
        let most = if size > 4096 { 100 } else { 10 };
        assert!(filled[0] > most * MIB, "{filled:?}");
        // Chunks that btrfs made for tree blocks are no longer there for data.
        assert!(
            size < 4096 || filled[1] * 100 > filled[0] * 93,
            "{filled:?}"
        );
        assert!(filled[2] * 100 > filled[1] * 97, "{filled:?}");
    }
}

/// Places of all files are disjoint, and every one was written.
fn check_places(machine: &Machine, cache: &PageCache<Machine>, files: &[FileId]) {
    let mut places: Vec<(u64, u64)> = files
        .iter()
        .flat_map(|f| cache.extents(*f))
        .map(|e| (e.sector, e.pages * 8))
        .collect();
    places.sort_unstable();
    for two in places.windows(2) {
        assert!(two[0].0 + two[0].1 <= two[1].0, "{two:?}");
    }
    let mut written: Vec<(u64, u64)> = writes(machine)
        .iter()
        .map(|s| (s.sector, s.sector + u64::from(s.nr_sectors)))
        .collect();
    written.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (from, to) in written {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    for (sector, length) in places {
        let at = joined.partition_point(|j| j.0 <= sector);
        let covered = at.checked_sub(1).map(|i| joined[i]);
        let end = sector + length;
        assert!(
            covered.is_some_and(|j| end <= j.1),
            "{sector} was never written"
        );
    }
}

/// Random operations of a task in a directory of its own.
async fn random(m: Machine, c: PageCache<Machine>, seed: u64, left: Rc<RefCell<Vec<FileId>>>) {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 11) % n
    };
    let home = c.mkdir(c.root(), name(seed)).await.expect("room");
    let mut files: Vec<FileId> = Vec::new();
    for step in 0..60 {
        let at = draw(files.len().max(1) as u64) as usize;
        match (draw(14), files.get(at).copied()) {
            (0..=4, _) => {
                let id = c.create(home, name(step)).await.expect("room");
                files.push(id);
                let fd = c.open_file(id).await.expect("it is there");
                let most = [4000, 30_000, 900_000][draw(3) as usize];
                assert_eq!(write_all(&c, fd, draw(most)).await, Ok(()));
                assert_eq!(c.close(fd).await, Ok(()));
            }
            (5..=7, Some(id)) => {
                let fd = c.open_file(id).await.expect("it is there");
                let (offset, bytes) = (draw(400_000), 1 + draw(60_000));
                assert_eq!(c.write(fd, offset, bytes).await, Ok(bytes));
                if draw(4) == 0 {
                    assert_eq!(c.fsync(fd).await, Ok(()));
                }
                assert_eq!(c.close(fd).await, Ok(()));
            }
            (8, Some(id)) => {
                let fd = c.open_file(id).await.expect("it is there");
                assert_eq!(c.truncate(fd).await, Ok(()));
                assert_eq!(c.close(fd).await, Ok(()));
            }
            (9 | 10, Some(id)) => {
                let fd = c.open_file(id).await.expect("it is there");
                let size = c.size_bytes(id);
                assert_eq!(c.read(fd, 0, 1 << 30).await, Ok(size));
                assert_eq!(c.close(fd).await, Ok(()));
            }
            (11, Some(id)) => {
                assert_eq!(c.unlink(id).await, Ok(()));
                files.swap_remove(at);
            }
            (12, _) => {
                c.drop_caches();
                let mut listed = c.list(home).await.expect("it is a directory");
                listed.sort_unstable();
                let mut known = files.clone();
                known.sort_unstable();
                assert_eq!(listed, known);
            }
            (13, _) if draw(5) == 0 => c.sync().await,
            _ => {}
        }
        m.sleep(Span::from_ms(draw(300))).await;
    }
    left.borrow_mut().extend(files);
}

fn random_run(filesystem: Filesystem, features: Features, seed: u64) -> (Vec<Served>, u64) {
    let (machine, cache) = mount(filesystem, features, 64, 2048);
    let left = Rc::new(RefCell::new(Vec::new()));
    for task in 0..3 {
        let body = random(
            machine.clone(),
            cache.clone(),
            seed * 10 + task + 1,
            left.clone(),
        );
        machine.task("random", body);
    }
    machine.run(&cache);
    run(&machine, &cache, |c| async move { c.sync().await });
    let usage = cache.usage();
    // NILFS2's cleaner may be reading.
    let rest = (usage.dirty, usage.writeback);
    assert_eq!(rest, (0, 0), "{filesystem:?} {usage:?}");
    check_places(&machine, &cache, &left.borrow());
    (machine.log(), machine.events_handled())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_end_and_nothing_is_lost(seed in 1_u64..1_000_000) {
        for filesystem in all() {
            for features in [rules_of("2.6.24"), rules_of("2.6.28"), rules_of("2.6.32"), rules_of("3.6")] {
                random_run(filesystem, features, seed);
            }
        }
    }
}

#[test]
fn the_same_random_run_twice_is_the_same() {
    for filesystem in all() {
        let twice = [(); 2].map(|()| random_run(filesystem, rules_of("2.6.28"), 7));
        assert!(twice[0] == twice[1], "{filesystem:?}");
    }
}
