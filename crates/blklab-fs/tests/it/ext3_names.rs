// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext3 and ext2: names, what they cost when cold, what removing frees.

use crate::machine::{Machine, Served};
use crate::{DISK, MIB, boot_on, rules_of};
use blklab_fs::{DataMode, ExtFeatures, ExtOptions, Filesystem};
use blklab_pagecache::{Config, FileId, FsError, Name, PageCache};
use blklab_types::{BioFlags, Op, Time};
use std::cell::Cell;
use std::rc::Rc;

const SECONDS: u64 = 1_000_000_000;
/// Sectors of the volume: 4 GiB in 32 groups; the journal begins with group 16,
/// behind two bitmaps and 512 blocks of inodes.
const DISK_SECTORS: u64 = 8 << 20;
const JOURNAL_SECTOR: u64 = (16 * 32768 + 514) * 8;

fn mount_on(
    sectors: u64,
    journal: bool,
    change: impl FnOnce(&mut ExtOptions),
) -> (Machine, PageCache<Machine>) {
    let config = Config::new(rules_of("2.6.28"), 512 * MIB);
    mount_with(config, sectors, journal, change)
}

pub(crate) fn mount_with(
    mut config: Config,
    sectors: u64,
    journal: bool,
    change: impl FnOnce(&mut ExtOptions),
) -> (Machine, PageCache<Machine>) {
    let mut options = ExtOptions::new(journal, ExtFeatures::of(crate::kernel([2, 6, 28])));
    change(&mut options);
    config.layout.start_sector = 0;
    config.layout.end_sector = sectors;
    boot_on(Filesystem::Ext(options), config, DISK)
}

fn mount(journal: bool, change: impl FnOnce(&mut ExtOptions)) -> (Machine, PageCache<Machine>) {
    mount_on(DISK_SECTORS, journal, change)
}

/// Runs a task to its end.
pub(crate) fn run<T: 'static>(
    machine: &Machine,
    cache: &PageCache<Machine>,
    task: impl Future<Output = T> + 'static,
) -> T {
    let result = Rc::new(Cell::new(None));
    let put = result.clone();
    machine.task("test", async move { put.set(Some(task.await)) });
    machine.run(cache);
    result.take().expect("the task has ended")
}

fn in_journal(s: &Served) -> bool {
    (JOURNAL_SECTOR..JOURNAL_SECTOR + (40_000 << 3)).contains(&s.sector)
}

pub(crate) fn name(number: u32) -> Name {
    Name {
        bytes: 8,
        hash: number.wrapping_mul(2_654_435_761),
    }
}

/// Sectors of what was served since an earlier look at the log.
fn since(machine: &Machine, seen: usize, op: Op) -> Vec<u64> {
    let log = machine.log();
    let new = log[seen..].iter().filter(|s| s.op == op);
    new.map(|s| s.sector).collect()
}

#[test]
fn ten_files_in_a_directory_are_one_small_transaction() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    run(&machine, &cache, async move {
        for i in 0..10 {
            c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
    });
    let log = machine.log();
    let journal: Vec<&Served> = log.iter().filter(|s| in_journal(s)).collect();
    // Descriptor; inode bitmap, group descriptor, two blocks of 16 inodes
    // (11 to 20), the root's block; commit block.
    assert_eq!(journal.len(), 1 + 5 + 1);
    // sync has put the five into their places.
    let places = log.iter().filter(|s| s.op == Op::Write && !in_journal(s));
    assert_eq!(places.count(), 5);
    // Read were the root's block, which has no such names, the inode bitmap,
    // and the block of inodes with the root's, but not the empty one behind.
    let root_block = cache.extents(root)[0].sector;
    let inodes = (1 + 1 + 1023 + 2) * 8;
    assert_eq!(
        since(&machine, 0, Op::Read),
        [root_block, inodes - 8, inodes]
    );
}

#[test]
fn a_cold_name_costs_a_read_of_each_directory_and_each_inode_on_its_path() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let (directory, file) = run(&machine, &cache, async move {
        let directory = c.mkdir(root, name(1)).await.expect("space");
        let mut file = FileId(0);
        for i in 0..20 {
            file = c.create(directory, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        (directory, file)
    });
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        let fd = c.open_file(file).await.expect("it exists");
        c.close(fd).await.expect("it is open");
        c.stat(file).await.expect("it exists");
    });
    let reads = since(&machine, seen, Op::Read);
    let block = cache.extents(directory)[0].sector;
    let root_block = cache.extents(root)[0].sector;
    let group = block / 8 / 32768;
    assert_eq!(reads.len(), 4, "{reads:?}");
    assert_eq!([reads[0], reads[2]], [root_block, block]);
    // The directory is its group's first inode, the file the 21st.
    assert_eq!(reads[1] / 8 / 32768, group);
    assert_eq!(reads[3], reads[1] + 8, "16 inodes in a block");
    let log = machine.log();
    let serial = log[seen..].windows(2).all(|w| w[1].submitted >= w[0].done);
    assert!(serial, "one after the other");
}

#[test]
fn reads_of_names_and_inodes_are_metadata_and_those_of_bitmaps_are_not() {
    let (meta, prio) = (BioFlags::META, BioFlags::META | BioFlags::PRIO);
    for (release, expected) in [
        ([2, 6, 18], BioFlags::NONE),
        ([2, 6, 28], meta),
        ([3, 0, 0], meta),
        ([3, 1, 0], prio),
        ([3, 7, 0], prio),
    ] {
        let features = ExtFeatures::of(crate::kernel(release));
        let (machine, cache) = mount(true, |o| o.features = features);
        let root = cache.root();
        let c = cache.clone();
        run(&machine, &cache, async move {
            c.create(root, name(1)).await.expect("space");
        });
        let log = machine.log();
        let reads = log.iter().filter(|s| s.op == Op::Read);
        let flags: Vec<BioFlags> = reads.map(|s| s.flags).collect();
        // The directory's block, the inode bitmap, the root's block of inodes.
        assert_eq!(flags, [expected, BioFlags::NONE, expected], "{release:?}");
    }
}

#[test]
fn a_search_without_an_index_reads_eight_blocks_at_a_time() {
    let (machine, cache) = mount(true, |o| o.dir_index = false);
    let root = cache.root();
    let c = cache.clone();
    let last = run(&machine, &cache, async move {
        let mut last = root;
        // 16 bytes each: 254 in the first block, 256 in the others.
        for i in 0..254 + 9 * 256 + 1 {
            last = c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        last
    });
    assert_eq!(cache.extents(root).iter().map(|e| e.pages).sum::<u64>(), 11);
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        c.stat(last).await.expect("it exists");
    });
    let log = machine.log();
    let reads: Vec<&Served> = log[seen..].iter().filter(|s| s.op == Op::Read).collect();
    assert_eq!(reads.len(), 11 + 1);
    let together = reads.iter().filter(|r| r.submitted == reads[0].submitted);
    assert_eq!(together.count(), 8);
    let c = cache.clone();
    let listed = run(&machine, &cache, async move { c.list(root).await });
    let listed = listed.expect("no errors");
    assert!(listed.windows(2).all(|w| w[0] < w[1]), "as created");
}

#[test]
fn an_index_costs_two_blocks_a_search_and_orders_the_listing() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let last = run(&machine, &cache, async move {
        let mut last = root;
        for i in 0..2500 {
            last = c.create(root, name(i)).await.expect("space");
        }
        c.sync().await;
        c.drop_caches();
        last
    });
    let blocks: u64 = cache.extents(root).iter().map(|e| e.pages).sum();
    assert!((12..=21).contains(&blocks), "{blocks}: half to nearly full");
    let seen = machine.log().len();
    let c = cache.clone();
    let listed = run(&machine, &cache, async move {
        c.stat(last).await.expect("it exists");
        c.list(root).await.expect("no errors")
    });
    let reads = since(&machine, seen, Op::Read);
    // Index, leaf, inode; the other leaves; the root's inode, whose access time
    // changes.
    assert_eq!(reads.len() as u64, 3 + blocks - 2 + 1, "{reads:?}");
    assert_eq!(reads[0], cache.extents(root)[0].sector);
    let place = |id: &FileId| cache.listing_place(*id);
    assert!(listed.windows(2).all(|w| place(&w[0]) < place(&w[1])));
    assert!(listed.windows(2).any(|w| w[0] > w[1]), "not as created");
}

#[test]
fn freed_blocks_are_taken_again_when_the_transaction_is_committed() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let c = cache.clone();
    let (before, early, late) = run(&machine, &cache, async move {
        let write = async |number| {
            let file = c.create(root, name(number)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            c.write(fd, 0, 40_000).await.expect("space");
            c.close(fd).await.expect("it is open");
            file
        };
        let first = write(1).await;
        c.sync().await;
        let before = c.extents(first);
        c.unlink(first).await.expect("it exists");
        let second = write(2).await;
        c.sync().await;
        let third = write(3).await;
        (before, c.extents(second), c.extents(third))
    });
    assert_eq!(early[0].sector, before[0].sector + 80, "right behind");
    assert_eq!(late, before, "in the same place");
}

#[test]
fn removing_a_large_file_logs_a_revoke_record_and_frees_everything() {
    let (machine, cache) = mount(true, |_| {});
    let root = cache.root();
    let free = cache.free_space().expect("it is counted");
    let c = cache.clone();
    let file = run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, 8 * MIB).await.expect("space");
        c.close(fd).await.expect("it is open");
        c.sync().await;
        c.drop_caches();
        file
    });
    // 2048 pages and two blocks of pointers and the one above the second.
    let now = cache.free_space().expect("it is counted");
    assert_eq!(free.bytes - now.bytes, (2048 + 3) * 4096);
    assert_eq!(free.inodes - now.inodes, 1);
    let seen = machine.log().len();
    let c = cache.clone();
    run(&machine, &cache, async move {
        c.unlink(file).await.expect("it exists");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), Some(free));
    // Root's block, inodes, three blocks of pointers, both bitmaps.
    assert_eq!(since(&machine, seen, Op::Read).len(), 7);
    let log = machine.log();
    let journal = log[seen..].iter().filter(|s| in_journal(s)).count();
    // A block of revoke records; a descriptor; superblock, descriptor, inode
    // bitmap, block bitmap, inodes, root's block; the commit block.
    assert_eq!(journal, 1 + 1 + 6 + 1);
}

#[test]
fn a_file_that_is_open_keeps_its_blocks_until_it_is_closed() {
    for journal in [true, false] {
        let (machine, cache) = mount(journal, |_| {});
        let root = cache.root();
        let free = cache.free_space();
        let c = cache.clone();
        run(&machine, &cache, async move {
            let file = c.create(root, name(1)).await.expect("space");
            let fd = c.open_file(file).await.expect("it exists");
            c.write(fd, 0, MIB).await.expect("space");
            c.unlink(file).await.expect("it exists");
            c.sync().await;
            assert_ne!(c.free_space(), free);
            c.truncate(fd).await.expect("it is open");
            c.write(fd, 0, 4096).await.expect("space");
            c.close(fd).await.expect("it is open");
            c.sync().await;
            assert_eq!(c.free_space(), free);
        });
        assert_eq!(cache.usage().dirty, 0);
    }
}

#[test]
fn journalled_data_go_to_the_log_first_and_to_their_places_later() {
    let (machine, cache) = mount(true, |o| o.data = DataMode::Journal);
    let root = cache.root();
    let c = cache.clone();
    let file = run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, MIB).await.expect("space");
        c.fsync(fd).await.expect("no errors");
        file
    });
    let place = cache.extents(file)[0].sector;
    let in_place = |log: &[Served]| {
        let run = place..place + 256 * 8 + 8;
        log.iter()
            .filter(|s| s.op == Op::Write && run.contains(&s.sector))
            .count()
    };
    let log = machine.log();
    assert!(log.iter().filter(|s| in_journal(s)).count() > 256 + 5);
    assert_eq!(in_place(&log), 0, "fsync needs the log alone");
    machine.run_until(&cache, Time(60 * SECONDS));
    assert_eq!(in_place(&machine.log()), 256 + 1, "and a block of pointers");
    assert_eq!(cache.usage().dirty, 0);
}

#[test]
fn a_full_volume_says_so_and_freed_blocks_are_committed_when_needed() {
    // Two groups of 128 MiB.
    let small = 2 * 32768 * 8;
    let (machine, cache) = mount_on(small, true, |o| o.journal_blocks = Some(1024));
    let root = cache.root();
    let free = cache.free_space().expect("it is counted");
    let c = cache.clone();
    run(&machine, &cache, async move {
        let file = c.create(root, name(1)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        assert_eq!(c.write(fd, 0, 300 * MIB).await, Err(FsError::NoSpace));
        assert_eq!(c.free_space().map(|f| f.bytes), Some(0));
        assert_eq!(c.mkdir(root, name(2)).await, Err(FsError::NoSpace));
        c.close(fd).await.expect("it is open");
        c.unlink(file).await.expect("it exists");
        let again = c.create(root, name(3)).await.expect("space");
        let fd = c.open_file(again).await.expect("it exists");
        c.write(fd, 0, 200 * MIB)
            .await
            .expect("a commit makes room");
        c.close(fd).await.expect("it is open");
        c.unlink(again).await.expect("it exists");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), Some(free));
}

#[test]
fn ext2_does_the_same_without_a_journal() {
    let (machine, cache) = mount(false, |_| {});
    let root = cache.root();
    let free = cache.free_space();
    let c = cache.clone();
    run(&machine, &cache, async move {
        let directory = c.mkdir(root, name(1)).await.expect("space");
        let file = c.create(directory, name(2)).await.expect("space");
        let fd = c.open_file(file).await.expect("it exists");
        c.write(fd, 0, 100_000).await.expect("space");
        c.close(fd).await.expect("it is open");
        c.sync().await;
        assert_eq!(c.usage().dirty, 0);
        assert_eq!(c.unlink(directory).await, Err(FsError::NotEmpty));
        c.unlink(file).await.expect("it exists");
        c.unlink(directory).await.expect("it is empty");
        c.sync().await;
    });
    assert_eq!(cache.free_space(), free);
    assert_eq!(cache.usage().dirty, 0);
    assert!(!machine.log().iter().any(in_journal));
}
